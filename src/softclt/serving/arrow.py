"""Tables of Arrow and Parquet from anybody: nothing is unpacked before its size is known."""

import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from softclt.serving.limits import Limits, Refusal

_COMPRESSION = 3  # number of the entry of a record batch that says how its buffers are packed


def read_stream(body: bytes, limits: Limits) -> Any:
    """The table of an IPC stream whose buffers are not packed."""
    try:
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
            if message.type == "dictionary":
                raise Refusal(422, "the table has a dictionary column; send its plain values")
            if message.type == "record batch" and _is_packed(message.metadata.to_pybytes()):
                raise Refusal(
                    415, "the Arrow stream has packed buffers; send it plain, or as Parquet"
                )
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            _check_types(stream.schema)
            table = stream.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise Refusal(422, f"the body is no Arrow stream ({_short(error)})") from None
    _check_cells(table.num_rows * table.num_columns, limits)
    return table


def read_parquet(body: bytes, limits: Limits) -> Any:
    """The table of a Parquet file."""
    try:
        file = pq.ParquetFile(pa.py_buffer(body))
        _check_types(file.schema_arrow)
        about = file.metadata
        columns = [
            about.row_group(i).column(j)
            for i in range(about.num_row_groups)
            for j in range(about.num_columns)
        ]
        _check_cells(sum(abs(column.num_values) for column in columns), limits)
        if any(column.total_uncompressed_size > 8 * limits.body for column in columns):
            raise Refusal(413, f"a column unpacks to more than {8 * limits.body:,} bytes")
        table = file.read()
        table.validate(full=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise Refusal(422, f"the body is no Parquet file ({_short(error)})") from None
    return table


def nested_size(table: Any) -> tuple[int, int, int] | None:
    """N, D and T of a table whose rows are series, in columns of lists; None for any other."""
    lists = [column for column in table.columns if _is_list(column.type)]
    if not lists:
        return None
    channels = steps = 0
    for column in lists:
        inner = column.type.value_type
        own, longest = 1, _longest(column)
        if _is_list(inner):  # (D, T) in a cell
            own, longest = longest, _longest(pc.list_flatten(column))
        channels, steps = channels + own, max(steps, longest)
    return table.num_rows, channels, steps


def _longest(column: Any) -> int:
    return pc.max(pc.list_value_length(column)).as_py() or 0


def _check_cells(count: int, limits: Limits) -> None:
    if count > 2 * limits.values:  # with columns of ids and times
        raise Refusal(413, f"the table has {count:,} cells; send fewer series at a time")


def _check_types(schema: Any) -> None:
    """Refuse columns whose cells may be larger than what was sent."""
    for field in schema:
        kind, depth = field.type, 0
        while _is_list(kind) and depth < 2:
            kind, depth = kind.value_type, depth + 1
        plain = pa.types.is_floating(kind) or pa.types.is_integer(kind)
        named = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        timed = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        if not (plain or pa.types.is_boolean(kind) or (depth == 0 and (named or timed))):
            raise Refusal(
                422,
                f"the column {field.name[:40]!r} is {str(field.type)[:60]}; expected numbers, "
                "lists of numbers, and for ids, times and labels also texts and dates",
            )


def _is_list(kind: Any) -> bool:
    is_kind = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_kind or pa.types.is_fixed_size_list(kind))


def _is_packed(metadata: bytes) -> bool:
    """Whether a message's record batch is compressed; Arrow has checked the form of the message.

    A table of FlatBuffers begins with how far back its list of entries is, which has for each entry
    where it is in the table, 0 if absent.
    """

    def entry(table: int, number: int) -> int:
        entries = table - struct.unpack_from("<i", metadata, table)[0]
        size = struct.unpack_from("<H", metadata, entries)[0]
        at = 4 + 2 * number
        offset = struct.unpack_from("<H", metadata, entries + at)[0] if at < size else 0
        return table + offset if offset else 0

    def followed(at: int) -> int:
        return at + int(struct.unpack_from("<I", metadata, at)[0])

    header = entry(followed(0), 2)
    return bool(header and entry(followed(header), _COMPRESSION))


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:100]
