"""What a distance is: a kernel over pairs of series, entered in the registry with its tags."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.registry import Registry
from softclt.validation import Floats as Floats
from softclt.validation import Floats64 as Floats64
from softclt.validation import Ints as Ints

# (x, y, rows, cols, *, own parameters) -> the distances of x[rows[k]] and y[cols[k]], (P,).
# A kernel gets many pairs at once, so that it may work on them side by side, and is called from
# several threads: heavy ones release the GIL.
PairKernel = Callable[..., Floats64]

# Tags of every distance, all bool:
#   elastic    takes series of different length; missing steps are dropped before
#   symmetric  d(x, y) = d(y, x), so that a square matrix needs one half only
#   window     knows the keyword `window`
distances: Registry[PairKernel] = Registry(
    "distance",
    more="; and any of aeon's as aeon:NAME, such as aeon:msm (needs aeon: pip install "
    '"softclt[data]"), any function of two series, and what a plugin registers (CONTRIBUTING)',
)


@dataclass(frozen=True)
class Ragged:
    """Series of any length in one block of memory, as kernels read them.

    Attributes:
        values: All steps one series after the other, ``(D, T_0 + T_1 + ...)``.
        starts: Column at which each series begins, and the end, ``(N + 1,)``.
    """

    values: Floats
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> Floats:
        return self.values[:, self.starts[i] : self.starts[i + 1]]  # (D, T_i)

    @property
    def lengths(self) -> Ints:
        """Steps of each series, ``(N,)``."""
        return np.diff(self.starts)

    def part(self, rows: slice) -> "Ragged":
        """Neighbouring series, without a copy."""
        starts = self.starts[rows.start : rows.stop + 1]
        return Ragged(self.values[:, starts[0] : starts[-1]], starts - starts[0])

    def take(self, rows: Ints) -> "Ragged":
        """Some series in the order given."""
        lengths = self.starts[rows + 1] - self.starts[rows]  # of these alone: a batch is small
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return Ragged(np.concatenate([self[i] for i in rows], axis=1), starts)

    def astype(self, dtype: Any) -> "Ragged":
        """The same series in another precision; itself if it has that already."""
        return Ragged(self.values.astype(dtype, copy=False), self.starts)


def per_pair(metric: Callable[..., float]) -> PairKernel:
    """A kernel from a plain function of two series ``(D, T_i)`` and ``(D, T_j)``."""

    def kernel(x: Ragged, y: Ragged, rows: Ints, cols: Ints, **params: Any) -> Floats64:
        pairs = zip(rows, cols, strict=True)
        return np.array(
            [metric(x[i].astype(np.float64), y[j].astype(np.float64), **params) for i, j in pairs],
            dtype=np.float64,
        )

    return kernel
