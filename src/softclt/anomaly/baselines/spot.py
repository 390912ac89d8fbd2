"""SPOT and DSPOT on the values themselves: how far beyond the tail of normal values a step lies."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from softclt.anomaly.baselines.channels import ChannelDetector
from softclt.anomaly.extreme import DSpot, Spot
from softclt.anomaly.scorers import scorers
from softclt.methods.signature import with_parameters_of
from softclt.validation import Flags, Floats, Floats64


@scorers.register("spot", model=False)
class SpotScorer(ChannelDetector):
    """Position in the extreme-value tail of the training values; 1 is the threshold.

    Calibrated on all training series together. Each scored series starts from that calibration and
    goes on learning from its own normal values, as a stream would. Gaps are passed over, not
    filled: an invented value must not count as a normal one.

    Args:
        risk, level, max_excesses: See `Spot`.
        two_sided: Whether small values are as strange as large ones; so they are for most series.
    """

    fills_gaps: ClassVar[bool] = False

    def __init__(
        self,
        *,
        risk: float = 1e-4,
        level: float = 0.98,
        two_sided: bool = True,
        max_excesses: int | None = None,
    ) -> None:
        self.risk, self.level = risk, level
        self.two_sided, self.max_excesses = two_sided, max_excesses

    def _watcher(self) -> Spot:
        return Spot(**self.get_params())

    def _learn(self, series: list[Floats64]) -> None:
        self.watchers_ = [
            self._watcher().calibrate(*(x[d] for x in series)) for d in range(self.n_channels_)
        ]

    def stream(self) -> Callable[[Floats], float]:
        """A function from the newest values ``(D,)`` to their score.

        Memory is constant if ``max_excesses`` is given.
        """
        watchers = [self._fresh(channel) for channel in range(self.n_channels_)]

        def push(x: Floats) -> float:
            scores = [[watcher.severity(float(x[d]))] for d, watcher in enumerate(watchers)]
            for d, watcher in enumerate(watchers):
                watcher.update(float(x[d]))
            return float(self._strongest(np.array(scores))[0])

        return push

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        return self._watch(channel, x)[0]

    def _detect_channel(self, channel: int, x: Floats64) -> Flags:
        return self._watch(channel, x)[1]

    def _fresh(self, channel: int) -> Spot:
        """The calibrated tail, for another series."""
        watcher = copy.deepcopy(self.watchers_[channel])
        return watcher.restart() if isinstance(watcher, DSpot) else watcher

    def _watch(self, channel: int, x: Floats64) -> tuple[Floats64, Flags]:
        watcher = self._fresh(channel)
        scores, alarms = np.full(len(x), np.nan), np.zeros(len(x), bool)
        for t, value in enumerate(x.tolist()):
            scores[t] = watcher.severity(value)
            alarms[t] = watcher.update(value)
        return scores, alarms


@scorers.register("dspot", model=False)
class DSpotScorer(SpotScorer):
    """The same on the distance to the mean of the last normal values, for series that drift.

    The first ``depth`` values of a series have no score.

    Args:
        depth: See `DSpot`.
        risk, level, two_sided, max_excesses: See `SpotScorer`.
    """

    @with_parameters_of(SpotScorer)
    def __init__(self, *, depth: int = 10, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.depth = depth

    def _watcher(self) -> Spot:
        return DSpot(**self.get_params())
