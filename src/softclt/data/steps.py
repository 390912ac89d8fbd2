"""Rows of steps in the order of their times: each time once, and at equal distances if asked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.errors import DataError
from softclt.data.times import Times
from softclt.files import too_large
from softclt.validation import Flags, Floats64, Ints

_MOST_CELLS = 10  # for each row of a series that is resampled
_FREE_CELLS = 1000  # that a short series may have in any case


@dataclass(frozen=True, eq=False)
class Steps:
    """Series of steps side by side.

    Attributes:
        X: ``(N, C, T)``, NaN-padded at the end.
        times: ``(N, T)``, or None.
        unsorted: The first row that is earlier than the one before it in its series, or None.
    """

    X: Floats64
    times: Times | None
    unsorted: int | None


def in_order(
    values: Floats64,
    series: Ints,
    times: Times | None,
    *,
    duplicates: str,
    resample: str | None,
    repeated: Callable[[int, int], DataError],
    fail: Callable[[str], DataError],
) -> Steps:
    """Sort the rows of each series by time, in the order of the rows where there is none.

    Args:
        values: Of R rows, ``(R, C)``.
        series: Number of the series of each row, ``(R,)``.
        times: Of each row, ``(R,)``.
        duplicates: What becomes of rows of one time: ``"error"``, ``"first"`` or ``"mean"``.
        resample: Length of a step, of which a value is the mean; see :func:`step_length`.
        repeated: Makes the error of a row that has the time of an earlier one.
        fail: Makes the error of the whole table.
    """
    order = np.lexsort((series,) if times is None else (times, series))
    unsorted = None if times is None else _first_unsorted(series, times)
    values, series = values[order], series[order]
    if times is None:
        if resample is not None:
            raise fail("there are no times to resample; name their column (--time, time=)")
        return _side_by_side(values, series, _count_up(series), None, fail)
    times = times[order]
    fresh = _fresh(series, times)
    if not fresh.all():
        if duplicates == "error":
            at = int(np.argmin(fresh))
            first, second = sorted((int(order[at - 1]), int(order[at])))
            raise repeated(first, second)
        values = values[fresh] if duplicates == "first" else _means(values, fresh)
        series, times = series[fresh], times[fresh]
    if resample is None:
        steps = _side_by_side(values, series, _count_up(series), times, fail)
    else:
        steps = _resampled(values, series, times, step_length(resample, times, fail), fail)
    return Steps(steps.X, steps.times, unsorted)


def step_length(text: str, times: Times, fail: Callable[[str], DataError]) -> float:
    """A step in nanoseconds for dates, e.g. of ``1h`` or ``15min``; else the number itself."""
    dates = times.dtype.kind == "M"
    try:
        step = float(text)
        if dates:
            raise fail(f"a step of {text} has no unit; the times are dates: say 1h, 15min or 1D")
    except DataError:
        raise
    except ValueError:
        if not dates:
            raise fail(
                f"a step of {text!r} does not fit: the times are numbers; say one, as in "
                "--resample 5"
            ) from None
        step = _nanoseconds(text, fail)
    if not 0 < step < np.inf:
        raise fail(f"a step of {text} is not longer than 0")
    return step


def _nanoseconds(text: str, fail: Callable[[str], DataError]) -> float:
    import pandas as pd

    try:
        return float(pd.Timedelta(text if text[:1] in "-+.0123456789" else f"1{text}").value)
    except (ValueError, OverflowError):
        raise fail(f"{text!r} is no length of time; expected one like 1h, 15min or 1D") from None


def _resampled(
    values: Floats64,
    series: Ints,
    times: Times,
    step: float,
    fail: Callable[[str], DataError],
) -> Steps:
    """Means of the rows in each step; steps are counted from 1970, or from 0, and may be empty."""
    dates = times.dtype.kind == "M"
    if dates:
        cells = times.astype(np.int64) // int(step)
    else:
        cells = np.floor(times / step).astype(np.int64)
    rows = np.bincount(series)
    fresh = _fresh(series, cells)
    values, series, cells = _means(values, fresh), series[fresh], cells[fresh]
    first = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(first, series, cells)
    position = cells - first[series]
    n_cells = np.zeros(len(rows), np.int64)
    np.maximum.at(n_cells, series, position + 1)
    many = n_cells > _MOST_CELLS * rows + _FREE_CELLS
    if many.any():
        at = int(many.argmax())
        raise fail(
            f"such short steps would make {n_cells[at]} of {rows[at]} rows, nearly all of them "
            "empty; resample to longer ones"
        )
    X = _side_by_side(values, series, position, None, fail).X
    every = first[:, None] + np.arange(X.shape[-1])  # (N, T)
    inside = np.arange(X.shape[-1]) < n_cells[:, None]
    if dates:
        stamps: Times = (every * int(step)).astype("datetime64[ns]")
        return Steps(X, np.where(inside, stamps, np.datetime64("NaT")), None)
    return Steps(X, np.where(inside, every * step, np.nan), None)


def _side_by_side(
    values: Floats64,
    series: Ints,
    position: Ints,
    times: Times | None,
    fail: Callable[[str], DataError],
) -> Steps:
    n, longest = int(series[-1]) + 1, int(position.max()) + 1
    if problem := too_large(2 * 8 * n * values.shape[1] * longest):
        raise fail(
            f"{n} series, the longest of {longest} steps: padded to that length, they make an "
            f"array that {problem}; cut the long ones, or keep them in a file of their own"
        )
    X = np.full((n, values.shape[1], longest), np.nan)
    X[series, :, position] = values
    if times is None:
        return Steps(X, None, None)
    stamps = np.full((n, longest), np.nan).astype(times.dtype)
    stamps[series, position] = times
    return Steps(X, stamps, None)


def _fresh(series: Ints, times: NDArray[Any]) -> Flags:
    """Whether a sorted row is the first of its series and time."""
    same = (np.diff(series) == 0) & (times[1:] == times[:-1])
    return np.append(True, ~same)


def _count_up(series: Ints) -> Ints:
    """0, 1, 2, ... within each series of sorted rows."""
    lengths = np.bincount(series)
    return np.arange(len(series)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _means(values: Floats64, fresh: Flags) -> Floats64:
    """The mean of the known values of each run of rows, ``(number of runs, C)``."""
    starts, known = np.flatnonzero(fresh), ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
    counts = np.add.reduceat(known.astype(np.int64), starts, axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _first_unsorted(series: Ints, times: Times) -> int | None:
    order = np.argsort(series, kind="stable")
    earlier = (np.diff(series[order]) == 0) & (times[order][1:] < times[order][:-1])
    return int(order[1:][earlier].min()) if earlier.any() else None
