"""What is in a table of series: lengths, gaps, uneven steps, constant channels, outliers."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.data.columns import Columns
from softclt.data.dataset import SeriesTable
from softclt.data.times import in_gaps
from softclt.validation import Floats, Ints, series_lengths

FAR = 10.0  # robust standard deviations from the median of a channel: an outlier
UNEVEN = 0.01  # share of the usual step by which an even one may be off
_ROBUST = 1.349  # a normal distribution's quartiles are so many standard deviations apart


@dataclass(frozen=True)
class Gap:
    """Steps in a row that a channel has no value at, inside its series."""

    series: Any
    channel: str
    step: int
    steps: int


@dataclass(frozen=True)
class Outlier:
    """A value that is far from all others of its channel."""

    series: Any
    channel: str
    step: int
    value: float
    deviations: float


@dataclass(frozen=True)
class Findings:
    """What a look at a table shows; steps are counted from 0.

    Attributes:
        lengths: Steps of each series up to its last value, ``(N,)``.
        channels: Their names, or numbers.
        missing: Values that are missing inside the series.
        missing_in: How many series lack some.
        empty: Ids of series without any value.
        longest_gap: None where nothing is missing.
        usual_step: Median distance of two times, in seconds for dates; None without times.
        uneven: Ids of series with a step that is longer or shorter than the usual one.
        constant: Series and channel that never change, though they have two values or more.
        outliers: The farthest out first.
        repeated_ids: Ids of more than one series.
        labels: How many series have each label.
    """

    lengths: Ints
    channels: list[str]
    missing: int
    missing_in: int
    empty: list[Any]
    longest_gap: Gap | None
    usual_step: float | None
    uneven: list[Any]
    constant: list[tuple[Any, str]]
    outliers: list[Outlier]
    repeated_ids: list[Any]
    labels: dict[str, int]


def inspect_table(table: SeriesTable) -> Findings:
    """Look at all values of a table once."""
    X, ids = np.asarray(table.X, np.float64), table.ids
    channels = table.channels or [str(c) for c in range(X.shape[1])]
    lengths = series_lengths(X)
    inside = np.arange(X.shape[-1]) < lengths[:, None, None]
    lacking = np.isnan(X) & inside  # (N, D, T)
    usual, uneven = _steps(table, lengths)
    still = _never_changes(X)
    counts = Counter(ids)
    return Findings(
        lengths=lengths,
        channels=list(channels),
        missing=int(lacking.sum()),
        missing_in=int(lacking.any(axis=(1, 2)).sum()),
        empty=[ids[i] for i in np.flatnonzero(lengths == 0)],
        longest_gap=_longest_gap(lacking, ids, channels),
        usual_step=usual,
        uneven=[ids[i] for i in uneven],
        constant=[(ids[i], channels[c]) for i, c in np.argwhere(still)],
        outliers=_outliers(X, ids, channels),
        repeated_ids=[name for name, count in counts.items() if count > 1],
        labels=dict(Counter(table.labels or ())),
    )


def mixed_up(table: SeriesTable, columns: Columns) -> str:
    """Why the steps of a table may be of several series, though it reads as one; empty if not.

    Times that go back may mean that the ids are in a column that nobody named. Where there are ids,
    or where one said how to make one series of the rows, the steps are sorted.
    """
    said = columns.get("duplicates", "error") != "error" or columns.get("resample")
    if not table.unsorted_at or table.has_ids or len(table) > 1 or said:
        return ""
    return (
        f"{table.unsorted_at}: the time is earlier than that of the row before; sort the rows by "
        "time, or name the column of the series with --id"
    )


def _never_changes(X: Floats) -> Any:
    known = (~np.isnan(X)).sum(axis=-1) > 1  # (N, D)
    low = np.where(np.isnan(X), np.inf, X).min(axis=-1)
    high = np.where(np.isnan(X), -np.inf, X).max(axis=-1)
    return known & (low == high)


def _longest_gap(lacking: Any, ids: list[Any], channels: list[str]) -> Gap | None:
    best: Gap | None = None
    for i, c in np.argwhere(lacking.any(axis=-1)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], lacking[i, c].astype(np.int8), [0]])))
        starts, ends = edges[::2], edges[1::2]
        at = int((ends - starts).argmax())
        steps = int(ends[at] - starts[at])
        if best is None or steps > best.steps:
            best = Gap(ids[i], channels[c], int(starts[at]), steps)
    return best


def _steps(table: SeriesTable, lengths: Ints) -> tuple[float | None, list[int]]:
    """The usual step, and the series that do not keep it."""
    if table.times is None or not (lengths > 1).any():
        return None, []
    since = in_gaps(table.times, lengths)
    uneven = [
        i
        for i, (own, length) in enumerate(zip(since, lengths, strict=True))
        if length > 1 and (np.abs(np.diff(own[:length]) - 1) > UNEVEN).any()
    ]
    gaps = np.diff(table.times, axis=-1)
    if table.times.dtype.kind == "M":
        known = gaps[~np.isnat(gaps)].astype("timedelta64[ns]").astype(np.float64) / 1e9
    else:
        known = gaps[np.isfinite(gaps)]
    return float(np.median(known)), uneven


def _outliers(X: Floats, ids: list[Any], channels: list[str]) -> list[Outlier]:
    found = []
    for c, name in enumerate(channels):
        values = X[:, c]
        known = values[~np.isnan(values)]
        if known.size < 4:
            continue
        low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
        scale = (high - low) / _ROBUST
        if not 0 < scale < np.inf:
            continue
        away = np.abs(values - middle) / scale
        for i, t in np.argwhere(away > FAR):
            place = (ids[i], name, int(t))
            found.append(Outlier(*place, float(values[i, t]), float(away[i, t])))
    return sorted(found, key=lambda one: -one.deviations)
