"""Distances that compare step with step, over the steps that both series have."""

import numpy as np

from softclt.compilation import compiled
from softclt.distances.registration import Floats, Floats64, Ints, Ragged, distances


@distances.register("euclidean", elastic=False, symmetric=True, window=False)
def euclidean(x: Ragged, y: Ragged, rows: Ints, cols: Ints) -> Floats64:
    """Square root of the summed squared differences; not rescaled where steps are missing.

    Args:
        x, y: Series of one common length; a missing step is NaN in all channels.
        rows, cols: The pairs to compare, ``(P,)`` each; NaN for a pair without a common step.
    """
    x, y = x.astype(np.float64), y.astype(np.float64)
    return _euclidean_of_pairs(x.values, x.starts, y.values, y.starts, rows, cols)


@distances.register("cosine", elastic=False, symmetric=True, window=False)
def cosine(x: Ragged, y: Ragged, rows: Ints, cols: Ints) -> Floats64:
    """One minus the cosine between all values of x and of y, in [0, 2]; 1 if one of them is zero.

    Args:
        x, y: Series of one common length; a missing step is NaN in all channels.
        rows, cols: The pairs to compare, ``(P,)`` each; NaN for a pair without a common step.
    """
    x, y = x.astype(np.float64), y.astype(np.float64)
    return _cosine_of_pairs(x.values, x.starts, y.values, y.starts, rows, cols)


@compiled
def _euclidean_of_pairs(
    x: Floats, x_starts: Ints, y: Floats, y_starts: Ints, rows: Ints, cols: Ints
) -> Floats64:
    out = np.empty(len(rows))
    for k in range(len(rows)):
        x0, y0 = x_starts[rows[k]], y_starts[cols[k]]
        total, common = 0.0, 0
        for c in range(x.shape[0]):
            for t in range(x_starts[rows[k] + 1] - x0):
                difference = x[c, x0 + t] - y[c, y0 + t]
                if not np.isnan(difference):
                    total += difference * difference
                    common += 1
        out[k] = np.sqrt(total) if common else np.nan
    return out


@compiled
def _cosine_of_pairs(
    x: Floats, x_starts: Ints, y: Floats, y_starts: Ints, rows: Ints, cols: Ints
) -> Floats64:
    out = np.empty(len(rows))
    for k in range(len(rows)):
        x0, y0 = x_starts[rows[k]], y_starts[cols[k]]
        xx, xy, yy, common = 0.0, 0.0, 0.0, 0
        for c in range(x.shape[0]):
            for t in range(x_starts[rows[k] + 1] - x0):
                a, b = x[c, x0 + t], y[c, y0 + t]
                if not np.isnan(a * b):
                    xx += a * a
                    xy += a * b
                    yy += b * b
                    common += 1
        norm = np.sqrt(xx) * np.sqrt(yy)
        if common == 0:
            out[k] = np.nan
        elif xx == xy == yy:  # |x - y|^2 = 0: equal, or both zero; the root would round
            out[k] = 0.0
        else:
            out[k] = max(0.0, 1.0 - (xy / norm if norm > 0.0 else 0.0))
    return out
