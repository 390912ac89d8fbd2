"""Text files of the UCR and UEA archives: ``.tsv`` and ``.ts`` (``.arff`` has its own file)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.columns import Duplicates
from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.rows import EACH_TIME_ONCE
from softclt.data.steps import in_order
from softclt.data.text import Fail, numbered_lines, parse_label, parse_numbers
from softclt.data.times import FarDateError, in_nanoseconds
from softclt.validation import check_series

Row = NDArray[np.float64]


def read_tsv(path: str | Path) -> SeriesTable:
    """Series of a UCR ``.tsv`` file: one a line, its label first, then its values, tabs between.

    Every line has the same number of values; short series end in ``NaN``.
    """
    series: list[Row] = []
    labels: list[str] = []
    for line, text in numbered_lines(path, comments=""):
        fail = partial(DataError, path=path, at=line)
        label, *cells = text.split("\t")
        if not cells or (not series and cells[0].isidentifier() and cells[0].lower() != "nan"):
            raise fail(
                f"{shorten(text)} is no series; expected a label and numbers with tabs between "
                "(a table with a header belongs into a .csv file)"
            )
        labels.append(parse_label(label, None, fail))
        series.append(parse_numbers(cells, fail))
        if len(cells) != len(series[0]):
            raise fail(
                f"{len(cells)} values, but the first line has {len(series[0])}; "
                "expected as many everywhere: end short series with NaN"
            )
    y: Any = labels
    return SeriesTable(check_series(series), y, source=str(path))


def read_ts(
    path: str | Path, *, duplicates: Duplicates = "error", resample: str | None = None
) -> SeriesTable:
    """Series of a ``.ts`` file: ``@`` fields, ``@data``, then ``channel:channel:label`` a line.

    ``?`` and ``NaN`` are missing values; lengths may vary unless the header has ``@equalLength
    true``. Steps written ``(time,value)`` are read when it has ``@timestamps true``, and sorted by
    their times. The number behind each series of a regression file (``@targetLabel true``) is left
    out.

    Args:
        path: The file.
        duplicates, resample: As in :func:`softclt.data.read_table`; of files with times.
    """
    lines = numbered_lines(path)
    header = _TsHeader.read(path, lines)
    series: list[Row] = []
    labels: list[str] = []
    times: list[NDArray[Any]] = []
    at: list[int] = []
    for line, text in lines:
        fail = partial(DataError, path=path, at=line)
        # Times of day have colons too; the one that ends a channel follows a bracket.
        channels = re.split(r"(?<=\))\s*:" if header.timestamps else ":", text)
        if header.labelled or header.regression:
            label = channels.pop()
            if not channels:
                raise fail("no colon found; expected values, a colon and the label")
            if header.labelled:
                labels.append(parse_label(label, header.classes, fail))
        if header.timestamps:
            stamped = [_parse_stamped(channel, fail) for channel in channels]
            times.append(_shared_times([time for time, _ in stamped], fail))
            if times[-1].dtype != times[0].dtype:
                raise fail("numbers and dates are mixed; expected one kind of time in all series")
            rows = [values for _, values in stamped]
        else:
            rows = [parse_numbers(channel.split(","), fail) for channel in channels]
        header.check(rows, series[0] if series else None, fail)
        series.append(np.stack(rows))  # (D, T_i)
        at.append(line)
    if not series:
        raise DataError("no line follows @data; expected one line a series", path, header.end)
    y: Any = labels if header.labelled else None
    if times:
        return _in_order(series, times, y, at, path, duplicates, resample)
    if resample is not None:
        raise DataError("there are no times to resample (@timestamps true)", path, header.end)
    return SeriesTable(check_series(series), y, source=str(path))


def _in_order(
    series: list[Row],
    times: list[NDArray[Any]],
    y: Any,
    lines: list[int],
    path: str | Path,
    duplicates: Duplicates,
    resample: str | None,
) -> SeriesTable:
    """A table of steps with times, by the rules for the rows of other tables."""
    lengths = [len(own) for own in times]
    codes = np.repeat(np.arange(len(series)), lengths)
    starts = np.cumsum([0, *lengths])
    every = np.concatenate(times)

    def place(row: int) -> str:
        return f"line {lines[codes[row]]}, step {row - starts[codes[row]] + 1}"

    def repeated(first: int, second: int) -> DataError:
        words = f"time {every[second]} stands at {place(first)} already; {EACH_TIME_ONCE}"
        return DataError(words, path, place(second))

    steps = in_order(
        np.concatenate([own.T for own in series]),  # (R, D)
        codes,
        every,
        duplicates=duplicates,
        resample=resample,
        repeated=repeated,
        fail=lambda message: DataError(message, path),
    )
    unsorted = "" if steps.unsorted is None else place(steps.unsorted)
    return SeriesTable(steps.X, y, times=steps.times, source=str(path), unsorted_at=unsorted)


@dataclass
class _TsHeader:
    """The fields of a ``.ts`` header that say how to read the lines below it."""

    timestamps: bool = False
    labelled: bool = False
    regression: bool = False
    equal_length: bool = False
    n_channels: int | None = None
    length: int | None = None
    classes: set[str] | None = None
    end: int = 1

    @classmethod
    def read(cls, path: str | Path, lines: Iterator[tuple[int, str]]) -> "_TsHeader":
        """Take the header's lines, up to ``@data``, off ``lines``."""
        header = cls()
        line = 1
        for line, text in lines:
            fail = partial(DataError, path=path, at=line)
            key, *values = text.lower().split()
            if key == "@data":
                header.end = line
                return header
            if not key.startswith("@"):
                raise fail(
                    f"{shorten(text)} stands before @data; expected a header of @ fields, "
                    "such as @univariate true and @classLabel true 1 2"
                )
            header._set(key[1:], values, text.split()[2:], fail)
        raise DataError("the file ends without @data; expected it behind the header", path, line)

    def _set(self, key: str, values: list[str], names: list[str], fail: Fail) -> None:
        flags = {
            "timestamps": "timestamps",
            "classlabel": "labelled",
            "targetlabel": "regression",
            "equallength": "equal_length",
            "univariate": "univariate",
        }
        numbers = {"dimension": "n_channels", "dimensions": "n_channels", "serieslength": "length"}
        value = values[0] if values else ""
        if key in flags:
            if value not in ("true", "false"):
                raise fail(f"@{key} is {shorten(value)}; expected true or false")
            if key != "univariate":
                setattr(self, flags[key], value == "true")
            elif value == "true":
                self.n_channels = 1
            if key == "classlabel" and names:
                self.classes = set(names)
        elif key in numbers:
            if not value.isdigit() or value == "0":
                raise fail(f"@{key} is {shorten(value)}; expected a whole number above 0")
            setattr(self, numbers[key], int(value))

    def check(self, rows: list[Row], first: Row | None, fail: Fail) -> None:
        """Refuse a series that is not what the header, or the first series, has promised."""
        n_channels = self.n_channels or (len(rows) if first is None else first.shape[0])
        if len(rows) != n_channels:
            raise fail(
                f"{len(rows)} channel(s), expected {n_channels}; "
                "a colon stands between channels and before the label"
            )
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1:
            raise fail(
                f"the channels of this series have {lengths[0]} to {lengths[-1]} steps; "
                "expected as many in each: write ? for missing values"
            )
        expected = self.length or (None if first is None else first.shape[1])
        if self.equal_length and expected is not None and lengths[0] != expected:
            raise fail(
                f"{lengths[0]} steps, expected {expected}; "
                "for series of varying length the header says @equalLength false"
            )


