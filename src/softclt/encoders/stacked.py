"""Layers of a stack of R networks, as batched matrix products over ``(R, T, B, channels)``.

Every parameter and buffer has a leading axis of R; a single network is a stack of one. So one model
and many models trained side by side are the same arithmetic. Time comes before the batch: what a
tap of a convolution sees is then one piece of memory, and is multiplied where it lies.
"""

import copy
import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from softclt.encoders.foreign import TRIED, ForeignEncoder
from softclt.encoders.windows import Step

Network = TypeVar("Network", bound=nn.Module)
Runs = list[range]  # of steps, one in each of the series that stand one behind the other in T
Tap = tuple[int, slice, slice]  # its number, rows of the output, rows of x that it brings there


class Linear(nn.Module):
    """``x @ weight + bias``, with torch's initialisation."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = uniform_parameter((1, n_in, n_out), n_in)
        self.bias = uniform_parameter((1, n_out), n_in)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(R, T, B, n_in)`` to ``(R, T, B, n_out)``."""
        x, weight, bias = one_precision(x, self.weight, self.bias)
        return torch.baddbmm(bias[:, None], x.flatten(1, 2), weight).view(*x.shape[:3], -1)


class DilatedConv(nn.Module):
    """Convolution of three taps over time, with zeros beyond either end."""

    def __init__(self, n_in: int, n_out: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.weight = uniform_parameter((1, 3, n_in, n_out), 3 * n_in)
        self.bias = uniform_parameter((1, n_out), 3 * n_in)

    def forward(self, x: Tensor, have: Runs, give: Runs, plus: Tensor | None = None) -> Tensor:
        """The convolution at some steps, plus something.

        Args:
            x: ``(R, T, B, n_in)``, of the steps ``have``; beyond each run it counts as zero.
            have, give: Runs of steps, one in each series.
            plus: ``(R, T', B, n_out)``, as the result, of the steps ``give``.
        """
        x, weight, bias = one_precision(x, self.weight, self.bias)
        start = bias[:, None, None]
        if plus is None:
            start = start.expand(-1, sum(map(len, give)), x.shape[2], -1)
        else:
            start = (plus.to(bias.dtype) + start).contiguous()
        taps = self._taps(have, give)
        out: Tensor
        if x.is_cuda and len(taps) > 1 and len(have) == 1:
            out = _SideBySide.apply(x, weight, start, self.dilation, have[0], give[0])  # type: ignore[no-untyped-call]
        else:
            out = _Products.apply(x, weight, start, taps, plus is not None)  # type: ignore[no-untyped-call]
        return out

    def on_tables(self, table: Tensor, step: Step, plus: Tensor | None = None) -> Tensor:
        """The convolution of rows of a table, see `softclt.encoders.windows`."""
        n = step.n_shared + step.n_own
        out = table.new_empty(n + 1, self.bias.shape[-1])
        out[:n] = self.bias[0] if plus is None else plus + self.bias[0]
        out[n] = 0.0
        for tap in step.taps:
            out[tap.to].addmm_(table[tap.seen], self.weight[0, tap.number])
        return out

    def sees(self, steps: range, series: range) -> range:
        """Those of a series' steps that the taps at ``steps`` see, as one run."""
        start, stop, d = steps.start, steps.stop, self.dilation
        return range(
            max(series.start, start - d) if series.start < stop - d else start,
            min(series.stop, stop + d) if start + d < series.stop else stop,
        )

    def _taps(self, have: Runs, give: Runs) -> list[Tap]:
        """What each tap sees, and no more."""
        taps: list[Tap] = []
        places = _places(have), _places(give)
        for own, wanted, at, to in zip(have, give, *places, strict=True):
            for tap, shift in enumerate((-self.dilation, 0, self.dilation)):
                first = max(wanted.start, own.start - shift)
                last = min(wanted.stop, own.stop - shift)
                if first < last:
                    seen = slice(first + shift + at, last + shift + at)
                    taps.append((tap, slice(first + to, last + to), seen))
        return taps


class _Products(torch.autograd.Function):
    """``start`` plus steps of x times each tap's weights, all ``(R, T, B, channels)``.

    Each tap is one product of what it sees; autograd would keep and add far more.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, start: Tensor, taps: list[Tap], own: bool = False
    ) -> Tensor:
        x, out = x.contiguous(), start
        if own:  # start is nobody else's, and may become the result
            ctx.mark_dirty(start)
        else:
            out = start.clone(memory_format=torch.contiguous_format)
        ctx.save_for_backward(x, weight)
        ctx.taps = taps
        for tap, to, seen in taps:
            out[:, to].flatten(1, 2).baddbmm_(x[:, seen].flatten(1, 2), weight[:, tap])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, weight = ctx.saved_tensors
        grad = grad.contiguous()
        to_x, to_weight = torch.zeros_like(x), torch.zeros_like(weight)
        for tap, to, seen in ctx.taps:
            own = grad[:, to].flatten(1, 2)
            to_x[:, seen].flatten(1, 2).baddbmm_(own, weight[:, tap].mT)
            to_weight[:, tap].baddbmm_(x[:, seen].flatten(1, 2).mT, own)
        return to_x, to_weight, grad, None, None


class _SideBySide(torch.autograd.Function):
    """The same for one run of steps, as one product of three shifted copies.

    That is more arithmetic and memory, but far fewer kernels for a GPU to start.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, start: Tensor, dilation: int, have: range, give: range
    ) -> Tensor:
        r, _, b, n_in = x.shape
        before = max(0, have.start - give.start + dilation)
        behind = max(0, give.stop + dilation - have.stop)
        padded = pad(x, (0, 0, 0, 0, before, behind)).contiguous()
        first = give.start - dilation - have.start + before
        own = padded.stride()
        shifted = padded.as_strided(
            (r, len(give), b, 3, n_in),
            (own[0], own[1], own[2], dilation * own[1], 1),
            first * own[1],
        ).reshape(r, len(give) * b, 3 * n_in)
        ctx.save_for_backward(shifted, weight)
        ctx.dilation, ctx.first, ctx.padded = dilation, first, padded.shape
        ctx.inner = slice(before, before + len(have))
        return torch.baddbmm(start.flatten(1, 2), shifted, weight.flatten(1, 2)).view(
            r, len(give), b, -1
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        shifted, weight = ctx.saved_tensors
        n, flat = grad.shape[1], grad.flatten(1, 2)
        to_weight = (shifted.mT @ flat).view_as(weight)
        taps = (flat @ weight.flatten(1, 2).mT).view(*grad.shape[:3], 3, -1)
        to_x = grad.new_zeros(ctx.padded)
        for tap in range(3):
            first = ctx.first + tap * ctx.dilation
            to_x[:, first : first + n] += taps[:, :, :, tap]
        return to_x[:, ctx.inner], to_weight, grad, None, None, None


def part(x: Tensor, have: Runs, give: Runs) -> Tensor:
    """The steps ``give`` of x ``(R, T, ...)``, which is of the steps ``have``."""
    if give == have:
        return x
    places = zip(give, _places(have), strict=True)
    return torch.cat([x[:, run.start + by : run.stop + by] for run, by in places], dim=1)


def _places(runs: Runs) -> list[int]:
    """What to add to a step of each run for its place in a tensor of them all."""
    starts = accumulate(map(len, runs[:-1]), initial=0)
    return [start - run.start for start, run in zip(starts, runs, strict=True)]


def stacked(networks: Sequence[Network]) -> Network:
    """One network with the parameters and buffers of all of them side by side."""
    stack = copy.deepcopy(networks[0])
    for name, parameter in stack.named_parameters():
        parameter.data = side_by_side(stack, [own.get_parameter(name).data for own in networks])
    for name, buffer in stack.named_buffers():
        buffer.data = side_by_side(stack, [own.get_buffer(name) for own in networks])
    if isinstance(stack, ForeignEncoder):
        stack.n_models = len(networks)
    return stack


def one_of(stack: Network, r: int) -> Network:
    """A copy of network r alone."""
    network = copy.deepcopy(stack)
    for parameter in network.parameters():
        parameter.data = alone(stack, parameter.data, r)
        parameter.grad = None
    for buffer in network.buffers():
        buffer.data = alone(stack, buffer.data, r)
    if isinstance(network, ForeignEncoder):
        network.n_models = 1
    return network


def side_by_side(network: nn.Module, tensors: Sequence[Tensor]) -> Tensor:
    """A tensor of a stack from those of networks of this kind, such as a parameter or moments."""
    together = torch.stack if isinstance(network, ForeignEncoder) else torch.cat
    return together(list(tensors))


def alone(network: nn.Module, tensor: Tensor, r: int) -> Tensor:
    """Network r's part of a tensor of a stack of this kind."""
    return (tensor[r] if isinstance(network, ForeignEncoder) else tensor[r : r + 1]).clone()


def can_stack(module: nn.Module, n_channels: int, device: torch.device) -> bool:
    """Whether copies of a module side by side do what each does alone: it is tried with two.

    What draws random numbers cannot, since they would be others than alone; nor what looks into
    its values to decide what to do.
    """
    if any(parameter.ndim == 0 for parameter in module.parameters()):
        return False  # an optimiser's moments of it could not be told from its count of steps
    one, other = (ForeignEncoder(module, n_channels).to(device) for _ in range(2))
    like = next(module.parameters(), torch.zeros(()))
    shape = 2, TRIED[0], n_channels, TRIED[1]
    x = torch.linspace(-1, 1, math.prod(shape), dtype=like.dtype, device=device).view(shape)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    try:
        stack = stacked([one, other])
        found = stack(x)
        found.sum().backward()
        wanted = torch.stack([one(x[0]), other(x[1])])
        kept = zip(stack.buffers(), stacked([one, other]).buffers(), strict=True)
        return all(torch.allclose(a, b, atol=1e-5) for a, b in [(found, wanted), *kept])
    except Exception:  # torch says in many ways that it cannot
        return False


def uniform_parameter(shape: tuple[int, ...], fan_in: int) -> nn.Parameter:
    """With the bounds of torch's own layers."""
    bound = fan_in**-0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def one_precision(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All in the precision that autocast asks for, if it is on."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(tensor.to(dtype) for tensor in tensors)
