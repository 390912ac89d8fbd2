"""Values against the mean and spread of those before them."""

import numpy as np

from softclt.anomaly.baselines.channels import ChannelScorer
from softclt.anomaly.scorers import scorers
from softclt.validation import Floats64, check_range


@scorers.register("moving-z", model=False)
class MovingZ(ChannelScorer):
    """How many standard deviations a value is from the mean of the last ones.

    Args:
        window: Steps before a step that it is compared with.
    """

    def __init__(self, *, window: int = 500) -> None:
        self.window = window

    def _learn(self, series: list[Floats64]) -> None:
        check_range(self.window, "window", 2)
        known = [np.concatenate([x[d][~np.isnan(x[d])] for x in series]) for d in
                 range(len(series[0]))]  # fmt: skip
        spread = np.array([own.std() if len(own) else 0.0 for own in known])
        self.least_ = np.where(spread > 0, spread, 1.0) / 10  # a quiet hour excuses no alarm

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        centre = float(np.median(x))
        sums, squares = (np.r_[0.0, np.cumsum((x - centre) ** power)] for power in (1, 2))
        steps = np.arange(len(x))
        first = np.maximum(0, steps - self.window)
        n = np.maximum(steps - first, 1)
        mean = (sums[steps] - sums[first]) / n
        spread = np.sqrt(np.maximum((squares[steps] - squares[first]) / n - mean**2, 0.0))
        scores = np.abs(x - centre - mean) / np.maximum(spread, self.least_[channel])
        scores[:1] = np.nan
        return np.asarray(scores)
