"""Rows with a vector each, in a table of LanceDB: on disk, with filters, nearest ones first."""

import re
from collections.abc import Iterator, Mapping, Sequence
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
EXACT_BELOW = 20_000  # rows: all are compared

_INDEX = "near"
_ROWS_OF_A_PARTITION = 4096
_LEAST_PARTITIONS = 8
_ITERATIONS = 20  # of k-means, which finds the partitions
_REFINED = 2  # times as many rows as asked for are compared exactly
_UNINDEXED = 0.05  # share of rows that are in no partition yet: they are compared, too
_MOST_FILES = 64
_MEASURED = 200  # rows whose nearest ones are looked for
_NEAREST = 10  # of each
_AIMED = 0.97  # share of them that must be found; of other queries it may be less


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

    def check_filter(self, where: str) -> None:
        """Refuse a condition that the columns do not allow."""
        with _about_filter(where, self.schema.names):
            self._table.search(None).select(["id"]).where(where).limit(1).to_arrow()

    def nearest(
        self,
        vectors: Floats32,
        k: int,
        columns: Sequence[str],
        where: str | None = None,
        probes: int | None = None,
    ) -> Any:
        """The k rows nearest to each unit vector ``(Q, M)``, with ``QUERY`` and ``DISTANCE``.

        The distance is 1 minus the cosine.

        Args:
            vectors: Queries.
            k: Rows for each, fewer where there are no more.
            columns: What to give of each row.
            where: A condition in SQL that rows have to meet.
            probes: Partitions to look into; all of them if there is a condition. None looks at
                all rows, exactly.
        """
        import pyarrow as pa

        query = self._table.search(np.ascontiguousarray(vectors), vector_column_name=VECTOR)
        query = query.limit(k).select([*columns, DISTANCE])
        if probes is None:
            query = query.bypass_vector_index()
        else:
            query = query.nprobes(probes).refine_factor(_REFINED)
        if where is None:
            rows = query.to_arrow()
        else:
            if probes is not None:
                query = query.maximum_nprobes(0)  # all: few rows of the nearest may meet it
            with _about_filter(where, self.schema.names):
                rows = query.where(where).to_arrow()
        if QUERY not in rows.column_names:  # there was one
            rows = rows.append_column(QUERY, pa.array(np.zeros(rows.num_rows, np.int32)))
        half = rows[DISTANCE].to_numpy() / 2  # of squared Euclidean ones
        place = rows.schema.get_field_index(DISTANCE)
        return rows.set_column(place, DISTANCE, pa.array(np.maximum(half, 0).astype(np.float64)))

    def tend(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Bring what makes the search fast up to the rows, where it is due.

        Returns:
            How rows are to be searched from now on: ``kind``, and unless it is exact ``probes``,
            ``partitions``, and ``recall`` of the 10 nearest ``rows``, measured.

        Args:
            before: What it returned the last time.
        """
        n, found = len(self), self._table.index_stats(_INDEX)
        if n < EXACT_BELOW:
            self._join_small_files()
            return {"kind": "exact"}
        if found is None or before.get("rows", 0) < n / 2:
            self._partition()
        elif found.num_unindexed_rows > _UNINDEXED * n:
            self._table.optimize(cleanup_older_than=_KEPT)
        else:
            self._join_small_files()
            return dict(before)
        return {"kind": "ivf_sq", "rows": n, **self._probing()}

    def _partition(self) -> None:
        from lancedb.index import IvfSq

        partitions = max(_LEAST_PARTITIONS, len(self) // _ROWS_OF_A_PARTITION)
        config = IvfSq(distance_type="l2", num_partitions=partitions, max_iterations=_ITERATIONS)
        self._table.create_index(VECTOR, config=config, name=_INDEX)

    def _join_small_files(self) -> None:
        """Every change adds a file, and many slow a search down."""
        if self._table.stats()["fragment_stats"]["num_fragments"] > _MOST_FILES:
            self._table.optimize(cleanup_older_than=_KEPT)

    def _probing(self) -> dict[str, Any]:
        """How many partitions give ``_AIMED`` of the nearest rows of some rows."""
        n = len(self)
        places = np.unique(np.linspace(0, n - 1, _MEASURED).astype(int)).tolist()
        rows = self._table.take_offsets(places).select([VECTOR]).to_arrow()
        sample = vectors_of(rows[VECTOR])
        last = self._exactly(sample, _NEAREST)
        probes, partitions = 1, max(_LEAST_PARTITIONS, n // _ROWS_OF_A_PARTITION)
        while True:
            found = self.nearest(sample, _NEAREST, [], probes=probes)
            near = found[DISTANCE].to_numpy() <= last[found[QUERY].to_numpy()] + 1e-6
            recall = float(near.sum()) / (_NEAREST * len(sample))
            if recall >= _AIMED or probes >= partitions:
                return {"probes": probes, "partitions": partitions, "recall": round(recall, 4)}
            probes = min(partitions, 2 * probes)

    def _exactly(self, vectors: Floats32, k: int) -> Floats32:
        """Distance from each vector to the k-th nearest row, ``(Q,)``."""
        best = np.full((len(vectors), k), np.inf, np.float32)
        for batch in self._table.search(None).select([VECTOR]).limit(None).to_batches():
            distances = 1 - vectors @ vectors_of(batch[VECTOR]).T
            best = np.partition(np.concatenate([best, distances], axis=1), k - 1, axis=1)[:, :k]
        return best.max(axis=1)


def vectors_of(column: Any) -> Floats32:
    """Vectors ``(N, M)`` of an Arrow column."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return np.asarray(column.flatten().to_numpy().reshape(len(column), -1))


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
