"""The CPU engine: blocks of pairs spread over threads; kernels release the GIL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from softclt.distances.base import Floats64, Ints, PairKernel, Ragged
from softclt.progress import progress_bar

# Cells of the cost matrices in a block: a fraction of a second, for which the progress bar stands
# still and Ctrl-C has to wait.
_BLOCK_CELLS = 20_000_000


def distance_matrix(
    kernel: PairKernel,
    x: Ragged,
    y: Ragged,
    *,
    half: bool,
    cells: float,
    workers: int,
    progress: str | None,
) -> Floats64:
    """All distances between x and y, ``(N, N_Y)``.

    Args:
        kernel: Called as ``kernel(x, y, rows, cols)``.
        x, y: The series; the same where ``half``.
        half: Compute the pairs i < j, mirror them, and leave the diagonal 0.
        cells: About how many cells of a cost matrix a pair needs; only the size of blocks
            depends on it.
        workers: Threads; with one, all is done in the calling thread.
        progress: Title of a bar on standard error.
    """
    matrix = np.zeros((len(x), len(y)))
    per_row = np.arange(len(x))[::-1] if half else np.full(len(x), len(y))
    ends = np.cumsum(per_row)  # (N,): pairs up to and with each row

    def fill(block: Ints) -> int:
        rows = np.searchsorted(ends, block, side="right")
        cols = len(y) - (ends[rows] - block)
        matrix[rows, cols] = values = kernel(x, y, rows, cols)
        if half:
            matrix[cols, rows] = values
        return len(block)

    total = int(ends[-1])
    size = max(1, min(int(_BLOCK_CELLS / cells), total // (8 * workers)))
    blocks = (np.arange(k, min(k + size, total)) for k in range(0, total, size))
    with progress_bar(progress or "", total, enabled=progress is not None) as advance:
        for done in _run(fill, blocks, workers):
            advance(done)
    return matrix


def _run(fill: Callable[[Ints], int], blocks: Iterator[Ints], workers: int) -> Iterator[int]:
    if workers == 1:
        yield from map(fill, blocks)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        # In their order, so that of several impossible pairs the first is named every time.
        for future in [pool.submit(fill, block) for block in blocks]:
            yield future.result()
    finally:  # after an error or Ctrl-C: what has begun ends, the rest is dropped
        pool.shutdown(cancel_futures=True)
