"""Series in the containers of other packages: frames, Arrow tables, Hugging Face data sets.

None of those packages is imported before an object of theirs comes.

A row is read in one of three ways:

- The index has two levels, series and time: a row is a step, a column a channel.
- Cells hold sequences: a row is a series, and each such column a channel, or several if its cells
  are ``(D, T)``. Columns of times and labels are left out.
- Cells hold numbers: the columns are known by their names, as in :func:`read_table`; where none has
  a known name, a row is a series of one channel.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.columns import ID_NAMES, LABEL_NAMES, TIME_NAMES, WIDE_LABEL_NAMES
from softclt.data.dataset import Dataset, SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.frames import as_pandas
from softclt.data.tables import frame_rows
from softclt.validation import Held, opens

if TYPE_CHECKING:
    import pandas as pd

_KNOWN = {*ID_NAMES, *TIME_NAMES, *WIDE_LABEL_NAMES}
_NO_SERIES = {*TIME_NAMES, *LABEL_NAMES}


@opens
def held_series(X: Any, name: str) -> Held | None:
    """Series and ids of a container; None for arrays, lists of them, and what is unknown."""
    if isinstance(X, SeriesTable):
        return Held(X.X, X.ids if X.has_ids else None)
    if isinstance(X, Dataset):
        raise DataError(f"{name} is a data set of two parts; pass {name}.X_train")
    if isinstance(X, (list, tuple)):
        if not X or not hasattr(X[0], "columns"):
            return None
        return Held([_series_of_frame(frame) for frame in X])
    found = as_pandas(X, name)
    if isinstance(found, list):
        return Held(found)
    return None if found is None else _from_pandas(found, name)


def _series_of_frame(frame: Any) -> Any:
    """A series ``(D, T)`` of a frame: named columns are channels, else its rows are, as in aeon."""
    named = all(isinstance(column, str) for column in frame.columns)
    values = np.asarray(frame)
    return values.T if named else values


def _from_pandas(frame: Any, name: str) -> Held:
    import pandas as pd

    if frame.index.nlevels > 1:
        return _by_index(frame, name)
    if frame.ndim == 1:
        return Held(list(frame) if _is_nested(frame) else frame.to_numpy())
    ids = None if frame.index.equals(pd.RangeIndex(len(frame))) else frame.index.tolist()
    nested = [j for j in range(frame.shape[1]) if _is_nested(frame.iloc[:, j])]
    if nested:
        return _by_cells(frame, nested, ids, name)
    known = [str(column).strip().lower() in _KNOWN for column in frame.columns]
    if any(known) or any(str(level).lower() in _KNOWN for level in frame.index.names):
        table = frame_rows(frame, {}, name).to_table()
        return Held(table.X, table.ids if table.has_ids else None)
    return Held(_cells(frame, name), ids)


def _cells(frame: "pd.DataFrame", name: str) -> NDArray[Any]:
    """What stands in the cells; a column of words is refused with what to do about it."""
    # Types of pandas' own have NA, which NumPy has not.
    if all(isinstance(dtype, np.dtype) and dtype.kind not in "OUS" for dtype in frame.dtypes):
        return np.asarray(frame.to_numpy())
    columns = []
    for j, column in enumerate(frame.columns):
        try:
            columns.append(frame.iloc[:, j].to_numpy(np.float64, na_value=np.nan))
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"{name} is not numeric: column {shorten(column)} has the value "
                f"{shorten(frame.iloc[0, j])}; if it names the series, call it 'id'; else drop it, "
                "or say which column is what with softclt.data.from_frame"
            ) from None
    return np.column_stack(columns)


def _by_index(frame: Any, name: str) -> Held:
    """Series ``(D, T_i)`` of a frame, or one column of it, indexed by series and time."""
    if frame.index.nlevels > 2:
        raise DataError(
            f"{name} is a frame whose index has {frame.index.nlevels} levels; expected two, series "
            f"and time: drop or join the others, e.g. {name}.droplevel(0)"
        )
    if frame.ndim == 1:
        frame = frame.to_frame()
    values = _cells(frame, name)  # (rows, D)
    codes, series = frame.index.get_level_values(0).factorize()
    times, _ = frame.index.get_level_values(1).factorize(sort=True)
    order = np.argsort(codes, kind="stable")
    codes, times = codes[order], times[order]
    same = codes[1:] == codes[:-1]
    unsorted, repeated = same & (times[1:] < times[:-1]), same & (times[1:] == times[:-1])
    if unsorted.any():
        raise DataError(
            f"series {series[codes[unsorted.argmax()]]!r} of {name} is not sorted by time; "
            f"use {name}.sort_index()"
        )
    if repeated.any():
        one, time = frame.index[order[repeated.argmax()]]
        raise DataError(f"series {one!r} of {name} has the time {time} twice; keep one row of it")
    starts = np.flatnonzero(np.r_[True, ~same])
    parts = np.split(values[order], starts[1:])
    return Held([part.T for part in parts], series.tolist())


def _is_nested(column: "pd.Series[Any]") -> bool:
    """Whether the first cell that is there holds a sequence."""
    if column.dtype.kind != "O":
        return False
    cell: Any = next((cell for cell in column if cell is not None), None)
    return isinstance(cell, (list, tuple)) or getattr(cell, "ndim", 0) > 0


def _by_cells(frame: "pd.DataFrame", nested: list[int], ids: list[Any] | None, name: str) -> Held:
    """Series ``(D, T_i)`` of the cells of some columns."""
    words = [str(column).strip() for column in frame.columns]
    lower = [word.lower() for word in words]
    named = [lower.index(known) for known in ID_NAMES if known in lower]
    if named and named[0] not in nested:
        ids = frame.iloc[:, named[0]].tolist()
    channels = [j for j in nested if lower[j] not in _NO_SERIES] or nested
    for j in set(nested) - set(channels):
        if lower[j] in TIME_NAMES:
            _refuse_unsorted(frame.iloc[:, j], words[j], name)
    series = []
    for i in range(len(frame)):
        parts = [
            _values(frame.iat[i, j], f"{name}, row {i}, column {words[j]!r}") for j in channels
        ]
        lengths = {words[j]: part.shape[1] for j, part in zip(channels, parts, strict=True)}
        if len(set(lengths.values())) > 1:
            raise DataError(
                f"the columns of {name} have different numbers of steps in row {i} ({lengths}); "
                "expected channels of one series: pass only those columns"
            )
        series.append(parts[0] if len(parts) == 1 else np.concatenate(parts))
    return Held(series, ids)


def _values(cell: Any, place: str) -> NDArray[Any]:
    """A cell's values ``(D, T)``."""
    try:
        values = np.asarray(cell)
        if values.ndim and values.dtype == object:  # numbers beside None, or arrays in an array
            rows = [np.asarray(row, dtype=np.float64) for row in values]
            values = np.stack(rows) if rows else np.empty(0)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"holds no series of numbers ({error})", place) from None
    if values.ndim not in (1, 2) or values.dtype.kind not in "fiub":
        raise DataError(
            f"holds {shorten(cell)}; expected the numbers of a series, (T,) or (D, T)", place
        )
    return np.atleast_2d(values)


def _refuse_unsorted(times: "pd.Series[Any]", column: str, name: str) -> None:
    for i, cell in enumerate(times):
        own = np.asarray(cell)
        if (own[1:] < own[:-1]).any():
            raise DataError(
                f"the times in column {column!r} of {name} go back in row {i}; expected each "
                "series sorted by time"
            )
