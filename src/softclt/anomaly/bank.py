"""A bank of normal patches, and how far others are from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from softclt.anomaly.patching import complete_enough, held, in_blocks, patches_of
from softclt.validation import Flags, Floats, Floats64, Ints

_ENCODED_FROM = 16  # steps: shorter patches have too little shape to be told by it
_NEAR = 256  # neighbours that may be looked at for each patch of a training series


class PatchBank:
    """Patches of one length, of some channels together, that were drawn from normal series.

    A patch is compared as it is: by the root mean square difference to the nearest of the bank, in
    units of the series. With an encoder, by level, scale and shape: the vector is the mean, and the
    spread times the embedding, centred and of length 1. With the standardised patch itself as the
    embedding, that is the same distance; an encoder changes which shapes are alike.

    Args:
        width: Steps of a patch.
        stride: Steps between the patches that are compared.
        k: Neighbours whose mean distance counts.
        encoder: Trained, for patches ``(n, 1, width)``; None compares them as they are.
    """

    def __init__(self, width: int, stride: int, k: int, encoder: Any = None) -> None:
        self.width, self.stride, self.k = width, stride, k
        self.encoder = encoder if width >= _ENCODED_FROM else None

    def fit(self, series: Sequence[Floats64], chosen: Sequence[Ints]) -> "PatchBank":
        """Keep the patches of series ``(C, T_i)`` that begin at the chosen steps."""
        self.places_ = list(chosen)
        parts = [
            patches_of(filled(x), self.width)[:, own] for x, own in zip(series, chosen, strict=True)
        ]
        patches = np.concatenate([part.swapaxes(0, 1) for part in parts])  # (n, C, width)
        self.centre_: Floats64 | float = 0.0
        if self.encoder is not None:
            self.centre_ = self._embedded(patches).mean(axis=(0, 1))
        return self.restore(self._vectors(patches), self.centre_)

    def restore(self, vectors: Floats64, centre: Floats64 | float) -> "PatchBank":
        """Take what another bank has learned: vectors ``(n, M)``, and the mean embedding."""
        self.vectors_, self.centre_ = vectors, centre
        self._search = NearestNeighbors(algorithm="brute").fit(vectors)
        return self

    def starts(self, x: Floats64) -> Ints:
        """First steps of the patches of a series ``(C, T)`` that are compared."""
        n = x.shape[-1] - self.width + 1
        if n < 1:
            return np.empty(0, np.int64)
        own = np.arange(n)
        own = own[(own % self.stride == 0) | (own == n - 1)]
        return np.asarray(own[complete_enough(known_steps(x), self.width)[own]], np.int64)

    def distances(self, x: Floats64, part_of: tuple[int, int] | None = None) -> Floats64:
        """Of the patch at each step ``(T - width + 1,)`` from the bank; NaN where not compared.

        Args:
            x: Series ``(C, T)``.
            part_of: The training series that it is a part of, and its first step there: what of
                the bank overlaps a patch then does not count, as it would not for a new one.
        """
        found = np.full(max(0, x.shape[-1] - self.width + 1), np.nan)
        starts, patches = self.starts(x), patches_of(filled(x), self.width)
        for block in in_blocks(len(starts), max(_NEAR, self.width * len(x))):
            own = starts[block]
            vectors = self._vectors(patches[:, own].swapaxes(0, 1))
            if part_of is None:
                k = min(self.k, len(self.vectors_))
                found[own] = self._search.kneighbors(vectors, k)[0].mean(axis=1)
            else:
                found[own] = self._from_others(vectors, own + part_of[1], part_of[0])
        return found

    def distance(self, patch: Floats64) -> float:
        """Of one patch ``(C, width)``."""
        gaps = self.vectors_ - self._vectors(patch[None])
        squares = np.einsum("nm,nm->n", gaps, gaps)
        k = min(self.k, len(squares))
        return float(np.sqrt(np.partition(squares, k - 1)[:k]).mean())

    def shares(self, patches: Floats) -> Floats64:
        """How much each channel adds to the distance of patches ``(n, C, width)``: ``(n, C)``.

        By the nearest of the bank; they sum to 1, or are equal where nothing differs.
        """
        vectors = self._vectors(patches)
        nearest = self._search.kneighbors(vectors, 1, return_distance=False)[:, 0]
        gaps = (vectors - self.vectors_[nearest]).reshape(len(patches), patches.shape[1], -1)
        squares = (gaps**2).sum(axis=-1) + np.finfo(np.float64).tiny
        return np.asarray(squares / squares.sum(axis=1, keepdims=True))

    def _from_others(self, vectors: Floats64, starts: Ints, series: int) -> Floats64:
        """Distances from what of the bank shares no step with a patch of a training series."""
        sizes = [len(own) for own in self.places_]
        place = np.concatenate(self.places_).astype(np.int64)
        place[np.arange(len(place)) < sum(sizes[:series])] = np.iinfo(np.int64).min // 2
        place[np.arange(len(place)) >= sum(sizes[: series + 1])] = np.iinfo(np.int64).max // 2
        own = self.places_[series]
        near = np.searchsorted(own, starts + self.width) - np.searchsorted(
            own, starts - self.width, side="right"
        )
        most = min(len(place), self.k + int(near.max(initial=0)))
        far, index = self._search.kneighbors(vectors, most)
        overlapping = np.abs(place[index] - starts[:, None]) < self.width
        others = np.sort(np.where(overlapping, np.inf, far), axis=1)[:, : self.k]
        counted = np.isfinite(others)
        sums = np.where(counted, others, 0.0).sum(axis=1)
        n = counted.sum(axis=1)
        return np.where(n > 0, sums / np.maximum(n, 1), np.nan)

    def _vectors(self, patches: Floats) -> Floats64:
        """What patches ``(n, C, width)`` are compared by, ``(n, M)``."""
        n, c, width = patches.shape
        if self.encoder is None:
            plain: Floats64 = np.asarray(patches, np.float64).reshape(n, -1) / np.sqrt(width * c)
            return plain
        level, scale = patches.mean(axis=-1)[..., None], patches.std(axis=-1)[..., None]
        shape = self._embedded(patches) - self.centre_
        size = np.linalg.norm(shape, axis=-1, keepdims=True)
        shape = scale * shape / np.where(size > 0, size, 1.0)
        parts = np.concatenate([level, shape], axis=-1)  # (n, C, 1 + M)
        return np.asarray(parts.reshape(n, -1) / np.sqrt(c), np.float64)

    def _embedded(self, patches: Floats) -> Floats64:
        assert self.encoder is not None
        n, c, width = patches.shape
        rows = np.ascontiguousarray(patches, np.float32).reshape(n * c, 1, width)
        R = self.encoder.transform(rows)
        return np.asarray(R.reshape(n, c, -1), np.float64)


def known_steps(x: Floats64) -> Flags:
    """Steps ``(T,)`` of a series ``(C, T)`` at which any channel has a value."""
    return np.asarray(~np.isnan(x).all(axis=0), dtype=bool)


def filled(x: Floats64) -> Floats64:
    """A series ``(C, T)`` whose gaps have the value before them: no patch sees the future."""
    return np.stack([held(channel) for channel in x]) if np.isnan(x).any() else x
