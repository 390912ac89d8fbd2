"""Rows of a table, wherever they came from, become series."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.files import too_large
from softclt.validation import Ints


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
    """

    values: NDArray[np.float64]
    names: list[str]
    ids: Sequence[Any] | None
    times: NDArray[Any] | Sequence[str] | None
    labels: Sequence[Any] | None
    long: bool
    place: Callable[[int], int | str]
    source: str

    def fail(self, row: int, message: str) -> DataError:
        """The error of one row."""
        return DataError(message, self.source, self.place(row))

    def to_table(self) -> SeriesTable:
        """Series of these rows."""
        infinite = np.isinf(self.values).any(axis=1)
        if infinite.any():
            row = int(infinite.argmax())
            raise self.fail(row, "a value is infinite; leave the cell empty if it is missing")
        for row, id in enumerate(self.ids or ()):
            if id is None:
                raise self.fail(row, "the id is empty; every row needs one")
        return _from_long(self) if self.long else _from_wide(self)


def _from_wide(rows: Rows) -> SeriesTable:
    y: Any = _checked_labels(rows, np.arange(len(rows.values)))
    X = rows.values[:, None, :]  # (N, 1, T)
    return SeriesTable(X, y, ids=list(rows.ids or ()), source=rows.source)


def _from_long(rows: Rows) -> SeriesTable:
    n_rows, n_channels = rows.values.shape
    number: dict[Any, int] = {}  # id -> series, in order of first appearance
    codes = np.zeros(n_rows, dtype=np.int64)
    if rows.ids is not None:
        codes[:] = [number.setdefault(id, len(number)) for id in rows.ids]
    times = None if rows.times is None else _parse_times(rows)
    order = np.lexsort((codes,) if times is None else (times, codes))
    series = codes[order]  # (R,) sorted
    lengths = np.bincount(series)
    step = np.arange(n_rows) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    shape = len(lengths), n_channels, int(lengths.max())
    if problem := too_large(2 * 8 * math.prod(shape)):
        raise DataError(
            f"{shape[0]} series, the longest of {shape[2]} steps: padded to that length, they make "
            f"an array that {problem}; cut the long ones, or keep them in a file of their own",
            rows.source,
        )
    X = np.full(shape, np.nan)
    X[series, :, step] = rows.values[order]
    stamps, time_format, unsorted_at = None, "", ""
    if times is not None:
        time_format, unsorted_at = _time_format(rows, times), _first_unsorted(rows, codes, times)
        _refuse_repeated_times(rows, order, series, times)
        stamps = np.full((len(lengths), lengths.max()), np.nan).astype(times.dtype)
        stamps[series, step] = times[order]
    y: Any = _checked_labels(rows, codes)
    return SeriesTable(
        X,
        y,
        ids=list(number),
        channels=list(rows.names),
        times=stamps,
        source=rows.source,
        time_format=time_format,
        unsorted_at=unsorted_at,
    )


def _time_format(rows: Rows, times: NDArray[Any]) -> str:
    """How all dates are written, as for ``strftime``; empty where they differ, or are no text."""
    texts = rows.times
    if texts is None or isinstance(texts, np.ndarray) or times.dtype.kind != "M":
        return ""
    from pandas.tseries.api import guess_datetime_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the day stands first
        for day_first in (False, True):
            guess = guess_datetime_format(texts[0], dayfirst=day_first)
            if guess and np.array_equal(_in_utc(texts, format=guess), times):
                return guess
    return ""


def _first_unsorted(rows: Rows, codes: Ints, times: NDArray[Any]) -> str:
    """Where the first row stands that is earlier than the one before it in its series."""
    order = np.argsort(codes, kind="stable")
    earlier = (np.diff(codes[order]) == 0) & (times[order][1:] < times[order][:-1])
    return _in_words(rows.place(int(order[1:][earlier].min()))) if earlier.any() else ""


def _refuse_repeated_times(rows: Rows, order: Ints, series: Ints, times: NDArray[Any]) -> None:
    repeated = (np.diff(series) == 0) & (times[order][1:] == times[order][:-1])
    if repeated.any():
        i = int(repeated.argmax())
        first, second = sorted((int(order[i]), int(order[i + 1])))
        of = "" if rows.ids is None else f" of id {shorten(rows.ids[first])}"
        came = times[second] if rows.times is None else rows.times[second]
        raise rows.fail(
            second,
            f"time {came}{of} stands at {_in_words(rows.place(first))} already; expected each time "
            "once in a series: drop one of the rows, or name the column of the ids (--id, id=)",
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
    unknown = np.isnat(times) if times.dtype.kind == "M" else np.isnan(times)
    if unknown.any():
        row = int(unknown.argmax())
        raise rows.fail(
            row,
            f"{shorten(given[row])} is no time; expected numbers in all rows, "
            "or dates like 2024-05-31 12:00:00 in all",
        )
    return times


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
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
    return np.asarray(dates.dt.tz_localize(None), dtype="datetime64[ns]")


def _in_words(place: int | str) -> str:
    return f"line {place}" if isinstance(place, int) else place
