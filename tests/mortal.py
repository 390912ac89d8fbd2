"""Computing a tile, with accidents. In a file of their own, since workers import them by name."""

import os
import time
from pathlib import Path

import numpy as np

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


class Moments:
    """A model that gives mean and spread; it can take its process down, once, or work slowly.

    Args:
        marker: File that tells that it died before; None: it never dies.
        seconds: For each call.
    """

    def __init__(self, marker=None, seconds=0.0):
        self.marker, self.seconds = marker, seconds

    def transform(self, X):
        time.sleep(self.seconds)
        if self.marker is not None and not os.path.exists(self.marker):
            Path(self.marker).touch()
            os._exit(1)
        return np.stack([np.nanmean(X, (1, 2)), np.nanstd(X, (1, 2))], axis=1).astype(np.float32)
