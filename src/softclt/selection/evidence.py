"""What a criterion may look at: the embedding of the training series, and what belongs to it."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from softclt.distances.store import matrix_of
from softclt.validation import Flags, Floats, Floats64, Ints, check_distances

LIMIT = 1000  # series of which pairs are looked at
N_NEIGHBOURS = 5
_NOTHING = 1e-6  # relative distance that float32 cannot tell from 0


def sample_rows(n: int) -> Ints:
    """The rows whose pairs are looked at: all of a few series, the same 1000 of many."""
    if n <= LIMIT:
        return np.arange(n)
    return np.sort(np.random.Generator(np.random.Philox(n)).permutation(n)[:LIMIT])


class Evidence:
    """An embedding with what was derived from it, each thing once, when it is first asked for.

    Args:
        R: Embedding of the training series, ``(N, M)``.
        y: Their labels.
        distances: Raw distances between them in data space, ``(N, N)``, a `DistanceStore` or its
            folder; or of the rows alone that `sample_rows` names.
        others: Embeddings of the same series by the same configuration under other seeds.

    Attributes:
        rows: Series of which pairs are looked at; everything below is of these.
    """

    def __init__(
        self, R: Any, y: Any = None, distances: Any = None, others: Sequence[Any] = ()
    ) -> None:
        self.R = _check_embedding(R, "R")
        n = len(self.R)
        self.y = None if y is None else check_labels(y, n)
        self.others = [_check_embedding(o, f"others[{i}]", n) for i, o in enumerate(others)]
        self.rows = sample_rows(n)
        self._distances = distances

    @property
    def kinds(self) -> set[str]:
        """What there is besides the embedding: labels, distances, others."""
        given = {"labels": self.y is not None, "distances": self._distances is not None}
        return {kind for kind, there in (given | {"others": bool(self.others)}).items() if there}

    @cached_property
    def points(self) -> Floats64:
        """The embedding around its mean; all 0 where it tells no two series apart."""
        return centred(self.R[self.rows])

    @cached_property
    def collapsed(self) -> bool:
        """Whether all series have the same embedding."""
        return not self.points.any()

    @cached_property
    def squares(self) -> Floats64:
        """Squared distances in the embedding, ``(N, N)``."""
        return squared_distances(self.points)

    @cached_property
    def apart(self) -> Floats64:
        """Distances in data space, symmetric, ``(N, N)``."""
        given = matrix_of(self._distances)
        rows = self.rows
        if np.shape(given) == (len(self.R), len(self.R)) and len(rows) < len(self.R):
            given = np.asarray(given)[np.ix_(rows, rows)]
        raw = check_distances(given, len(rows)).astype(np.float64)
        raw = (raw + raw.T) / 2
        np.fill_diagonal(raw, 0.0)
        return raw

    @cached_property
    def near(self) -> Flags:
        """Which series are neighbours in the embedding, ``(N, N)``."""
        return nearest(self.squares)

    @cached_property
    def near_in_data(self) -> Flags:
        """Which series are neighbours in data space, ``(N, N)``."""
        return nearest(self.apart)


def centred(R: Floats) -> Floats64:
    """Rows around their mean, in float64; all 0 where only rounding is left."""
    points: Floats64 = R - R.mean(axis=0, dtype=np.float64)
    if np.abs(points).max() <= _NOTHING * np.abs(R).max():
        return np.zeros_like(points)
    return points


def squared_distances(points: Floats64) -> Floats64:
    """Between all rows, ``(N, N)``; exactly 0 where float32 could not tell two rows apart."""
    lengths = np.square(points).sum(axis=1)
    sums = lengths[:, None] + lengths
    squares: Floats64 = sums - 2 * points @ points.T
    squares[squares <= _NOTHING**2 * sums] = 0.0
    np.fill_diagonal(squares, 0.0)
    return squares


def nearest(distances: Floats64) -> Flags:
    """Of each row its nearest others, ``(N, N)``; all that are as near as the last one count."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    k = min(N_NEIGHBOURS, len(others) - 1)
    last = np.partition(others, k - 1, axis=1)[:, k - 1]
    return np.asarray(others <= last[:, None])


def _check_embedding(R: Any, name: str, n: int | None = None) -> Floats:
    array = np.asarray(R)
    if array.ndim != 2 or len(array) < 2 or array.shape[1] == 0:
        raise ValueError(f"{name} has shape {array.shape}; expected (N, M) with two series or more")
    if n is not None and len(array) != n:
        raise ValueError(f"{name} holds {len(array)} series, but R holds {n}")
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def check_labels(y: Any, n: int) -> Ints:
    """Labels of n series as 0, 1, ...; there must be two kinds of them."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}; expected ({n},), a label a series")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"all labels are {classes[0]!r}; nothing can be chosen by labels that do not differ"
        )
    return np.asarray(codes, np.int64)
