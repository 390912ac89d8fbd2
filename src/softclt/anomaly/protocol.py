"""The published protocol: halves, differencing, scaling, normal and cold start, what is scored."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.anomaly.detection import watch_all
from softclt.anomaly.metrics import Judged
from softclt.data import AnomalyData, AnomalySeries
from softclt.optional import needed
from softclt.silence import without_warnings
from softclt.validation import Flags, Floats, Floats64

ADF_LEVEL = 0.05
_MOST_DIFFERENCES = 5  # no real series needs as many; one that never settles must end, too
_SHORTEST = 20  # known values from which on the test says anything


@dataclass(frozen=True, eq=False)
class Prepared:
    """A series as the protocol feeds it to a scorer.

    Attributes:
        values: ``(D, T)``, differenced and scaled.
        times: ``(T,)``.
        labels: ``(T,)``.
        n_train: Steps of the first half.
        n_differences: How often it was differenced; each takes the first step.
    """

    name: str
    values: Floats
    times: NDArray[Any]
    labels: Flags
    n_train: int
    n_differences: int

    @property
    def training(self) -> Floats:
        """The first half ``(D, n_train)``."""
        return self.values[:, : self.n_train]


_prepared: "weakref.WeakKeyDictionary[AnomalyData, list[Prepared]]" = weakref.WeakKeyDictionary()


def prepare_all(data: AnomalyData) -> list[Prepared]:
    """All series of a data set, prepared once for all models that ask."""
    if data not in _prepared:
        _prepared[data] = [prepare(series) for series in data.series]
    return _prepared[data]


def prepare(series: AnomalySeries) -> Prepared:
    """A series differenced until its first half is stationary, then scaled by its first half.

    As long as the augmented Dickey-Fuller test, with one lag or with the number of lags that AIC
    chooses, has p > 0.05 on the first half, the whole series is differenced. Needs statsmodels.
    """
    values = np.asarray(series.values, dtype=np.float64)
    half = len(series) // 2
    n = 0
    while n < _MOST_DIFFERENCES and not all(map(is_stationary, values[:, : half - n])):
        values = np.diff(values)
        n += 1
    with without_warnings(RuntimeWarning):  # about channels without a value
        mean = np.nanmean(values[:, : half - n], axis=1, keepdims=True)
        std = np.nanstd(values[:, : half - n], axis=1, keepdims=True)
    scaled = (values - mean) / np.where(std > 0, std, 1.0)
    return Prepared(series.name, scaled, series.times[n:], series.labels[n:], half - n, n)


def is_stationary(x: Floats) -> bool:
    """Whether the test rejects a unit root with one lag and with as many as AIC chooses.

    Missing values are left out. What never changes, or is too short to tell, counts as stationary.
    """
    with needed('the protocol tests series with statsmodels: pip install "softclt[data]"'):
        from statsmodels.tsa.stattools import adfuller
    known = np.asarray(x[~np.isnan(x)], dtype=np.float64)
    if len(known) < _SHORTEST or np.ptp(known) <= 1e-12 * np.abs(known).max():
        return True
    with without_warnings():  # about lags that fit exactly: the p-value is still right
        lags = (1, automatic_lag(known))
        return all(adfuller(known, maxlag=lag, autolag=None)[1] <= ADF_LEVEL for lag in lags)


def automatic_lag(x: Floats64) -> int:
    """The number of lags that statsmodels' ``adfuller(x, autolag="AIC")`` chooses.

    There every number has a regression of its own; here one triangular decomposition has the errors
    of all of them, which matters for series of many thousand steps.
    """
    most = min(int(np.ceil(12.0 * (len(x) / 100.0) ** 0.25)), len(x) // 2 - 2)
    changes = np.diff(x)
    lagged = np.lib.stride_tricks.sliding_window_view(changes, most + 1)[:, ::-1]  # newest first
    n = len(lagged)
    regressors = np.column_stack([np.ones(n), x[most:-1], lagged[:, 1:], lagged[:, 0]])
    triangle: Floats64 = np.linalg.qr(regressors, mode="r")  # type: ignore[assignment]
    # The last column's parts below row i are what the first i regressors leave of the target.
    left = np.cumsum(triangle[::-1, -1] ** 2)[::-1]
    errors = np.maximum(left[2:], np.finfo(np.float64).tiny)  # with 0, 1, ... lags
    aic = n * np.log(errors / n) + 2 * np.arange(2, 2 + len(errors))
    return int(np.argmin(aic[: most + 1]))


def judge(
    series: Sequence[Prepared],
    *,
    delay: int | None,
    learned_from: Sequence[Floats] | None = None,
    **options: Any,
) -> list[Judged]:
    """Alarms of all series, beside their labels, from where the protocol judges them on.

    Args:
        series: See `prepare_all`.
        delay: Alarms so close behind another are taken back; None keeps all.
        learned_from: What the model of a cold start learned from. Then all but the first tenth of
            a series is judged, else its second half.
        options: See `softclt.anomaly.detection.watch_all`.
    """
    starts = [one.n_train if learned_from is None else one.values.shape[1] // 10 for one in series]
    values = [one.values for one in series]
    detections = watch_all(values, starts, learned_from=learned_from, **options)
    return [
        Judged(one.labels[start:], found.flags(delay or 0), found.scores, one.times[start:])
        for one, start, found in zip(series, starts, detections, strict=True)
    ]
