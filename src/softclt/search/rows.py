"""Rows to be written: ids, places, vectors, values and metadata of series, some at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.data.preparation import blocks_of
from softclt.data.sources import SeriesSource, left_on_disk
from softclt.data.sources.arrays import ArraySource
from softclt.search.hits import SERIES
from softclt.search.metadata import like_before, metadata_table
from softclt.search.store import VECTOR
from softclt.search.windows import Pieces, pieces_of
from softclt.validation import Floats, Floats32, check_series, taken_out

OWN = ("id", "start", "end", VECTOR, SERIES)  # columns that are no metadata
SHOWN = 3  # ids that a message names


@dataclass(frozen=True)
class Given:
    """Series to be written.

    Attributes:
        source: The series.
        ids: One each, an Arrow array; None where nobody named them.
        metadata: An Arrow table.
    """

    source: SeriesSource
    ids: Any
    metadata: Any


def given(X: Any, ids: Sequence[Any] | None, metadata: Any, n_channels: int | None) -> Given:
    """What a user wants to be written, with all checked but the values of what is on disk."""
    source = left_on_disk(X)
    if source is None:
        held = taken_out(X)
        source = ArraySource(check_series(held.series, n_channels=n_channels))
        ids = held.ids if ids is None else ids
    elif not isinstance(source, SeriesSource):
        raise ValueError("X is several data sets; add them one after the other")
    else:
        like = np.broadcast_to(np.float32(0), (1, *source.shape[1:]))
        check_series(like, name=source.name, n_channels=n_channels)
        ids = source.ids() if ids is None else ids
    named = None if ids is None else id_array(ids)
    if named is not None and len(named) != len(source):
        raise ValueError(f"there are {len(named)} ids for {len(source)} series; expected one each")
    return Given(source, named, metadata_table(metadata, len(source)))


def id_array(ids: Sequence[Any]) -> Any:
    """Ids as an Arrow array of whole numbers or of texts, each once."""
    import pyarrow as pa

    plain = [one.item() if isinstance(one, np.generic) else one for one in ids]
    if all(isinstance(one, int) and not isinstance(one, bool) for one in plain):
        array = pa.array(plain, pa.int64())
    elif all(isinstance(one, str) for one in plain):
        array = pa.array(plain, pa.string())
    else:
        kinds = sorted({type(one).__name__ for one in plain})
        raise ValueError(
            f"ids are of the types {', '.join(kinds)}; expected whole numbers alone, or texts alone"
        )
    if len(array.unique()) < len(array):
        twice = next(c["values"].as_py() for c in array.value_counts() if c["counts"].as_py() > 1)
        raise ValueError(f"the id {twice!r} stands for several series; expected each once")
    return array


def some_of(ids: Sequence[Any]) -> str:
    """Some ids for a message."""
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(map(repr, ids[:SHOWN])) + more


def batches_of(
    given: Given,
    ids: Any,
    encode: Callable[[Floats], Floats32],
    window: int | None,
    stride: int | None,
    keep_series: bool,
) -> Iterator[Any]:
    """Arrow's record batches of all rows.

    Args:
        given: The series.
        ids: One each.
        encode: From series ``(N, D, T)`` to vectors ``(N, M)``.
        window, stride: How they are cut.
        keep_series: Whether rows have their values.
    """
    source = given.source
    for rows in blocks_of(source.shape):
        index = np.arange(*rows.indices(len(source)))
        try:
            X = check_series(source.take(index), name=source.name)
            for pieces in pieces_of(X, window, stride or 1):
                if len(pieces.owner):
                    vectors = encode(pieces.values)
                    owner = index[pieces.owner]
                    about = given.metadata.take(owner) if given.metadata.num_columns else None
                    yield _batch(pieces, vectors, ids.take(owner), about, keep_series)
        except ValueError as error:
            if len(index) == len(source):
                raise
            place = f"{source.name}, series {index[0]} to {index[-1]}"
            raise ValueError(f"{place}: {error}") from None


def _batch(pieces: Pieces, vectors: Floats32, ids: Any, about: Any, keep_series: bool) -> Any:
    import pyarrow as pa

    columns = {
        "id": ids,
        "start": pa.array(pieces.start),
        "end": pa.array(pieces.end),
        VECTOR: pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
    }
    if keep_series:
        steps = pieces.end - pieces.start
        values = [x[:, :n].ravel() for x, n in zip(pieces.values, steps, strict=True)]
        ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
        exact = np.concatenate(values).astype(np.float64)
        columns[SERIES] = pa.ListArray.from_arrays(pa.array(ends), pa.array(exact))
    if about is not None:
        columns |= {name: about[name].combine_chunks() for name in about.column_names}
    return pa.RecordBatch.from_pydict(columns)


def like_rows(ids: Any, metadata: Any, schema: Any) -> Any:
    """Metadata with the types of the index; new rows that are of another kind are refused."""
    if ids.type != schema.field("id").type:
        raise ValueError(
            f"ids are of type {ids.type}, those in the index of type {schema.field('id').type}"
        )
    return like_before(metadata, [field for field in schema if field.name not in OWN])


def numbered(n: int, known: Any | None) -> Any:
    """Ids of series that nobody has named: numbers that follow those in the index."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if known is None:
        return pa.array(np.arange(n))
    if not pa.types.is_integer(known.type):
        raise ValueError("the series in the index have names; give ids for the new ones, too")
    first = (pc.max(known).as_py() or 0) + 1 if len(known) else 0
    return pa.array(np.arange(first, first + n))


def shared(ids: Any, known: Any) -> list[Any]:
    """Those of some ids that are known."""
    import pyarrow.compute as pc

    if ids.type != known.type:
        return []
    return list(ids.filter(pc.is_in(ids, value_set=known.unique())).to_pylist())


@contextmanager
def reader_of(batches: Iterator[Any], schema: Any) -> Iterator[Any]:
    """A reader of batches, cast to a schema; what making them raises comes out as it is."""
    import pyarrow as pa

    failed: list[BaseException] = []

    def cast() -> Iterator[Any]:
        try:
            for batch in batches:
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
        except BaseException as error:
            failed.append(error)
            raise

    try:
        yield pa.RecordBatchReader.from_batches(schema, cast())
    except Exception:
        if failed:
            raise failed[0] from None
        raise
