"""Computing a tile, with accidents. In a file of their own, since workers import them by name."""

import os
import time
from pathlib import Path

from softclt.distances.engine import tile_distances


def dies_at_first(marker, measure, x, tile, half):
    """Take the process down, unless ``marker`` tells that it happened before."""
    if not os.path.exists(marker):
        Path(marker).touch()
        os._exit(1)
    return tile_distances(measure, x, x, tile, half)


def always_dies(measure, x, tile, half):
    os._exit(1)


def fails(measure, x, tile, half):
    raise ValueError(f"no distance in {tile.rows.start}")


def takes_its_time(trace, measure, x, tile, half):
    """Leave the number of the process in ``trace``, and work slowly."""
    Path(trace).write_text(str(os.getpid()))
    time.sleep(0.3)
    return tile_distances(measure, x, x, tile, half)


def dies_unless(marker):
    """A job that takes its process down the first time; later it returns 7."""
    if not os.path.exists(marker):
        Path(marker).touch()
        os._exit(1)
    return 7


def dies():
    os._exit(1)


def dies_at_zero(n):
    if n == 0:
        os._exit(1)
    return n
