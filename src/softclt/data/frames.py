"""From the tables of other packages to pandas; none is imported before an object of it comes."""

from typing import Any

from softclt.data.errors import DataError
from softclt.optional import needed


def as_pandas(X: Any, name: str) -> Any:
    """A table as a pandas frame, a column of sequences as a list, None for what is neither.

    Tables are what speaks Arrow, such as those of pyarrow, polars and duckdb, and data sets of
    Hugging Face; a pandas frame stays as it is.

    Args:
        X: What the user passed.
        name: What messages call it.
    """
    package = type(X).__module__.partition(".")[0]
    if hasattr(X, "iloc"):
        return X
    if package == "datasets":
        return _from_datasets(X, name)
    if package == "polars" and hasattr(X, "collect"):  # lazy
        X = X.collect()
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _from_arrow(X, name)
    return None


def _from_datasets(X: Any, name: str) -> Any:
    """A data set of Hugging Face, or one of its columns."""
    if isinstance(X, dict):
        raise DataError(
            f"{name} holds the splits {', '.join(map(str, X))}; pass one of them, "
            f"{name}[{next(iter(X), 'train')!r}]"
        )
    if not hasattr(X, "__len__"):
        raise DataError(
            f"{name} comes row by row, and nobody knows how many; make a data set of it with "
            "datasets.Dataset.from_list(list(...)), or write Parquet and use "
            "softclt.data.open_series"
        )
    return _from_arrow(X.with_format("arrow")[:], name) if hasattr(X, "with_format") else list(X[:])


def _from_arrow(X: Any, name: str) -> Any:
    with needed(f'{name} is a table, which needs pyarrow: pip install "softclt[data]"'):
        import pyarrow as pa
    try:
        if hasattr(X, "columns"):
            return _frame(pa.table(X))
        column = pa.chunked_array(X) if hasattr(X, "__arrow_c_stream__") else X
        many = pa.types.is_nested(column.type) or isinstance(column.type, pa.BaseExtensionType)
        return list(_cells(column)) if many else None
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:80]
        raise DataError(f"{name} cannot be read ({reason}); expected columns of numbers") from None


def _frame(table: Any) -> Any:
    import pyarrow as pa

    tensors = [field.name for field in table.schema if isinstance(field.type, pa.BaseExtensionType)]
    cells = {column: list(_cells(table.column(column))) for column in tensors}
    return table.drop_columns(tensors).to_pandas().assign(**cells)


def _cells(column: Any) -> Any:
    """Cells of an Arrow column; tensors keep their shape."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    return column.to_numpy_ndarray() if hasattr(column, "to_numpy_ndarray") else column.to_pandas()
