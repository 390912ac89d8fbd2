"""Labels of some series: a small table of ids and labels, or a label column with empty cells."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from softclt.data.catalog import is_path, read_series
from softclt.data.columns import ID_NAMES, WIDE_LABEL_NAMES, Columns
from softclt.data.csvfile import NO_LABEL, read_csv
from softclt.data.dataset import SeriesTable, Split
from softclt.data.errors import DataError, shorten
from softclt.data.labels import UNLABELLED, encode_labels
from softclt.data.partial_labels import PartialLabels
from softclt.data.reading import suffix_of
from softclt.data.tables import frame_rows, read_frame
from softclt.data.text import existing_file

SHOWN = 5  # ids that a message names


def labels_of(labels: Sequence[Any], source: str) -> PartialLabels:
    """Labels of any kind, None where there is none; at least two classes.

    Args:
        labels: Of each series.
        source: Where they came from, for errors.

    Example:
        >>> labels_of(["run", None, "walk"], "mine").codes
        array([ 0, -1,  1])
    """
    known = [i for i, label in enumerate(labels) if label is not None]
    if not known:
        raise DataError("has no labels; a few for each class are needed", source)
    encoded, _, classes = encode_labels([labels[i] for i in known])
    if len(classes) < 2:
        raise DataError(
            f"all {len(known)} labels are {shorten(classes[0])}; at least two classes are needed",
            source,
        )
    codes = np.full(len(labels), UNLABELLED, dtype=np.int64)
    codes[known] = encoded
    return PartialLabels(np.array(classes), codes)


def read_partly_labelled(
    path_or_name: str, *, split: Split = "train", **columns: Unpack[Columns]
) -> tuple[SeriesTable, list[Any] | None]:
    """Series, and a label or None for each; no list where the file has no label at all.

    As :func:`softclt.data.read_series`, but the label column of a CSV or Parquet table may have
    empty cells. In a long table one labelled step is enough for its series.
    """
    table_file = is_path(path_or_name) and suffix_of(Path(path_or_name)) in (".csv", ".parquet")
    if not table_file:
        table = read_series(path_or_name, split=split, **columns)
        return table, None if table.labels is None else list(table.labels)
    path = existing_file(path_or_name)
    if suffix_of(path) == ".parquet":
        rows = frame_rows(read_frame(path), columns, str(path))
    else:
        rows = read_csv(path, **columns)
    table = replace(rows, labels=None).to_table()
    if rows.labels is None or all(label is None for label in rows.labels):
        return table, None
    keys = rows.ids if rows.long and rows.ids is not None else [0] * len(rows.labels)
    if not rows.long:
        keys = range(len(rows.labels))
    of_series: dict[Any, Any] = {}
    for row, (key, label) in enumerate(zip(keys, rows.labels, strict=True)):
        before = of_series.setdefault(key, label)
        if before is None:
            of_series[key] = label
        elif label is not None and label != before:
            raise rows.fail(
                row,
                f"the label {shorten(label)} differs from {shorten(before)} above; expected one "
                "for all rows of a series, or empty cells",
            )
    return table, list(of_series.values())


def labels_by_id(
    path: str | Path, ids: Sequence[Any], *, id: str | None = None, label: str | None = None
) -> list[str | None]:
    """Label of each of ``ids``, None where the table has none.

    Args:
        path: A CSV or Parquet table with a row for each labelled series. A row without a label is
            as good as none; one that stands twice has to say the same.
        ids: Ids of all series, once each.
        id: Column of ids, if the table has it; else ``id``, ``series``, ``name``, ..., or the
            first column.
        label: Column of labels; None is ``label``, ``class``, ``y``, ``target``, or the only
            other column.
    """
    path = Path(path)
    frame = read_frame(path, missing=sorted(NO_LABEL))
    header = list(frame.columns)
    id_name = id if id in header else _usual(header, ID_NAMES) or header[0]
    label_name = _label_column([name for name in header if name != id_name], label, path)
    found: dict[str, str] = {}
    for key, value in zip(frame[id_name], frame[label_name], strict=True):
        if _is_missing(value):
            continue
        if _is_missing(key):
            raise DataError(f"the label {shorten(value)} has no {id_name}", path)
        name, text = _written(key), _written(value)
        if found.setdefault(name, text) != text:
            raise DataError(
                f"the {id_name} {shorten(name)} has the labels {shorten(found[name])} and "
                f"{shorten(text)}; keep one",
                path,
            )
    _refuse_unknown(found, ids, path)
    return [found.get(_written(i)) for i in ids]


def _refuse_unknown(found: dict[str, str], ids: Sequence[Any], path: Path) -> None:
    count = Counter(_written(i) for i in ids)
    unknown = [name for name in found if name not in count]
    if unknown:
        more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
        named = ", ".join(shorten(name) for name in unknown[:SHOWN])
        raise DataError(
            f"labels for ids that the data do not have: {named}{more}; the data have "
            f"{len(count)}, the first is {shorten(str(ids[0]))}",
            path,
        )
    for name in found:
        if count[name] > 1:
            raise DataError(
                f"the id {shorten(name)} stands for {count[name]} series of the data; "
                "a label needs one",
                path,
            )


def _usual(header: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in header if name.lower() in names), None)


def _label_column(others: Sequence[str], given: str | None, path: Path) -> str:
    """The column of labels among those that hold no ids."""
    found = (given if given in others else None) if given else _usual(others, WIDE_LABEL_NAMES)
    if found is None and given is None and len(others) == 1:
        return others[0]
    if found is None:
        wanted = "label" if given is None else given
        beside = ", ".join(others[:8]) or "nothing"
        raise DataError(
            f"no column {shorten(wanted)}; beside the ids the table has {beside}: name the "
            "column of labels with --label",
            path,
        )
    return found


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) or not str(value).strip()


def _written(value: Any) -> str:
    """An id or label as text; whole numbers that Parquet holds as floats are whole."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
