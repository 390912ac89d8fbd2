"""VUS-PR: precision and recall at all thresholds, with a part for near misses."""

import numpy as np

from softclt.anomaly.events import segments
from softclt.validation import Flags, Floats, Floats64

_N_LEVELS = 250  # thresholds that the surface is cut at, as its authors do


def vus_pr_score(labels: Flags, scores: Floats, buffer: int) -> float:
    """Volume under the surface of precision, recall and buffer size (Paparrizos et al., VLDB 2022).

    Equal to aeon's ``range_pr_vus_score``, which looks at every step again for each threshold and
    each buffer. Here one sorting of the scores serves all of them: about 35 times as fast on 73,000
    steps.

    Args:
        labels: Anomalies ``(T,)``: some of the steps, not all.
        scores: ``(T,)``, higher is stranger.
        buffer: Largest number of steps by which labels are widened, half on either side.
    """
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    levels = falling[np.linspace(0, len(scores) - 1, _N_LEVELS, dtype=np.int64)]
    found = np.searchsorted(-falling, -levels, side="right")  # steps at or above each level
    areas = []
    for size in range(buffer + 1):
        widened = _widened(labels, size)
        runs = segments(widened > 0)
        tops = np.array([scores[start:end].max() for start, end in runs])
        met = (tops >= levels[:, None]).mean(axis=1)  # share of the anomalies that are hit at all
        hits = np.cumsum(widened[order])[found - 1]
        total = (labels.sum() + widened.sum()) / 2
        recall = np.r_[0.0, np.minimum(hits / total, 1) * met]
        precision = np.r_[1.0, hits / found]
        areas.append(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
    return float(np.mean(areas))


def _widened(labels: Flags, size: int) -> Floats64:
    """Labels in [0, 1] with a slope of ``size`` // 2 steps on either side of each anomaly."""
    wide = labels.astype(np.float64)
    if size <= 1:
        return wide
    slope = np.sqrt(1 - np.arange(size // 2 + 1) / size)  # by the distance to the anomaly
    for start, end in segments(labels):
        behind = min(size // 2, len(labels) - end + 1)
        wide[end - 1 : end - 1 + behind] += slope[:behind]
        before = min(size // 2, start)
        wide[start - before : start] += slope[before:0:-1]
    return np.minimum(wide, 1.0)
