"""Dynamic time warping, exact and approximate: one warping path for all channels."""

import numpy as np

from softclt.compilation import compiled
from softclt.distances.registration import Floats, Floats64, Ints, Ragged, distances
from softclt.distances.warping import align, common_precision
from softclt.validation import check_range


@distances.register("dtw", elastic=True, symmetric=True, window=True)
def dtw(
    x: Ragged,
    y: Ragged,
    rows: Ints,
    cols: Ints,
    *,
    window: float | None = None,
    squared: bool = False,
    per_step: bool = False,
    bound: float | None = None,
) -> Floats64:
    """Square root of the summed squared differences along the best warping path.

    Computed in float32 where both collections are, which is twice as fast, else in float64.

    Args:
        x, y: Series without missing steps; the lengths may differ.
        rows, cols: The pairs to compare, ``(P,)`` each.
        window: Half-width of the Sakoe-Chiba band as a share of the longer series.
        squared: Leave the root out.
        per_step: The mean along the path instead of the sum; of several best paths that of tam.
        bound: Larger distances are infinite, and mostly quicker.
    """
    x, y = common_precision(x, y)
    limit = np.inf
    if bound is not None:
        check_range(bound, "bound", 0)
        # A little above, so that rounding gives up no pair that is just within the bound.
        limit = bound * (1 + 1e-5) if squared else bound * bound * (1 + 1e-5)
    if per_step:
        x, y, limit = x.astype(np.float64), y.astype(np.float64), np.inf
    totals, diagonals = align(x, y, rows, cols, window, count_diagonals=per_step, bound=limit)
    if per_step:
        totals /= x.lengths[rows] + y.lengths[cols] - 1 - diagonals
    values = totals if squared else np.sqrt(totals)
    return values if bound is None else np.where(values > bound, np.inf, values)


@distances.register("fastdtw", elastic=True, symmetric=True, window=False)
def fastdtw(x: Ragged, y: Ragged, rows: Ints, cols: Ints, *, radius: int = 1) -> Floats64:
    """Salvador and Chan's approximation of DTW from above, in linear time and memory.

    A path is found on the series halved in length, drawn on the finer grid, widened by ``radius``
    cells on every side, and improved within; and so on up to the full length. On ties between
    warping either series the first is warped, so d(x, y) and d(y, x) may differ.

    Args:
        x, y: Series without missing steps; the lengths may differ.
        rows, cols: The pairs to compare, ``(P,)`` each.
        radius: From the length of the series on, the result is exact.
    """
    check_range(radius, "radius", 0)
    if radius != int(radius):
        raise ValueError(f"radius is {radius!r}; expected a whole number of cells, e.g. 1")
    x, y = x.astype(np.float64), y.astype(np.float64)
    return _fastdtw_of_pairs(x.values, x.starts, y.values, y.starts, rows, cols, int(radius))


@compiled
def _fastdtw_of_pairs(
    x: Floats, x_starts: Ints, y: Floats, y_starts: Ints, rows: Ints, cols: Ints, radius: int
) -> Floats64:
    out = np.empty(len(rows))
    for k in range(len(rows)):
        i, j = rows[k], cols[k]
        a = x[:, x_starts[i] : x_starts[i + 1]].copy()
        b = y[:, y_starts[j] : y_starts[j + 1]].copy()
        halvings = 0
        n, m = a.shape[1], b.shape[1]
        while min(n, m) >= radius + 2:
            n, m = (n + 1) // 2, (m + 1) // 2
            halvings += 1
        first, last = np.zeros(n, np.int64), np.full(n, m - 1)
        total = 0.0
        for times in range(halvings, -1, -1):
            coarse_a, coarse_b = _halve(a, times), _halve(b, times)
            if times < halvings:
                n, m = coarse_a.shape[1], coarse_b.shape[1]
                first, last = _project(first, last, n, m, radius)
            total = _narrow(coarse_a, coarse_b, first, last)
        out[k] = np.sqrt(total)
    return out


@compiled
def _halve(series: Floats, times: int) -> Floats:
    """Neighbouring steps averaged, ``times`` times; an odd last step stays alone."""
    for _ in range(times):
        d, t = series.shape
        half = np.empty((d, (t + 1) // 2))
        for c in range(d):
            for s in range(half.shape[1]):
                half[c, s] = (series[c, 2 * s] + series[c, min(2 * s + 1, t - 1)]) / 2
        series = half
    return series


@compiled
def _project(first: Ints, last: Ints, n: int, m: int, radius: int) -> tuple[Ints, Ints]:
    """The cells around a coarse path on the grid of twice its size: ``first..last`` of each row.

    Paths never go back, so the widest row within ``radius`` rows is the farthest one.
    """
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        low[i] = max(0, 2 * first[max(0, i - radius) // 2] - radius)
        high[i] = min(m - 1, 2 * last[min(n - 1, i + radius) // 2] + 1 + radius)
    return low, high


@compiled
def _narrow(x: Floats, y: Floats, first: Ints, last: Ints) -> float:
    """Summed squares along the best path within ``first..last``; both then hold that path."""
    n = len(first)
    offsets = np.zeros(n + 1, np.int64)
    offsets[1:] = np.cumsum(last - first + 1)
    came_from = np.empty(offsets[n], np.int8)  # 0 the diagonal, 1 row i - 1, 2 column j - 1
    previous, current = np.full(y.shape[1] + 1, np.inf), np.full(y.shape[1] + 1, np.inf)
    previous[0] = 0.0
    for i in range(n):
        current[first[i]] = np.inf
        for j in range(first[i], last[i] + 1):
            best, origin = previous[j], 0
            if previous[j + 1] < best:
                best, origin = previous[j + 1], 1
            if current[j] < best:
                best, origin = current[j], 2
            cost = 0.0
            for c in range(x.shape[0]):
                difference = x[c, i] - y[c, j]
                cost += difference * difference
            current[j + 1] = cost + best
            came_from[offsets[i] + j - first[i]] = origin
        previous, current = current, previous
    total = float(previous[y.shape[1]])
    i, j = n - 1, y.shape[1] - 1
    entered = j  # the last column of the path in row i
    while i >= 0:
        origin = came_from[offsets[i] + j - first[i]]
        if origin == 2:
            j -= 1
            continue
        first[i], last[i] = j, entered
        i -= 1
        j -= 1 if origin == 0 else 0
        entered = j
    return total
