"""Views of a batch."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Crop(NamedTuple):
    """Two overlapping windows, in steps: [first, overlap_end) and [overlap_start, last)."""

    first: int
    overlap_start: int
    overlap_end: int
    last: int

    @property
    def overlap(self) -> int:
        """Steps that both windows have."""
        return self.overlap_end - self.overlap_start


def draw_crop(rng: np.random.Generator, length: int, min_overlap: int = 2) -> Crop:
    """An overlap of uniform length at a uniform place, extended to either side at random."""
    overlap = int(rng.integers(min(min_overlap, length), length + 1))
    start = int(rng.integers(0, length - overlap + 1))
    end = start + overlap
    return Crop(int(rng.integers(0, start + 1)), start, end, int(rng.integers(end, length + 1)))


def draw_offsets(rng: np.random.Generator, crop: Crop, length: int, n: int) -> Tensor:
    """A shift for each of n series that keeps both windows inside the series, ``(n,)``."""
    return torch.from_numpy(rng.integers(-crop.first, length - crop.last + 1, size=n))


def overlapping_crops(x: Tensor, crop: Crop, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Both windows of series ``(B, D, T)``, each series shifted by its own offset.

    The overlap is the last ``crop.overlap`` steps of the first view and the first of the second.
    """
    return (
        _take(x, offsets + crop.first, crop.overlap_end - crop.first),
        _take(x, offsets + crop.overlap_start, crop.last - crop.overlap_start),
    )


def _take(x: Tensor, starts: Tensor, length: int) -> Tensor:
    steps = starts.to(x.device)[:, None] + torch.arange(length, device=x.device)  # (B, length)
    return x.gather(-1, steps[:, None].expand(-1, x.shape[1], -1))
