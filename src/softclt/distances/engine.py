"""The CPU engine: tiles of the matrix spread over threads; kernels release the GIL."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from softclt.distances.measure import Measure
from softclt.distances.registration import Floats64, Ints, Ragged
from softclt.progress import progress_bar

# Cells of the cost matrices in a tile: about 10 ms, so that all cores end together, the bar moves,
# and Ctrl-C is heard.
_TILE_CELLS = 100_000_000
_GROUP = 8  # columns that stay in the lanes while the rows pass by: all of float64, half of float32

T = TypeVar("T")
R = TypeVar("R")


class Tile(NamedTuple):
    """A rectangle of the matrix."""

    rows: slice
    cols: slice

    def n_pairs(self, half: bool) -> int:
        """Distances to compute; with ``half``, of a tile on the diagonal those above it."""
        n, m = self.rows.stop - self.rows.start, self.cols.stop - self.cols.start
        return int(n * (n - 1) // 2 if half and self.rows == self.cols else n * m)


def on_cpu(device: Any) -> bool:
    """Whether a user's ``device`` is the CPU, where distances run if nothing is said."""
    return device is None or str(device) == "cpu"


def tile_size(cells: float, budget: float = _TILE_CELLS) -> int:
    """Side of a tile of about ``budget`` cells, when a pair costs ``cells``."""
    side = int(math.sqrt(budget / cells))
    whole = 2 * _GROUP  # lanes of float32
    return max(4, side if side < whole else min(1024, side // whole * whole))


def tiles(n_rows: int, n_cols: int, size: int, half: bool) -> Iterator[Tile]:
    """Tiles that cover a matrix, row after row; with ``half`` those on and above the diagonal."""
    for row in range(0, n_rows, size):
        for col in range(row if half else 0, n_cols, size):
            yield Tile(slice(row, min(row + size, n_rows)), slice(col, min(col + size, n_cols)))


def tile_distances(measure: Measure, x: Ragged, y: Ragged, tile: Tile, half: bool) -> Floats64:
    """The distances in a tile, ``(rows, cols)``.

    Args:
        measure: What to compute.
        x, y: All series of the rows and of the columns; the same where ``half``.
        tile: Which of them.
        half: Compute i < j only, mirror them where the tile holds both, and leave the diagonal 0.
    """
    n, m = tile.rows.stop - tile.rows.start, tile.cols.stop - tile.cols.start
    rows, cols = _in_groups(n, m)
    mirrored = half and tile.rows == tile.cols
    if mirrored:
        above = rows < cols
        rows, cols = rows[above], cols[above]
    block = np.zeros((n, m))
    values = measure(x.part(tile.rows), y.part(tile.cols), rows, cols)
    other = "X" if x is y else "Y"
    block[rows, cols] = measure.check(values, rows + tile.rows.start, cols + tile.cols.start, other)
    if mirrored:
        block[cols, rows] = values
    return block


def distance_matrix(
    measure: Measure, x: Ragged, y: Ragged, *, half: bool, workers: int, progress: bool
) -> Floats64:
    """All distances between x and y, ``(N, N_Y)``; with ``half``, x is y and d(i, j) = d(j, i).

    Args:
        measure: What to compute.
        x, y: The series.
        half: Compute the pairs i < j, mirror them, and leave the diagonal 0.
        workers: Threads; with one, all is done in the calling thread.
        progress: Show a bar on standard error.
    """
    matrix = np.zeros((len(x), len(y)))

    def fill(tile: Tile) -> int:
        matrix[tile.rows, tile.cols] = block = tile_distances(measure, x, y, tile, half)
        if half:
            matrix[tile.cols, tile.rows] = block.T
        return tile.n_pairs(half)

    plan = list(tiles(len(x), len(y), tile_size(measure.cells(x, y)), half))
    total = sum(tile.n_pairs(half) for tile in plan)
    with progress_bar(f"{measure.title} distances", total, enabled=progress) as advance:
        for done in in_threads(fill, plan, workers):
            advance(done)
    return matrix


def in_threads(work: Callable[[T], R], plan: list[T], workers: int) -> Iterator[R]:
    """What ``work`` returns for every item of the plan, in their order."""
    if workers == 1:
        yield from map(work, plan)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        # In their order, so that of several impossible pairs the first is named every time.
        for future in [pool.submit(work, item) for item in plan]:
            yield future.result()
    finally:  # after an error or Ctrl-C: what has begun ends, the rest is dropped
        pool.shutdown(cancel_futures=True)


def _in_groups(n: int, m: int) -> tuple[Ints, Ints]:
    """All pairs of n rows and m columns, the columns in groups that stay while the rows pass by."""
    cols, rows = np.meshgrid(np.arange(m), np.arange(n))  # (n, m) each
    whole = m // _GROUP * _GROUP

    def grouped(index: Ints) -> Ints:
        groups = index[:, :whole].reshape(n, -1, _GROUP).swapaxes(0, 1)
        return np.concatenate([groups.ravel(), index[:, whole:].ravel()])

    return grouped(rows), grouped(cols)
