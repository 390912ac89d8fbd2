"""Learning rates that change while a model is trained, by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from softclt.registry import Registry

Schedule = Callable[[int, int], float]  # step of a fit, counted from 0, and its steps -> factor

schedules: Registry[Schedule] = Registry("learning-rate schedule")

CONSTANT = "constant"
_WARMUP = 10  # a tenth of all steps
_AHEAD = 256  # steps whose rates go to the device at once


@schedules.register(CONSTANT)
def constant(step: int, n_steps: int) -> float:
    """The rate stays what it is."""
    return 1.0


@schedules.register("linear")
def linear(step: int, n_steps: int) -> float:
    """The rate falls on a straight line, to 0 after the last step."""
    return 1 - step / n_steps


@schedules.register("cosine")
def cosine(step: int, n_steps: int) -> float:
    """The rate falls on half a cosine, to 0 after the last step: slowly at both ends."""
    return (1 + math.cos(math.pi * step / n_steps)) / 2


@schedules.register("warmup-cosine")
def warmup_cosine(step: int, n_steps: int) -> float:
    """The rate rises on a straight line over a tenth of the steps, then falls as cosine does."""
    rise = n_steps // _WARMUP
    if step < rise:
        return (step + 1) / (rise + 1)
    return cosine(step - rise, n_steps - rise)


@dataclass(frozen=True)
class LearningRates:
    """The learning rate of each of the R models of a stack at each step of a fit.

    It depends on the number of the step alone, so a fit that goes on from a checkpoint has the
    rates of one that was never interrupted.

    Attributes:
        lr: Of each model, before its schedule.
        schedule: Name of each model's schedule.
        first: Step at which the fit begins; not 0 where it goes on from an earlier fit.
        last: Step at which it ends.

    Example:
        >>> rates = LearningRates([0.1, 0.2], ["linear", "constant"], first=100, last=104)
        >>> [rates.of(0, step) for step in (100, 102, 103)], rates.of(1, 103)
        ([0.1, 0.05, 0.025], 0.2)
    """

    lr: list[float]
    schedule: list[str]
    first: int
    last: int

    def of(self, model: int, step: int) -> float:
        """The rate at which a model takes the step of this number."""
        factor = schedules[self.schedule[model]](step - self.first, self.last - self.first)
        return self.lr[model] * factor

    @property
    def same(self) -> bool:
        """Whether all models have one rate at all steps."""
        return len(set(self.lr)) == 1 and set(self.schedule) == {CONSTANT}


class RateFactors:
    """Learning rates over that of the optimiser, on the device, for steps taken one by one.

    Attributes:
        now: Of the models at the step brought last, ``(R,)``; always the same memory, as a CUDA
            graph needs it.
    """

    def __init__(self, rates: LearningRates, base: float, like: Tensor) -> None:
        self.rates, self.base = rates, base
        self.now = like.new_ones(len(rates.lr))
        self._ahead, self._from = self.now[:0], rates.first

    def bring(self, step: int) -> None:
        """Make ``now`` that of a step, without waiting for the device."""
        if not 0 <= step - self._from < len(self._ahead):
            factors = [
                [self.rates.of(r, k) / self.base for r in range(len(self.now))]
                for k in range(step, min(step + _AHEAD, self.rates.last))
            ]
            self._ahead, self._from = self.now.new_tensor(factors), step  # (steps, R)
        self.now.copy_(self._ahead[step - self._from])
