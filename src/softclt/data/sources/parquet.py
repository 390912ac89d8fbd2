"""Parquet files as a source: wide or long tables, of which some row groups are held."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from softclt.data.columns import Columns, Roles, find_roles, names_of
from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.sources.places import Place, existing_place, name_of, opened, parquet_files
from softclt.data.sources.source import SeriesSource
from softclt.data.tables import frame_rows, parquet
from softclt.validation import Floats, Ints

MOST_VALUES = 2**25  # that are decoded at a time: 256 MiB as float64
HELD_BYTES = 2**29  # of decoded values


@dataclass(frozen=True)
class _Piece:
    """Series that are read together: neighbouring rows of some row groups of a file."""

    path: Place
    groups: range
    first: int  # row of the first of these groups at which the series begin
    n_rows: int
    row_in_file: int
    n_series: int


class ParquetSource(SeriesSource):
    """Series of Parquet files, whose columns are as in :func:`softclt.data.read_table`.

    A wide table has a row for each series, a long one a row for each step of each series. All files
    have the same columns, and a series lies within one file. Of a long table, the rows of a series
    should stand together: a file in which they do not is read as a whole, and must be small enough.

    Row groups are decoded when a series of theirs is needed, and 512 MiB of them are held. One of
    more than 256 MiB is refused.

    Args:
        path: The folder, with its subfolders, or one file; also a URL that pyarrow or fsspec reads.
        **columns: See :func:`softclt.data.read_table`.

    Attributes:
        files: In the order of their names, each with the number of its series.
        held_bytes: Of decoded series that are kept, beside those that were decoded last.
    """

    held_bytes = HELD_BYTES

    def __init__(self, path: Place, **columns: Unpack[Columns]) -> None:
        folder = existing_place(path)
        if columns.get("resample"):
            raise DataError(
                "is read in parts, which cannot be resampled; resample the tables first", folder
            )
        self.name, self.columns = str(folder), columns
        files = parquet_files(folder)
        table = _header(files[0], columns)
        parts = [_divide(file, table) for file in files]
        self.files = dict(zip(files, (part.n_series for part in parts), strict=True))
        _refuse_shared_ids([part.hashes for part in parts], files)
        self.pieces = [piece for part in parts for piece in part.pieces]
        self.dtype = np.dtype(np.float32 if all(part.single for part in parts) else np.float64)
        self.shards = np.cumsum([0, *(piece.n_series for piece in self.pieces)])
        n_channels = len(table.values) if table.roles.long else 1
        self.shape = int(self.shards[-1]), n_channels, max(part.longest for part in parts)
        self._held: OrderedDict[int, Floats] = OrderedDict()
        self._ids: dict[int, list[Any]] = {}  # of the pieces decoded so far, if the files have any
        self._lock = threading.Lock()

    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats:
        """See `SeriesSource`."""
        _, d, t = self.shape
        start, stop, _ = slice(start, stop).indices(t)
        taken = np.full((len(rows), d, stop - start), np.nan, self.dtype)
        assert self.shards is not None
        of = np.searchsorted(self.shards, rows, side="right") - 1
        for i in np.unique(of).tolist():
            here = of == i
            values = self._piece(i)[rows[here] - self.shards[i], :, start:stop]
            taken[here, :, : values.shape[-1]] = values
        return taken

    def ids_of(self, start: int, stop: int) -> list[Any]:
        """See `SeriesSource`; what was not taken yet is decoded for them."""
        assert self.shards is not None
        first, end = np.searchsorted(self.shards, [start, stop - 1], side="right") - 1
        found: list[Any] = []
        for i in range(first, min(end + 1, len(self.pieces))):
            if i not in self._ids:
                self._piece(i)
            before = int(self.shards[i])
            found += self._ids[i][max(0, start - before) : stop - before]
        return found or super().ids_of(start, stop)

    def _piece(self, i: int) -> Floats:
        """The series of a piece, with as many steps as the longest of them."""
        with self._lock:
            if i not in self._held:
                table = _decode(self.pieces[i], self.columns)
                X = table.X.astype(self.dtype)
                self._ids[i] = table.ids if table.has_ids else []
                held = X.nbytes + sum(values.nbytes for values in self._held.values())
                while self._held and held > self.held_bytes:
                    held -= self._held.popitem(last=False)[1].nbytes
                self._held[i] = X
            self._held.move_to_end(i)
            return self._held[i]


@dataclass(frozen=True)
class _Table:
    """What the first file says of all."""

    path: Place
    names: list[str]
    roles: Roles
    values: list[str]


@dataclass(frozen=True)
class _Divided:
    """The pieces of a file."""

    pieces: list[_Piece]
    longest: int
    hashes: Ints  # of the ids of a long table
    single: bool  # whether all values are float32

    @property
    def n_series(self) -> int:
        return int(sum(piece.n_series for piece in self.pieces))


def _header(path: Place, columns: Columns) -> _Table:
    with parquet(path) as pq:
        names = _names(pq.read_schema(opened(path)))
    roles = find_roles(names, fail=partial(DataError, path=path), **names_of(columns))
    return _Table(path, names, roles, [names[j] for j in roles.values])


def _names(schema: Any) -> list[str]:
    """Columns as :func:`softclt.data.tables.frame_rows` will see them."""
    frame = schema.empty_table().to_pandas()
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    return [str(name) for name in frame.columns]


def _divide(path: Place, table: _Table) -> _Divided:
    """Pieces of a file that are small enough to be decoded at once."""
    with parquet(path) as pq:
        file = pq.ParquetFile(opened(path))
        names = _names(file.schema_arrow)
        groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    if names != table.names:
        raise DataError(
            f"has the columns {_listed(names)}; expected {_listed(table.names)} as in {table.path}",
            path,
        )
    types = [str(file.schema_arrow.field(name).type) for name in table.values]
    single = all(type == "float" for type in types)
    ends = np.cumsum([0, *groups])
    if ends[-1] == 0:
        raise DataError("has no rows; expected series", path)
    if table.roles.long:
        starts, hashes = _runs(path, file, table)
    else:
        starts, hashes = np.arange(ends[-1]), np.empty(0, np.int64)
    lengths = np.diff(np.append(starts, ends[-1]))  # of the series, of one row each if wide
    series, of = np.unique(hashes, return_inverse=True)
    if len(series) < len(hashes):  # the rows of a series do not stand together
        piece = _Piece(path, range(len(groups)), 0, int(ends[-1]), 0, len(series))
        longest = int(np.bincount(of, lengths).max())
        _refuse_large(piece, ends, longest, table, "sort its rows by the id")
        return _Divided([piece], longest, series, single)
    pieces = []
    for g in range(len(groups)):
        first, last = np.searchsorted(starts, [ends[g], ends[g + 1]])
        if first < last:  # series that begin in this group, and may end in a later one
            begin, end = int(starts[first]), int([*starts[last : last + 1], ends[-1]][0])
            up_to = int(np.searchsorted(ends, end))
            piece = _Piece(
                path, range(g, up_to), begin - int(ends[g]), end - begin, begin, last - first
            )
            longest = int(lengths[first:last].max())
            _refuse_large(piece, ends, longest, table, "write it with smaller row groups")
            pieces.append(piece)
    longest = int(lengths.max()) if table.roles.long else len(table.values)
    return _Divided(pieces, longest, hashes, single)


def _runs(path: Place, file: Any, table: _Table) -> tuple[Ints, Ints]:
    """Rows at which the id changes, and hashes of the ids from there on."""
    if table.roles.id is None:  # the file is one series
        return np.zeros(1, np.int64), np.array([hash(path)])
    starts, hashes, row, before = [], [], 0, None
    for g in range(file.num_row_groups):
        with parquet(path):
            column = file.read_row_group(g, columns=[table.names[table.roles.id]]).column(0)
            ids: NDArray[Any] = np.asarray(column.to_pandas())
        if column.null_count:
            missing = row + int(np.argmax(column.is_null().to_numpy()))
            raise DataError("the id is empty; every row needs one", path, f"row {missing}")
        if len(ids) == 0:
            continue
        begins = np.flatnonzero(np.append(row == 0 or ids[:1] != before, ids[1:] != ids[:-1]))
        starts.append(row + begins)
        hashes.append(np.array([hash(id) for id in ids[begins].tolist()], np.int64))
        row, before = row + len(ids), ids[-1]
    return np.concatenate(starts), np.concatenate(hashes)


def _refuse_large(piece: _Piece, ends: Ints, longest: int, table: _Table, remedy: str) -> None:
    n_rows, width = int(ends[piece.groups.stop] - ends[piece.groups.start]), len(table.values)
    if n_rows * width > MOST_VALUES:
        raise DataError(
            f"{n_rows} rows of {width} values must be read at once, and only "
            f"{MOST_VALUES // width} may: {remedy} (to_parquet has row_group_size=)",
            piece.path,
        )
    if piece.n_series * longest * width > 2 * MOST_VALUES:
        raise DataError(
            f"{piece.n_series} series must be read at once, and the longest has {longest} steps: "
            f"too much, padded to that length; {remedy}, or keep long series apart",
            piece.path,
        )


def _refuse_shared_ids(hashes: list[Ints], files: list[Place]) -> None:
    """An id in two files would be two series; the user thinks that it is one."""
    everyone = np.concatenate(hashes)
    of_file = np.repeat(np.arange(len(files)), [len(own) for own in hashes])
    order = np.argsort(everyone, kind="stable")
    twice = np.flatnonzero(np.diff(everyone[order]) == 0)
    if len(twice):
        first, second = (files[of_file[order[twice[0] + k]]] for k in (0, 1))
        raise DataError(
            f"has rows of a series that {name_of(first)} has too ({len(twice)} such series in the "
            "folder); a series must lie within one file",
            second,
        )


def _decode(piece: _Piece, columns: Columns) -> SeriesTable:
    with parquet(piece.path) as pq:
        file = pq.ParquetFile(opened(piece.path))
        table = file.read_row_groups(list(piece.groups)).slice(piece.first, piece.n_rows)
        frame = table.to_pandas()
    del table
    rows = frame_rows(frame, columns, str(piece.path))
    rows = replace(rows, place=lambda row: f"row {piece.row_in_file + row}")
    return rows.to_table()


def _listed(names: list[str]) -> str:
    return ", ".join(map(shorten, names[:5])) + (", ..." if len(names) > 5 else "")


def n_values(path: Path) -> int:
    """Cells of a file."""
    with parquet(path) as pq:
        metadata = pq.read_metadata(path)
        return int(metadata.num_rows * metadata.num_columns)
