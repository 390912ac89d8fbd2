"""All randomness of training, drawn from counters: (seed, step) in, the same numbers out, anywhere.

No generator lives from one step to the next. A resumed run, one of many models trained side by side
and one rank of several therefore see the very draws of the plain run. Crop lengths come from the
data's length and the step alone, so that models with different seeds share shapes: seeds share the
crop schedule, and differ in initialisation, batch order, offsets, hidden steps and dropout.
"""

from enum import IntEnum
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor


class Stream(IntEnum):
    """What a number is drawn for; each purpose has numbers of its own."""

    INIT = 0
    CROPS = 1
    ORDER = 2
    OFFSETS = 3
    HIDDEN = 4
    DROPOUT = 5
    WINDOW = 6


def _sequence(stream: Stream, *counters: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([int(stream), *counters])


def numpy_generator(stream: Stream, *counters: int) -> np.random.Generator:
    """A NumPy generator that depends on its counters alone."""
    return np.random.Generator(np.random.Philox(_sequence(stream, *counters)))


def torch_seed(stream: Stream, *counters: int) -> int:
    """A seed for torch that depends on its counters alone."""
    return int(_sequence(stream, *counters).generate_state(1, np.uint64)[0] >> 1)


class StepDraws:
    """The random numbers of one training step.

    Args:
        seed: The model's.
        step: Number of the step, counted from the start of training.
        device: Where large draws are made.
        dtype: Of dropout factors.
    """

    def __init__(self, seed: int, step: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed, self.step, self.device, self.dtype = seed, step, device, dtype

    def shared(self, stream: Stream, length: int) -> np.random.Generator:
        """A generator that all seeds share at this step for data of this length."""
        return numpy_generator(stream, length, self.step)

    def own(self, stream: Stream) -> np.random.Generator:
        """A generator of this seed at this step."""
        return numpy_generator(stream, self.seed, self.step)

    def keep(self, shape: tuple[int, ...], probability: float, view: int) -> Tensor:
        """True with the given probability, for view 0, 1, ..."""
        draws = torch.rand(shape, generator=self._torch(Stream.HIDDEN, view), device=self.device)
        return draws < probability

    def dropout(self, shape: tuple[int, ...], probability: float, view: int) -> Tensor:
        """Factors that drop with the given probability and keep the mean, for view 0, 1, ..."""
        factors = torch.empty(shape, device=self.device, dtype=self.dtype)
        factors.bernoulli_(1 - probability, generator=self._torch(Stream.DROPOUT, view))
        return factors.div_(1 - probability)

    def _torch(self, stream: Stream, view: int) -> torch.Generator:
        generator = torch.Generator(self.device)
        return generator.manual_seed(torch_seed(stream, self.seed, self.step, view))


def batch_rows(
    seed: int, step: int, n: int, batch_size: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of the data set in this step's batch.

    Each epoch has an order of its own; what does not fill a last batch is left out.
    """
    per_epoch = n // batch_size
    epoch, position = divmod(step, per_epoch)
    order = _epoch_order(seed, epoch, n)
    return order[position * batch_size : (position + 1) * batch_size].copy()


@lru_cache(maxsize=8)  # all steps of an epoch ask for it
def _epoch_order(seed: int, epoch: int, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return numpy_generator(Stream.ORDER, seed, epoch).permutation(n)
