"""The published forecasting protocol: parts, scaling, horizons, and the ridge that reads a step.

A row is a step t: its features, and the values of all channels at t + 1, ..., t + H as targets, all
within one part. For each horizon the ridge is fitted on the rows of the training part, its penalty
chosen by RMSE + MAE on those of the validation part, and scored on those of the test part.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from softclt.data import Dataset
from softclt.forecasting.features import calendar_features
from softclt.forecasting.ridge import ALPHAS, Errors, RidgePath, RidgeSums
from softclt.forecasting.samples import Rows
from softclt.validation import Floats, Ints

Features = Callable[[Ints, Ints], Floats]  # series and steps of R rows -> (R, F)

CONTEXT = 200  # steps back that a step sees; as many at the start of training are left out
MAX_ROWS = 100_000  # of the training and of the validation part; more are drawn from

_HOURLY = (24, 48, 168, 336, 720)
_FINER = (24, 48, 96, 288, 672)
_BLOCK = 1 << 22  # targets at a time, in numbers


class Parts(NamedTuple):
    """Where training, validation and test end, in steps."""

    train: int
    valid: int
    test: int

    def span(self, name: str) -> range:
        """Steps of a part."""
        ends = (0, *self)
        k = self._fields.index(name)
        return range(ends[k], ends[k + 1])


class Score(NamedTuple):
    """Errors on the test part, in units of the scaled data, and the penalty that was chosen."""

    mse: float
    mae: float
    alpha: float | None = None


def parts_of(name: str, length: int) -> Parts:
    """ETTh: 12, 4 and 4 months of 30 days; ETTm: four times as many steps; others 60/20/20 %.

    Example:
        >>> parts_of("forecasting/ETTh1", 17420), parts_of("mine", 1000)
        (Parts(train=8640, valid=11520, test=14400), Parts(train=600, valid=800, test=1000))
    """
    base = _base(name)
    if base.startswith(("ETTh", "ETTm")):
        month = 30 * 24 * (4 if base.startswith("ETTm") else 1)
        parts = Parts(12 * month, 16 * month, 20 * month)
        if length >= parts.test:
            return parts
        raise ValueError(f"{name} has {length} steps; its protocol needs {parts.test}")
    return Parts(int(0.6 * length), int(0.8 * length), length)


def check_parts(parts: Parts, horizon: int, context: int) -> None:
    """Refuse parts in which a horizon does not fit, or a context before the first row."""
    shortest = min(parts.train - context, parts.valid - parts.train, parts.test - parts.valid)
    if shortest <= horizon:
        raise ValueError(
            f"a horizon of {horizon} steps does not fit: training (without its first {context}), "
            f"validation and test have {max(0, parts.train - context)}, "
            f"{parts.valid - parts.train} and {parts.test - parts.valid} steps; give shorter "
            "horizons, a shorter context or longer series"
        )


def horizons_of(name: str) -> tuple[int, ...]:
    """The published horizons of a data set: hourly ones, and those of finer or unknown steps."""
    hourly = ("ETTh", "electricity", "WTH", "weather")  # weather: as the paper prints it
    return _HOURLY if _base(name).startswith(hourly) else _FINER


@dataclass(frozen=True)
class Prepared:
    """A data set as the protocol has it.

    Attributes:
        y: Values to forecast ``(N, D, T)``, scaled by the training part.
        x: What the encoder sees ``(N, D + 7, T)``: values and calendar features.
        period: Steps of a day; None where the times do not tell.
    """

    y: Floats
    x: Floats
    parts: Parts
    period: int | None


def prepare(data: Dataset) -> Prepared:
    """Scale a data set by its training part, each channel of each series by itself.

    Times that are no dates, or none at all, give no calendar features.
    """
    name, X = str(data.meta["name"]), np.asarray(data.X_train, np.float64)
    if np.isnan(X).any():
        raise ValueError(
            f"{name}: the protocol knows no missing values ({int(np.isnan(X).sum())} here); "
            "softclt.Forecaster does"
        )
    parts = parts_of(name, X.shape[-1])
    y = standardise_by_start(X[..., : parts.test], parts.train)
    times = data.meta.get("times_train")
    if times is None or np.asarray(times).dtype.kind != "M":
        return Prepared(y, y, parts, None)
    times = np.asarray(times)[:, : parts.test]
    calendar = standardise_by_start(calendar_features(times), parts.train)
    return Prepared(y, np.concatenate([y, calendar], axis=1), parts, day_in_steps(times))


def standardise_by_start(X: Floats, n_train: int) -> Floats:
    """Each row by its mean and standard deviation over the first steps; NaN is left out."""
    train = X[..., :n_train]
    std = np.nanstd(train, axis=-1, keepdims=True)
    scaled: Floats = (X - np.nanmean(train, axis=-1, keepdims=True)) / np.where(std > 0, std, 1.0)
    return scaled


def day_in_steps(times: NDArray[Any]) -> int | None:
    """Steps of a day by the median gap of ``datetime64`` times; None for gaps of a day or more."""
    gaps = np.diff(np.atleast_2d(times), axis=-1).astype("timedelta64[ns]").astype(np.float64)
    gap = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else np.inf
    steps = round(86_400e9 / gap)
    return steps if steps > 1 else None


def read_horizons(
    features: Features,
    y: Floats,
    parts: Parts,
    horizons: Sequence[int],
    *,
    context: int = CONTEXT,
    alphas: Sequence[float] = ALPHAS,
    max_rows: int = MAX_ROWS,
) -> dict[int, Score]:
    """Scores of the ridge for each horizon, longest first.

    A shorter horizon has all rows of a longer one and some more, which are added to its sums.

    Args:
        features: Gives the features of rows.
        y: Scaled values ``(N, D, T)``.
        parts: See `parts_of`.
        horizons: Steps ahead.
        context: Steps at the start of the training part that are left out.
        alphas: Penalties to choose from.
        max_rows: Of the training and of the validation part.
    """
    n, d, _ = y.shape
    horizons = sorted(set(horizons), reverse=True)
    check_parts(parts, horizons[0], context)
    train, valid, test = (parts.span(name) for name in Parts._fields)
    train = range(train.start + context, train.stop)
    n_features = features(np.zeros(1, np.int64), np.array([train.start])).shape[1]
    sums = RidgeSums(n_features, horizons[0] * d)
    rows, added = _rows(n, train, horizons[-1], max_rows), train.start
    scores = {}
    for horizon in horizons:
        sums = sums.first(horizon * d)
        end = train.stop - horizon
        for X, Y in _blocks(features, y, rows.between(added, end), horizon):
            sums.add(X, Y)
        added = end
        path = sums.decompose()
        chosen = _errors(
            path, features, y, _rows(n, valid, horizon, max_rows), horizon, alphas
        ).best()
        found = _errors(path, features, y, _rows(n, test, horizon), horizon, [chosen]).means()
        scores[horizon] = Score(float(found[0][0]), float(found[1][0]), chosen)
    return scores


def repeat_last(y: Floats, parts: Parts, horizon: int, period: int = 1) -> Score:
    """Errors of saying the last value again or, with a period, the last season."""
    test = parts.span("test")
    first, last = test.start, test.stop - horizon  # rows
    squared = absolute = 0.0
    for h in range(1, horizon + 1):
        back = h - period * -(-h // period)  # 0 or less: the same phase, the last time it was seen
        if first + back < 0:
            raise ValueError(f"a season of {period} steps is longer than what is before the test")
        error = y[..., first + h : last + h] - y[..., first + back : last + back]
        squared += float(np.square(error).sum())
        absolute += float(np.abs(error).sum())
    count = y.shape[0] * y.shape[1] * (last - first) * horizon
    return Score(squared / count, absolute / count)


def embedding_features(Z: Floats) -> Features:
    """Rows read the embedding ``(N, T, M)`` of their step."""
    return lambda series, steps: Z[series, steps]


def lag_features(y: Floats, lags: int) -> Features:
    """Rows read the last values of their only channel, ``(N, 1, T)``."""
    windows = sliding_window_view(y[:, 0], lags, axis=-1)  # (N, T - lags + 1, lags)
    return lambda series, steps: windows[series, steps - lags + 1]


def _rows(n: int, span: range, horizon: int, max_rows: int | None = None) -> Rows:
    """Rows of a part whose targets are all in it, by step; as many as allowed, always the same."""
    steps = np.arange(span.start, span.stop - horizon)
    picked = np.arange(n * len(steps))
    if max_rows is not None and len(picked) > max_rows:
        picked = np.sort(np.random.default_rng(0).choice(len(picked), max_rows, replace=False))
    return Rows(picked % n, steps[picked // n])


def _blocks(
    features: Features, y: Floats, rows: Rows, horizon: int
) -> Iterator[tuple[Floats, Floats]]:
    """Features ``(R, F)`` and targets ``(R, H * D)`` of some rows after the other."""
    ahead = sliding_window_view(y, horizon, axis=-1)  # (N, D, T - H + 1, H)
    size = max(1, _BLOCK // (horizon * y.shape[1]))
    for start in range(0, len(rows.steps), size):
        series, steps = rows.series[start : start + size], rows.steps[start : start + size]
        targets = ahead[series, :, steps + 1].swapaxes(1, 2)  # (R, H, D)
        yield features(series, steps), targets.reshape(len(steps), -1)


def _errors(
    path: RidgePath,
    features: Features,
    y: Floats,
    rows: Rows,
    horizon: int,
    alphas: Sequence[float],
) -> Errors:
    errors = Errors(alphas, horizon * y.shape[1])
    for X, Y in _blocks(features, y, rows, horizon):
        errors.add(path, X, Y)
    return errors


def _base(name: str) -> str:
    return name.rpartition("/")[2]
