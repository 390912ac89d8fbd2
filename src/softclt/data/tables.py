"""Tables of series: CSV, Parquet and pandas frames, wide or long."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from softclt.data.columns import (
    BadValues,
    Columns,
    Duplicates,
    Form,
    find_roles,
    names_of,
    order_of,
)
from softclt.data.csvfile import read_csv
from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.frames import as_pandas
from softclt.data.rows import Rows
from softclt.data.text import existing_file, read_text
from softclt.files import too_large
from softclt.validation import Flags, Floats64

_BYTES_A_CELL = 24  # of a table that reading takes: in Arrow, in pandas, as series

if TYPE_CHECKING:
    import pandas as pd


def read_table(
    path: str | Path,
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    values: str | Sequence[str] | None = None,
    form: Form = "auto",
    decimal: Literal[".", ","] = ".",
    duplicates: Duplicates = "error",
    bad_values: BadValues = "error",
    resample: str | None = None,
) -> SeriesTable:
    """Series of a CSV (also ``.csv.gz``) or Parquet file, wide or long.

    A *wide* table has one row a series, of one channel; its value columns, in their order, are the
    steps. A *long* table has one row for each step of each series; its value columns are the
    channels. Rows of a series are sorted by time; series keep the order in which they first appear,
    and short ones are NaN-padded.

    Columns that are not named here are known by their names, in any case:

    - time: time, timestamp, date, datetime, ds, t, step. A table that has one is long.
    - id: id, series, series_id, unique_id, item_id, name. In a wide table an unnamed first column
      is the id, too (in a long one it is left out). A long table without id is one series.
    - label: label, class; in a wide table also y, target. The only column left is no label.
    - values: all the others.

    A CSV whose first line is all numbers has no header, unless they count 0, 1, 2, ...; its columns
    are called "0", "1", "2", ... Commas, semicolons or tabs separate cells. An empty cell, ``?``,
    ``NaN``, ``NA``, ``null`` and ``None`` are missing values. A label column may be empty
    throughout (then there are no labels), but not here and there.

    Args:
        path: The file; ``.parquet`` needs pyarrow.
        id: Column that names the series; ``""`` says that there is none.
        time: Column of numbers or dates; ``""`` says that there is none, and rows keep their order.
        label: Column of class labels, constant within a series; ``""`` says that there is none.
        values: Columns of values: steps of a wide table, channels of a long one.
        form: ``"wide"``, ``"long"``, or ``"auto"``: long if there is a time column.
        decimal: ``","`` for numbers like ``1,5``; cells then have semicolons or tabs between.
        duplicates: What becomes of steps of one series at one time: ``"error"``, ``"first"`` in the
            file, or their ``"mean"``, without missing values.
        bad_values: ``"error"``, or ``"nan"``: cells that are no finite numbers are missing, and
            counted in a warning.
        resample: Length of a step, e.g. ``"1h"``, ``"15min"`` or, where times are numbers, ``"5"``.
            The value of a step is the mean of what falls into it. Steps are counted from
            1970-01-01, or from 0.
    """
    path = existing_file(path)
    columns: Columns = {"id": id, "time": time, "label": label, "values": values, "form": form}
    columns |= {"decimal": decimal, "duplicates": duplicates, "bad_values": bad_values}
    columns["resample"] = resample
    if path.suffix.lower() == ".parquet":
        return frame_rows(_read_parquet(path), columns, str(path)).to_table()
    return read_csv(path, **columns).to_table()


def from_frame(
    frame: Any,
    *,
    id: str | None = None,
    time: str | None = None,
    values: str | Sequence[str] | None = None,
    label: str | None = None,
    duplicates: Duplicates = "error",
    bad_values: BadValues = "error",
    resample: str | None = None,
) -> SeriesTable:
    """Series of a long frame of pandas, polars or Arrow: a row for each step of each series.

    Columns, or named levels of the index, are given or known by their names, as in
    :func:`read_table`, which has the words on the other arguments, too.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"id": ["a", "a", "b"], "t": [1, 0, 0], "x": [2.0, 1.0, 3.0]})
        >>> table = from_frame(frame)
        >>> table.ids, table.X[:, 0]
        (['a', 'b'], array([[ 1.,  2.],
               [ 3., nan]]))
    """
    columns: Columns = {"id": id, "time": time, "label": label, "values": values, "form": "long"}
    columns |= {"duplicates": duplicates, "bad_values": bad_values, "resample": resample}
    table = as_pandas(frame, "the frame")
    if not hasattr(table, "columns"):
        raise DataError(f"expected a frame or an Arrow table, got {type(frame).__name__}")
    return frame_rows(table, columns, "the frame").to_table()


@contextmanager
def parquet(path: str | Path) -> Iterator[Any]:
    """The module of pyarrow; what fails with it becomes an error of the file."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            'reading Parquet needs pyarrow: pip install "softclt[data]"', path
        ) from None
    try:
        yield pyarrow.parquet
    except DataError:
        raise
    except Exception as error:  # damaged bytes fail inside pyarrow in a dozen ways
        reason = " ".join(str(error).split())[:80]
        raise DataError(f"is no Parquet file, or a damaged one ({reason})", path) from None


