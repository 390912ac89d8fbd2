"""Forecasts beyond the end of series, with intervals, as a scikit-learn estimator."""

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from softclt.data.times import Times, check_times, future_times
from softclt.forecasting.features import CALENDAR, calendar_features, recurring
from softclt.forecasting.protocol import CONTEXT, MAX_ROWS, day_in_steps
from softclt.forecasting.readout import (
    CALIBRATION_ROWS,
    Embedded,
    conformal_widths,
    forecast_channel,
)
from softclt.forecasting.ridge import ALPHAS, check_alphas
from softclt.forecasting.samples import Division, Rows, carry_forward, divide, scale_of
from softclt.methods import TS2Vec
from softclt.validation import (
    Flags,
    Floats,
    Floats64,
    Ints,
    check_choice,
    check_ignored_labels,
    check_range,
    check_series,
    check_spread,
    observed_steps,
)

_STEPS = 200_000  # encoded at a time; of each, only those that are rows are kept


class Forecaster(BaseEstimator):  # type: ignore[misc]
    """Learn from series without labels, and forecast what comes after their end.

    An encoder learns from the first part of each series. A ridge for each channel reads the
    embedding of a step and the channel's own last values, and gives the next steps of all series.
    The last part of each series chooses its penalty and gives the widths of the intervals.

    Missing values are hidden from the encoder. The last values that the ridge reads are carried
    forward over gaps; targets to fit on are interpolated; errors are counted where there is a
    value. A forecast starts after the last step at which any channel has a value.

    Args:
        model: Method whose ``encode`` gives an embedding for each step. It is cloned and fitted,
            unless it is fitted already: then it is used as it is. None: TS2Vec, hard between series
            and soft over time, on sections of twice the context.
        horizon: Steps ahead to learn.
        context: How far back the encoder sees.
        alphas: Penalties of the ridge to choose from, for each channel.
        lags: Last values of a channel that the ridge reads beside the embedding; 0 is the embedding
            alone, as in the published protocol. Short series have fewer: half of what is fitted on.
        calendar: Let the encoder see minute, hour, weekday, day, day of year, month and week of
            dates, as more channels: those that begin again at least twice in what is fitted on.
        intervals: ``"conformal"``, or None for none.
        coverage: Share of the values that an interval is to hold, each step for itself. True for
            data whose errors go on as in the validation part, which time series may not do.
        valid_share: Share of each series for validation, its end; at least two horizons.
        random_state: Becomes that of the model.

    Attributes:
        model_: The fitted method.
        alpha_: Penalty of each channel.
        calendar_: Names of the calendar features that the encoder sees.
        validation_: Mean absolute errors on the validation part in units of each channel's standard
            deviation: ``mae``, ``naive`` (last value) and, where times tell it, ``seasonal``.

    Example:
        >>> from softclt import TS2Vec
        >>> X = np.sin(np.arange(400) / 4)[None]
        >>> tiny = TS2Vec(output_dims=4, hidden_dims=4, depth=2, max_iter=2, tau_instance=None)
        >>> forecaster = Forecaster(tiny, horizon=12, random_state=0).fit(X)
        >>> forecaster.predict().shape, bool(forecaster.validation_["mae"] < 0.1)
        ((1, 1, 12), True)
    """

    def __init__(
        self,
        model: Any = None,
        *,
        horizon: int = 24,
        context: int = CONTEXT,
        alphas: Sequence[float] = ALPHAS,
        lags: int = CONTEXT,
        calendar: bool = True,
        intervals: str | None = "conformal",
        coverage: float = 0.9,
        valid_share: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.horizon = horizon
        self.context = context
        self.alphas = alphas
        self.lags = lags
        self.calendar = calendar
        self.intervals = intervals
        self.coverage = coverage
        self.valid_share = valid_share
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, times: Any = None) -> Self:
        """Learn from series, and remember where they end.

        Args:
            X: As a method takes it: ``(N, D, T)``, ``(N, T)``, or a list; NaN is missing.
            y: Ignored; here for pipelines.
            times: ``(T,)`` or ``(N, T)``, dates or numbers, growing. Without them there are no
                calendar features. Where steps are not evenly spaced, the model's soft temporal
                weights go by the time between them; a forecast is of steps of the median gap.
        """
        fitted = copy.copy(self)  # after an error all is as it was
        fitted._fit(X, y, times)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any, times: Any) -> None:
        self._check_parameters()
        X = np.asarray(check_series(X, min_length=2), np.float64)
        check_ignored_labels(y, len(X))
        check_spread(X)
        _refuse_nothing_to_learn(X)
        division = divide(X, self.horizon, self.context, self.valid_share)
        lengths = division.lengths
        self.times_ = None if times is None else check_times(times, lengths, X.shape[-1])
        self.n_features_in_, self.lengths_ = X.shape[1], lengths
        self.lags_ = min(self.lags, int(division.train.max()) // 2)
        self.calendar_ = self._recurring(X, division)
        x = self._with_calendar(X)
        self.model_ = self._fitted_model(x, division)
        fit, valid = division.fit_rows, division.valid_rows
        last = Rows(np.arange(len(X)), lengths - 1)
        wanted = [fit.take(fit.spread(MAX_ROWS)), valid.take(valid.spread(MAX_ROWS)), last]
        embedded = self._embed(x, wanted)
        mean, std = scale_of(X, division.train)
        scaled = (X - mean) / std
        options: dict[str, Any] = {"horizon": self.horizon, "lags": self.lags_}
        found = [
            forecast_channel(channel, *embedded, alphas=self.alphas, **options)
            for channel in scaled.swapaxes(0, 1)
        ]
        self.alpha_ = np.array([one.alpha for one in found])
        self._std = std
        self._ahead_ = np.stack([one.ahead for one in found], axis=1) * std + mean
        self._errors_ = np.stack([one.errors for one in found])  # (D, H, rows)
        self.validation_ = {"mae": float(np.mean([one.mae for one in found]))}
        self.validation_ |= self._naive_errors(scaled, embedded[1].some(CALIBRATION_ROWS).rows)

    def predict(self, horizon: int | None = None) -> Floats64:
        """The steps after the end of each series, ``(N, D, H)``, in the units of X.

        Args:
            horizon: At most the one that was learned, which None stands for.
        """
        steps = self._checked(horizon)
        return np.array(self._ahead_[..., :steps])

    def predict_interval(
        self, horizon: int | None = None, coverage: float | None = None
    ) -> tuple[Floats64, Floats64]:
        """Lower and upper ends ``(N, D, H)`` of what `predict` gives.

        Args:
            horizon: As in `predict`.
            coverage: Share of the values inside, each step for itself; the estimator's own if None.
        """
        steps = self._checked(horizon)
        if self.intervals is None:
            raise ValueError("intervals is None; fit with intervals='conformal'")
        coverage = self.coverage if coverage is None else coverage
        check_range(coverage, "coverage", 0, 1, open_low=True)
        widths = conformal_widths(self._errors_[:, :steps], coverage)  # (D, H)
        centre, half = self._ahead_[..., :steps], widths * self._std
        return centre - half, centre + half

    def future_times(self, horizon: int | None = None) -> Times:
        """Times ``(N, H)`` of what `predict` gives; numbers of steps where none were given."""
        steps = self._checked(horizon)
        if self.times_ is None:
            return np.asarray(self.lengths_[:, None] + np.arange(steps), np.float64)
        ends = zip(self.times_, self.lengths_, strict=True)
        return np.stack([future_times(own[:length], steps) for own, length in ends])

    def _check_parameters(self) -> None:
        for name, low in (("horizon", 1), ("context", 1), ("lags", 0)):
            check_range(getattr(self, name), name, low)
        check_alphas(self.alphas)
        check_choice(self.intervals, ("conformal", None), "intervals")
        check_range(self.coverage, "coverage", 0, 1, open_low=True)
        check_range(self.valid_share, "valid_share", 0, 0.9, open_low=True)

    def _checked(self, horizon: int | None) -> int:
        check_is_fitted(self, "_ahead_")
        learned = int(self._ahead_.shape[-1])
        if horizon is None:
            return learned
        check_range(horizon, "horizon", 1)
        if horizon > learned:
            raise ValueError(
                f"horizon is {horizon}, but {learned} steps were learned; "
                f"fit with Forecaster(horizon={horizon})"
            )
        return int(horizon)

    def _recurring(self, X: Floats, division: Division) -> list[str]:
        """Calendar features to see: those that recur, or that a fitted model has seen."""
        if not self.calendar or self.times_ is None or self.times_.dtype.kind != "M":
            return []
        n_seen = getattr(self.model, "n_features_in_", None)
        if n_seen in (X.shape[1], X.shape[1] + len(CALENDAR)):
            return list(CALENDAR[: n_seen - X.shape[1]])
        train = zip(self.times_, division.train, strict=True)
        spans = [own[max(0, n - 1)] - own[0] for own, n in train]
        return [CALENDAR[i] for i in recurring(max(spans))]

    def _with_calendar(self, X: Floats) -> Floats:
        """What the encoder sees: calendar features behind the values, where there are any."""
        if not self.calendar_:
            return X
        features = [CALENDAR.index(name) for name in self.calendar_]
        calendar = calendar_features(self.times_)[:, features]  # (N, up to 7, T)
        calendar = np.where(_past_end(X, self.lengths_), np.nan, calendar)
        return np.concatenate([X, calendar], axis=1)

    def _fitted_model(self, x: Floats, division: Division) -> Any:
        if hasattr(self.model, "module_"):
            if self.model.n_features_in_ != x.shape[1]:
                raise ValueError(
                    f"the model was fitted with {self.model.n_features_in_} channel(s), but X has "
                    f"{self.n_features_in_} (and {len(self.calendar_)} of a calendar); fit it on "
                    "the same channels"
                )
            return self.model
        model = TS2Vec(**default_params(self.context)) if self.model is None else clone(self.model)
        if "random_state" in model.get_params() and self.random_state is not None:
            model.set_params(random_state=self.random_state)
        longest = int(division.train.max())
        train = np.where(_past_end(x, division.train), np.nan, x)
        some = (division.train >= 2) & observed_steps(train).any(axis=1)  # others begin later
        train = train[some, :, :longest]
        if self.times_ is None or not getattr(model, "_by_time", False):
            return model.fit(train)
        return model.fit(train, times=self.times_[some, :longest])

    def _embed(self, x: Floats, wanted: Sequence[Rows]) -> list[Embedded]:
        """Rows with their embeddings; some series at a time, and no other steps are kept."""
        n, _, t = x.shape
        size = max(1, _STEPS // t)
        parts: list[list[Floats]] = [[] for _ in wanted]
        for start in range(0, n, size):
            Z = self.model_.encode(
                x[start : start + size], level="timestamp", causal=True, context=self.context
            )
            for rows, own in zip(wanted, parts, strict=True):
                here = slice(*np.searchsorted(rows.series, [start, start + size]))
                own.append(Z[rows.series[here] - start, rows.steps[here]])
        return [Embedded(r, np.concatenate(own)) for r, own in zip(wanted, parts, strict=True)]

    def _naive_errors(self, y: Floats, rows: Rows) -> dict[str, float]:
        """What saying the last value, or the last day, would have cost on some rows."""
        periods = {"naive": 1}
        if self.times_ is not None and self.times_.dtype.kind == "M":
            day = day_in_steps(self.times_[0, : self.lengths_[0]])
            if day is not None and day <= rows.steps.min():
                periods["seasonal"] = day
        last, series = carry_forward(y), rows.series[:, None]
        h = np.arange(1, self.horizon + 1)
        found = {}
        for name, period in periods.items():
            back = rows.steps[:, None] + h - period * -(-h // period)  # (R, H)
            said, real = last[series, :, back], y[series, :, rows.steps[:, None] + h]
            found[name] = float(np.nanmean(np.abs(real - said)))
        return found


def default_params(context: int) -> dict[str, Any]:
    """How TS2Vec learns to forecast, where nothing else is said: soft over time, short sections."""
    return {"tau_instance": None, "max_train_length": 2 * context}


def _past_end(x: Floats, lengths: Ints) -> Flags:
    """Steps behind the first ones of each series, ``(N, 1, T)``."""
    return np.asarray(np.arange(x.shape[-1]) >= lengths[:, None, None])


def _refuse_nothing_to_learn(X: Floats) -> None:
    for i, series in enumerate(X):
        known = np.isfinite(series)
        values = series[known]
        if not values.size:
            raise ValueError(f"series {i} has no values, all are missing; leave it out")
        highest = series.max(axis=1, initial=-np.inf, where=known)
        if (highest <= series.min(axis=1, initial=np.inf, where=known)).all():
            raise ValueError(
                f"series {i} is constant ({values[0]:g} throughout): there is nothing to learn, "
                "and no better forecast than that value; leave it out"
            )
