"""What happens to series between the door and the training loop: scaling, sections, centring."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from softclt.validation import Floats, observed_steps, series_lengths

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]

_BLOCK = 4_000_000  # values at a time, where a float64 copy of all series could be too much


def channel_scale(X: Floats) -> tuple[Float64s, Float64s]:
    """Mean and standard deviation of each channel over all series and steps, each ``(D,)``.

    A channel that never changes gets 1 instead of 0; one without values is left alone.
    """
    mean, std = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for d in range(X.shape[1]):
        count = sum(values.size for values in _values(X[:, d]))
        if count:
            mean[d] = sum(values.sum() for values in _values(X[:, d])) / count
            squares = sum(((values - mean[d]) ** 2).sum() for values in _values(X[:, d]))
            std[d] = np.sqrt(squares / count) or 1.0
    return mean, std


def apply_scale(X: Floats, mean: Float64s, std: Float64s) -> Float32s:
    """Scaled series; a large offset is removed in float64, before the cast to float32."""
    scaled = np.empty(X.shape, np.float32)
    for rows in _blocks(X):
        scaled[rows] = (X[rows].astype(np.float64) - mean[:, None]) / std[:, None]
    return scaled


def scale_each_series(X: Floats) -> Floats:
    """Each series to [0, 1] by itself over all its channels and steps (the authors' distances)."""
    scaled = np.empty_like(X)
    for rows in _blocks(X):
        values = X[rows].astype(np.float64)
        low = np.nanmin(values, axis=(1, 2), keepdims=True)
        high = np.nanmax(values, axis=(1, 2), keepdims=True)
        scaled[rows] = (values - low) / (high - low + 1e-6)
    return scaled


def split_sections(X: Float32s, max_length: int) -> Float32s:
    """Cut series of at least twice ``max_length`` into equal sections, which become series.

    All first sections come first, then all second ones; a section shorter by one is NaN-padded.
    """
    sections = X.shape[-1] // max_length
    if sections < 2:
        return X
    parts = np.array_split(X, sections, axis=-1)
    longest = parts[0].shape[-1]
    padded = [
        np.pad(p, ((0, 0), (0, 0), (0, longest - p.shape[-1])), constant_values=np.nan)
        for p in parts
    ]
    return np.concatenate(padded)


def centre(X: Float32s) -> Float32s:
    """Shift each series so that it misses as much at its start as at its end.

    Nothing moves unless some series begins or ends with a missing step.
    """
    gaps = ~observed_steps(X)  # (N, T)
    if not (gaps[:, 0].any() or gaps[:, -1].any()):
        return X
    t = X.shape[-1]
    ends = series_lengths(X)
    starts = t - series_lengths(X[..., ::-1])
    shifts = (t - (ends - starts)) // 2 - starts
    centred = np.empty_like(X)
    for rows in _blocks(X):
        steps = (np.arange(t)[None, :] - shifts[rows, None]) % t
        centred[rows] = np.take_along_axis(X[rows], steps[:, None, :], axis=-1)
    return centred


def _blocks(X: Floats) -> Iterator[slice]:
    """Some series after the other."""
    size = max(1, _BLOCK // X[0].size)
    return (slice(start, start + size) for start in range(0, len(X), size))


def _values(X: Floats) -> Iterator[Float64s]:
    """The values that are there, block by block."""
    for rows in _blocks(X):
        yield X[rows][~np.isnan(X[rows])].astype(np.float64)
