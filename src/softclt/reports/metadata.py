"""What is known about each series beside its values: columns to colour by."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.data import DataError, SeriesTable
from softclt.data.columns import ID_NAMES, Columns, find_roles, names_of
from softclt.data.errors import shorten
from softclt.data.tables import read_frame
from softclt.validation import series_lengths

if TYPE_CHECKING:
    import pandas as pd


def columns_of_series(series: SeriesTable, n_train: int | None = None) -> "pd.DataFrame":
    """What the loader knows: label, part (the first ``n_train`` are for training), steps."""
    import pandas as pd

    columns: dict[str, Any] = {}
    if series.labels is not None:
        columns["label"] = pd.Categorical(series.labels, categories=series.classes)
    if n_train is not None and n_train < len(series):
        columns["part"] = ["train" if i < n_train else "test" for i in range(len(series))]
    lengths = series_lengths(series.X)
    if lengths.min() != lengths.max():
        columns["steps"] = lengths
    return pd.DataFrame(columns, index=range(len(series)))


def columns_of_file(
    path: Path, wanted: Sequence[str], names: Columns
) -> tuple["pd.DataFrame", list[str]]:
    """Columns ``wanted`` of a table of series, a row a series, and the columns left for values.

    In a long table the mean of a column of numbers stands for its series; a text has to be the
    same at all steps.

    Args:
        path: A CSV or Parquet table, wide or long, with a header.
        wanted: Names of the columns.
        names: How the table is read; see :func:`softclt.data.read_table`.
    """
    frame = read_frame(path)
    header = list(frame.columns)
    for name in wanted:
        _check_column(name, header, path)
    roles = find_roles(header, **names_of(names))
    values = [header[j] for j in roles.values if header[j] not in wanted]
    if not values:
        raise DataError("no column of values is left beside those to colour by", path)
    picked = frame[list(wanted)].apply(_typed)
    if roles.long:
        keys = np.zeros(len(frame)) if roles.id is None else frame.iloc[:, roles.id]
        picked = _one_row_a_series(picked, keys, path)
    return picked.reset_index(drop=True), values


def columns_by_id(path: Path, ids: Sequence[Any]) -> "pd.DataFrame":
    """All columns of a table, a row for each of ``ids``; missing where the table has no such id.

    Args:
        path: A CSV or Parquet table with a row a series and a column of ids: ``id``, ``series``,
            ``name``, ..., or else the first column.
        ids: Ids of the series.
    """
    frame = read_frame(path)
    usual = [name for name in frame.columns if name.lower() in ID_NAMES]
    id_name = usual[0] if usual else frame.columns[0]
    table = frame.set_index(frame[id_name].astype(str)).drop(columns=id_name)
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()][0]
        raise DataError(
            f"the {id_name} {shorten(twice)} is there twice; expected a row a series", path
        )
    asked = [str(i) for i in ids]
    if not table.index.isin(asked).any():
        raise DataError(
            f"no {id_name} of it is an id of the data: the first is {shorten(table.index[0])}, "
            f"that of the data {shorten(asked[0])}",
            path,
        )
    return table.apply(_typed).reindex(asked).reset_index(drop=True)


def _typed(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Numbers, if every cell that is not empty is one."""
    import pandas as pd

    if not pd.api.types.is_string_dtype(column):
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    return column if (numbers.isna() & column.notna()).any() else numbers


def _check_column(name: str, header: Sequence[str], path: Path) -> None:
    if name not in header:
        known = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
        raise DataError(f"no column {shorten(name)}; the table has {known}", path)


def _one_row_a_series(frame: "pd.DataFrame", keys: Any, path: Path) -> "pd.DataFrame":
    """Rows of equal keys as one, in the order in which the keys first appear."""
    import pandas as pd

    groups = frame.groupby(keys, sort=False)
    collapsed = {}
    for name in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[name]):
            collapsed[name] = groups[name].mean()
            continue
        counts = groups[name].nunique()
        if (counts > 1).any():
            raise DataError(
                f"the column {shorten(name)} changes within series {shorten(counts.idxmax())}; "
                "expected one text a series, or numbers",
                path,
            )
        collapsed[name] = groups[name].first()
    return pd.DataFrame(collapsed)
