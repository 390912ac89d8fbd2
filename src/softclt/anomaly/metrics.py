"""How good alarms are: the delay-adjusted scores of the papers, and two that flatter nobody."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support

from softclt.anomaly.events import adjust_segments, regrid, segments
from softclt.anomaly.surface import vus_pr_score
from softclt.optional import needed
from softclt.validation import Flags, Floats

VUS_BUFFER = 20  # steps around an anomaly up to which it may be missed by a little


@dataclass(frozen=True)
class Judged:
    """What was found in one series, beside what was there.

    Attributes:
        labels: Anomalies ``(T,)``.
        flags: Alarms ``(T,)``.
        scores: ``(T,)``, higher is stranger; NaN is not scored, and ranks as least strange.
        times: ``(T,)``, in their order.
    """

    labels: Flags
    flags: Flags
    scores: Floats
    times: NDArray[Any]


def delay_adjusted(series: Sequence[Judged], delay: int | None) -> dict[str, float]:
    """F1, precision and recall over the steps of all series, by the published protocol.

    Labels and alarms are put on a grid of the smallest gap between times, without either where a
    step is missing. A labelled segment that is hit within its first ``delay`` + 1 steps counts as
    found in all its steps, another as missed in all, which rewards one lucky hit in a long segment:
    read `point_pr_auc` and `vus_pr` beside it.
    """
    labels, found = [], []
    for one in series:
        truth = regrid(one.labels, one.times)
        labels.append(truth)
        found.append(adjust_segments(regrid(one.flags, one.times), truth, delay))
    precision, recall, f1, _ = precision_recall_fscore_support(
        np.concatenate(labels), np.concatenate(found), average="binary", zero_division=0.0
    )
    return {"f1": float(f1), "precision": float(precision), "recall": float(recall)}


def point_pr_auc(series: Sequence[Judged]) -> float:
    """Area under the precision-recall curve of single steps, the mean over series (aeon's).

    Series without an anomaly, or with nothing else, do not count; NaN if none is left.
    """
    return _mean_over_series(series, check_aeon().pr_auc_score)


def vus_pr(series: Sequence[Judged], buffer: int = VUS_BUFFER) -> float:
    """Volume under the surface of precision, recall and buffer size, the mean over series.

    A threshold-free score that gives a part for near misses; see `vus_pr_score`. Series as in
    `point_pr_auc`.
    """
    return _mean_over_series(series, lambda y, scores: vus_pr_score(y > 0, scores, buffer))


@dataclass(frozen=True)
class Events:
    """Alarms of a series, counted as a person counts them.

    Attributes:
        anomalies: Labelled segments.
        found: Of them, those with an alarm in time.
        alarms: Runs of flags.
        false: Of them, those that touch no labelled segment.
    """

    anomalies: int
    found: int
    alarms: int
    false: int

    @property
    def f1(self) -> float:
        """Of the share of true alarms and the share of anomalies that were found."""
        true = self.alarms - self.false
        if not (self.anomalies and self.alarms and true and self.found):
            return 0.0
        precision, recall = true / self.alarms, self.found / self.anomalies
        return 2 * precision * recall / (precision + recall)


def count_events(labels: Flags, flags: Flags, delay: int | None, gap: int) -> Events:
    """Labelled segments that are hit in time, and alarms that hit none.

    Args:
        labels: Anomalies ``(T,)``.
        flags: Strange steps ``(T,)``.
        delay: A hit is in time within the first ``delay`` + 1 steps of a segment; None is anywhere.
        gap: Flags at most so many steps apart are one alarm, unless an anomaly ends between them.
    """
    truth = segments(labels)
    ends = [end if delay is None else min(end, start + delay + 1) for start, end in truth]
    found = sum(bool(flags[start:end].any()) for (start, _), end in zip(truth, ends, strict=True))
    hits = sum(bool(flags[start:end].any()) for start, end in truth)
    stray = np.flatnonzero(flags & ~labels)
    runs = np.split(stray, np.flatnonzero(np.diff(stray) > max(1, gap)) + 1) if len(stray) else []
    near = np.flatnonzero(labels)
    false = sum(
        not len(near) or np.abs(near[:, None] - run[[0, -1]]).min() > max(1, gap) for run in runs
    )
    return Events(len(truth), found, hits + false, false)


def check_aeon() -> Any:
    """The metrics of aeon; asked for before long work, since it may be missing."""
    with needed(
        "VUS-PR and the area under the point-wise precision-recall curve need aeon: "
        'pip install "softclt[data]"; or leave them out with vus=False'
    ):
        from aeon.benchmarking.metrics import anomaly_detection
    return anomaly_detection


def _mean_over_series(series: Sequence[Judged], measure: Any) -> float:
    def measured(one: Judged) -> float:
        least = float(np.nanmin(one.scores))
        scores = np.nan_to_num(one.scores, nan=least)
        return float(measure(one.labels.astype(int), scores))

    there = [one for one in series if one.labels.any() and not one.labels.all()]
    there = [one for one in there if not np.isnan(one.scores).all()]
    if not there:
        return float("nan")
    with ThreadPoolExecutor() as threads:  # NumPy's work on long arrays holds no lock
        return float(np.mean(list(threads.map(measured, there))))
