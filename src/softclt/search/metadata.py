"""Columns about series: typed by the first rows, the same for all that follow."""

from collections.abc import Sequence
from typing import Any

from softclt.optional import needed

KEPT_NAMES = ("query", "rank", "id", "distance", "start", "end")


def metadata_table(metadata: Any, n: int) -> Any:
    """Metadata of n series as an Arrow table with one type a column.

    Args:
        metadata: A frame of pandas or polars, an Arrow table, a mapping from names to columns, or
            a list of mappings; None is a table without columns.
        n: Rows it must have.
    """
    with needed("search needs pyarrow: pip install 'softclt[search]'"):
        import pyarrow as pa
    if metadata is None:
        return pa.table({})
    try:
        table = _as_arrow(metadata)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"metadata makes no table ({reason}); expected a frame, or a mapping from names to "
            "columns whose values have one type each"
        ) from None
    if table.num_rows != n:
        raise ValueError(f"metadata has {table.num_rows} row(s) for {n} series; expected one each")
    for name in table.column_names:
        if name in KEPT_NAMES or name.startswith("_") or not name:
            raise ValueError(
                f"metadata has a column {name!r}, a name that the index uses itself; rename it"
            )
    if len(set(table.column_names)) < len(table.column_names):
        raise ValueError("metadata has two columns of one name; rename one")
    return table


def _as_arrow(metadata: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(metadata, pd.DataFrame):
        frame = metadata.set_axis(metadata.columns.map(str), axis=1)
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    elif hasattr(metadata, "__arrow_c_stream__"):
        table = pa.table(metadata)
    elif hasattr(metadata, "items"):
        columns = {str(name): pa.array(list(values)) for name, values in metadata.items()}
        table = pa.table(columns)
    else:
        table = pa.Table.from_pylist(list(metadata))
    return table.cast(pa.schema([(f.name, _plain(f.type)) for f in table.schema]))


def _plain(kind: Any) -> Any:
    """A type that filters take: a text for categories and long texts; null is a text, too."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    is_text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if is_text or pa.types.is_null(kind) else kind


def like_before(table: Any, fields: Sequence[Any]) -> Any:
    """A table of new rows with the types of those that are there; or an error."""
    import pyarrow as pa

    known = [field.name for field in fields]
    if sorted(table.column_names) != sorted(known):
        raise ValueError(
            f"metadata has the columns {_listed(table.column_names)}; the index has "
            f"{_listed(known)}: give the same, with None where nothing is known"
        )
    columns = []
    for field in fields:
        try:
            columns.append(table[field.name].cast(field.type))
        except pa.ArrowException as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"metadata column {field.name!r} is of type {table[field.name].type}, in the index "
                f"of type {field.type} ({reason})"
            ) from None
    return pa.table(columns, schema=pa.schema(fields))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none"
