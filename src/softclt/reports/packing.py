"""Arrays inside a page: series thinned to what a small plot can show, numbers as base64."""

import base64
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.validation import Floats

LEVELS = 254  # steps between the codes 1 (lowest) and 255 (highest); 0 is a missing value
SERIES_BYTES = 8 * 2**20  # what the series of one page may take before base64
FEWEST_POINTS = 16  # of a series, before channels are left out instead


@dataclass(frozen=True)
class PackedSeries:
    """Series with one byte a value, each channel of each series on its own scale.

    Attributes:
        codes: ``(N, D, P)``: 0 is missing, 1 is ``low`` and 255 is ``high``.
        low: Least value, ``(N, D)``; 0 where all is missing.
        high: Largest value, ``(N, D)``.
        steps: Steps T that the P points stand for.
    """

    codes: NDArray[np.uint8]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    steps: int


def pack_series(X: Floats, max_points: int = 200, max_bytes: int = SERIES_BYTES) -> PackedSeries:
    """Thin and quantise series ``(N, D, T)`` so that they take at most ``max_bytes`` bytes.

    There are fewer points than ``max_points`` when the bytes do not suffice, and fewer channels,
    the first ones, when even ``FEWEST_POINTS`` are too many.
    """
    n, d, t = X.shape
    points = min(max_points, t, max(FEWEST_POINTS, max_bytes // (n * d)))
    channels = max(1, min(d, max_bytes // (n * points)))
    return quantise(thin(X[:, :channels], points), t)


def thin(X: Floats, n_points: int) -> Floats:
    """Series ``(N, D, T)`` with at most ``n_points`` points, peaks kept.

    Steps are put into ``n_points // 2`` bins of equal width. Each gives its least and its largest
    value in the order in which they come, so that no spike is lost and no time is off by more
    than the width of a bin.

    Example:
        >>> thin(np.array([[[0.0, 9.0, 1.0, 1.0, 1.0, -5.0, 2.0, 2.0]]]), 4)
        array([[[ 0.,  9., -5.,  2.]]])
    """
    t = X.shape[-1]
    if t <= n_points:
        return X
    n_bins = max(1, n_points // 2)
    edges = np.linspace(0, t, n_bins + 1).astype(int)
    thinned = np.empty((*X.shape[:-1], 2 * n_bins), dtype=X.dtype)
    for i, (start, end) in enumerate(pairwise(edges)):
        bin_ = X[..., start:end]
        missing = np.isnan(bin_)
        lowest = np.where(missing, np.inf, bin_).argmin(axis=-1)  # of an empty bin: its first step
        highest = np.where(missing, -np.inf, bin_).argmax(axis=-1)
        ends = np.sort(np.stack([lowest, highest], axis=-1), axis=-1)  # (N, D, 2)
        thinned[..., 2 * i : 2 * i + 2] = np.take_along_axis(bin_, ends, axis=-1)
    return thinned


def quantise(X: Floats, steps: int) -> PackedSeries:
    """Codes of series ``(N, D, P)``; a value is off by at most ``(high - low) / 508``."""
    X = X.astype(np.float64)
    missing = np.isnan(X)
    empty = missing.all(axis=-1)
    low = np.where(empty, 0.0, np.where(missing, np.inf, X).min(axis=-1))
    high = np.where(empty, 0.0, np.where(missing, -np.inf, X).max(axis=-1))
    width = np.where(high > low, high - low, 1.0)
    shares = (np.where(missing, low[..., None], X) - low[..., None]) / width[..., None]
    codes = np.where(missing, 0, 1 + np.rint(shares * LEVELS)).astype(np.uint8)
    return PackedSeries(codes, low, high, steps)


def to_base64(array: NDArray[Any], dtype: str) -> str:
    """Values as ``dtype``, such as ``"<u2"``, row by row, in base64."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode("ascii")
