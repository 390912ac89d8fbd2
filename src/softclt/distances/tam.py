"""Time alignment measurement (Folgado et al., 2018): how far a warping path is from in step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.distances.base import Floats64, Ints, Ragged, compiled, distances
from softclt.distances.elastic import half_widths


@distances.register("tam", elastic=True, symmetric=True, window=True)
def tam(x: Ragged, y: Ragged, rows: Ints, cols: Ints, *, window: float | None = None) -> Floats64:
    """Time alignment measurement of the best DTW path: 0 in step, 3 never in step.

    Of several best paths the one counts that, seen from its end, prefers the diagonal, then the
    step back in x, then the one in y. So tam(x, y) and tam(y, x) may differ where costs tie; a
    square matrix holds the value of x_i and x_j with i < j for both. 0 for series of one step.

    Args:
        x, y: Series without missing steps; the lengths may differ.
        rows, cols: The pairs to compare, ``(P,)`` each.
        window: Half-width of the Sakoe-Chiba band as a share of the longer series.
    """
    n, m = x.lengths[rows], y.lengths[cols]
    bands = half_widths(n, m, window)
    phase = _diagonal_steps(x.values, x.starts, y.values, y.starts, rows, cols, bands)
    return _alignment(n, m, phase)


def tam_from_path(path: Sequence[Sequence[int]] | NDArray[Any]) -> float:
    """Time alignment measurement of a warping path ``(L, 2)`` of indices into both series.

    Example:
        >>> tam_from_path([(0, 0), (1, 1), (2, 2)])  # in step
        0.0
        >>> tam_from_path([(0, 0), (0, 1), (1, 1)])  # a delay, then an advance
        3.0
    """
    indices = np.asarray(path)
    steps = np.diff(indices, axis=0)  # (L - 1, 2)
    if (
        indices.ndim != 2
        or indices.shape[1:] != (2,)
        or len(indices) == 0
        or indices[0].any()
        or not np.isin(steps, (0, 1)).all()
        or not steps.any(axis=1).all()
    ):
        raise ValueError(
            f"path of shape {indices.shape} is no warping path; expected index pairs (L, 2) "
            "from (0, 0) on, each step one further in the first, the second or both"
        )
    n, m = indices[-1:].T + 1  # (1,) each
    return float(_alignment(n, m, steps.all(axis=1).sum(keepdims=True))[0])


def _alignment(n: Ints, m: Ints, phase: Ints) -> Floats64:
    """Share in advance + share in delay + 1 - share in phase, of paths with ``phase`` diagonals.

    A path over n and m steps moves n - 1 times in x and m - 1 times in y, so the moves in x alone
    (advance) and in y alone (delay) follow from those in both.
    """
    in_x, in_y = np.maximum(n - 1, 1), np.maximum(m - 1, 1)
    advance, delay = n - 1 - phase, m - 1 - phase
    measure = advance / in_x + delay / in_y + (1 - phase / np.minimum(in_x, in_y))
    return np.where(np.minimum(n, m) == 1, 0.0, measure)


@compiled
def _diagonal_steps(
    x: Floats64, x_starts: Ints, y: Floats64, y_starts: Ints, rows: Ints, cols: Ints, bands: Ints
) -> Ints:
    """Diagonal steps of each pair's best path.

    Every cell has one predecessor, so its count is that of the predecessor and maybe one more:
    two rows of counts beside the two rows of costs replace the stored path.
    """
    out = np.empty(len(rows), np.int64)
    width = np.diff(y_starts).max() + 1
    previous, current = np.empty(width), np.empty(width)
    phase_before, phase = np.empty(width, np.int64), np.empty(width, np.int64)
    for k in range(len(rows)):
        x0, y0 = x_starts[rows[k]], y_starts[cols[k]]
        n, m = x_starts[rows[k] + 1] - x0, y_starts[cols[k] + 1] - y0
        previous[: m + 1] = np.inf
        current[: m + 1] = np.inf
        previous[0] = 0.0
        phase_before[0] = -1  # the first cell comes from the border, which is no step
        for i in range(n):
            first, stop = max(0, i - bands[k]), min(m, i + bands[k] + 1)
            current[first] = np.inf
            for j in range(first, stop):
                best, count = previous[j], phase_before[j] + 1
                if previous[j + 1] < best:
                    best, count = previous[j + 1], phase_before[j + 1]
                if current[j] < best:
                    best, count = current[j], phase[j]
                cost = 0.0
                for c in range(x.shape[0]):
                    difference = x[c, x0 + i] - y[c, y0 + j]
                    cost += difference * difference
                current[j + 1], phase[j + 1] = cost + best, count
            previous, current = current, previous
            phase_before, phase = phase, phase_before
        out[k] = phase_before[m]
    return out
