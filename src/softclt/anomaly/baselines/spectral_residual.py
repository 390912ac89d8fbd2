"""Spectral residual: what a series' spectrum does not make one expect (Ren et al., KDD 2019)."""

import numpy as np

from softclt.anomaly.baselines.channels import ChannelDetector, is_flat, trailing_mean
from softclt.anomaly.scorers import scorers
from softclt.validation import Flags, Floats64, check_range

SHORTEST = 12  # steps that the authors' library asks for
PADDED = 5  # steps that are put behind the last one, so that it is not at the edge
SLOPES = 5  # slopes that the padding is the mean of
EMPTY = 1e-14  # amplitudes, relative to the largest, that are nothing but rounding
LARGEST = 10.0  # ratio at which scores are cut off; scores are divided by it
_BLOCK = 1_000_000  # values of windows that are transformed at once


@scorers.register("sr", model=False)
class SpectralResidual(ChannelDetector):
    """Saliency of each step against the mean saliency before it, in [0, 1].

    The log amplitudes of the Fourier transform lose their moving average, what is left is
    transformed back with the old phases, and its size is the saliency S of a step. The score is
    ``|S - mean(S)| / mean(S)``, cut off at 10 and divided by 10. Constant series score 0, series
    under 12 steps NaN. Scaling a series changes nothing; adding a constant does, a little.

    Args:
        amplitude_window: Length of the moving average of log amplitudes (3, paper and library).
        score_window: Steps whose mean saliency a step is compared with, itself the last (40, the
            library's; 21 in the paper).
        threshold: `detect` alarms from this score on (0.3: the paper's 3 times the mean).
        window: None transforms the whole series at once, as the library does by default, so that a
            score knows the future. A number (1440 for KPI and 64 for Yahoo in the paper) scores
            every step as the last of so many, as a stream would; the first 11 then have none.
    """

    def __init__(
        self,
        *,
        amplitude_window: int = 3,
        score_window: int = 40,
        threshold: float = 0.3,
        window: int | None = None,
    ) -> None:
        self.amplitude_window, self.score_window = amplitude_window, score_window
        self.threshold, self.window = threshold, window

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        check_range(self.amplitude_window, "amplitude_window", 1)
        check_range(self.score_window, "score_window", 1)
        if len(x) < SHORTEST:
            return np.full(len(x), np.nan)
        if is_flat(x):
            return np.zeros(len(x))
        if self.window is None:
            return self._ratios(x)
        check_range(self.window, "window", SHORTEST)
        return self._last_ratios(x, self.window)

    def _detect_channel(self, channel: int, x: Floats64) -> Flags:
        return self._score_channel(channel, x) >= self.threshold

    def _last_ratios(self, x: Floats64, window: int) -> Floats64:
        """The score of each step as the last of ``window`` steps, of fewer at the start."""
        scores = np.full(len(x), np.nan)
        for end in range(SHORTEST, min(window, len(x) + 1)):
            scores[end - 1] = self._ratios(x[:end])[-1]
        if len(x) >= window:
            windows = np.lib.stride_tricks.sliding_window_view(x, window)  # (.., window)
            rows = max(1, _BLOCK // window)
            for first in range(0, len(windows), rows):
                ratios = self._ratios(windows[first : first + rows])[:, -1]
                scores[window - 1 + first : window - 1 + first + rows] = ratios
        return scores

    def _ratios(self, x: Floats64) -> Floats64:
        """Scores of series ``(..., T)``, each by itself."""
        salient = saliency(x, self.amplitude_window)
        usual = trailing_mean(salient, self.score_window)
        # A window without any change is not salient anywhere: 0 / 0 is 0.
        ratio = np.abs(salient - usual) / np.where(usual > 0, usual, 1.0)
        flat = np.ptp(x, axis=-1, keepdims=True) == 0
        return np.asarray(np.where(flat, 0.0, np.minimum(ratio, LARGEST) / LARGEST))


def saliency(x: Floats64, amplitude_window: int = 3) -> Floats64:
    """Size of the back-transformed spectral residual of series ``(..., T)``, of the same shape."""
    padded = np.concatenate([x, np.repeat(_next_value(x)[..., None], PADDED, axis=-1)], axis=-1)
    spectrum = np.fft.fft(padded, axis=-1)
    amplitude = np.abs(spectrum)
    empty = amplitude <= EMPTY * amplitude.max(axis=-1, keepdims=True)
    # Relative to their mean: scale has no say, and an empty frequency counts as an average one.
    relative = amplitude / np.maximum(amplitude.mean(axis=-1, keepdims=True), 1e-300)
    logs = np.log(np.where(empty, 1.0, relative))
    left = np.exp(logs - trailing_mean(logs, amplitude_window))
    directions = np.where(empty, 0.0, spectrum / np.where(empty, 1.0, amplitude))
    return np.abs(np.fft.ifft(left * directions, axis=-1))[..., : x.shape[-1]]


def _next_value(x: Floats64) -> Floats64:
    """What would follow, by the mean slope up to the last but one: the last is under suspicion."""
    recent = x[..., -SLOPES - 2 : -1]  # (..., 6)
    slopes = (recent[..., -1:] - recent[..., :-1]) / np.arange(SLOPES, 0, -1)
    return np.asarray(recent[..., 1] + slopes.sum(axis=-1))
