"""Batches of series with some of their neighbours: without them, hardly two are alike."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from softclt.training.randomness import Stream, numpy_generator
from softclt.validation import Ints

_ROWS = 1024  # of a matrix that are looked at together


class NeighbourRows:
    """Rows of a batch from one or several sets of series: anchors, and one neighbour of each.

    An anchor's set is drawn by its weight, the anchor evenly. Half of the rows that sets with
    distances have in a batch are neighbours, each one of the nearest series of an anchor. A row
    comes once in a batch: one that is there already is replaced by another anchor.

    Args:
        distances: Within each set ``(N_k, N_k)``; a number where so many series that follow one
            another are siblings, which are neighbours; None where nothing is alike.
        sizes: Series of each set; their rows follow each other.
        weights: Of the sets; in proportion to them anchors are drawn.
        neighbours: How many nearest series of an anchor one is drawn from; 0 draws anchors only.

    Example:
        >>> places = torch.tensor([0.0, 1.0, 10.0, 11.0, 20.0, 21.0])  # three pairs
        >>> rows = NeighbourRows([(places[:, None] - places).abs()], [6], [1.0], neighbours=1)
        >>> sorted(rows(seed=0, step=0, size=4).tolist())
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        distances: Sequence[Tensor | int | None],
        sizes: Sequence[int],
        weights: Sequence[float],
        neighbours: int,
    ) -> None:
        self.sizes = np.asarray(sizes)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        k = max(1, neighbours)
        found = [_nearest(one, size, k) for one, size in zip(distances, sizes, strict=True)]
        self.alike = np.array([own.size > 0 for own in found]) & (neighbours > 0)
        # Anchors of sets with neighbours bring as many neighbours: a batch has the weights.
        shares = np.asarray(weights) * np.where(self.alike, 0.5, 1.0)
        self.shares = shares / shares.sum()
        nearest = np.zeros((int(self.sizes.sum()), k), np.int64)
        counts = np.zeros(len(nearest), np.int64)
        for own, start, alike in zip(found, self.starts, self.alike, strict=True):
            if alike:
                part = slice(start, start + len(own))
                nearest[part, : own.shape[1]] = own + start
                counts[part] = own.shape[1]
        self.nearest, self.counts = nearest, counts

    def __call__(self, seed: int, step: int, size: int) -> Ints:
        """Rows ``(size,)`` of a batch; ``size`` is at most the number of series."""
        rng = numpy_generator(Stream.ORDER, seed, step, 1)
        chosen: list[int] = []
        there: set[int] = set()
        while len(chosen) < size:
            sets = rng.choice(len(self.sizes), size=size, p=self.shares)
            places = rng.random((2, size))
            for k, (place, other) in zip(sets.tolist(), places.T.tolist(), strict=True):
                anchor = int(self.starts[k] + int(place * self.sizes[k]))
                rows = [anchor]
                if self.counts[anchor] > 0:
                    rows.append(int(self.nearest[anchor, int(other * self.counts[anchor])]))
                for row in rows:
                    if row not in there and len(chosen) < size:
                        there.add(row)
                        chosen.append(row)
        return np.array(chosen)


def _nearest(distances: Tensor | int | None, n: int, k: int) -> Ints:
    """Of each of n series, the nearest others ``(N, min(k, N - 1))``; none where none is alike."""
    if distances is None:
        return np.empty((n, 0), np.int64)
    if isinstance(distances, int):
        k = min(k, distances - 1)
        rows = np.arange(n - n % distances)[:, None]  # the last family may not be whole
        others = (rows + 1 + np.arange(k)) % distances + rows // distances * distances
        alone = np.arange(n - n % distances, n)[:, None].repeat(k, axis=1)
        return np.concatenate([others, alone])
    found = []
    for start in range(0, n, _ROWS):
        part = distances[start : start + _ROWS].clone()
        own = torch.arange(len(part), device=part.device)
        part[own, own + start] = torch.inf
        found.append(part.topk(min(k, n - 1), largest=False).indices)
    nearest: Ints = torch.cat(found).cpu().numpy()
    return nearest
