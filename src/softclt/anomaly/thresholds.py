"""From which score on a step is an alarm: thresholds that learn from scores of normal steps."""

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from softclt.anomaly.extreme import DSpot, Spot
from softclt.methods.signature import with_parameters_of
from softclt.registry import Registry
from softclt.validation import Floats, check_known, check_range

SIGMAS = 4.0
SKIPPED = 22  # first scores of a series: the trailing mean that they rest on is not settled

StepLevel = Callable[[float], float]


class Threshold(Protocol):
    """Levels that scores are compared with; a score above its level is an alarm.

    All settings are keyword arguments of ``__init__`` with defaults.
    """

    def fit(self, scores: Sequence[Floats]) -> Self:
        """Learn from the scores ``(T_i,)`` of training series; NaN is not scored."""
        ...

    def levels(self, scores: Floats) -> Floats:
        """The level ``(T,)`` of each step of new scores ``(T,)``; NaN where none is known yet."""
        ...

    def stream(self) -> StepLevel:
        """A function from the newest score to its level, with constant memory."""
        ...


#: Classes that follow `Threshold`. Tag ``trains``: whether it needs scores of normal steps.
thresholds: Registry[type[Threshold]] = Registry("threshold")


def new_threshold(name: str, params: Mapping[str, Any] | None = None) -> Threshold:
    """An unfitted threshold."""
    kind = thresholds[name]
    known = inspect.signature(kind).parameters
    check_known(params or {}, known, f"the threshold {name!r}", "setting")
    return kind(**(params or {}))


def known_scores(scores: Sequence[Floats], skip: int = SKIPPED) -> Floats:
    """All training scores that count, in one row: those behind the first ``skip`` of a series."""
    known: Floats = np.concatenate([own[skip:] for own in scores])
    known = known[~np.isnan(known)]
    if len(known) < 2:
        raise ValueError(
            f"the threshold has {len(known)} scored training step(s) to learn from, behind the "
            f"first {skip} of each series; expected many: train on longer series"
        )
    return known


@thresholds.register("sigma", trains=True)
class SigmaThreshold:
    """Mean + 4 standard deviations of the training scores, from step 22 of each series on.

    Args:
        sigmas: Standard deviations above the mean.
        skip: First scores of each training series that do not count.
    """

    def __init__(self, *, sigmas: float = SIGMAS, skip: int = SKIPPED) -> None:
        self.sigmas = sigmas
        self.skip = skip

    def fit(self, scores: Sequence[Floats]) -> Self:
        """Mean and standard deviation of the scores."""
        known = known_scores(scores, self.skip)
        self.level_ = float(known.mean() + self.sigmas * known.std())
        return self

    def levels(self, scores: Floats) -> Floats:
        """The same level everywhere."""
        return np.full(len(scores), self.level_)

    def stream(self) -> StepLevel:
        """The same level always."""
        return lambda score: self.level_


@thresholds.register("conformal", trains=True)
class ConformalThreshold:
    """The score that a share ``rate`` of normal steps exceeds, by ranks alone: any distribution.

    If new normal scores come from where the training scores do, one of them is above the level
    with a probability of ``rate`` at most; `rate_` says exactly how much. Fewer training scores
    than 1 / rate cannot promise as little: then it is their largest. Neighbouring steps are strange
    together, so there are fewer alarms than steps above the level.

    Args:
        rate: Share of normal steps above the level.
        skip: First scores of each training series that do not count.
    """

    def __init__(self, *, rate: float = 1e-3, skip: int = SKIPPED) -> None:
        self.rate = rate
        self.skip = skip

    def fit(self, scores: Sequence[Floats]) -> Self:
        """The rank of the level among the scores."""
        check_range(self.rate, "rate", 0, 1, open_low=True)
        known = np.sort(known_scores(scores, self.skip))
        n = len(known)
        rank = min(n, math.ceil((n + 1) * (1 - self.rate)))
        self.level_, self.rate_ = float(known[rank - 1]), (n + 1 - rank) / (n + 1)
        return self

    def levels(self, scores: Floats) -> Floats:
        """The same level everywhere."""
        return np.full(len(scores), self.level_)

    def stream(self) -> StepLevel:
        """The same level always."""
        return lambda score: self.level_


