"""The detector: learn what is normal, then score, judge and follow series step by step."""

import os
from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from softclt.anomaly.detection import new_scores_of
from softclt.anomaly.events import Alarm, check_persistence, find_alarms
from softclt.anomaly.saving import load_detector, save_detector
from softclt.anomaly.scorers import Scorer, new_scorer
from softclt.anomaly.thresholds import StepLevel, Threshold, new_threshold
from softclt.validation import (
    Floats,
    Floats64,
    Ints,
    check_ignored_labels,
    check_range,
    check_series,
    check_spread,
    observed_steps,
    series_lengths,
)


class AnomalyDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Finds steps that do not belong, in series like those it was fitted on.

    Follows scikit-learn's conventions for outliers, with an answer for every step of every series:
    ``score_samples`` is higher for what is more normal, and ``predict`` gives +1 and -1, each
    ``(N, T)``. All training series share one threshold.

    Args:
        model: Trained by ``fit``, as a clone. A trained one in scikit-learn's ``FrozenEstimator``
            stays as it is. For ``"patches"`` it embeds them; None compares them as they are. For
            ``"masked"`` and ``"bank"`` None is TS2Vec, soft over time and without contrast between
            series. Other scorers ignore it.
        scorer: ``"patches"``, ``"masked"`` (the paper's), ``"bank"``, or a baseline: see
            `softclt.anomaly.scorers`.
        threshold: ``"sigma"``, ``"conformal"``, ``"running"``, ``"spot"`` or ``"dspot"``.
        context: Steps before a step that scorers with a model look at.
        gap: Strange steps at most so many steps apart are one alarm.
        persist: An alarm needs so many strange ones of so many last steps, e.g. ``(3, 5)``.
        scorer_params: Settings of the scorer.
        threshold_params: Settings of the threshold, e.g. ``{"sigmas": 3}``.
        random_state: Of the model, if given, and of what else is drawn.

    Attributes:
        scorer_: The fitted scorer.
        threshold_: The fitted threshold.
        n_features_in_: Channels D.

    Example:
        >>> t = np.arange(400)
        >>> normal = np.sin(t / 5) + 0.1 * np.random.default_rng(0).normal(size=400)
        >>> strange = normal.copy()
        >>> strange[300] += 6
        >>> detector = AnomalyDetector(random_state=0).fit(normal[None])
        >>> 300 in np.flatnonzero(detector.predict(strange[None])[0] == -1)
        True
    """

    def __init__(
        self,
        model: Any = None,
        *,
        scorer: str = "patches",
        threshold: str = "sigma",
        context: int = 200,
        gap: int = 7,
        persist: tuple[int, int] = (1, 1),
        scorer_params: Mapping[str, Any] | None = None,
        threshold_params: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.scorer = scorer
        self.threshold = threshold
        self.context = context
        self.gap = gap
        self.persist = persist
        self.scorer_params = scorer_params
        self.threshold_params = threshold_params
        self.random_state = random_state

    scorer_: Scorer
    threshold_: Threshold
    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from normal series; a few anomalies among them do little harm.

        Args:
            X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
            y: Ignored.
        """
        check_range(self.gap, "gap", 0)
        check_persistence(*self.persist)
        X = check_series(X)
        check_ignored_labels(y, len(X))
        check_spread(X)
        series = _unpadded(X)
        threshold = new_threshold(self.threshold, self.threshold_params)
        fallbacks = {"context": self.context, "random_state": self.random_state}
        fallbacks |= {"model": self.model, "encoder": self.model}
        scorer = new_scorer(self.scorer, self.scorer_params, **fallbacks)
        self.scorer_ = scorer.fit(series)
        self.threshold_ = threshold.fit(new_scores_of(self.scorer_, series))
        self.n_features_in_ = X.shape[1]
        return self

    def anomaly_scores(self, X: Any) -> Floats64:
        """How strange each step is, ``(N, T)``: higher is stranger, NaN is not scored.

        Missing steps, those behind the end of a series and, with the masked scorer, the first 21
        are not scored; nor are series shorter than the shortest patch. A series of which no step
        is scored is refused.
        """
        X = self._seen(X)
        scores = np.full((X.shape[0], X.shape[2]), np.nan)
        for i, (row, series) in enumerate(zip(scores, _unpadded(X), strict=True)):
            row[: series.shape[1]] = self.scorer_.score(series)
            if np.isnan(row).all():
                raise ValueError(
                    f"series {i} has {series.shape[1]} step(s), none of which the scorer "
                    f"{self.scorer!r} can score: give more of what comes before, leave the series "
                    "out, or choose another scorer"
                )
        return scores

    def score_samples(self, X: Any) -> Floats64:
        """How normal each step is, ``(N, T)``: minus `anomaly_scores`, as in scikit-learn."""
        return -self.anomaly_scores(X)

    def levels(self, scores: Floats) -> Floats64:
        """What each of some `anomaly_scores` has to exceed to be an alarm, ``(N, T)``."""
        return np.stack([self.threshold_.levels(row) for row in scores])

    def decision_function(self, X: Any) -> Floats64:
        """By how much each score stays below its level ``(N, T)``: negative is an anomaly."""
        scores = self.anomaly_scores(X)
        margin: Floats64 = self.levels(scores) - scores
        return margin

    def predict(self, X: Any) -> Ints:
        """-1 for a strange step, +1 for all others ``(N, T)``, also for what is not scored."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def alarms(self, X: Any) -> list[list[Alarm]]:
        """The alarms of each series, in the order of time."""
        scores = self.anomaly_scores(X)
        levels = self.levels(scores)
        pairs = zip(scores, levels, strict=True)
        return [find_alarms(*pair, self.gap, self.persist) for pair in pairs]

    def channel_scores(self, X: Any) -> Floats64:
        """How strange each channel is at each step, ``(N, D, T)``: what explains the scores."""
        X = self._seen(X)
        if not hasattr(self.scorer_, "channel_scores"):
            raise ValueError(
                f"the scorer {self.scorer!r} does not score channels by themselves; 'patches' does"
            )
        scores = np.full(X.shape, np.nan)
        for own, series in zip(scores, _unpadded(X), strict=True):
            own[:, : series.shape[1]] = self.scorer_.channel_scores(series)
        return scores

    def stream(self) -> "AnomalyStream":
        """Follow one series step by step, with memory that does not grow."""
        check_is_fitted(self, "scorer_")
        if not hasattr(self.scorer_, "stream"):
            raise ValueError(
                f"the scorer {self.scorer!r} needs the whole series, so it cannot follow a stream; "
                "'patches', 'masked' and 'bank' can"
            )
        return AnomalyStream(self.scorer_.stream(), self.threshold_.stream(), self.n_features_in_)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted detector as a folder, without pickle, with its model in it.

        What is loaded holds its model frozen: ``fit`` then learns scores and threshold anew.
        """
        check_is_fitted(self, "scorer_")
        save_detector(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """A detector that :meth:`save` wrote."""
        return cast(Self, load_detector(cls, folder))

    def _seen(self, X: Any) -> Floats:
        check_is_fitted(self, "scorer_")
        return check_series(X, n_channels=self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


class AnomalyStream:
    """One series, step by step; `AnomalyDetector.stream` makes it.

    Attributes:
        delay: Steps by which scores come behind: with the scorer ``patches``, one less than the
            longest patch has; 0 with others.
    """

    def __init__(self, score: Any, level: StepLevel, n_channels: int) -> None:
        self._score, self._level, self._n_channels = score, level, n_channels
        self.delay: int = getattr(score, "delay", 0)

    def push(self, x: Any) -> tuple[float, bool]:
        """The score of the step `delay` before this one, NaN if none, and whether it is an alarm.

        Args:
            x: Its values ``(D,)``, or a number where there is one channel; NaN is missing.
        """
        values = np.atleast_1d(np.asarray(x, dtype=np.float64))
        if values.shape != (self._n_channels,):
            raise ValueError(
                f"x has shape {values.shape}; expected ({self._n_channels},), a value a channel"
            )
        return self._judged(self._score(values))

    def finish(self) -> list[tuple[float, bool]]:
        """What is still due of the last `delay` steps, once the series has ended."""
        return [self._judged(score) for score in self._score.finish()] if self.delay else []

    def _judged(self, score: float) -> tuple[float, bool]:
        return score, bool(score > self._level(score))


def _unpadded(X: Floats) -> list[Floats]:
    """Series ``(D, T_i)`` without what is missing at their ends."""
    empty = np.flatnonzero(~observed_steps(X).any(axis=1))
    if len(empty):
        raise ValueError(
            f"series {empty[0]} has no step at which all its channels have a value; leave it out"
        )
    lengths = series_lengths(X)
    return [series[:, :length] for series, length in zip(X, lengths, strict=True)]
