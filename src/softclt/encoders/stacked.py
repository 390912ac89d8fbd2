"""Layers of a stack of R networks, as batched matrix products over ``(R, B, T, channels)``.

Every parameter has a leading axis of R; a single network is a stack of one. So one model and many
models trained side by side are the same arithmetic.
"""

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

Network = TypeVar("Network", bound=nn.Module)


class Linear(nn.Module):
    """``x @ weight + bias``, with torch's initialisation."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = _uniform((1, n_in, n_out), n_in)
        self.bias = _uniform((1, n_out), n_in)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(R, B, T, n_in)`` to ``(R, B, T, n_out)``."""
        x, weight, bias = _one_precision(x, self.weight, self.bias)
        return _over_steps(x, weight, bias)


class DilatedConv(nn.Module):
    """Convolution of three taps over time; the same length out as in, zeros beyond either end."""

    def __init__(self, n_in: int, n_out: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.weight = _uniform((1, 3, n_in, n_out), 3 * n_in)
        self.bias = _uniform((1, n_out), 3 * n_in)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(R, B, T, n_in)`` to ``(R, B, T, n_out)``."""
        x, weight, bias = _one_precision(x, self.weight, self.bias)
        if self.dilation >= x.shape[2]:  # the outer taps see nothing but padding
            return _over_steps(x, weight[:, 1], bias)
        result: Tensor = _Convolution.apply(x, weight, bias, self.dilation)  # type: ignore[no-untyped-call]
        return result


class _Convolution(torch.autograd.Function):
    """Three shifted copies side by side, and one product; autograd would keep and add far more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, dilation: int) -> Tensor:
        r, b, t, n_in = x.shape
        padded = pad(x, (0, 0, dilation, dilation)).contiguous()  # (R, B, T + 2 dilation, n_in)
        own = padded.stride()
        shifted = padded.as_strided(
            (r, b, t, 3, n_in), (own[0], own[1], own[2], dilation * own[2], 1)
        ).reshape(r, b * t, 3 * n_in)
        ctx.save_for_backward(shifted, weight)
        ctx.dilation, ctx.shape = dilation, x.shape
        return _product(shifted, weight.flatten(1, 2), bias).view(r, b, t, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        shifted, weight = ctx.saved_tensors
        (r, b, t, n_in), dilation = ctx.shape, ctx.dilation
        grad = grad.reshape(r, b * t, -1)
        to_weight = (shifted.mT @ grad).view_as(weight)
        taps = (grad @ weight.flatten(1, 2).mT).view(r, b, t, 3, n_in)
        to_x = taps[:, :, :, 1].clone()
        to_x[:, :, :-dilation] += taps[:, :, dilation:, 0]
        to_x[:, :, dilation:] += taps[:, :, :-dilation, 2]
        return to_x, to_weight, grad.sum(dim=1), None


def stacked(networks: Sequence[Network]) -> Network:
    """One network with the parameters of all of them side by side."""
    stack = copy.deepcopy(networks[0])
    for name, parameter in stack.named_parameters():
        parameter.data = torch.cat([network.get_parameter(name).data for network in networks])
    return stack


def one_of(stack: Network, r: int) -> Network:
    """A copy of network r alone."""
    network = copy.deepcopy(stack)
    for parameter in network.parameters():
        parameter.data = parameter.data[r : r + 1].clone()
        parameter.grad = None
    return network


def _uniform(shape: tuple[int, ...], fan_in: int) -> nn.Parameter:
    bound = fan_in**-0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``(R, K, n_in) @ (R, n_in, n_out) + (R, n_out)``."""
    return torch.baddbmm(bias[:, None], x, weight)


def _over_steps(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same for ``(R, B, T, n_in)``."""
    return _product(x.flatten(1, 2), weight, bias).view(*x.shape[:3], -1)


def _one_precision(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All in the precision that autocast asks for, if it is on."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(tensor.to(dtype) for tensor in tensors)
