"""Time alignment measurement (Folgado et al., 2018): how far a warping path is from in step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.distances.registration import Floats64, Ints, Ragged, distances
from softclt.distances.warping import align


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
    # Ties decide the path, and float32 would break them by rounding.
    x, y = x.astype(np.float64), y.astype(np.float64)
    _, phase = align(x, y, rows, cols, window, count_diagonals=True)
    return _alignment(x.lengths[rows], y.lengths[cols], phase)


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