def _read_parquet(path: Path) -> "pd.DataFrame":
    with parquet(path) as pq:
        metadata = pq.read_metadata(path)
        cells = metadata.num_rows * metadata.num_columns
        if problem := too_large(_BYTES_A_CELL * cells):
            raise DataError(f"holds {cells} cells; reading them {problem}", path)
        frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame


def csv_frame(path: Path, **options: Any) -> "pd.DataFrame":
    """Cells of a CSV as pandas reads it, for files of known columns."""
    import pandas as pd

    path = existing_file(path)
    try:
        frame: pd.DataFrame = pd.read_csv(path, **options)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"is no CSV ({' '.join(str(error).split())[:80]})", path) from None
    return frame


def read_frame(path: str | Path, missing: Sequence[str] | None = None) -> "pd.DataFrame":
    """Cells of a CSV or Parquet table that holds no series, but something about them.

    Args:
        path: Those of a CSV are text, so that an id ``007`` stays one.
        missing: Texts of a CSV that mean nothing is there; None is what pandas takes for that.
    """
    import pandas as pd

    path = existing_file(path)
    if path.suffix.lower() == ".parquet":
        frame = _read_parquet(path)
    elif path.name.lower().removesuffix(".gz").endswith(".csv"):
        text = read_text(path)
        separator = max(",;\t", key=text.lstrip("\n").split("\n", 1)[0].count)
        known: dict[str, Any] = {}
        if missing is not None:
            known = {"keep_default_na": False, "na_values": list(missing)}
        try:
            frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, **known)
        except ValueError as error:
            raise DataError(f"is no CSV ({' '.join(str(error).split())[:80]})", path) from None
    else:
        raise DataError("is no table; expected .csv, .csv.gz or .parquet", path)
    if frame.empty:
        raise DataError("has no rows or no columns", path)
    return frame.set_axis([str(name).strip() for name in frame.columns], axis=1)


def frame_rows(frame: "pd.DataFrame", columns: Columns, source: str) -> Rows:
    """The rows of a frame by what its columns hold; ``source`` is what messages call it."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    if frame.empty:
        raise DataError("has no rows or no columns; expected rows of series", source)
    names = [str(name) for name in frame.columns]
    roles = find_roles(names, fail=partial(DataError, path=source), **names_of(columns))
    decimal, forgive = columns.get("decimal", "."), columns.get("bad_values") == "nan"
    read = [_numbers(frame.iloc[:, j], source, decimal, forgive) for j in roles.values]
    bad = np.column_stack([bad for _, bad in read])
    return Rows(
        values=np.column_stack([numbers for numbers, _ in read]),  # (R, C)
        names=[names[j] for j in roles.values],
        ids=None if roles.id is None else _objects(frame.iloc[:, roles.id]),
        times=None if roles.time is None else _times(frame.iloc[:, roles.time]),
        labels=None if roles.label is None else _objects(frame.iloc[:, roles.label]),
        long=roles.long,
        place=lambda row: f"row {row}",
        source=source,
        n_bad=int(bad.sum()),
        first_bad=int(bad.any(axis=1).argmax()),
        **order_of(columns),
    )


def _numbers(
    column: "pd.Series[Any]", source: str, decimal: str, forgive: bool
) -> tuple[Floats64, Flags]:
    """Numbers of a column, and which cells are none although something is there."""
    import pandas as pd

    numbers, bad = column, np.zeros(len(column), dtype=bool)
    if not pd.api.types.is_numeric_dtype(column):
        is_text = not pd.api.types.is_datetime64_any_dtype(column)
        cells = column if is_text else column.astype(str)
        if decimal == ",":  # a point is no number then, and a comma a point
            swap = str.maketrans(",.", ".,")
            cells = cells.map(lambda cell: cell.translate(swap) if isinstance(cell, str) else cell)
        try:
            numbers = pd.to_numeric(cells, errors="coerce")
        except OverflowError:
            numbers = pd.to_numeric(cells.map(_in_range), errors="coerce")
        bad = (numbers.isna() & column.notna()).to_numpy()
        if bad.any() and not forgive:
            row = int(bad.argmax())
            raise DataError(
                f"{shorten(column.iloc[row])} in column {shorten(column.name)} is no number; if "
                "the column is an id, a time or a label, say so with id=, time= or label=; if the "
                "value is missing, say so with --bad-values nan (bad_values=)",
                source,
                f"row {row}",
            )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan), bad


def _in_range(cell: Any) -> Any:
    """The same, or infinity for a whole number beyond all floats."""
    try:
        float(cell)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        pass
    return cell


def _objects(column: "pd.Series[Any]") -> list[Any]:
    missing = column.isna()
    return [None if gone else item for item, gone in zip(column.tolist(), missing, strict=True)]


def _times(column: "pd.Series[Any]") -> Any:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return column.to_numpy()
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return [str(item) for item in column]
