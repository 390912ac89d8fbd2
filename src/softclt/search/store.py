"""Rows with a vector each, in a table of LanceDB: on disk, with filters, nearest ones first."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from softclt.optional import needed
from softclt.validation import Floats32

VECTOR = "_vector"
DISTANCE = "_distance"
QUERY = "query_index"

# A filter's chain of operators is followed on the stack of a thread, and a long one ends the
# process: 1,000 additions did (lancedb 0.40). The shortest take two characters.
MOST_FILTER = 1000

_NEEDS = "search needs lancedb: pip install 'softclt[search]'"
_KEPT = timedelta(minutes=10)  # for other processes that read what was there before
_AT_ONCE = 1000  # ids in a filter


class RowStore:
    """One table in a folder. What a method has changed is on disk when it returns.

    A change is one commit: a process that is killed leaves all of it or nothing. Others that read
    the table see it at their next call.

    Args:
        folder: Of the table.
        name: Of the table.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._table = _connect(folder).open_table(name)

    @classmethod
    def create(cls, folder: Path, name: str, schema: Any) -> "RowStore":
        """An empty table with these columns, as Arrow has them; one is ``VECTOR``."""
        _connect(folder).create_table(name, schema=schema)
        return cls(folder, name)

    def __len__(self) -> int:
        return int(self._table.count_rows())

    @property
    def schema(self) -> Any:
        """Arrow's schema."""
        return self._table.schema

    def add(self, rows: Any) -> None:
        """Add rows: an Arrow table, or a reader of batches."""
        self._table.add(rows)

    def put(self, rows: Any, ids: Sequence[Any]) -> None:
        """Put rows in the place of all that have these ids."""
        merge = self._table.merge_insert(["id", "start"])
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        merge.when_not_matched_by_source_delete(_is_one_of(ids)).execute(rows)

    def delete(self, ids: Sequence[Any]) -> None:
        """Take all rows with these ids away."""
        self._table.delete(_is_one_of(ids))

    def column(self, name: str, where: str | None = None) -> Any:
        """A whole column, as Arrow has it."""
        query = self._table.search(None).select([name]).limit(None)
        query = query if where is None else query.where(where)
        return query.to_arrow()[name]

    def rows(self, ids: Sequence[Any], columns: Sequence[str]) -> Any:
        """Some columns of the rows with these ids, in any order."""
        query = self._table.search(None).where(_is_one_of(ids)).select(list(columns))
        return query.limit(None).to_arrow()

    def nearest(self, vectors: Floats32, k: int, where: str | None, columns: Sequence[str]) -> Any:
        """The k rows nearest to each vector ``(Q, M)``, with ``QUERY`` and ``DISTANCE``.

        The distance is that of unit vectors: 1 minus the cosine.

        Args:
            vectors: Queries.
            k: Rows for each, fewer where there are no more.
            where: A condition in SQL that rows have to meet.
            columns: What to give of each row.
        """
        import pyarrow as pa

        query = self._table.search(np.ascontiguousarray(vectors), vector_column_name=VECTOR)
        query = query.limit(k).select([*columns, DISTANCE])
        if where is None:
            rows = query.to_arrow()
        else:
            with _about_filter(where, self.schema.names):
                rows = query.where(where).to_arrow()
        if QUERY not in rows.column_names:  # there was one
            rows = rows.append_column(QUERY, pa.array(np.zeros(rows.num_rows, np.int32)))
        half = rows[DISTANCE].to_numpy() / 2  # of squared Euclidean ones
        place = rows.schema.get_field_index(DISTANCE)
        return rows.set_column(place, DISTANCE, pa.array(np.maximum(half, 0).astype(np.float64)))


def _connect(folder: Path) -> Any:
    with needed(_NEEDS):
        import lancedb
    return lancedb.connect(folder, read_consistency_interval=timedelta(0))


def _is_one_of(ids: Sequence[Any]) -> str:
    """The condition that a row has one of these ids."""
    return f"id IN ({', '.join(map(_literal, ids))})"


def _literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(int(value))


@contextmanager
def _about_filter(where: str, columns: Sequence[str]) -> Iterator[None]:
    """What is wrong with a filter that a user has written, in one line."""
    if len(where) > MOST_FILTER:
        raise ValueError(
            f"where has {len(where)} characters; at most {MOST_FILTER} are taken: keep what it "
            "asks for as a column of its own"
        )
    try:
        yield
    except (ValueError, RuntimeError) as error:
        reason = re.sub(r",? /\S+\.rs:\d+.*", "", " ".join(str(error).split()))
        reason = reason.removeprefix("Invalid input, ").removeprefix("lance error: ")[:200]
        known = ", ".join(name for name in columns if not name.startswith("_"))
        raise ValueError(
            f"where={where!r} is no condition on the columns {known}: {reason}; expected one in "
            "SQL, such as \"region = 'north' AND area > 10\""
        ) from None
