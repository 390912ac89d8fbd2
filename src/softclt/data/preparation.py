"""What happens to series between the door and the training loop: scaling, sections, centring."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from softclt.silence import without_warnings
from softclt.validation import (
    LEAST_SPREAD,
    Floats,
    Floats32,
    Floats64,
    observed_steps,
    refuse_small,
    series_lengths,
)

# channel: by mean and spread of each channel over all training series; series: each channel of each
# series by its own; None: values as they are.
SCALES = ("channel", "series", None)
Scale = tuple[Floats64, Floats64] | str | None  # mean and spread by channel, or the name of the way

_BLOCK = 4_000_000  # values at a time, where a float64 copy of all series could be too much


def channel_scale(X: Floats) -> tuple[Floats64, Floats64]:
    """Mean and standard deviation of each channel over all series and steps, each ``(D,)``.

    A channel that never changes gets 1 instead of 0; one without values is left alone.
    """
    moments = Moments(X.shape[1])
    for rows in blocks_of(X.shape):
        moments.add(X[rows])
    return moments.scale()


class Moments:
    """Mean and spread of each channel, of one block of series after the other.

    Sums are of each block by itself and merged, so that series which are read block by block have
    the numbers that they would have in memory, to the last bit.
    """

    def __init__(self, n_channels: int) -> None:
        self.count = np.zeros(n_channels)
        self.low, self.high = np.full(n_channels, np.inf), np.full(n_channels, -np.inf)
        self.mean, self.squares = np.zeros(n_channels), np.zeros(n_channels)

    def add(self, X: Floats) -> None:
        """Add series ``(N, D, T)``; what is missing does not count."""
        for d in range(X.shape[1]):
            values = X[:, d][~np.isnan(X[:, d])].astype(np.float64)
            if values.size:
                mean = values.sum() / values.size
                self._merge(d, values.size, mean, ((values - mean) ** 2).sum())
                self._widen(d, values.min(), values.max())

    def merge(self, other: "Moments") -> None:
        """Add what another one has seen."""
        for d in np.flatnonzero(other.count):
            self._merge(d, other.count[d], other.mean[d], other.squares[d])
            self._widen(d, other.low[d], other.high[d])

    def scale(self) -> tuple[Floats64, Floats64]:
        """Mean and standard deviation, see :func:`channel_scale`."""
        for d in np.flatnonzero(self.count):
            refuse_small(self.high[d] - self.low[d], LEAST_SPREAD, d)
        std = np.sqrt(self.squares / np.maximum(self.count, 1))
        return self.mean.copy(), np.where(std > 0, std, 1.0)

    def _widen(self, d: int, low: float, high: float) -> None:
        self.low[d], self.high[d] = min(self.low[d], low), max(self.high[d], high)

    def _merge(self, d: int, count: float, mean: float, squares: float) -> None:
        total = self.count[d] + count
        apart = mean - self.mean[d] if self.count[d] else 0.0
        self.squares[d] += squares + apart**2 * self.count[d] * count / total
        self.mean[d] = self.mean[d] + apart * count / total if self.count[d] else mean
        self.count[d] = total


def find_scale(X: Floats, scale: str | None) -> Scale:
    """What scales series like X in a way of ``SCALES``."""
    return channel_scale(X) if scale == "channel" else scale


def scaled(X: Floats, scale: Scale) -> Floats32:
    """Series as a network takes them, by what `find_scale` found."""
    if scale is None:
        return as_float32(X)
    if isinstance(scale, tuple):
        return apply_scale(X, *scale)
    out = np.empty(X.shape, np.float32)
    for rows in blocks_of(X.shape):
        out[rows] = standardised(X[rows])
    return out


def apply_scale(X: Floats, mean: Floats64, std: Floats64) -> Floats32:
    """Scaled series; a large offset is removed in float64, before the cast to float32."""
    scaled = np.empty(X.shape, np.float32)
    for rows in blocks_of(X.shape):
        with np.errstate(over="ignore"):
            scaled[rows] = (X[rows].astype(np.float64) - mean[:, None]) / std[:, None]
    _refuse_overflow(X, scaled, "after the training data's mean and standard deviation are removed")
    return scaled


def as_float32(X: Floats) -> Floats32:
    """Series as they are, if float32 can hold them."""
    if X.dtype == np.float32:
        return X.astype(np.float32)
    with np.errstate(over="ignore"):
        cast = X.astype(np.float32)
    _refuse_overflow(X, cast, "as they are, without a scale")
    return cast


def _refuse_overflow(X: Floats, cast: Floats32, how: str) -> None:
    infinite = np.isinf(cast)
    if infinite.any():
        i, c, s = (int(axis[0]) for axis in np.nonzero(infinite))
        raise ValueError(
            f"X contains {X[i, c, s]:g}: series {i}, channel {c}, step {s}; the network takes "
            f"values {how} in float32, which ends at 3e38: use NaN if it is missing"
        )


def scale_each_series(X: Floats) -> Floats:
    """Each series to [0, 1] by itself over all its channels and steps (the authors' distances)."""
    scaled = np.empty_like(X)
    for rows in blocks_of(X.shape):
        values = X[rows].astype(np.float64)
        low = np.nanmin(values, axis=(1, 2), keepdims=True)
        high = np.nanmax(values, axis=(1, 2), keepdims=True)
        scaled[rows] = (values - low) / (high - low + 1e-6)
    return scaled


def split_sections(X: Floats32, max_length: int) -> Floats32:
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


def centre(X: Floats32) -> Floats32:
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
    for rows in blocks_of(X.shape):
        steps = (np.arange(t)[None, :] - shifts[rows, None]) % t
        centred[rows] = np.take_along_axis(X[rows], steps[:, None, :], axis=-1)
    return centred


def blocks_of(shape: tuple[int, ...]) -> Iterator[slice]:
    """Rows of some series after the other, of an array of this shape."""
    size = max(1, _BLOCK // math.prod(shape[1:]))
    return (slice(start, start + size) for start in range(0, shape[0], size))


def resampled(X: Floats, length: int) -> Floats32:
    """Each channel standardised by itself and brought to a number of steps along straight lines.

    Missing values inside a channel are filled along a line; before its first and after its last
    value it ends. A channel without any value, or with one, is 0 everywhere.

    Args:
        X: Series ``(N, D, T)``, NaN where missing.
        length: Steps of the result.
    """
    return np.asarray(_on_steps(X, length, standardised), np.float32)


def stretched(X: Floats, length: int) -> Floats64:
    """As `resampled`, but values stay what they are; a channel with one value has it everywhere."""
    return _on_steps(X, length, lambda x: x)


def _on_steps(X: Floats, length: int, shaped: Callable[[Floats], Floats]) -> Floats64:
    """Series on so many steps; ``shaped`` is what each is made first, without gaps."""
    n, d, _ = X.shape
    out = np.zeros((n, d, length))
    for rows in blocks_of((n, d, max(length, X.shape[-1]))):
        part, own = X[rows], out[rows]
        complete = ~np.isnan(part).any(axis=(1, 2))
        own[complete] = _on_grid(shaped(part[complete]), length)
        for i in np.flatnonzero(~complete):
            for c in range(d):
                there = np.flatnonzero(~np.isnan(part[i, c]))
                if len(there):
                    whole = filled(part[i : i + 1, c : c + 1, there[0] : there[-1] + 1])
                    own[i, c] = _on_grid(shaped(whole), length)
    return out


def standardised(X: Floats) -> Floats64:
    """Each channel of each series with mean 0 and spread 1; constant ones are 0, NaN stays."""
    with np.errstate(invalid="ignore", divide="ignore"), without_warnings(RuntimeWarning):
        # Warnings are of channels without any value.
        largest = np.nanmax(np.abs(X), axis=-1, keepdims=True)
        x = X / np.where(largest > 0, largest, 1).astype(np.float64)  # no square overflows
        x = x - np.nanmean(x, axis=-1, keepdims=True)
        spread = np.nanstd(x, axis=-1, keepdims=True)
    varies = spread > 1e-8
    return np.where(varies, x / np.where(varies, spread, 1.0), x * 0.0)


def filled(X: Floats) -> Floats:
    """Values between observed ones along straight lines; others as their nearest, in a channel.

    A series ``(N, D, T)`` ends where its last channel ends: what lies behind stays missing, as
    does a channel without any value.
    """
    if not np.isnan(X).any():
        return X
    X = X.copy()
    lengths = series_lengths(X)
    for i, c in np.argwhere(np.isnan(X).any(axis=-1)):
        own = X[i, c, : lengths[i]]
        there = np.flatnonzero(~np.isnan(own))
        if 0 < len(there) < len(own):
            own[:] = np.interp(np.arange(len(own)), there, own[there])
    return X


def _on_grid(x: Floats, length: int) -> Floats:
    """Complete series ``(..., T)`` at evenly spaced places."""
    t = x.shape[-1]
    if t == length:
        return x
    places = np.linspace(0, t - 1, length)
    before = np.minimum(places.astype(np.int64), max(0, t - 2))
    after = np.minimum(before + 1, t - 1)
    part = places - before
    return np.asarray(x[..., before] * (1 - part) + x[..., after] * part)
