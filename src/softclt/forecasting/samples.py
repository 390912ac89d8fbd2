"""Rows that a forecaster learns from: which steps, what is ahead of them, what lies behind."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from softclt.validation import Floats, Ints, series_lengths

_FEWEST = 10  # rows to fit on, and to validate on


@dataclass(frozen=True)
class Rows:
    """Steps of series, one a row: ``(R,)`` each."""

    series: Ints
    steps: Ints

    def __len__(self) -> int:
        return len(self.steps)

    def take(self, positions: Ints) -> "Rows":
        """Some of them."""
        return Rows(self.series[positions], self.steps[positions])

    def between(self, first: int, last: int) -> "Rows":
        """Those of some steps, of rows that are sorted by step."""
        return self.take(np.arange(*np.searchsorted(self.steps, [first, last])))

    def spread(self, most: int) -> Ints:
        """Positions of at most so many, evenly spread."""
        if len(self) <= most:
            return np.arange(len(self))
        return np.linspace(0, len(self) - 1, most).astype(np.int64)

    def ahead(self, y: Floats, horizon: int) -> Floats:
        """Values of the next steps ``(R, H)`` in one channel ``(N, T)``."""
        windows = sliding_window_view(y, horizon, axis=-1)
        return np.asarray(windows[self.series, self.steps + 1])

    def behind(self, y: Floats, lags: int) -> Floats:
        """Values of the last steps, this one included, ``(R, lags)``; 0 before the first."""
        padded = np.pad(y, ((0, 0), (lags - 1, 0))) if lags > 1 else y
        windows = sliding_window_view(padded, max(1, lags), axis=-1)
        return np.asarray(windows[self.series, self.steps][:, :lags])


@dataclass(frozen=True)
class Division:
    """What a forecaster fits on, and what it validates on: the last part of each series.

    Attributes:
        lengths: Steps of each series.
        train: Steps of each series that are for fitting.
        fit_rows, valid_rows: Rows whose targets are all in their part.
    """

    lengths: Ints
    train: Ints
    fit_rows: Rows
    valid_rows: Rows


def divide(X: Floats, horizon: int, context: int, share: float) -> Division:
    """Take the last part of each series for validation.

    It has at least a share of the steps, and two horizons. The first steps, which see little behind
    them, are no rows: as many as the context, but at most half of those for fitting.
    """
    lengths = series_lengths(X)
    n_valid = np.maximum(np.ceil(share * lengths).astype(np.int64), horizon + max(horizon, _FEWEST))
    train = np.maximum(lengths - n_valid, 0)
    first = np.minimum(context, train // 2)
    division = Division(
        lengths, train, _between(first, train - horizon), _between(train, lengths - horizon)
    )
    fewest = min(len(division.fit_rows), len(division.valid_rows))
    if fewest < _FEWEST:
        raise ValueError(
            f"the longest series has {lengths.max()} steps; to learn to forecast {horizon} steps, "
            f"one needs at least {4 * horizon + 2 * _FEWEST}: give more history, or a shorter "
            "horizon"
        )
    return division


def _between(first: Ints, last: Ints) -> Rows:
    spans = [np.arange(a, max(a, b)) for a, b in zip(first, last, strict=True)]
    series = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
    return Rows(series, np.concatenate(spans))


def scale_of(X: Floats, train: Ints) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each channel of each series over its first steps.

    ``(N, D, 1)`` each. A channel without values there has 0 and 1, a constant one its value and 1.
    """
    inside = np.arange(X.shape[-1]) < train[:, None, None]
    seen = np.where(inside, X, np.nan)
    count = np.maximum(1, np.isfinite(seen).sum(axis=-1, keepdims=True))
    mean = np.nansum(seen, axis=-1, keepdims=True) / count
    std = np.sqrt(np.nansum((seen - mean) ** 2, axis=-1, keepdims=True) / count)
    return mean, np.where(std > 1e-12 * np.abs(mean), std, 1.0)


def carry_forward(y: Floats) -> Floats:
    """Missing values become the last one before them, so that nothing later is used; 0 at first."""
    observed = ~np.isnan(y)
    last = np.maximum.accumulate(np.where(observed, np.arange(y.shape[-1]), 0), axis=-1)
    return np.nan_to_num(np.take_along_axis(y, last, axis=-1))


def interpolate(y: Floats) -> Floats:
    """Missing values on the straight line between their neighbours; level at the ends."""
    filled = np.array(y, dtype=np.float64)
    steps = np.arange(y.shape[-1])
    for row in filled.reshape(-1, y.shape[-1]):
        observed = np.isfinite(row)
        if observed.any() and not observed.all():
            row[~observed] = np.interp(steps[~observed], steps[observed], row[observed])
    return np.nan_to_num(filled)
