"""Series as overlapping patches, and scores of patches as scores of steps."""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from softclt.validation import Flags, Floats, Floats64

_AT_ONCE = 1 << 22  # values of patches that are looked at together
FARTHEST = 1e30  # standard deviations: what is farther away counts as that, and has a square
_GAPS = 4  # one over the share of a patch that may be missing


def patches_of(x: Floats, width: int) -> Floats:
    """All patches of a series ``(..., T)``: ``(..., T - width + 1, width)``, by their first step.

    A view that copies nothing; there is none where the series is shorter.
    """
    if x.shape[-1] < width:
        return np.empty((*x.shape[:-1], 0, width), x.dtype)
    return sliding_window_view(x, width, axis=-1)


def in_blocks(n: int, width: int) -> Iterator[slice]:
    """Runs of n patches that a machine may hold at once."""
    size = max(1, _AT_ONCE // width)
    return (slice(first, min(first + size, n)) for first in range(0, n, size))


def by_overlap(scores: Floats, width: int) -> Floats64:
    """Of each step ``(n + width - 1,)`` the mean score of the patches ``(n,)`` that cover it.

    A patch without a score (NaN) does not count; a step without any has none.

    Example:
        >>> by_overlap(np.array([0.0, 4.0, np.nan]), width=2)
        array([ 0.,  2.,  4., nan])
    """
    if len(scores) == 0:
        return np.full(0, np.nan)
    known = ~np.isnan(scores)
    sums = np.r_[0.0, np.cumsum(np.where(known, scores, 0.0))]
    counts = np.r_[0, np.cumsum(known)]
    steps = np.arange(len(scores) + width - 1)
    first, end = np.maximum(0, steps - width + 1), np.minimum(len(scores), steps + 1)
    n = counts[end] - counts[first]
    return np.where(n > 0, (sums[end] - sums[first]) / np.maximum(n, 1), np.nan)


def complete_enough(known: Flags, width: int) -> Flags:
    """Which patches ``(n,)`` miss at most a quarter of their steps, by the known ones ``(T,)``."""
    counts = np.r_[0, np.cumsum(~known)]
    gaps = counts[width:] - counts[: max(0, len(counts) - width)]
    return np.asarray(gaps * _GAPS <= width)


def held(x: Floats64, start: float = 0.0) -> Floats64:
    """Values ``(T,)`` with each gap at the value before it, at ``start`` where there is none."""
    known = ~np.isnan(x)
    last = np.maximum.accumulate(np.where(known, np.arange(len(x)), -1))
    return np.where(last >= 0, x[np.maximum(last, 0)], start)
