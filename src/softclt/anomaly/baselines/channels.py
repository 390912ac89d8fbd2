"""What all baselines share: gaps, several channels, and the door for series."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softclt.validation import Flags, Floats, Floats64

_FLAT = 1e-12  # range of values, relative to their size, that is nothing but rounding


class ChannelScorer(ABC, BaseEstimator):  # type: ignore[misc]
    """A scorer that looks at one channel at a time.

    Missing values: gaps are filled by straight lines (the nearest value at the ends) before a
    channel is scored, and the missing steps themselves have no score (NaN).

    Several channels: each channel's scores are standardised by the mean and standard deviation that
    the scores of the training series have in that channel, and a step gets the largest; it has none
    only where no channel has one. With a single channel the scores stay as they are.
    """

    fills_gaps: ClassVar[bool] = True  # False: `_score_channel` meets NaN

    def fit(self, series: Sequence[Floats]) -> Self:
        """Learn from series ``(D, T_i)``; most baselines learn how to compare channels only."""
        channels = [as_channels(x) for x in series]
        if len({len(x) for x in channels}) != 1:
            raise ValueError(
                f"series have {sorted({len(x) for x in channels})} channels; "
                "expected one or more series with the same channels"
            )
        self.n_channels_ = len(channels[0])
        self._learn(channels)
        self.centre_, self.spread_ = np.zeros(self.n_channels_), np.ones(self.n_channels_)
        if self.n_channels_ > 1:
            scores = np.concatenate([self._scores(x) for x in channels], axis=1)  # (D, all T_i)
            for d, own in enumerate(scores):
                known = own[~np.isnan(own)]
                if len(known) and not is_flat(known):
                    self.centre_[d], self.spread_[d] = known.mean(), known.std()
        return self

    def score(self, series: Floats) -> Floats64:
        """Scores ``(T,)`` of a series ``(D, T)``, higher is stranger; NaN where there is none."""
        return self._strongest(self._scores(self._checked(series)))

    def _strongest(self, scores: Floats64) -> Floats64:
        """One score ``(T,)`` of the scores ``(D, T)`` of all channels."""
        scores = (scores - self.centre_[:, None]) / self.spread_[:, None]
        best = np.where(np.isnan(scores), -np.inf, scores).max(axis=0)
        return np.where(best == -np.inf, np.nan, best)

    def _checked(self, series: Floats) -> Floats64:
        check_is_fitted(self, "n_channels_")
        x = as_channels(series)
        if len(x) != self.n_channels_:
            raise ValueError(f"series has {len(x)} channels; it was fitted on {self.n_channels_}")
        return x

    def _scores(self, x: Floats64) -> Floats64:
        """Scores of each channel by itself, ``(D, T)``."""
        scores = np.full(x.shape, np.nan)
        for d, values in enumerate(x):
            seen = ~np.isnan(values)
            if seen.any():
                filled = without_gaps(values) if self.fills_gaps else values
                scores[d, seen] = self._score_channel(d, filled)[seen]
        return scores

    def _learn(self, series: list[Floats64]) -> None:
        """Learn what is normal in series ``(D, T_i)`` that may have gaps."""
        return

    @abstractmethod
    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        """Scores ``(T,)`` of one channel ``(T,)`` with at least one value."""


class ChannelDetector(ChannelScorer):
    """A scorer whose original system also decides which steps are anomalies."""

    def detect(self, series: Floats) -> Flags:
        """The system's own decision, ``(T,)``: True where any channel is odd; False at gaps."""
        found = [
            self._detect_channel(d, without_gaps(x) if self.fills_gaps else x) & ~np.isnan(x)
            for d, x in enumerate(self._checked(series))
            if not np.isnan(x).all()
        ]
        return np.logical_or.reduce(found) if found else np.zeros(series.shape[-1], bool)

    @abstractmethod
    def _detect_channel(self, channel: int, x: Floats64) -> Flags:
        """Decisions ``(T,)`` for one channel ``(T,)`` with at least one value."""


def as_channels(series: Floats) -> Floats64:
    """A series ``(D, T)`` in float64, or a clear refusal."""
    x = np.asarray(series, np.float64)
    if x.ndim != 2 or not x.size:
        raise ValueError(
            f"a series has shape {x.shape}; expected (D, T), channels first: "
            "a single channel is series[None]"
        )
    if np.isinf(x).any():
        raise ValueError("a series has infinite values; mark what is missing by NaN")
    return x


def without_gaps(x: Floats64) -> Floats64:
    """Values ``(T,)`` with straight lines across the gaps, the nearest value at the ends."""
    seen = ~np.isnan(x)
    if seen.all():
        return x
    steps = np.arange(len(x))
    return np.asarray(np.interp(steps, steps[seen], x[seen]))


def is_flat(x: Floats64) -> bool:
    """Whether values differ by no more than rounding."""
    return bool(np.ptp(x) <= _FLAT * np.abs(x).max())


def trailing_mean(x: Floats64, n: int) -> Floats64:
    """Mean of each value and the ``n - 1`` before it along the last axis; of fewer at the start."""
    sums = np.cumsum(x, axis=-1)
    sums[..., n:] -= np.cumsum(x, axis=-1)[..., :-n]
    return np.asarray(sums / np.minimum(np.arange(1, x.shape[-1] + 1), n))
