"""What a training is told: series, loss and weights; and what the loss gets of a batch."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from softclt.encoders import Encoder
from softclt.losses.functional import TemporalWeights
from softclt.training.distributed import Group
from softclt.training.feed import Feed
from softclt.training.randomness import StepDraws
from softclt.training.schedules import LearningRates
from softclt.validation import Ints

Weights = Callable[[Tensor], Tensor]  # rows (R, B) -> soft assignments (R, B, B)


@dataclass(frozen=True)
class Batch:
    """What a method's loss gets, for each of the R models that take the step together.

    Attributes:
        x: Values ``(R, B, D, T)``, NaN where missing.
        mask: ``(R, B, T)``, True at observed steps; None when nothing is missing in the data set.
        index: Rows of the data set, ``(R, B)``.
        start: First step of x in the series, ``(R,)``; not 0 where they are longer than x.
        weights: Soft instance assignments ``(R, B, B)``; None is hard.
        temporal: Soft temporal assignments, as :func:`functional.hierarchical_loss` takes them.
        lam: Share of the instance term, one number or ``(R,)``.
        group: Processes that share the batch: x, mask and index are this one's part of it.
        times: Of the steps, in usual gaps, ``(R, B, T)``; None where these are all equal.
        labels: Class numbers of the series, ``(R, B)``, -1 where unknown; None where no phase of
            the method looks at classes.
        about: What the method has found out about each series beforehand, ``(R, B, ...)``.
    """

    x: Tensor
    mask: Tensor | None
    index: Tensor
    start: Tensor
    weights: Tensor | None
    temporal: TemporalWeights | None
    lam: float | Tensor
    group: Group
    times: Tensor | None = None
    labels: Tensor | None = None
    about: Tensor | None = None


class Objective(Protocol):
    """What is minimised."""

    def __call__(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        """The loss of each model, ``(R,)``."""
        ...


@dataclass(frozen=True, kw_only=True)
class Course:
    """What is learned, from what: all that stays the same from step to step.

    Attributes:
        objective: The method's loss.
        x: The data set ``(N, D, T)`` on the device, NaN where missing; a stand-in with a feed.
        weights: Gives the soft instance assignments of a batch; None is hard.
        temporal, lam: See `Batch`.
        seeds: Of the models; all their draws come from them and the step.
        batch_size: Series in a batch; all of them if there are fewer, unless ``repeats``.
        max_length: Steps of a series that a batch holds; a random window of longer ones.
        layout: From the length of a batch and the step to what decides the shapes of that step.
        precision: float32, float64 (as the module is), or bfloat16 by autocast.
        rates: Learning rate of each model by step; None: always that of the optimiser.
        group: Processes that take the steps together.
        feed: Gives the batches of series that do not lie on the device; None: x has them.
        repeats: Whether x comes several times in a batch where it has fewer series than that.
        times: Of the steps of x, ``(N, T)``; see `Batch`.
        labels: Class numbers of x on its device, ``(N,)`` or for each model ``(R, N)``; see
            `Batch`.
        about: What the method has found out about each of x beforehand, ``(N, ...)``; see `Batch`.
        rows: Chooses the rows of a batch from seed, step and size; None: every series in turn.
        apart: Whether each model has series of its own: x then is all of theirs, those of one model
            behind those of another, as many of each; ``labels`` are, too.
    """

    objective: Objective
    x: Tensor
    weights: Weights | None
    temporal: TemporalWeights | None
    seeds: Sequence[int]
    batch_size: int
    max_length: int
    layout: Callable[[int, int], Hashable]
    lam: float | Tensor = 0.5
    precision: str = "auto"
    rates: LearningRates | None = None
    group: Group = field(default_factory=Group)
    feed: Feed | None = None
    repeats: bool = False
    times: Tensor | None = None
    labels: Tensor | None = None
    about: Tensor | None = None
    rows: Callable[[int, int, int], Ints] | None = None
    apart: bool = False

    @property
    def n_series(self) -> int:
        """That a model learns from."""
        return len(self.x) // len(self.seeds) if self.apart else len(self.x)

    @property
    def n_in_batch(self) -> int:
        """Series of a batch from x."""
        return self.batch_size if self.repeats else min(self.batch_size, self.n_series)
