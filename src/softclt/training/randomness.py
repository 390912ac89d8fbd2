"""All randomness of training, drawn from counters: (seed, step) in, the same numbers out, anywhere.

No generator lives from one step to the next. A resumed run, one of many models trained side by side
and one rank of several therefore see the very draws of the plain run. Crops come from the data's
length and the step alone, so that models with different seeds share shapes: seeds share the crop
schedule, and differ in initialisation, batch order, offsets, hidden steps and dropout.

Small draws that decide shapes or rows are made by NumPy. Large ones are a hash of their counters, a
few integer operations on the device: the same bits on a CPU and on a GPU, and part of a CUDA graph.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Stream(IntEnum):
    """What a number is drawn for; each purpose has numbers of its own."""

    INIT = 0
    CROPS = 1
    ORDER = 2
    OFFSETS = 3
    HIDDEN = 4
    DROPOUT = 5
    WINDOW = 6
    DISTORTED = 7
    SCALE = 8
    SHIFT = 9
    JITTER = 10
    ANCHOR = 11
    SEGMENTS = 12
    CUTS = 13
    PLACES = 14
    LABELLED = 15
    KINDS = 16
    WARPED = 17


# Functions of torch, its tensors and torch.nn.init that draw random numbers.
_DRAWING = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "normal",
        "bernoulli",
        "multinomial",
        "poisson",
        "uniform_",
        "normal_",
        "random_",
        "bernoulli_",
        "exponential_",
        "cauchy_",
        "log_normal_",
        "geometric_",
        "kaiming_uniform_",
        "kaiming_normal_",
    ]
)
_DRAWN_LIKE = {"rand_like": "uniform_", "randn_like": "normal_"}
_VIEWS = 2  # a purpose has numbers of its own for each
_SITES = 64  # places of a network that drop, at most
_HALVES = 1 << 16  # values of half an integer
_APART = -1640531527  # 2^32 / golden ratio: what it multiplies lies far apart


def _sequence(stream: Stream, *counters: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([int(stream), *counters])


def numpy_generator(stream: Stream, *counters: int) -> np.random.Generator:
    """A NumPy generator that depends on its counters alone."""
    return np.random.Generator(np.random.Philox(_sequence(stream, *counters)))


def torch_seed(stream: Stream, *counters: int) -> int:
    """A seed for torch that depends on its counters alone."""
    return int(_sequence(stream, *counters).generate_state(1, np.uint64)[0] >> 1)


class own_draws(TorchFunctionMode):
    """Within it, what torch draws on a CPU in this thread comes from a generator of its own.

    The numbers are those after ``torch.manual_seed(seed)``. The global generator, which other
    threads share, is neither read nor changed.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call a function of torch, with the generator if it draws."""
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name in _DRAWN_LIKE:  # which take no generator
            empty = torch.empty_like(*args, **kwargs)
            return getattr(empty, _DRAWN_LIKE[name])(generator=self.generator)
        if name in _DRAWING and kwargs.get("generator") is None:
            kwargs["generator"] = self.generator
        return func(*args, **kwargs)


def stream_keys(seeds: Sequence[int], device: torch.device) -> Tensor:
    """What the hashes of each model begin with, ``(streams, views, 2, R)`` in int32."""
    words = [
        [[_sequence(s, seed, view).generate_state(2) for seed in seeds] for view in range(_VIEWS)]
        for s in Stream
    ]  # (streams, views, R, 2)
    return torch.from_numpy(np.array(words).view(np.int32)).transpose(2, 3).to(device)


class StepDraws:
    """The random numbers of one training step, for a stack of R models.

    Args:
        keys: See :func:`stream_keys`.
        step: Number of the step, counted from the start of training; decides shapes.
        counter: The same as a tensor () in int32 on the device; decides everything else.
        dtype: Of dropout factors.
        rank: Which part of a batch shared by several processes is drawn for: shapes are those of
            a part, and its numbers are those that it has in the whole batch.
    """

    def __init__(
        self, keys: Tensor, step: int, counter: Tensor, dtype: torch.dtype, rank: int = 0
    ) -> None:
        self.keys, self.step, self.counter, self.dtype = keys, step, counter, dtype
        self.rank = rank
        self._hashed: dict[tuple[Stream, int], Tensor] = {}

    def keep(
        self,
        shape: tuple[int, ...],
        probability: float,
        view: int,
        stream: Stream = Stream.HIDDEN,
    ) -> Tensor:
        """True with the given probability, ``(R, *shape)``, for view 0 or 1."""
        return self._halves(stream, view, shape) < _threshold(probability)

    def dropout(
        self, shape: tuple[int, ...], probability: float, view: int, site: int = 0
    ) -> Tensor:
        """Factors ``(R, *shape)`` that drop with a probability and keep the mean.

        A network that drops in several places gives each a ``site`` of its own.
        """
        kept = self._halves(Stream.DROPOUT, view, shape, site) >= _threshold(probability)
        return kept.to(self.dtype).mul_(1 / (1 - probability))

    def integers(self, stream: Stream, below: int, shape: tuple[int, ...] = ()) -> Tensor:
        """Whole numbers from 0 to ``below`` - 1, ``(R, *shape)`` in int64."""
        n = prod(shape)
        first = self.rank * n if shape else 0  # one number for all is the same in all processes
        positive = self._bits(stream, 0, first, first + n) & 0x7FFFFFFF
        return (positive % below).view(-1, *shape).long()

    def normal(self, stream: Stream, shape: tuple[int, ...], view: int) -> Tensor:
        """Of mean 0 and standard deviation 1, ``(R, *shape)``, for view 0 or 1."""
        n = prod(shape)
        bits = self._bits(stream, view, self.rank * n, (self.rank + 1) * n) >> 8
        uniform = (bits.float() + 0.5) * 2.0**-23  # 24 bits, in (-1, 1) without its ends
        return (torch.erfinv(uniform) * 2**0.5).to(self.dtype).view(-1, *shape)

    def _halves(self, stream: Stream, view: int, shape: tuple[int, ...], site: int = 0) -> Tensor:
        """Uniform in [-2^15, 2^15), ``(R, *shape)`` in int16: two of them from each hash."""
        n = prod(shape)
        skipped, rest = divmod(self.rank * n, 2)
        stop = skipped + (rest + n + 1) // 2
        bits = self._bits(stream, view, skipped, stop, site)  # (R, n / 2)
        return bits.view(torch.int16)[:, rest : rest + n].reshape(-1, *shape)

    def _bits(self, stream: Stream, view: int, start: int, stop: int, site: int = 0) -> Tensor:
        """Hashes of a run of places for each model, ``(R, stop - start)`` in int32."""
        if site >= _SITES:
            raise ValueError(f"site is {site}; a network can drop in {_SITES} places")
        hashed = self._hash_places(stream, view, start, stop)
        return _mix(hashed ^ self._words[stream, view, site, :, None])

    @cached_property
    def _words(self) -> Tensor:
        """What is of this step in the hashes, ``(streams, views, sites, R)``."""
        sites = torch.arange(_SITES, dtype=torch.int32, device=self.keys.device) * _APART
        return _mix(self.keys[:, :, 1:] + (self.counter + sites[:, None]))

    def _hash_places(self, stream: Stream, view: int, start: int, stop: int) -> Tensor:
        """What is of places in them, ``(R, stop - start)``; all sites of a step share it."""
        longest = self._hashed.get((stream, view))
        if longest is None or longest.shape[1] < stop:
            places = torch.arange(stop, dtype=torch.int32, device=self.keys.device)
            longest = _mix(places * _APART + self.keys[stream, view, 0, :, None])
            self._hashed[stream, view] = longest
        return longest[:, start:stop]


class RowDraws(StepDraws):
    """Numbers that belong to rows of the data set, and are the same at every step.

    Args:
        draws: Of any step.
        rows: Of the batch, ``(R, B)``; what is drawn has shapes that begin with B.
    """

    def __init__(self, draws: StepDraws, rows: Tensor) -> None:
        super().__init__(draws.keys, 0, torch.zeros_like(draws.counter), draws.dtype)
        self.rows = rows.to(torch.int32)

    def _hash_places(self, stream: Stream, view: int, start: int, stop: int) -> Tensor:
        n = (stop - start) // self.rows.shape[-1]  # of each row
        places = torch.arange(n, dtype=torch.int32, device=self.rows.device)
        places = (self.rows[..., None] * n + places).flatten(1)
        return _mix(places * _APART + self.keys[stream, view, 0, :, None])


def _threshold(probability: float) -> int:
    return round(probability * _HALVES) - _HALVES // 2


def _mix(x: Tensor) -> Tensor:
    """A bijection of int32 in which every bit depends on every bit, in place."""
    x ^= (x >> 16) & 0xFFFF
    x *= 0x7FEB352D
    x ^= (x >> 15) & 0x1FFFF
    x *= -0x7B935975
    x ^= (x >> 16) & 0xFFFF
    return x


def batch_rows(
    seed: int, step: int, n: int, batch_size: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of the data set in this step's batch.

    Each epoch has an order of its own; what does not fill a last batch is left out. Where a batch
    has more rows than the data set, an epoch has each row so often that it fills one.
    """
    copies = -(-batch_size // n)
    epoch, position = divmod(step, n * copies // batch_size)
    order = _epoch_order(seed, epoch, n * copies)
    return order[position * batch_size : (position + 1) * batch_size] % n


@lru_cache(maxsize=64)  # all steps of an epoch ask for it
def _epoch_order(seed: int, epoch: int, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return numpy_generator(Stream.ORDER, seed, epoch).permutation(n)