@thresholds.register("running", trains=False)
class RunningThreshold:
    """Mean + 4 standard deviations of all scores of the series so far: nothing is trained.

    For a cold start. A step's own score counts in its level, as in the original.

    Args:
        sigmas: Standard deviations above the mean.
        warmup: Scores before the first level; a tenth of the series if None, which a stream, whose
            length nobody knows, cannot take.
    """

    def __init__(self, *, sigmas: float = SIGMAS, warmup: int | None = None) -> None:
        self.sigmas = sigmas
        self.warmup = warmup

    def fit(self, scores: Sequence[Floats]) -> Self:
        """Nothing to learn."""
        return self

    def levels(self, scores: Floats) -> Floats:
        """Levels by the scores up to each step."""
        warmup = len(scores) // 10 if self.warmup is None else self.warmup
        known = ~np.isnan(scores)
        count = np.cumsum(known)
        levels = np.full(len(scores), np.nan)
        if not known.any():
            return levels
        centre = np.median(scores[known])  # sums of what is near 0 lose no digits
        moved = np.where(known, scores - centre, 0.0)
        there = count >= max(1, warmup)
        mean = np.cumsum(moved)[there] / count[there]
        spread = np.sqrt(np.maximum(np.cumsum(moved**2)[there] / count[there] - mean**2, 0.0))
        levels[there] = centre + mean + self.sigmas * spread
        return levels

    def stream(self) -> StepLevel:
        """Levels by the scores that were pushed."""
        if self.warmup is None:
            raise ValueError(
                "a stream has no length to take a tenth of; say how many scores come before the "
                "first alarm, e.g. threshold_params={'warmup': 1000}"
            )
        check_range(self.warmup, "warmup", 0)
        first, count, mean, squares = max(1, self.warmup), 0, 0.0, 0.0

        def push(score: float) -> float:
            nonlocal count, mean, squares
            if not math.isnan(score):
                count += 1
                away = score - mean
                mean += away / count
                squares += away * (score - mean)
            if count < first:
                return math.nan
            return mean + self.sigmas * math.sqrt(squares / count)

        return push


@thresholds.register("spot", trains=True)
class SpotThreshold:
    """Extreme-value theory on the scores (SPOT): alarms have a small probability by design.

    Args:
        risk: Probability with which a normal score is an alarm.
        level: Quantile of the training scores from which on their tail is modelled.
        max_excesses: Scores of the tail that are kept, the newest; None keeps all.
        skip: First scores of each training series that do not count.
    """

    def __init__(
        self,
        *,
        risk: float = 1e-4,
        level: float = 0.98,
        max_excesses: int | None = 10_000,
        skip: int = SKIPPED,
    ) -> None:
        self.risk, self.level = risk, level
        self.max_excesses, self.skip = max_excesses, skip

    def _watcher(self) -> Spot:
        return Spot(risk=self.risk, level=self.level, max_excesses=self.max_excesses)

    def fit(self, scores: Sequence[Floats]) -> Self:
        """Model the upper tail of the training scores."""
        known_scores(scores, self.skip)  # or a clear refusal
        self.watcher_ = self._watcher().calibrate(*(own[self.skip :] for own in scores))
        return self

    def levels(self, scores: Floats) -> Floats:
        """Levels as they were when each score came."""
        push = self.stream()
        return np.array([push(float(score)) for score in scores])

    def stream(self) -> StepLevel:
        """Levels that learn from every score that is no alarm."""
        watcher = copy.deepcopy(self.watcher_)

        def push(score: float) -> float:
            level = watcher.threshold
            watcher.update(score)
            return level

        return push


@thresholds.register("dspot", trains=True)
class DSpotThreshold(SpotThreshold):
    """The same on the distance to the mean of the last normal scores, for scores that drift.

    Args:
        depth: How many scores the mean is of.
        risk, level, max_excesses, skip: See `SpotThreshold`.
    """

    @with_parameters_of(SpotThreshold)
    def __init__(self, *, depth: int = 10, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.depth = depth

    def _watcher(self) -> Spot:
        kept = self.max_excesses
        return DSpot(depth=self.depth, risk=self.risk, level=self.level, max_excesses=kept)
