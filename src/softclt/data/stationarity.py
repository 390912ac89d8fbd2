"""The augmented Dickey-Fuller test of many stretches at once, and how wide series stay the same.

`softclt.data.seasonality` asks statsmodels about a few whole series. Here hundreds of thousands of
short stretches are tested, which takes one batched factorisation instead of a loop.
"""

import numpy as np
from scipy.special import ndtr

from softclt.validation import Floats, Floats64, Ints

LEVEL = 0.01  # p-values below it count as stationary
_AT_ONCE = 1 << 22  # values of regressors in one part
# MacKinnon's (1994) response surface for the test with a constant: of small and of other values.
_LARGEST, _SMALLEST, _BETWEEN = 2.74, -18.83, -1.61
_BELOW = (0.038269, 1.4412, 2.1659)
_ABOVE = (-0.010368, -0.12745, 0.93202, 1.7339)


def adf_p_values(X: Floats) -> Floats64:
    """p-values of the test with a constant and lags by AIC, of stretches ``(..., T)``.

    A stretch that never changes, or is shorter than 10 steps, counts as stationary (0); one with a
    missing value has NaN. The numbers are those of statsmodels' ``adfuller(x)``.
    """
    flat = np.asarray(X, np.float64).reshape(-1, np.shape(X)[-1])
    n = flat.shape[1]
    p = np.zeros(len(flat))
    missing = np.isnan(flat).any(axis=1)
    p[missing] = np.nan
    if n >= 10:
        changes = np.ptp(flat, axis=1) > 1e-12 * np.abs(flat).max(axis=1)
        rows = np.flatnonzero(changes & ~missing)
        part = max(1, _AT_ONCE // (n * (_most_lags(n) + 3)))
        for start in range(0, len(rows), part):
            own = rows[start : start + part]
            p[own] = _mackinnon(_statistics(flat[own]))
    return p.reshape(np.shape(X)[:-1])


def neighbourhood_widths(X: Floats, window: int, stride: int, most: int = 3) -> Ints:
    """How many windows to either side a series stays stationary, ``(N, C)`` from 1 to ``most``.

    Around every ``stride``-th step, beginning with the first, a stretch grows by ``window`` steps
    to either side as long as the mean over its channels of the p-values of the augmented
    Dickey-Fuller test is below 1 per cent; where the series ends, or values are missing inside, it
    grows no further. TNC's rule (Tonekaboni et al., ICLR 2021), with the series' ends apart.

    Args:
        X: Series ``(N, D, T)``, NaN where missing.
        window: Steps of a window.
        stride: Steps between two centres.
        most: Largest width.
    """
    n, _, t = X.shape
    centres = np.arange(0, t, stride)
    widths = np.ones((n, len(centres)), np.int64)
    for width in range(1, most):
        reach = width * window
        for k, centre in enumerate(centres):
            if centre < reach or centre + reach > t:
                continue
            rows = np.flatnonzero(widths[:, k] == width)  # those that have come so far
            p = adf_p_values(X[rows, :, centre - reach : centre + reach])  # (rows, D)
            widths[rows[p.mean(axis=1) < LEVEL], k] += 1  # NaN is not
    return widths


def _most_lags(n: int) -> int:
    """Schwert's rule, and few enough that something is left to estimate from."""
    return min(int(np.ceil(12 * (n / 100) ** 0.25)), n // 2 - 2)


def _statistics(x: Floats64) -> Floats64:
    """The test's t-values, ``(S,)``, of stretches ``(S, T)``."""
    most = _most_lags(x.shape[1])
    criteria = _criteria(*_regression(x, most))
    lags = criteria.argmin(axis=1)  # the least of the best
    t = np.empty(len(x))
    for lag in np.unique(lags):  # with so many lags, from all steps that have them
        rows = lags == lag
        t[rows] = _last_t(*_regression(x[rows], int(lag)))
    return t


def _regression(x: Floats64, lags: int) -> tuple[Floats64, Floats64]:
    """Steps' changes ``(S, n)``, and what they are explained by ``(S, n, 2 + lags)``.

    A constant, the level before the step, and the changes before it, nearest first.
    """
    change = np.diff(x, axis=1)
    y = change[:, lags:]
    n = y.shape[1]
    columns = [np.ones_like(y), x[:, lags:-1]]
    columns += [change[:, lags - k : lags - k + n] for k in range(1, lags + 1)]
    return y, np.stack(columns, axis=-1)


def _criteria(y: Floats64, X: Floats64) -> Floats64:
    """AIC with 0, 1, ... lags on the same steps, ``(S, 1 + lags)``, from one factorisation."""
    n, k = X.shape[1:]
    q = np.linalg.qr(X)[0]
    explained = np.cumsum((np.swapaxes(q, 1, 2) @ y[..., None])[..., 0] ** 2, axis=1)  # (S, k)
    left = np.maximum((y**2).sum(axis=1, keepdims=True) - explained, np.finfo(float).tiny)
    n_terms = np.arange(1, k + 1)
    aic: Floats64 = (n * np.log(left / n) + 2 * n_terms)[:, 1:]
    return aic


def _last_t(y: Floats64, X: Floats64) -> Floats64:
    """t-value of the level, the second column."""
    n, k = X.shape[1:]
    # The level last: then it alone decides the last row of the triangle.
    q, r = np.linalg.qr(np.concatenate([X[..., :1], X[..., 2:], X[..., 1:2]], axis=-1))
    fitted = (np.swapaxes(q, 1, 2) @ y[..., None])[..., 0]  # (S, k)
    left = np.maximum((y**2).sum(axis=1) - (fitted**2).sum(axis=1), np.finfo(float).tiny)
    t: Floats64 = fitted[:, -1] * np.sign(r[:, -1, -1]) / np.sqrt(left / (n - k))
    return t


def _mackinnon(t: Floats64) -> Floats64:
    """p-values of the test's t-values."""
    t = np.clip(t, _SMALLEST - 1, _LARGEST + 1)
    p = ndtr(np.where(t <= _BETWEEN, np.polyval(_BELOW, t), np.polyval(_ABOVE, t)))
    return np.where(t > _LARGEST, 1.0, np.where(t < _SMALLEST, 0.0, p))
