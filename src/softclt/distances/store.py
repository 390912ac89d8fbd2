"""Making a store: it survives a killed job, and many may fill it at once."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from softclt import parallel
from softclt.distances import manifest as files
from softclt.distances.engine import Tile, in_threads, on_cpu, tile_distances, tile_size
from softclt.distances.manifest import StoreError
from softclt.distances.measure import Measure, Metric
from softclt.distances.registration import Floats, Ragged
from softclt.distances.stored import TILES, PathLike, StoredMatrix
from softclt.distances.tilefiles import write_tile
from softclt.progress import progress_bar
from softclt.validation import Floats32

# (measure, all series, tile, half) -> the distances in the tile; sent to workers, so picklable.
Compute = Callable[[Measure, Ragged, Tile, bool], Floats]

# Cells of the cost matrices in a tile: about a second of DTW on a core, half a second on a GPU.
# Counted, never timed, so that a store is cut in the same way everywhere.
_TILE_CELLS = 5e9
_GPU_TILE_CELLS = 1e12


@dataclass(frozen=True)
class Filled:
    """What `DistanceStore.fill` did.

    Attributes:
        made: Tiles computed by this call.
        found: Tiles that were there, or were made by others in the meantime.
        damaged: Files that were found damaged and made again.
        cells: Cells of the cost matrices that were computed.
        seconds: They took, with the checks.
    """

    made: int
    found: int
    damaged: list[str]
    cells: int
    seconds: float


class DistanceStore(StoredMatrix):
    """The distances between N series in a folder.

    Args:
        folder: One that `create` or ``softclt distances`` made.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> store = DistanceStore.create(folder, [[0, 1, 2, 3], [0, 2, 3], [5, 5]])
        >>> store.fill().made, store.missing()
        (1, [])
        >>> DistanceStore(folder).block([0], [1, 2]).round(3)
        array([[1.   , 7.348]], dtype=float32)
    """

    @classmethod
    def create(
        cls,
        folder: PathLike,
        X: Any,
        metric: Metric = "dtw",
        window: float | None = None,
        unequal: str = "error",
        device: Any = None,
        **params: Any,
    ) -> "DistanceStore":
        """Begin a store, or open the one that is there, if it is of the same distances.

        The arguments are those of `pairwise_distance`; a function as ``metric`` is refused. A
        ``device`` that will fill it matters for the size of the tiles only.
        """
        measure = Measure(metric, window, params, unequal)
        return cls.of(folder, measure, measure.prepare(X)[0], device)

    @classmethod
    def of(
        cls, folder: PathLike, measure: Measure, x: Ragged, device: Any = None
    ) -> "DistanceStore":
        """The same for series that are prepared already."""
        folder = Path(folder)
        key = files.key_of(measure, x)
        tile_engine(measure, device)  # refuses what cannot fill it
        if not (folder / files.MANIFEST).is_file():
            _check_vacant(folder)
            files.write_series(folder, x)
            budget = _TILE_CELLS if on_cpu(device) else _GPU_TILE_CELLS
            side = tile_size(measure.cells(x, x), budget)
            files.write_manifest(folder, key, side, half=bool(measure.tags["symmetric"]))
        store = cls(folder)
        files.check_key(folder, store.manifest, key)
        store._series = x
        return store

    def fill(
        self,
        *,
        n_jobs: int | None = -1,
        processes: int | None = None,
        executor: Executor | None = None,
        ray: str | None = None,
        device: Any = None,
        compute: Compute | None = None,
        progress: bool = False,
    ) -> Filled:
        """Make the tiles that are missing or damaged.

        Several processes, also on several machines, may do so at the same time: each takes the
        tiles in an order of its own and passes over those that have appeared. After a kill at any
        moment the same call goes on; only tiles that were being computed are lost.

        Args:
            n_jobs: Threads; -1 takes all cores. The kernels do not hold the GIL.
            processes: Work in so many new processes instead; those that die are replaced.
            executor: Work on this instead. Its workers need the folder.
            ray: Work on this Ray cluster instead: ``"auto"``, an address, or ``"local"``. Only the
                calling process needs the folder.
            device: See `pairwise_distance`; a GPU is given one tile after the other.
            compute: Makes a tile, instead of what ``device`` stands for.
            progress: Show a bar with cells a second and the time left on standard error.
        """
        if sum(other is not None for other in (processes, executor, ray)) > 1:
            raise ValueError("processes, executor and ray exclude each other; give one of them")
        workers = parallel.worker_count(n_jobs if processes is None else processes)
        if not on_cpu(device):
            workers = 1
        compute = compute or tile_engine(self.measure, device)
        start = time.perf_counter()
        damaged = self.verify()
        if not (self.folder / files.SERIES).is_file():
            files.write_series(self.folder, self.series)
        plan = self.missing()
        secrets.SystemRandom().shuffle(plan)
        elsewhere = partial(_make_elsewhere, str(self.folder.resolve()), self.key, compute)
        done: Iterator[tuple[Tile, bool]]
        if ray is not None:
            shared = (compute, self.measure, self.series, self.half)
            gpus = 0 if on_cpu(device) else 1
            blocks = parallel.on_ray(_compute, shared, plan, ray, workers=workers, gpus=gpus)
            done = (self._keep(*answer) for answer in blocks)
        elif executor is not None:
            done = parallel.on_executor(elsewhere, plan, executor)
        elif processes is not None:
            done = parallel.in_processes(elsewhere, plan, workers)
        else:
            done = in_threads(partial(self.make, compute), plan, workers)
        made, cells = self._watch(done, plan, progress)
        found = len(self.tiles()) - made
        return Filled(made, found, damaged, cells, time.perf_counter() - start)

    def make(self, compute: Compute, tile: Tile) -> tuple[Tile, bool]:
        """Make one tile, unless it is there: (the tile, whether it was made)."""
        if self.path(tile).is_file():
            return tile, False
        return self._keep(*_compute((compute, self.measure, self.series, self.half), tile))

    def _keep(self, tile: Tile, block: Floats32) -> tuple[Tile, bool]:
        write_tile(self.path(tile), block)
        return tile, True

    def _watch(
        self, done: Iterator[tuple[Tile, bool]], plan: list[Tile], progress: bool
    ) -> tuple[int, int]:
        """See the work through: tiles and cells made."""
        each = self.measure.cells(self.series, self.series)
        counts = {self._place(tile): int(tile.n_pairs(self.half) * each) for tile in plan}
        made = cells = 0
        title = f"{self.measure.title} distances"
        with progress_bar(title, sum(counts.values()), progress, unit="cells") as advance:
            for tile, new in done:
                count = counts[self._place(tile)]
                made, cells = made + new, cells + count * new
                advance(count)
        return made, cells


def open_store(folder: PathLike) -> DistanceStore:
    """The store in a folder."""
    return DistanceStore(folder)


def matrix_of(distances: Any) -> Any:
    """The matrix of a store or of a folder that holds one; anything else as it is."""
    if isinstance(distances, (str, os.PathLike)):
        distances = DistanceStore(distances)
    return distances.matrix() if isinstance(distances, StoredMatrix) else distances


def tile_engine(measure: Measure, device: Any) -> Compute:
    """What computes tiles on a device."""
    if on_cpu(device):
        return _on_cpu
    from softclt.distances.gpu import gpu_for, tile_on_device

    return partial(tile_on_device, gpu_for(measure, device))


def _on_cpu(measure: Measure, x: Ragged, tile: Tile, half: bool) -> Floats:
    return tile_distances(measure, x, x, tile, half)


def _compute(shared: tuple[Compute, Measure, Ragged, bool], tile: Tile) -> tuple[Tile, Floats32]:
    """A tile as it is kept: in float32, the distance of a series to itself 0."""
    compute, measure, x, half = shared
    block = compute(measure, x, tile, half)
    if tile.rows == tile.cols:
        np.fill_diagonal(block, 0.0)
    largest = block.max(where=np.isfinite(block), initial=0.0)
    if largest > np.finfo(np.float32).max:
        raise ValueError(
            f"distances reach {largest:g}, and a store keeps float32, which ends before: scale "
            "the series"
        )
    return tile, block.astype(np.float32, copy=False)


def _make_elsewhere(folder: str, key: str, compute: Compute, tile: Tile) -> tuple[Tile, bool]:
    """Make a tile in a process that has nothing but the folder."""
    return _opened(folder, key).make(compute, tile)


@lru_cache(maxsize=1)
def _opened(folder: str, key: str) -> DistanceStore:
    """The store of a worker, which reads the series once; the key tells it from an earlier one."""
    return DistanceStore(folder)


def _check_vacant(folder: Path) -> None:
    """Refuse a folder in use; what a killed process left before the manifest is no use."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; expected a folder for the distances")
    ours = (files.MANIFEST, files.SERIES, TILES)
    if any(not path.name.startswith((".", *ours)) for path in folder.glob("*")):
        raise StoreError(f"{folder} is not empty and no store of distances; choose another folder")
