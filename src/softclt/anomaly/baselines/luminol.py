"""Luminol's bitmap detector: short patterns that become frequent, or cease to be."""

import numpy as np

from softclt.anomaly.baselines.channels import ChannelDetector, is_flat
from softclt.anomaly.scorers import scorers
from softclt.validation import Flags, Floats64, Ints, check_range

WINDOW_SHARE = 0.0125  # of the series
SHORTEST_WINDOW, LONGEST_WINDOW = 25, 200


@scorers.register("luminol", model=False)
class LuminolBitmap(ChannelDetector):
    """Squared difference of pattern counts in the steps before and from a step on.

    Values become symbols by bins of equal width between the smallest and the largest; a pattern is
    a few symbols in a row. The first ``window`` steps and the last ``window - 1`` have no score
    (NaN; the original says 0), as have all steps of a series shorter than two windows. Constant
    series score 0. Positive scale and shift change nothing.

    Luminol itself turns to another detector where both windows together have fewer than 50 steps;
    here the windows are 25 steps then. It also names one step of every interval that it finds as
    the exact one, which changes no decision and is left out.

    Args:
        n_bins: Number of symbols (4).
        pattern: Symbols in a row (2).
        window: Steps in either window; None is 1.25 % of the series, from 25 to 200.
        threshold: `detect` alarms above this share of the series' largest score (0.2), so that
            every series that is not constant has an alarm.
    """

    def __init__(
        self,
        *,
        n_bins: int = 4,
        pattern: int = 2,
        window: int | None = None,
        threshold: float = 0.2,
    ) -> None:
        self.n_bins, self.pattern = n_bins, pattern
        self.window, self.threshold = window, threshold

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        check_range(self.n_bins, "n_bins", 1, 64)
        check_range(self.pattern, "pattern", 1, 8)
        window = self.window
        if window is None:
            window = int(np.clip(int(WINDOW_SHARE * len(x)), SHORTEST_WINDOW, LONGEST_WINDOW))
        check_range(window, "window", self.pattern)
        scores = np.full(len(x), np.nan)
        middle = np.arange(window, len(x) - window + 1)
        if is_flat(x):
            scores[middle] = 0.0
        elif len(middle):
            scores[middle] = self._differences(self._patterns(x), middle, window)
        return scores

    def _detect_channel(self, channel: int, x: Floats64) -> Flags:
        scores = np.nan_to_num(self._score_channel(channel, x))
        return np.asarray(scores > self.threshold * scores.max())

    def _patterns(self, x: Floats64) -> Ints:
        """The number of the pattern that begins at each step, ``(T - pattern + 1,)``."""
        heights = (x - x.min()) / np.ptp(x) * self.n_bins
        symbols = np.minimum(heights.astype(np.int64), self.n_bins - 1)
        runs = np.lib.stride_tricks.sliding_window_view(symbols, self.pattern)
        return np.asarray(runs @ self.n_bins ** np.arange(self.pattern))

    def _differences(self, patterns: Ints, middle: Ints, window: int) -> Floats64:
        inside = window - self.pattern + 1  # patterns that begin and end in a window
        scores = np.zeros(len(middle))
        for pattern in np.unique(patterns):
            count = np.concatenate([[0], np.cumsum(patterns == pattern)])
            before = count[middle - window + inside] - count[middle - window]
            behind = count[middle + inside] - count[middle]
            scores += (behind - before) ** 2
        return scores
