"""From results to the body of an answer: a table of columns, as JSON, Arrow or Parquet."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softclt.serving.bodies import ARROW, JSON, PARQUET
from softclt.serving.limits import Refusal

KINDS = (JSON, ARROW, PARQUET)


@dataclass(frozen=True)
class Answer:
    """Columns of one length, and what holds for all rows.

    Attributes:
        columns: Lists or arrays ``(N,)``; ``(N, M)`` for a vector in each row. NaN is missing.
        facts: By name.
    """

    columns: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)

    def size(self) -> int:
        """Bytes that it takes, about."""
        own = self.columns.values()
        return sum(8 * (x.size if isinstance(x, np.ndarray) else len(x)) for x in own)

    def encoded(self, kind: str) -> bytes:
        """The body."""
        return self._as_json() if kind == JSON else self._as_table(kind)

    def _as_json(self) -> bytes:
        from pydantic_core import to_json

        lists = {
            name: own.tolist() if isinstance(own, np.ndarray) else own
            for name, own in self.columns.items()
        }
        return to_json(lists | self.facts, inf_nan_mode="null")

    def _as_table(self, kind: str) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: _column(own) for name, own in self.columns.items()})
        if self.facts:
            table = table.replace_schema_metadata({"softclt": json.dumps(self.facts)})
        sink = pa.BufferOutputStream()
        if kind == PARQUET:
            pq.write_table(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
        return bytes(sink.getvalue().to_pybytes())


def _column(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.ndim == 2:
        flat = pa.array(np.ascontiguousarray(values).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    if isinstance(values, list) and len(set(map(type, values))) > 1:  # ids: numbers beside texts
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, from_pandas=True)


def chosen_kind(accept: str) -> str:
    """The kind of answer that an Accept header likes best; JSON where it does not care."""
    liked = []
    for part in accept.lower().split(","):
        name, *options = (word.strip() for word in part.split(";"))
        weight = next((word[2:] for word in options if word.startswith("q=")), "1")
        try:
            liked.append((float(weight), name))
        except ValueError:
            raise Refusal(400, f"the Accept header has the weight {weight[:20]!r}") from None
    for share, name in sorted(liked, key=lambda pair: -pair[0]):
        if share > 0 and name in KINDS:
            return name
        if share > 0 and name in ("", "*/*", "application/*"):
            return JSON
    raise Refusal(406, f"Accept is {accept[:80]!r}; answers are {', '.join(KINDS)}")
