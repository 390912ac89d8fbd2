"""Losses at several resolutions and their gradient, taken together on the way.

Autograd would keep every level, and add and scale gradients of each; here one gradient is made from
the coarsest level down, in memory that each level uses again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from softclt.losses.contrast import Term, contrast
from softclt.precision import full_precision


class Level(NamedTuple):
    """What is contrasted at one resolution, which has half of the steps of the one before.

    Attributes:
        instance: Series at each step; None: not at all.
        temporal: Steps within each series; None: not at all.
        mask: ``(L | 1, N, T)``, False where a step is not there; None: all are.
    """

    instance: Term | None
    temporal: Term | None
    mask: Tensor | None = None


def sum_of_levels(z1: Tensor, z2: Tensor, levels: Sequence[Level], normalize: bool) -> Tensor:
    """Sum of the terms of all levels, with a gradient.

    Args:
        z1, z2: Two views of the same N series ``(..., N, T, M)``, float32 or better, at the first
            level; 0 where masked. The loss has the leading shape.
        levels: From fine to coarse.
        normalize: Divide the weights of each anchor by their sum.
    """
    lead, own = z1.shape[:-3], z1.shape[-3:]
    wants_grad = torch.is_grad_enabled() and (z1.requires_grad or z2.requires_grad)
    flat = (z.reshape(-1, *own) for z in (z1, z2))
    loss: Tensor = _Levels.apply(*flat, levels, normalize, wants_grad)  # type: ignore[no-untyped-call]
    return loss.reshape(lead)


class _Levels(torch.autograd.Function):
    """The loss with its gradient taken on the way, so that backward only scales it."""

    @staticmethod
    def forward(
        ctx: Any,
        z1: Tensor,
        z2: Tensor,
        levels: Sequence[Level],
        normalize: bool,
        wants_grad: bool,
    ) -> Tensor:
        z = torch.stack([z1, z2], dim=2)  # (L, N, 2, T, M)
        with torch.autocast(z.device.type, enabled=False), full_precision(z.device):
            loss, grad = _loss_and_gradient(z, levels, normalize, wants_grad)
        ctx.save_for_backward(grad)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        grad1, grad2 = (grad_loss.view(-1, 1, 1, 1, 1) * grad).unbind(dim=2)
        return grad1, grad2, None, None, None


def _loss_and_gradient(
    z: Tensor, levels: Sequence[Level], normalize: bool, wants_grad: bool
) -> tuple[Tensor, Tensor | None]:
    """Loss ``(L,)`` of views ``(L, N, 2, T, M)`` and, if wanted, its gradient."""
    loss = z.new_zeros(len(z))
    grad = torch.empty_like(z) if wants_grad else None
    if not levels:
        return loss, None if grad is None else grad.zero_()
    level, *coarser = levels
    if level.temporal is not None:
        flat = None if grad is None else grad.flatten(2, 3)  # (L, N, 2T, M)
        loss += contrast(z.flatten(2, 3), level.temporal, level.mask, normalize, flat)
    elif grad is not None:
        grad.zero_()
    if level.instance is not None:
        across = z.permute(0, 3, 2, 1, 4).flatten(2, 3).contiguous()  # (L, T, 2N, M)
        own = None if grad is None else torch.empty_like(across)
        mask = None if level.mask is None else level.mask.mT
        loss += contrast(across, level.instance, mask, normalize, own)
        if grad is not None and own is not None:
            grad += own.view(*own.shape[:2], 2, -1, own.shape[-1]).permute(0, 3, 2, 1, 4)
    if coarser:
        pooled, from_even = _pool(z, level.mask)
        gone = None if coarser[0].mask is None else ~coarser[0].mask[:, :, None, :, None]
        if gone is not None:
            pooled.masked_fill_(gone, 0.0)
        above, back = _loss_and_gradient(pooled, coarser, normalize, wants_grad)
        loss += above
        if grad is not None and back is not None:
            if gone is not None:
                back.masked_fill_(gone, 0.0)
            even, odd = _pairs(grad)
            to_even = from_even.mul_(back)
            even += to_even
            odd += back.sub_(to_even)
    return loss, grad


def _pool(z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The larger of each pair of steps, real ones only, and 1 where it is the even one, else 0."""
    even, odd = _pairs(z)
    from_even = torch.empty_like(even)
    if mask is None:
        return torch.maximum(even, odd), torch.ge(even, odd, out=from_even)
    there, other = _pairs(mask[:, :, None, :, None])
    first = ((even >= odd) & there) | ~other
    return torch.where(first, even, odd), from_even.copy_(first)


def _pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Even and odd steps of ``(..., T, M)``; a last one without a mate is left out."""
    half = 2 * (x.shape[-2] // 2)
    return x[..., 0:half:2, :], x[..., 1:half:2, :]