def _parse_stamped(channel: str, fail: Fail) -> tuple[NDArray[Any], Row]:
    """Times and values of ``(time,value),(time,value),...``."""
    body = channel.strip()
    if not (body.startswith("(") and body.endswith(")")):
        raise fail(f"{shorten(body)} is not (time,value),(time,value),... as @timestamps true asks")
    times, values = [], []
    for step in re.split(r"\)\s*,\s*\(", body[1:-1]):
        time, comma, value = step.rpartition(",")
        if not comma:
            raise fail(f"{shorten(step)} is not a time and a value with a comma between")
        times.append(time.strip())
        values.append(value)
    numbers = parse_numbers(values, fail)
    for dtype in ("float64", "datetime64"):
        try:
            found = np.array(times, dtype=dtype)
            unknown = np.isnat(found) if found.dtype.kind == "M" else ~np.isfinite(found)
            if unknown.any():
                raise fail(f"{shorten(times[int(unknown.argmax())])} is no time")
            return (in_nanoseconds(found) if found.dtype.kind == "M" else found), numbers
        except DataError:
            raise
        except FarDateError as error:
            raise fail(str(error)) from None
        except ValueError:
            continue
    raise fail(
        f"{shorten(times[0])} is no time; expected numbers or dates like 2024-05-31 12:00:00"
    )


def _shared_times(times: list[NDArray[Any]], fail: Fail) -> NDArray[Any]:
    if any(not np.array_equal(other, times[0]) for other in times[1:]):
        raise fail(
            "the channels of this series have different times; expected the same in each: "
            "write (time,?) where a channel has no value"
        )
    return times[0]
