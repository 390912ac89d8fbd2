"""Features of blocks side by side, so scaled that all blocks weigh the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softclt.classification.blocks import Block
from softclt.validation import Floats, Floats32, Floats64

_VALUES_AT_ONCE = 1 << 21  # of features, in float64
_CONSTANT = 1e-7  # of the mean: what varies less is rounding


@dataclass(frozen=True, eq=False)
class Scaling:
    """What makes the mean squared length of a row of features 1, all features counting alike.

    Attributes:
        mean: ``(F,)``.
        factor: ``(F,)``; 0 where a feature is the same for all series.
    """

    mean: Floats64
    factor: Floats64

    @classmethod
    def of(cls, R: Floats) -> "Scaling":
        """That of features ``(N, F)``."""
        largest = np.maximum(np.abs(R).max(axis=0).astype(np.float64), 1e-300)
        mean, spread = np.zeros(R.shape[1]), np.zeros(R.shape[1])
        for columns in _parts(R.shape[1], len(R)):
            own = R[:, columns] / largest[columns]  # no square overflows
            mean[columns], spread[columns] = own.mean(axis=0), own.std(axis=0)
        varies = spread > _CONSTANT * np.abs(mean)
        unit = spread * largest * np.sqrt(max(1, int(varies.sum())))
        factor = np.divide(1.0, unit, out=np.zeros_like(unit), where=varies)
        return cls(mean * largest, factor)

    def __call__(self, R: Floats) -> Floats32:
        """Scaled features."""
        out = np.empty(R.shape, np.float32)
        for rows in _parts(len(R), R.shape[1]):
            out[rows] = (R[rows] - self.mean) * self.factor
        return out


@dataclass(frozen=True, eq=False)
class Landmarks:
    """What a block says of the series that others are compared with.

    Attributes:
        block: Fitted.
        scaling: Of its features.
        features: Scaled, of the landmarks ``(L, F)``.
    """

    block: Block
    scaling: Scaling
    features: Floats32

    @classmethod
    def of(cls, block: Block, X: Floats) -> "Landmarks":
        """Those of series, with the scaling that they have."""
        R = block.transform(X)
        scaling = Scaling.of(R)
        return cls(block, scaling, scaling(R))

    def products(self, X: Floats | None = None) -> Floats64:
        """Of series, or of the landmarks themselves, with the landmarks, ``(N, L)``."""
        rows = self.features if X is None else self.scaling(self.block.transform(X))
        return product(rows, self.features.T)


def product(A: Floats, B: Floats) -> Floats64:
    """A B in float64, without a float64 copy of either."""
    out = np.zeros((A.shape[0], B.shape[1]))
    for part in _parts(A.shape[1], A.shape[0] + B.shape[1]):
        out += A[:, part].astype(np.float64) @ B[part].astype(np.float64)
    return out


def mean_products(parts: Mapping[str, Landmarks], names: Sequence[str], X: Floats) -> Floats64:
    """Products of series with the landmarks ``(N, L)``, the mean over some blocks."""
    total = sum(parts[name].products(X) for name in names)
    return np.asarray(total) / len(names)


def _parts(n: int, width: int) -> Iterator[slice]:
    size = max(1, _VALUES_AT_ONCE // max(1, width))
    return (slice(start, min(n, start + size)) for start in range(0, n, size))
