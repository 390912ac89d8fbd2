"""FFT: steps that leave a smooth curve of a few Fourier terms (Rasheed et al., 2009)."""

import numpy as np

from softclt.anomaly.baselines.channels import ChannelDetector, is_flat
from softclt.anomaly.scorers import scorers
from softclt.validation import Flags, Floats64, Ints, check_range

SHORTEST = 3


@scorers.register("fft", model=False)
class FourierResidual(ChannelDetector):
    """How far runs of steps stand out from their neighbours, where a smooth curve misses them.

    Suspects are steps further from the curve of the first Fourier terms than the average step. The
    distance of a suspect to the mean of its neighbourhood, standardised over all suspects, is its
    z-score; from ``threshold`` on it is an outlier. Outliers of one sign that follow each other
    closely are a region, all of whose steps score the mean ``|z|`` of its outliers; other steps
    score 0. Constant series score 0, series under 3 steps NaN. Shift and scale change nothing.

    Args:
        n_terms: Fourier terms of the curve, the mean included (5).
        neighbourhood: Steps around a step that it is compared with, itself included (21).
        threshold: |z| above which a suspect is an outlier (0.6).
        max_gap: Steps between two outliers of one region at most (10).
        max_region: Steps of a region at most (50).
    """

    def __init__(
        self,
        *,
        n_terms: int = 5,
        neighbourhood: int = 21,
        threshold: float = 0.6,
        max_gap: int = 10,
        max_region: int = 50,
    ) -> None:
        self.n_terms, self.neighbourhood, self.threshold = n_terms, neighbourhood, threshold
        self.max_gap, self.max_region = max_gap, max_region

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        check_range(self.n_terms, "n_terms", 1)
        check_range(self.neighbourhood, "neighbourhood", 1)
        if len(x) < SHORTEST:
            return np.full(len(x), np.nan)
        scores = np.zeros(len(x))
        if is_flat(x):
            return scores
        steps, z = self._outliers(x)
        first = 0
        for i in range(1, len(steps) + 1):
            if i == len(steps) or not self._joins(steps, z, first, i):
                scores[steps[first] : steps[i - 1] + 1] = np.abs(z[first:i]).mean()
                first = i
        return scores

    def _detect_channel(self, channel: int, x: Floats64) -> Flags:
        return self._score_channel(channel, x) > 0

    def _outliers(self, x: Floats64) -> tuple[Ints, Floats64]:
        """Steps and z-scores of the local outliers."""
        miss = np.abs(x - smooth_curve(x, self.n_terms))
        suspects = np.flatnonzero(miss > miss.mean())
        if not len(suspects) or is_flat(apart := self._from_neighbours(x)[suspects]):
            return np.empty(0, np.int64), np.empty(0)
        z = (apart - apart.mean()) / apart.std()
        far = np.abs(z) > self.threshold
        return suspects[far], z[far]

    def _from_neighbours(self, x: Floats64) -> Floats64:
        steps, half = np.arange(len(x)), self.neighbourhood // 2
        low, high = np.maximum(steps - half, 0), np.minimum(steps + half + 1, len(x))
        sums = np.concatenate([[0.0], np.cumsum(x - x.mean())])
        return np.asarray(x - x.mean() - (sums[high] - sums[low]) / (high - low))

    def _joins(self, steps: Ints, z: Floats64, first: int, i: int) -> bool:
        """Whether outlier i goes on with the region that began with ``first``."""
        close = steps[i] - steps[i - 1] <= self.max_gap
        short = steps[i] - steps[first] < self.max_region
        return bool(close and short and np.sign(z[i]) == np.sign(z[first]))


def smooth_curve(x: Floats64, n_terms: int) -> Floats64:
    """The sum of the first Fourier terms of values ``(T,)``, the mean being the first."""
    spectrum = np.fft.rfft(x)
    spectrum[n_terms:] = 0
    return np.asarray(np.fft.irfft(spectrum, len(x)))
