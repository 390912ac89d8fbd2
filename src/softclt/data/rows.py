"""Rows of a table, wherever they came from, become series."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.columns import BadValues, Duplicates
from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.steps import in_order
from softclt.data.times import RANGE, FarDateError, in_nanoseconds
from softclt.silence import without_warnings
from softclt.validation import Ints

EACH_TIME_ONCE = (
    "expected each time once in a series: drop one of them, or say which counts "
    "(--duplicates first or mean, duplicates=)"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rows:
    """The columns of a table by what they hold; R rows, C value columns.

    Attributes:
        values: Numbers ``(R, C)``, NaN where missing.
        names: Names of the value columns.
        ids: Id of each row, None where empty; or None without such a column.
        times: Times of each row as numbers, ``datetime64`` or text; or None.
        labels: Label of each row, None where empty; or None without such a column.
        long: Whether a row is a step (else it is a series).
        place: Where row r stands in the file, for messages.
        source: The file, or words for what is no file.
        duplicates: What becomes of rows of one series and time.
        resample: Length of a step, if steps are to be of one length.
        bad_values: Whether infinity is refused, or missing.
        n_bad: Cells that were no numbers, and are missing now.
        first_bad: The row of the first of them.
    """

    values: NDArray[np.float64]
    names: list[str]
    ids: Sequence[Any] | None
    times: NDArray[Any] | Sequence[str] | None
    labels: Sequence[Any] | None
    long: bool
    place: Callable[[int], int | str]
    source: str
    duplicates: Duplicates = "error"
    resample: str | None = None
    bad_values: BadValues = "error"
    n_bad: int = 0
    first_bad: int = 0

    def fail(self, row: int, message: str) -> DataError:
        """The error of one row."""
        return DataError(message, self.source, self.place(row))

    def to_table(self) -> SeriesTable:
        """Series of these rows."""
        self._look_at_bad_values()
        for row, id in enumerate(self.ids or ()):
            if id is None:
                raise self.fail(row, "the id is empty; every row needs one")
        if self.resample and not self.long:
            raise DataError(
                "there are no times to resample; name their column (--time, time=)", self.source
            )
        return _from_long(self) if self.long else _from_wide(self)

    def _look_at_bad_values(self) -> None:
        """Refuse infinity, or make it missing and say how much was."""
        infinite = np.isinf(self.values)
        row = int(infinite.any(axis=1).argmax())
        if infinite.any() and self.bad_values == "error":
            raise self.fail(
                row,
                "a value is infinite; leave the cell empty if it is missing, or say so "
                "(--bad-values nan, bad_values=)",
            )
        self.values[infinite] = np.nan
        n_bad = self.n_bad + int(infinite.sum())
        if n_bad:
            rows = [self.first_bad] * (self.n_bad > 0) + [row] * bool(infinite.any())
            _log.warning(
                "%s: %s read as missing, the first at %s",
                self.source,
                bad_cells(n_bad),
                _in_words(self.place(min(rows))),
            )


def bad_cells(n: int) -> str:
    """How many cells are no numbers, as the beginning of a sentence."""
    return "1 cell is no number and was" if n == 1 else f"{n} cells are no numbers and were"


def _from_wide(rows: Rows) -> SeriesTable:
    y: Any = _checked_labels(rows, np.arange(len(rows.values)))
    X = rows.values[:, None, :]  # (N, 1, T)
    return SeriesTable(X, y, ids=list(rows.ids or ()), source=rows.source)


def _from_long(rows: Rows) -> SeriesTable:
    number: dict[Any, int] = {}  # id -> series, in order of first appearance
    codes = np.zeros(len(rows.values), dtype=np.int64)
    if rows.ids is not None:
        codes[:] = [number.setdefault(id, len(number)) for id in rows.ids]
    times = None if rows.times is None else _parse_times(rows)
    steps = in_order(
        rows.values,
        codes,
        times,
        duplicates=rows.duplicates,
        resample=rows.resample,
        repeated=lambda first, second: _repeated(rows, first, second, times),
        fail=lambda message: DataError(message, rows.source),
    )
    y: Any = _checked_labels(rows, codes)
    return SeriesTable(
        steps.X,
        y,
        ids=list(number),
        channels=list(rows.names),
        times=steps.times,
        source=rows.source,
        # Resampled dates may have hours where the file has none.
        time_format="" if times is None or rows.resample else _time_format(rows, times),
        unsorted_at="" if steps.unsorted is None else _in_words(rows.place(steps.unsorted)),
    )


def _time_format(rows: Rows, times: NDArray[Any]) -> str:
    """How all dates are written, as for ``strftime``; empty where they differ, or are no text."""
    texts = rows.times
    if texts is None or isinstance(texts, np.ndarray) or times.dtype.kind != "M":
        return ""
    from pandas.tseries.api import guess_datetime_format

    with without_warnings(UserWarning):  # that the day stands first
        for day_first in (False, True):
            guess = guess_datetime_format(texts[0], dayfirst=day_first)
            if guess and np.array_equal(_in_utc(texts, format=guess), times):
                return guess
    return ""


def _repeated(rows: Rows, first: int, second: int, times: Any) -> DataError:
    """The error of a row that has the time of an earlier one in its series."""
    of = "" if rows.ids is None else f" of id {shorten(rows.ids[first])}"
    more = ", or name the column of the ids (--id, id=)" if rows.ids is None else ""
    came = times[second] if rows.times is None else rows.times[second]
    return rows.fail(
        second,
        f"time {came}{of} stands at {_in_words(rows.place(first))} already; {EACH_TIME_ONCE}{more}",
    )


def _checked_labels(rows: Rows, codes: Ints) -> list[Any] | None:
    """One label for each series, or None where the table has none at all."""
    if rows.labels is None or all(label is None for label in rows.labels):
        return None
    of_series: dict[int, Any] = {}
    for row, (code, label) in enumerate(zip(codes.tolist(), rows.labels, strict=True)):
        if label is None:
            raise rows.fail(row, "the label is empty; expected one for every series, or for none")
        if of_series.setdefault(code, label) != label:
            raise rows.fail(
                row,
                f"the label {shorten(label)} differs from {shorten(of_series[code])} above; "
                "expected one for all rows of a series (labels of steps: say label='' and values=)",
            )
    return list(of_series.values())


def _parse_times(rows: Rows) -> NDArray[Any]:
    """Times of all rows as numbers or ``datetime64``, in UTC where they name a zone."""
    given: Any = rows.times
    if isinstance(given, np.ndarray):
        times = given
    else:
        times = _parse_dates(given) if np.isnan(_to_number(given[0])) else _parse_numbers(given)
    unknown = np.isnat(times) if times.dtype.kind == "M" else ~np.isfinite(times)
    if unknown.any():
        row = int(unknown.argmax())
        raise rows.fail(
            row,
            f"{shorten(given[row])} is no time; expected numbers in all rows, "
            f"or dates like 2024-05-31 12:00:00 in all, {RANGE}",
        )
    try:
        return in_nanoseconds(times) if times.dtype.kind == "M" else times
    except FarDateError as error:
        raise rows.fail(error.at, str(error)) from None


def _parse_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        return np.array([_to_number(text) for text in texts])


def _to_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _parse_dates(texts: Sequence[str]) -> NDArray[Any]:
    dates = _in_utc(texts, format="ISO8601")
    if not np.isnat(dates).any():
        return dates
    with without_warnings(UserWarning):
        # All in the form of the first one, if that is another; a day is first where no year is.
        for day_first in (False,) if texts[0][:4].isdigit() else (False, True):
            like_first = _in_utc(texts, dayfirst=day_first)
            if not np.isnat(like_first).any():
                return like_first
    return dates


def _in_utc(texts: Sequence[str], **options: Any) -> NDArray[Any]:
    """Dates by pandas, NaT for what is none."""
    import pandas as pd

    column = pd.Series(texts, dtype=object)
    dates = pd.to_datetime(column, utc=True, errors="coerce", **options)
    return np.asarray(dates.dt.tz_localize(None))


def _in_words(place: int | str) -> str:
    return f"line {place}" if isinstance(place, int) else place
