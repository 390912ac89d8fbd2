"""Alarms as a user gets them: learn from the first half of each series, judge the second."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from softclt.anomaly.detection import check_threshold, watch
from softclt.anomaly.metrics import (
    Judged,
    check_aeon,
    count_events,
    point_pr_auc,
    vus_pr,
)
from softclt.anomaly.scorers import new_scorer, scorers
from softclt.data import AnomalyData, Dataset
from softclt.data.corpus import half_of
from softclt.data.times import since_first
from softclt.tasks.evaluation import Clock, Outcome, tasks
from softclt.validation import Floats64, check_choice

HALVES = 20261118  # seed of the half of the series by which scorers are chosen
PARTS = ("all", "choices", "reported")
GAP = 7  # strange steps so far apart are one alarm
_WEEK = 7 * 86400.0
_NORMAL = 1.96  # standard errors of the mean, for an interval of 95 %


@tasks.register("alarms", metric="vus_pr")
def run(
    model: Any,
    data: Dataset,
    *,
    scorer: str = "patches",
    learned: bool = False,
    threshold: str = "conformal",
    part: str = "reported",
    delay: int | None = None,
    scorer_params: Mapping[str, Any] | None = None,
    threshold_params: Mapping[str, Any] | None = None,
) -> Outcome:
    """Learn from the first half of each series as it is, and count alarms in the second.

    Nothing is differenced, and nothing is shared between series. Metrics are means over series with
    an anomaly in their second half; those that end in ``_interval`` are 1.96 standard errors.
    ``vus_pr`` and ``pr_auc`` need no threshold. ``event_f1`` counts whole alarms: a labelled
    segment is found by an alarm in time, an alarm that touches none is false. ``false_a_week`` is
    of all series, those without an anomaly too.

    Args:
        model: Embeds patches if ``learned``; else it is left alone.
        data: Series with a label at every step, such as ``anomaly/NAB``; times in seconds or dates.
        scorer: See `softclt.anomaly.scorers`; one that reads no model.
        learned: Whether ``model`` is the encoder of the scorer, trained on each series anew.
        threshold: See `softclt.anomaly.thresholds`.
        part: ``choices``: the half of the series by which defaults were chosen; ``reported``: the
            other; ``all``.
        delay: Steps within which an alarm is in time; the data set's own if None.
        scorer_params: Settings of the scorer.
        threshold_params: Settings of the threshold.
    """
    check_choice(part, PARTS, "part")
    if not isinstance(data, AnomalyData):
        title = data.meta["name"] or "the data set"
        raise ValueError(f"{title} has no label at every step; expected one like anomaly/NAB")
    check_threshold(threshold, scorer)
    if scorers.tags(scorer).get("model"):
        raise ValueError(f"the scorer {scorer!r} reads a model: the task 'anomaly' is for such")
    check_aeon()
    delay = data.meta["delay"] if delay is None else delay
    own = {"encoder": model} if learned else {}
    seed = model.get_params(deep=False).get("random_state")
    clock, steps = Clock(), 0
    judged, found, false, weeks = [], [], 0, 0.0
    for i in rows_of(len(data.series), part):
        series = data.series[i]
        values = np.asarray(series.values, np.float64)
        start = len(series) // 2
        fitted = new_scorer(scorer, scorer_params, random_state=seed, **own)
        fitted.fit([values[:, :start]])
        detection = watch(fitted, values, start, threshold, threshold_params)
        if np.isnan(detection.scores).all():
            continue
        steps += len(series)
        labels, flags = series.labels[start:], detection.flags()
        events = count_events(labels, flags, delay, GAP)
        weeks += weeks_of(series.times[start:])
        false += events.false
        if labels.any() and not labels.all():
            judged.append(Judged(labels, flags, detection.scores, series.times[start:]))
            found.append(events.f1)
    clock.lap("score")
    values_of = {
        "vus_pr": np.array([vus_pr([one]) for one in judged]),
        "pr_auc": np.array([point_pr_auc([one]) for one in judged]),
        "event_f1": np.array(found),
    }
    metrics = {}
    for name, each in values_of.items():
        metrics[name] = float(each.mean()) if len(each) else float("nan")
        metrics[f"{name}_interval"] = interval(each)
    metrics["false_a_week"] = false / weeks if weeks > 0 else float("nan")
    metrics["seconds_10k"] = 1e4 * clock.seconds["score"] / max(1, steps)
    clock.lap("metrics")
    return Outcome(metrics, clock.seconds, probe=scorer)


def rows_of(n: int, part: str) -> list[int]:
    """Numbers of the series of a part."""
    chosen = set(half_of(n, HALVES).tolist())
    wanted = {"all": range(n), "choices": chosen, "reported": set(range(n)) - chosen}
    return sorted(wanted[part])


def weeks_of(times: Any) -> float:
    """How long times are, dates or seconds."""
    since = since_first(times)
    scale = 1e9 if np.asarray(times).dtype.kind == "M" else 1.0
    return float(since[-1] / scale / _WEEK) if len(since) else 0.0


def interval(values: Floats64) -> float:
    """1.96 standard errors of the mean; NaN of fewer than two."""
    if len(values) < 2:
        return float("nan")
    return float(_NORMAL * values.std(ddof=1) / np.sqrt(len(values)))
