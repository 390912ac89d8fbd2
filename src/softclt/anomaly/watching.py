"""From a table to detections: grids, what cannot be watched and why, one model for all series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.anomaly.detection import Detection, check_threshold, watch_all
from softclt.anomaly.events import Alarm
from softclt.anomaly.grid import on_grid
from softclt.anomaly.scorers import scorers
from softclt.anomaly.thresholds import SKIPPED
from softclt.data import SeriesTable, read_series
from softclt.data.columns import Columns
from softclt.data.csvfile import read_csv
from softclt.data.reading import suffix_of
from softclt.data.rows import Rows
from softclt.data.text import existing_file
from softclt.validation import Floats, observed_steps, series_lengths

TENTH = 0.1  # of a series is not judged where nothing is trained
_FEW = 0.05  # share of rows that may repeat a time: where more do, rows are of several series


@dataclass(frozen=True, eq=False)
class Watched:
    """A series to watch, on a grid.

    Attributes:
        name: Its id; empty where the file has none.
        values: ``(D, T)``, NaN where missing.
        times: ``(T,)``.
        words: What was done to put it on the grid, for a person.
    """

    name: str
    values: Floats
    times: NDArray[Any]
    words: str


def read_watched(path: str, columns: Columns) -> tuple[SeriesTable, list[Watched], list[str]]:
    """The series of a file or a name, each on a grid, and what was done to its rows, in words.

    A table without ids is one series. Rows are sorted by time. In a CSV a few of the same time are
    averaged, as when clocks go back, unless ``duplicates`` says otherwise. A column of labels,
    which watching does not need, may change from step to step.
    """
    columns = columns.copy()
    suffix = suffix_of(Path(path))
    if suffix in (".csv", ".parquet"):
        columns["form"] = "long"
    if suffix == ".csv":
        table, words = _forgiving(replace(read_csv(existing_file(path), **columns), labels=None))
    else:
        table, words = read_series(path, **columns), []
    if table.unsorted_at:
        words.append(f"the rows were sorted by time; the first out of order is {table.unsorted_at}")
    found = []
    for i, length in enumerate(series_lengths(table.X)):
        own = np.arange(length, dtype=np.float64) if table.times is None else table.times[i]
        name = str(table.ids[i]) if table.has_ids else ""
        try:
            gridded = on_grid(table.X[i, :, :length], own[:length])
        except ValueError as error:
            raise ValueError(f"{path}{f', series {name}' if name else ''}: {error}") from None
        found.append(Watched(name, gridded.values, gridded.times, gridded.words))
    return table, found, words


def _forgiving(rows: Rows) -> tuple[SeriesTable, list[str]]:
    """Series of rows of which a few may repeat a time, and what was done to those, in words."""
    if rows.times is None or rows.duplicates != "error":
        return rows.to_table(), []
    table = replace(rows, duplicates="mean").to_table()
    if table.times is None:
        return rows.to_table(), []
    repeated = len(rows.values) - int((~np.isnat(table.times) if table.times.dtype.kind == "M"
                                       else ~np.isnan(table.times)).sum())  # fmt: skip
    if repeated == 0:
        return table, []
    if repeated > _FEW * len(rows.values):
        return rows.to_table(), []  # or rather its error, which says what to do
    plural = "s repeat" if repeated > 1 else " repeats"
    return table, [
        f"{repeated} row{plural} the time of another; those of one time were averaged "
        "(--duplicates first keeps the first)"
    ]


def why_not(series: Watched, start: int, context: int) -> str:
    """Why a series cannot be judged from a step on; empty if it can.

    Args:
        series: On its grid.
        start: The first judged step; what is before it has to show what is normal.
        context: Steps that a score looks back.
    """
    real = observed_steps(series.values[None])[0]
    if not real.any():
        return "has no step at which all its columns have a value"
    known = series.values[:, :start][:, real[:start]]
    needed = context + SKIPPED
    if known.shape[1] <= needed:
        with_context = f" with --context {context}" if context else ""
        smaller = " or a smaller --context" if context else ""
        return (
            f"has {known.shape[1]} known steps in its first part of {start}, too few to learn "
            f"what is normal: more than {needed} are needed{with_context}; give longer series, a "
            f"larger --train{smaller}"
        )
    if (known.max(axis=1) == known.min(axis=1)).all():
        return f"never changes in its first {start} steps, so nothing can be learned from them"
    if not real[start:].any():
        return f"has no value behind its first {start} steps, so there is nothing to judge"
    return ""


@dataclass(frozen=True, eq=False)
class Watch:
    """How series are watched.

    Attributes:
        model: Trained, in a FrozenEstimator; or unfitted, to be trained on the first parts. For
            scorers that read a model.
        encoder: Of patches, for scorers that have one.
        cold: Whether the model is trained: then values stay in the units that it knows, else each
            series is scaled by its first part.
        share: Of each series that is its first part.
    """

    model: Any
    cold: bool
    share: float
    scorer: str = "patches"
    threshold: str = "sigma"
    context: int = 200
    encoder: Any = None
    scorer_params: Mapping[str, Any] | None = None
    threshold_params: Mapping[str, Any] | None = None
    random_state: Any = None

    @property
    def reads_model(self) -> bool:
        """Whether the scorer has a use for a model."""
        return bool(scorers.tags(self.scorer).get("model"))

    def start(self, series: Watched) -> int:
        """The first judged step."""
        return int(self.share * series.values.shape[1])

    def refusal(self, series: Watched) -> str:
        """Why a series cannot be watched so; empty if it can."""
        context = self.context if self.reads_model and not self.cold else 0
        return why_not(series, self.start(series), context)

    def run(self, series: Sequence[Watched]) -> list[Detection]:
        """Detections of all series."""
        check_threshold(self.threshold, self.scorer)
        values = [one.values if self.cold else self._scaled(one) for one in series]
        starts = [self.start(one) for one in series]
        return watch_all(
            values,
            starts,
            scorer=self.scorer,
            threshold=self.threshold,
            scorer_params=self.scorer_params,
            threshold_params=self.threshold_params,
            model=self.model,
            encoder=self.encoder,
            context=self.context,
            random_state=self.random_state,
        )

    def _scaled(self, series: Watched) -> Floats:
        first = series.values[:, : self.start(series)]
        mean, std = np.nanmean(first, axis=1), np.nanstd(first, axis=1)
        scaled: Floats = (series.values - mean[:, None]) / np.where(std > 0, std, 1.0)[:, None]
        return scaled


def worst_first(
    detections: Sequence[Detection], gap: int, persist: tuple[int, int] = (1, 1)
) -> tuple[list[list[Alarm]], list[tuple[int, Alarm]]]:
    """Alarms of each series, and all of them with the number of their series, the worst first."""
    alarms = [detection.alarms(gap, persist) for detection in detections]
    ranked = [(i, alarm) for i, own in enumerate(alarms) for alarm in own]
    return alarms, sorted(ranked, key=lambda pair: -pair[1].severity)
