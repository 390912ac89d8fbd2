"""Distances kept for the next time in the user's cache folder, a store each, up to a limit."""

import os
import re
import secrets
import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.distances.manifest import MANIFEST, StoreError, key_digits, key_of
from softclt.distances.measure import Measure
from softclt.distances.pairwise import matrix_engine
from softclt.distances.registration import Ragged
from softclt.distances.store import DistanceStore

FOLDER_VARIABLE = "SOFTCLT_CACHE"
LIMIT_VARIABLE = "SOFTCLT_CACHE_LIMIT"

_DEFAULT_LIMIT = 10.0  # gigabytes
_GIGABYTE = 1e9
_WORTH_KEEPING = 2e10  # cells: what takes about a second is computed again
_DROPPED = ".dropped-"
_IN_USE_SECONDS = 600  # since the last tile or reader; such stores are not dropped


def cache_folder() -> Path:
    """Where the stores are: in ``$SOFTCLT_CACHE``, or where the system keeps a user's caches."""
    own = os.environ.get(FOLDER_VARIABLE)
    if own:
        base = Path(own).expanduser()
    elif sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        base = (Path(local) if local else Path.home() / "AppData" / "Local") / "softclt" / "Cache"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches" / "softclt"
    else:
        general = os.environ.get("XDG_CACHE_HOME")
        base = (Path(general) if general else Path.home() / ".cache") / "softclt"
    return base / "distances"


def cache_limit() -> float:
    """Bytes that the cache may have: ``$SOFTCLT_CACHE_LIMIT`` in gigabytes, 0 for no cache."""
    text = os.environ.get(LIMIT_VARIABLE) or str(_DEFAULT_LIMIT)
    try:
        limit = float(text)
    except ValueError:
        limit = np.nan
    if not limit >= 0:
        raise ValueError(f"{LIMIT_VARIABLE} is {text!r}; expected gigabytes, e.g. 10, or 0")
    return limit * _GIGABYTE


def cached_matrix(
    measure: Measure, x: Ragged, *, workers: int, device: Any = None, progress: bool = False
) -> NDArray[np.floating[Any]]:
    """All distances within x, ``(N, N)``, from the cache if they are there.

    Small matrices are computed at once, in float64. Those of more than a second or so are made in
    a store of the cache, which a killed process leaves for the next, and come back in float32.

    Args:
        measure: What to compute. Results of plain functions are never kept.
        x: The series.
        workers: Threads.
        device: See `pairwise_distance`.
        progress: Show a bar on standard error.
    """
    half, n = bool(measure.tags["symmetric"]), len(x)
    cells = (n * (n - 1) // 2 if half else n * n) * measure.cells(x, x)
    small = cells < _WORTH_KEEPING
    if not small and isinstance(measure.metric, str) and cache_limit() > 0:
        try:
            size = 4 * n * n // (2 if half else 1) + x.values.nbytes + x.starts.nbytes
            store = _store(measure, x, device, size)
            if store is not None:
                store.fill(n_jobs=workers, device=device, progress=progress)
                return store.matrix()
        except OSError as error:
            warnings.warn(
                f"the distances are not kept: the cache {cache_folder()} cannot be written "
                f"({error}); set {FOLDER_VARIABLE} to a folder that can",
                stacklevel=2,
            )
    compute = matrix_engine(measure, device)
    matrix = compute(measure, x, x, half=half, workers=workers, progress=progress)
    np.fill_diagonal(matrix, 0.0)
    return matrix if small else matrix.astype(np.float32)  # with or without a cache the same


def cached_stores() -> list[DistanceStore]:
    """All stores of the cache, the one that was used last first."""
    return sorted(_stores(), key=last_use, reverse=True)


def last_use(store: DistanceStore) -> float:
    """When the store was last opened for a fit, or got a tile, in seconds since 1970."""
    paths = (store.folder / MANIFEST, store.tile_folder)
    return max((path.stat().st_mtime for path in paths if path.exists()), default=0.0)


def clear_cache(name: str | None = None) -> int:
    """Drop one store, by the name of its folder, or all of them: the number of bytes freed."""
    folders = [path for path in _entries() if name is None or path.name == name]
    if name is not None and not folders:
        known = ", ".join(path.name for path in _entries()) or "none"
        raise ValueError(f"the cache {cache_folder()} has no {name!r}; there: {known}")
    return sum(_drop(folder) for folder in folders)


def _store(measure: Measure, x: Ragged, device: Any, n_bytes: int) -> DistanceStore | None:
    """The store of some distances, with room made for it; None where there is no room."""
    digits = key_digits(key_of(measure, x))
    folder = cache_folder() / f"{re.sub('[^A-Za-z0-9]+', '-', str(measure.metric))}-{digits}"
    if not _make_room(folder, n_bytes):
        warnings.warn(
            f"the distances are not kept: they take {n_bytes / _GIGABYTE:.3g} GB, and the cache "
            f"{cache_folder()} may have {cache_limit() / _GIGABYTE:.3g} GB, or is in use; set "
            f"{LIMIT_VARIABLE} to more gigabytes, or make a store of them: softclt distances",
            stacklevel=3,
        )
        return None
    store = DistanceStore.of(folder, measure, x, device)
    os.utime(folder / MANIFEST)
    return store


def _make_room(folder: Path, n_bytes: int) -> bool:
    """Drop the stores that were not used for longest, until there is room for one in ``folder``."""
    for path in _entries():
        if path.name.startswith(_DROPPED):  # by a process that was killed meanwhile
            shutil.rmtree(path, ignore_errors=True)
    others = [store for store in cached_stores() if store.folder != folder]
    sizes = {store.folder: store.n_bytes for store in others}
    while sum(sizes.values()) + n_bytes > cache_limit():
        if not others or time.time() - last_use(others[-1]) < _IN_USE_SECONDS:
            return False
        oldest = others.pop().folder
        del sizes[oldest]
        _drop(oldest)
    return True


def _entries() -> list[Path]:
    folder = cache_folder()
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _stores() -> list[DistanceStore]:
    stores = []
    for folder in _entries():
        if folder.name.startswith(_DROPPED):
            continue
        try:
            stores.append(DistanceStore(folder))
        except StoreError:  # being made or damaged; `clear_cache` drops it
            continue
    return stores


def _drop(folder: Path) -> int:
    """Remove a store: the number of bytes freed."""
    freed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    dropped = folder.with_name(f"{_DROPPED}{secrets.token_hex(6)}")
    os.replace(folder, dropped)  # at once, so that nobody opens half of it
    shutil.rmtree(dropped)
    return freed
