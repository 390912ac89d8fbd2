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
        distances: Within each set ``(N_k, N_k)``; None where nothing is alike.
        sizes: Series of each set; their rows follow each other.
        weights: Of the sets; in proportion to them anchors are drawn.
        neighbours: How many nearest series of an anchor one is drawn from; 0 draws anchors only.

    Example:
        >>> places = torch.arange(8.0)
        >>> rows = NeighbourRows([(places[:, None] - places).abs()], [8], [1.0], neighbours=1)
        >>> sorted(rows(seed=0, step=0, size=4).tolist())
        [0, 1, 2, 5]
    """

    def __init__(
        self,
        distances: Sequence[Tensor | None],
        sizes: Sequence[int],
        weights: Sequence[float],
        neighbours: int,
    ) -> None:
        self.sizes = np.asarray(sizes)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        known = [matrix is not None and len(matrix) > 1 for matrix in distances]
        self.alike = np.array(known) & (neighbours > 0)
        # Anchors of sets with neighbours bring as many neighbours: a batch has the weights.
        shares = np.asarray(weights) * np.where(self.alike, 0.5, 1.0)
        self.shares = shares / shares.sum()
        k = max(1, neighbours)
        nearest = np.zeros((int(self.sizes.sum()), k), np.int64)
        counts = np.zeros(len(nearest), np.int64)
        for matrix, start, own in zip(distances, self.starts, self.alike, strict=True):
            if own and matrix is not None:
                found = _nearest(matrix, k)
                part = slice(start, start + len(found))
                nearest[part, : found.shape[1]] = found + start
                counts[part] = found.shape[1]
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


def _nearest(distances: Tensor, k: int) -> Ints:
    """Of each series, the nearest others ``(N, min(k, N - 1))``."""
    found = []
    for start in range(0, len(distances), _ROWS):
        part = distances[start : start + _ROWS].clone()
        own = torch.arange(len(part), device=part.device)
        part[own, own + start] = torch.inf
        found.append(part.topk(min(k, len(distances) - 1), largest=False).indices)
    nearest: Ints = torch.cat(found).cpu().numpy()
    return nearest
