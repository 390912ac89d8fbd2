"""How seasonal series are: the test that the paper splits data sets by, and a measure of strength.

The augmented Dickey-Fuller test asks whether a series has a unit root, that is, whether it wanders
off instead of returning to a level. It says nothing of seasons: a perfect sine passes it as
stationary. So it stands here beside a measure that looks for a repeated shape.
"""

from collections.abc import Callable

import numpy as np

from softclt.optional import needed
from softclt.silence import without_warnings
from softclt.validation import Floats, Floats64

LOOKED_AT = 20  # series of a data set, evenly spread over it
ADF_LEVEL = 0.05
STRONG = 0.64  # from which on series are usually called seasonal (Wang, Smith, Hyndman, 2006)
SOME = 0.3  # above what noise of a hundred steps reaches by chance
SHORTEST_PERIOD, FEWEST_CYCLES = 4, 3


def adf_p_value(X: Floats) -> float:
    """Median p-value of the augmented Dickey-Fuller test over series ``(N, D, T)``.

    At most 20 series, evenly spread, are tested, each channel by itself: constant, no trend, lags
    by AIC (statsmodels' defaults). Missing values are left out; a series that never changes, or is
    too short for the test, counts as stationary (p = 0). Needs statsmodels.
    """
    with needed('the ADF test needs statsmodels: pip install "softclt[data]"'):
        from statsmodels.tsa.stattools import adfuller

    def p_value(x: Floats64) -> float:
        if len(x) < 10 or np.ptp(x) <= 1e-12 * np.abs(x).max():
            return 0.0
        with without_warnings():  # about lags that fit exactly: the p-value is still right
            return float(adfuller(x, autolag="AIC")[1])

    return _median(p_value, X)


def seasonality_strength(X: Floats) -> float:
    """Median over series ``(N, D, T)`` of how much of a series one repeated shape explains.

    Of each series, at most 20 of them, the straight trend is removed. For every period from 4 steps
    on that fits in three times, the mean shape of that period is taken away; strength is the share
    of the variance that goes with it, by the best period, in [0, 1]. Degrees of freedom are
    counted, so that long periods, which fit noise, gain nothing by that.

    Example:
        >>> t = np.arange(120)
        >>> noise = np.random.default_rng(0).normal(size=120)
        >>> shapes = np.stack([np.sin(t / 3), np.sin(t / 3) + noise, noise])[:, None]
        >>> [round(seasonality_strength(x[None]), 1) for x in shapes]
        [1.0, 0.4, 0.2]
    """
    return _median(_strength, X)


def _median(measure: Callable[[Floats64], float], X: Floats) -> float:
    """Over the looked-at series, each the mean of its channels."""
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT)).round().astype(int))
    series = [[measure(_known(channel)) for channel in X[row]] for row in rows]
    return float(np.median(np.mean(series, axis=1)))


def _known(x: Floats) -> Floats64:
    """The values; gaps are closed."""
    return np.asarray(x[~np.isnan(x)], dtype=np.float64)


def _strength(x: Floats64) -> float:
    n = len(x)
    if n < FEWEST_CYCLES * SHORTEST_PERIOD:
        return 0.0
    steps = np.arange(n)
    x = x - np.polyval(np.polyfit(steps, x, 1), steps)
    total = float(x @ x)
    if total <= 1e-18 * n:
        return 0.0
    best = 0.0
    for period in range(SHORTEST_PERIOD, n // FEWEST_CYCLES + 1):
        phase = steps % period
        sums = np.bincount(phase, x)
        left = total - float(sums @ (sums / np.bincount(phase)))  # after the mean shape is removed
        best = max(best, 1 - (left / (n - period)) / (total / (n - 1)))
    return best
