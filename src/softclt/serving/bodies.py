"""From the body of a request to series: JSON, CSV, Arrow and Parquet."""

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data import SeriesTable
from softclt.data.columns import Columns
from softclt.data.csvfile import read_csv
from softclt.data.rows import Rows
from softclt.data.tables import frame_rows
from softclt.optional import needed
from softclt.serving.limits import Limits, Refusal
from softclt.validation import Floats, taken_out

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"

SOURCE = "the table"  # what messages call the body

_NUMBERS = {int, float, type(None)}
_FORM = 'expected {"series": [...], "ids": [...]}, ids being optional'


def read_body(kind: str, body: bytes, columns: Columns, limits: Limits) -> SeriesTable:
    """Series of a body that has come as a whole.

    Args:
        kind: Its content type.
        body: The bytes.
        columns: Which column of a table is what, as far as the request says so.
        limits: Of the server. What is larger is refused before memory is taken for it.
    """
    reader = _READERS.get(kind.partition(";")[0].strip().lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise Refusal(415, f"the content type is {kind[:60]!r}; expected one of {known}")
    if columns and reader is _json:
        raise Refusal(422, f"{', '.join(columns)}: JSON has no columns; leave them out")
    try:
        table = reader(body, columns, limits)
    except (ValueError, TypeError, OverflowError) as error:
        raise Refusal(422, str(error)) from None
    empty = np.flatnonzero(np.isnan(table.X).all(axis=(1, 2)))
    if len(empty):
        raise Refusal(422, f"series {empty[0]} has no value at all; leave it out")
    return table


def _json(body: bytes, columns: Columns, limits: Limits) -> SeriesTable:
    from pydantic_core import from_json

    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(422, f"the body is no JSON: {error}; a missing value is null") from None
    if not isinstance(content, dict) or not isinstance(content.get("series"), list):
        raise Refusal(422, f"the body has no list of series; {_FORM}")
    if unknown := content.keys() - {"series", "ids"}:
        names = ", ".join(repr(name[:40]) for name in sorted(unknown)[:5])
        raise Refusal(422, f"the body has {names}; {_FORM}")
    given, ids = content["series"], content.get("ids", [])
    if not given:
        raise Refusal(422, "the list of series is empty; expected at least one")
    if not isinstance(ids, list) or not all(type(name) in (str, int) for name in ids):
        raise Refusal(422, "ids are no list of texts or whole numbers")
    if ids and len(ids) != len(given):
        raise Refusal(422, f"there are {len(ids)} ids for {len(given)} series")
    series = [_numbers(one, f"series {i}") for i, one in enumerate(given)]
    limits.check_size(len(series), max(map(len, series)), max(one.shape[1] for one in series))
    return SeriesTable(series, ids=ids)  # type: ignore[arg-type]


def _numbers(one: Any, name: str) -> Floats:
    """A series ``(D, T)`` of nested lists; null is missing."""
    channels = one if isinstance(one, list) and one and isinstance(one[0], list) else [one]
    for channel in channels:
        if not isinstance(channel, list) or not channel:
            raise Refusal(422, f"{name} is no list of numbers, nor one of channels; or it is empty")
        if not set(map(type, channel)) <= _NUMBERS:
            raise Refusal(422, f"{name} has a value that is no number; a missing value is null")
    if len({len(channel) for channel in channels}) > 1:
        raise Refusal(422, f"the channels of {name} differ in their numbers of steps")
    return np.array(channels, dtype=np.float64)


def _csv(body: bytes, columns: Columns, limits: Limits) -> SeriesTable:
    if body.startswith(b"\x1f\x8b"):
        raise Refusal(415, "the table is packed; send it unpacked")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(body)
        try:
            return _of_rows(read_csv(path, **columns), limits)
        except ValueError as error:
            raise Refusal(422, str(error).replace(str(path), SOURCE)) from None


def _of_rows(rows: Rows, limits: Limits) -> SeriesTable:
    n, width = rows.values.shape
    if rows.long:
        steps = Counter(rows.ids) if rows.ids is not None else {"": n}
        limits.check_size(len(steps), width, max(steps.values()))
    else:
        limits.check_size(n, 1, width)
    table = rows.to_table()
    table.source = SOURCE
    return table


def _arrow(body: bytes, columns: Columns, limits: Limits) -> SeriesTable:
    with needed("tables need pyarrow: pip install 'softclt[serve]'"):
        from softclt.serving import arrow
    return _of_table(arrow.read_stream(body, limits), columns, limits)


def _parquet(body: bytes, columns: Columns, limits: Limits) -> SeriesTable:
    with needed("tables need pyarrow: pip install 'softclt[serve]'"):
        from softclt.serving import arrow
    return _of_table(arrow.read_parquet(body, limits), columns, limits)


def _of_table(table: Any, columns: Columns, limits: Limits) -> SeriesTable:
    """Series of an Arrow table, which `softclt.serving.arrow` has looked at."""
    from softclt.serving.arrow import nested_size

    size = nested_size(table)
    if size is None:
        return _of_rows(frame_rows(table.to_pandas(), columns, SOURCE), limits)
    if columns:
        names = ", ".join(columns)
        raise Refusal(422, f"{names}: a row of the table is a series; leave them out")
    limits.check_size(*size)
    held = taken_out(table, SOURCE)
    return SeriesTable(held.series, ids=[str(name) for name in held.ids or ()])


_READERS: dict[str, Callable[[bytes, Columns, Limits], SeriesTable]] = {
    JSON: _json,
    CSV: _csv,
    ARROW: _arrow,
    PARQUET: _parquet,
}
