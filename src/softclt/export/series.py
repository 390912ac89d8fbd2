"""What happens to series before a network, as a part of a graph: scaling, gaps, grids.

The twin of `softclt.data.preparation`: the same arithmetic, in float64, of many series at once.
"""

import numpy as np

from softclt.data.preparation import Scale
from softclt.export.graph import Value

_LEAST_SPREAD = 1e-8  # of a channel that varies, as a share of its largest value


def scaled(x: Value, scale: Scale) -> Value:
    """Series ``(N, D, T)`` as a network takes them, NaN where something is missing."""
    if isinstance(scale, tuple):
        mean, spread = (x.graph.constant(part[:, None], np.float64) for part in scale)
        x = (x - mean) / spread
    elif scale is not None:
        x = _standardised(x, ~x.is_missing())
    return x.cast(np.float32)


def lengths(x: Value) -> Value:
    """Steps ``(N, 1)`` up to the last one with any value."""
    some = (~x.is_missing()).any(1).cast(np.int64)
    steps = x.graph.count_up(x.size(2)) + 1
    return (some * steps).max(2).reshape(0, -1)


def resampled(x: Value, there: Value, steps: Value) -> Value:
    """Rows ``(B, T)``, each standardised and at its own number of steps; 0 behind them.

    Gaps between values are filled along a line. A row with one value, or none, is 0 everywhere.

    Args:
        x: In float64.
        there: Where there is a value, ``(B, T)``.
        steps: How many there shall be, ``(B, 1)``; the result has as many as the longest.
    """
    graph, t = x.graph, x.graph.count_up(x.size(1))
    x = there.where(x, 0, np.float64)
    count = there.cast(np.int64).sum(1)
    rank = there.cast(np.int64).cumsum(1) - 1  # of the last value up to here
    # The step of each value, by its rank; what is missing goes to a place behind them all.
    table = graph.zeros(np.int64, x.size(0), x.size(1) + 1)
    place = there.where(rank, x.size(1))
    of_rank = graph.op("ScatterElements", table, place, t.expand(x.size(0), 1), axis=1)
    before = of_rank.pick(rank.at_least(0), 1)
    after = of_rank.pick(there.where(rank, rank + 1).at_most(count - 1).at_least(0), 1)
    share = (t - before).cast(np.float64) / (after - before).at_least(1).cast(np.float64)
    start = x.pick(before, 1)
    filled = start + (x.pick(after, 1) - start) * share
    first, last = of_rank.part(0, 1, 1), of_rank.pick((count - 1).at_least(0), 1)
    even = _standardised(filled, (t >= first) & (t <= last))

    k = graph.count_up(steps.max(0).reshape(1))  # (S,)
    gap = (last - first).cast(np.float64) / (steps - 1).at_least(1).cast(np.float64)
    at = (k.cast(np.float64) * gap).at_most((last - first).cast(np.float64))
    left = at.cast(np.int64).at_most((last - first - 1).at_least(0))
    right = (left + 1).at_most(last - first)
    part = at - left.cast(np.float64)
    one, other = (even.pick(first + index, 1) for index in (left, right))
    on_grid = one + (other - one) * part
    return (k < steps).where(on_grid, 0, np.float64)


def level_and_scale(x: Value, there: Value) -> Value:
    """Mean and spread of each row ``(B, T)``, signed and on a logarithmic scale: ``(B, 2)``."""
    count = there.cast(np.float64).sum(1).at_least(1)
    x = there.where(x, 0, np.float64)
    mean = x.sum(1) / count
    apart = there.where(x - mean, 0, np.float64)
    spread = x.graph.op("Sqrt", (apart * apart).sum(1) / count)
    both = x.graph.side_by_side([mean, spread], axis=1)
    size = x.graph.op("Log", x.graph.op("Abs", both) + 1)
    return (x.graph.op("Sign", both) * size).cast(np.float32)


def _standardised(x: Value, there: Value) -> Value:
    """Rows ``(..., T)`` with mean 0 and spread 1 over what is there; constant ones are 0."""
    graph, axis = x.graph, -1
    own = there.where(x, 0, np.float64)
    largest = graph.op("Abs", own).max(axis)
    own = own / (largest > 0).where(largest, 1, np.float64)  # no square overflows
    count = there.cast(np.float64).sum(axis).at_least(1)
    apart = there.where(own - own.sum(axis) / count, 0, np.float64)
    spread = graph.op("Sqrt", (apart * apart).sum(axis) / count)
    varies = spread > _LEAST_SPREAD
    return varies.where(apart / varies.where(spread, 1, np.float64), 0, np.float64)
