"""Reading a store: a distance matrix as a folder of tiles.

The folder holds ``manifest.json`` (what the distances are of), ``series.npz`` (the series, so that
a worker needs nothing else) and ``tiles-KEY-SIZE/ROW-COLUMN.npy`` in float32; of a symmetric
distance, the tiles on and above the diagonal.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.distances import manifest as files
from softclt.distances.engine import Tile, tiles
from softclt.distances.manifest import StoreError
from softclt.distances.measure import Measure
from softclt.distances.registration import Ints, Ragged
from softclt.distances.tilefiles import map_tile, read_tile, remove_abandoned
from softclt.files import too_large, whole_file
from softclt.schema import LIST, check_kind
from softclt.validation import Floats32

PathLike = str | os.PathLike[str]

TILES = "tiles"
IDS = "ids.json"
_OPEN_MAPS = 256


class StoredMatrix:
    """The distances between N series in a folder, as far as they are there.

    Args:
        folder: One that `DistanceStore.create` or ``softclt distances`` made.
    """

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)
        self.manifest = files.read_manifest(self.folder)
        self._series: Ragged | None = None
        self._sound: set[tuple[int, int]] = set()
        self._map = lru_cache(_OPEN_MAPS)(self._open_map)

    def __len__(self) -> int:
        return int(self.manifest["n_series"])

    def __repr__(self) -> str:
        kind, title = type(self).__name__, self.measure.title
        return f"{kind}({str(self.folder)!r}: {title} of {len(self)} series)"

    def __reduce__(self) -> tuple[type["StoredMatrix"], tuple[Path]]:
        return type(self), (self.folder,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a store is no array in memory; np.asarray(store) reads it")
        return self.matrix().astype(dtype or np.float32, copy=False)

    @property
    def measure(self) -> Measure:
        """What is computed."""
        own = self.manifest
        return Measure(own["metric"], own["window"], own["params"], own["unequal"])

    @property
    def series(self) -> Ragged:
        """The series as kernels read them."""
        if self._series is None:
            self._series = files.read_series(self.folder, self.manifest["series"])
        return self._series

    @property
    def ids(self) -> list[Any] | None:
        """A name a row, if they were kept."""
        path = self.folder / IDS
        if not path.is_file():
            return None
        try:
            ids: list[Any] = json.loads(path.read_text(encoding="utf-8"))
            check_kind(ids, LIST, "ids")
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{path} is damaged ({error}); remove it") from None
        if len(ids) != len(self):
            raise StoreError(f"{path} has {len(ids)} ids for {len(self)} series; remove it")
        return ids

    def keep_ids(self, ids: Sequence[Any]) -> None:
        """Write down what the rows are called."""
        with whole_file(self.folder / IDS) as temporary:
            temporary.write_text(json.dumps(list(ids), default=str), encoding="utf-8")

    @property
    def key(self) -> str:
        """Sixteen hex digits of all that the distances depend on."""
        return files.key_digits(self.manifest)

    @property
    def half(self) -> bool:
        """Only tiles on and above the diagonal are there; the others are their mirror images."""
        return bool(self.manifest["half"])

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    @cached_property
    def tile_folder(self) -> Path:
        """Where the tiles are; its name keeps those of other distances or sizes out."""
        return self.folder / f"{TILES}-{self.key}-{self.manifest['tile']}"

    def tiles(self) -> list[Tile]:
        """All tiles, made or not."""
        return list(tiles(len(self), len(self), self.manifest["tile"], self.half))

    def path(self, tile: Tile) -> Path:
        """The file of a tile."""
        row, col = self._place(tile)
        return self.tile_folder / f"{row:05d}-{col:05d}.npy"

    def missing(self) -> list[Tile]:
        """Tiles that are not made yet."""
        present = self._present()
        return [tile for tile in self.tiles() if self.path(tile).name not in present]

    def verify(self) -> list[str]:
        """Check all files; those that are damaged are named and removed: `fill` makes them again.

        What killed processes have left half-written is removed, too.
        """
        damaged = []
        if (self.folder / files.SERIES).is_file():
            try:
                files.read_series(self.folder, self.manifest["series"])
            except StoreError:
                (self.folder / files.SERIES).unlink(missing_ok=True)
                damaged.append(files.SERIES)
        present = self._present()
        for tile in self.tiles():
            path = self.path(tile)
            with suppress(FileNotFoundError):  # another process may verify, too
                if path.name in present and read_tile(path, _shape(tile)) is None:
                    path.unlink()
                    damaged.append(path.name)
        remove_abandoned(self.folder)
        remove_abandoned(self.tile_folder)
        return damaged

    def matrix(self) -> Floats32:
        """All distances, ``(N, N)``; the checksum of every tile is looked at."""
        self._check_complete()
        if problem := too_large(np.dtype(np.float32).itemsize * len(self) ** 2):
            raise StoreError(f"the distances in {self.folder} are too many: they {problem}")
        matrix = np.empty((len(self), len(self)), np.float32)
        for tile in self.tiles():
            matrix[tile.rows, tile.cols] = block = self._checked(tile)
            if self.half:
                matrix[tile.cols, tile.rows] = block.T
        return matrix

    def block(self, rows: Any, cols: Any) -> Floats32:
        """Some rows and columns of the matrix, ``(R, C)``; tiles are mapped, not loaded.

        The checksum of a tile is looked at when it is used for the first time.

        Args:
            rows, cols: Numbers of series, or slices.
        """
        side, numbers = self.manifest["tile"], np.arange(len(self))
        rows, cols = numbers[rows], numbers[cols]  # as numpy reads them: slices, -1, masks
        block = np.empty((len(rows), len(cols)), np.float32)
        for row, of_rows in _by_tile(rows, side):
            for col, of_cols in _by_tile(cols, side):
                i, j = rows[of_rows] - row * side, cols[of_cols] - col * side  # within the tile
                mirrored = self.half and row > col
                values = self._map(col, row).T if mirrored else self._map(row, col)
                block[np.ix_(of_rows, of_cols)] = values[np.ix_(i, j)]
        return block

    def _check_complete(self) -> None:
        missing = self.missing()
        if missing:
            raise StoreError(
                f"{len(missing)} of {len(self.tiles())} tiles of {self.folder} are missing; "
                "fill it first: DistanceStore.fill, or the 'softclt distances' that began it"
            )

    def _checked(self, tile: Tile) -> Floats32:
        block = read_tile(self.path(tile), _shape(tile))
        if block is None:
            raise StoreError(
                f"{self.path(tile)} is damaged: its checksum differs. Filling the store again "
                "makes it anew: DistanceStore.fill, or the 'softclt distances' that began it"
            )
        return block

    def _open_map(self, row: int, col: int) -> Floats32:
        """A tile by its place."""
        n, side = len(self), self.manifest["tile"]
        rows, cols = (slice(i * side, min((i + 1) * side, n)) for i in (row, col))
        tile = Tile(rows, cols)
        if not self.path(tile).is_file():
            self._check_complete()
        if (row, col) not in self._sound:
            self._checked(tile)
            self._sound.add((row, col))
        return map_tile(self.path(tile))

    def _place(self, tile: Tile) -> tuple[int, int]:
        side = self.manifest["tile"]
        return tile.rows.start // side, tile.cols.start // side

    def _present(self) -> set[str]:
        return set(os.listdir(self.tile_folder)) if self.tile_folder.is_dir() else set()


def _shape(tile: Tile) -> tuple[int, int]:
    return tile.rows.stop - tile.rows.start, tile.cols.stop - tile.cols.start


def _by_tile(index: Ints, side: int) -> Iterator[tuple[int, Ints]]:
    """The rows or columns of tiles that an index touches, and which of its entries each has."""
    places = index // side
    for place in np.unique(places):
        yield int(place), np.flatnonzero(places == place)
