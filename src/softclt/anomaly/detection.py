"""One series watched: the first part sets the threshold, the rest is judged by it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from softclt.anomaly.events import Alarm, clear, find_alarms
from softclt.anomaly.scorers import Scorer, new_scorer, scorers
from softclt.anomaly.thresholds import new_threshold, thresholds
from softclt.validation import Flags, Floats

OWN = "own"  # the threshold of a scorer that decides by itself


@dataclass(frozen=True)
class Detection:
    """Scores and levels of a series from the first judged step on.

    Attributes:
        scores: ``(T - start,)``, higher is stranger; NaN is not scored.
        levels: What a score has to exceed, ``(T - start,)``.
        start: The first judged step of the series.
        normal: Scores of the steps that the threshold learned from; None where it learned nothing.
        normal_levels: Their levels.
        channels: How strange each channel is ``(D, T - start)``, where the scorer can say that.
    """

    scores: Floats
    levels: Floats
    start: int
    normal: Floats | None = None
    normal_levels: Floats | None = None
    channels: Floats | None = None

    def flags(self, delay: int = 0) -> Flags:
        """Steps above their level, cleared within ``delay`` steps of one before."""
        return clear(self.scores > self.levels, delay)

    def alarms(self, gap: int = 7, persist: tuple[int, int] = (1, 1)) -> list[Alarm]:
        """Alarms with the steps of the whole series, in the order of time; see `find_alarms`."""
        return [
            Alarm(alarm.start + self.start, alarm.end + self.start, alarm.severity)
            for alarm in find_alarms(self.scores, self.levels, gap, persist)
        ]

    def explained_by(self, alarm: Alarm) -> list[int]:
        """Channels that make an alarm strange, the strangest first: at least half as much as it.

        Args:
            alarm: With the steps of the whole series. None are named where the scorer has no
                scores of channels.
        """
        if self.channels is None:
            return []
        steps = slice(alarm.start - self.start, alarm.end + 1 - self.start)
        own = np.nan_to_num(self.channels[:, steps], nan=-np.inf).max(axis=1)
        order = np.argsort(-own, kind="stable")
        return [int(d) for d in order if own[d] >= own[order[0]] / 2 and own[d] > -np.inf]

    def false_alarms_a_step(self, gap: int = 7, persist: tuple[int, int] = (1, 1)) -> float:
        """How often a normal step is expected to begin an alarm, by those of the learned part.

        One more than there were, so that none among few steps is no promise of none. NaN where
        nothing was learned.
        """
        if self.normal is None or self.normal_levels is None:
            return float("nan")
        n = int((~np.isnan(self.normal)).sum())
        return (len(find_alarms(self.normal, self.normal_levels, gap, persist)) + 1) / max(1, n)


def watch(
    scorer: Scorer,
    series: Floats,
    start: int,
    threshold: str = "sigma",
    params: Mapping[str, Any] | None = None,
) -> Detection:
    """Score a whole series ``(D, T)``, and judge it from a step on.

    Args:
        scorer: Fitted.
        series: The first judged steps see those before them.
        start: The first judged step. A threshold that trains learns from the scores before it.
        threshold: A registered name, or ``"own"``: the decision that a baseline makes itself.
        params: Of the threshold.
    """
    scores, channels = scorer.score(series), None
    if len(series) > 1 and hasattr(scorer, "channel_scores"):
        channels = scorer.channel_scores(series)[:, start:]
    if threshold == OWN:
        levels = _own_levels(scorer, series, scores)
    elif thresholds.tags(threshold)["trains"]:
        normal = new_scores_of(scorer, [series[:, :start]], [scores[:start]])
        rule = new_threshold(threshold, params).fit(normal)
        levels, known = rule.levels(scores[start:]), normal[0]
        return Detection(scores[start:], levels, start, known, rule.levels(known), channels)
    else:
        levels = new_threshold(threshold, params).levels(scores)
    return Detection(scores[start:], levels[start:], start, channels=channels)


def new_scores_of(
    scorer: Scorer, learned_from: Sequence[Floats], scores: Sequence[Floats] | None = None
) -> list[Floats]:
    """Scores of the training series ``(D, T_i)``, as if they were new where the scorer can say so.

    A scorer that remembers its training series, and therefore scores them too low, has
    ``training_scores_``. They end where the series do, and may begin later.

    Args:
        scorer: Fitted on the series.
        learned_from: The series.
        scores: What ``score`` gives for them, where it is known.
    """
    own = getattr(scorer, "training_scores_", None)
    if own is not None and len(own) == len(learned_from):
        return list(own)
    return list(map(scorer.score, learned_from) if scores is None else scores)


def watch_all(
    series: Sequence[Floats],
    starts: Sequence[int],
    *,
    scorer: str,
    threshold: str,
    scorer_params: Mapping[str, Any] | None = None,
    threshold_params: Mapping[str, Any] | None = None,
    learned_from: Sequence[Floats] | None = None,
    **fallbacks: Any,
) -> list[Detection]:
    """Watch several series ``(D, T_i)``: with one model for all, and a threshold for each.

    Args:
        series: See `watch`.
        starts: The first judged step of each.
        scorer: A registered name. One that reads a model is fitted once, on what comes before the
            judged parts; another anew on that of each series.
        threshold: See `watch`.
        scorer_params: Settings of the scorer.
        threshold_params: Settings of the threshold.
        learned_from: What the scorer with a model is fitted on instead.
        fallbacks: Settings that the scorer gets if it takes them: ``model``, ``context``, ...
    """
    before = [one[:, :start] for one, start in zip(series, starts, strict=True)]
    new = partial(new_scorer, scorer, scorer_params, **fallbacks)
    shared = None
    if scorers.tags(scorer).get("model"):
        shared = new().fit(before if learned_from is None else learned_from)
    return [
        watch(shared or new().fit([own]), one, own.shape[1], threshold, threshold_params)
        for one, own in zip(series, before, strict=True)
    ]


def check_threshold(name: str, scorer: str) -> None:
    """Refuse a scorer or threshold that there is not, or that do not go together."""
    kind = scorers[scorer]
    if name != OWN:
        thresholds[name]
    elif not hasattr(kind, "detect"):
        able = ", ".join(one for one in scorers if hasattr(scorers[one], "detect"))
        raise ValueError(
            f"the scorer {scorer!r} makes no decision of its own; expected one of "
            f"{', '.join(thresholds)} as its threshold (threshold='own' is for {able})"
        )


def _own_levels(scorer: Any, series: Floats, scores: Floats) -> Floats:
    """Levels just below the scores of the steps that a baseline decides for, and out of reach."""
    flags = scorer.detect(series) & ~np.isnan(scores)
    lowest = np.nextafter(scores[flags].min(initial=np.inf), -np.inf)
    return np.where(flags, lowest, np.inf)
