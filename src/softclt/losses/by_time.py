"""Soft temporal weights by real time, for series whose steps are not evenly spaced.

The lag between two steps is then the time between them, in units of the usual gap. A pooled step
stands at the mean time of its two, so that evenly spaced steps have the weights by lag at each
level. Weights are a matrix for each series, where evenly spaced ones share a vector by lag.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from softclt.losses import functional

WeightsByTime = Callable[[Tensor, int], Tensor | None]  # times (..., T), level -> (..., T, T)


def hierarchical_loss_by_time(
    z1: Tensor,
    z2: Tensor,
    times: Tensor,
    weigh: WeightsByTime,
    instance_weights: Tensor | None = None,
    lam: float | Tensor = 0.5,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
) -> Tensor:
    """As `softclt.functional.hierarchical_loss`, the temporal weights being those of real times.

    Args:
        z1, z2, instance_weights, lam, mask, normalize_weights: See there.
        times: Of the steps, in usual gaps, ``(..., N, T)``; finite where masked, too.
        weigh: From the times at a level, and the level, to the weights; None is hard.
    """
    total = z1.new_zeros(z1.shape[:-3])
    if isinstance(lam, Tensor) or lam > 0:
        across = functional.hierarchical_loss(
            z1, z2, instance_weights, None, 1.0, mask, normalize_weights
        )
        total = total + lam * across
    most = z1.shape[-2].bit_length()
    n_levels: int | Tensor = most  # without a mask, known without a look at the device
    if mask is not None:
        mask = mask.expand(z1.shape[:-1])
        longest = functional._lengths(mask).amax(dim=-1).clamp_min(1)  # of each leading index
        n_levels = torch.frexp(longest.to(torch.float64)).exponent  # bits of the number
        most = int(longest.max()).bit_length()
    within = torch.zeros_like(total)
    before = None
    for level, flat in enumerate(functional._pooled_masks(mask, most)):
        own = None if flat is None else flat.reshape(*z1.shape[:-2], -1)  # (..., N, T)
        if level > 0:
            z1, z2 = _halved(z1, before), _halved(z2, before)
            half = times.shape[-1] // 2
            times = (times[..., 0 : 2 * half : 2] + times[..., 1 : 2 * half : 2]) / 2
        if times.shape[-1] > 1:
            # Each series has weights of its own, so it becomes a leading index.
            real = None if own is None else own[..., None, :]
            each = functional.soft_temporal_loss(
                z1[..., None, :, :],
                z2[..., None, :, :],
                weigh(times, level),
                real,
                normalize_weights,
            )  # (..., N)
            within = within + _mean_of_anchors(each, own)
        before = own
    return total + (1 - lam) * within / n_levels


def _mean_of_anchors(each: Tensor, mask: Tensor | None) -> Tensor:
    """Over all series, of losses that are means over the anchors of each ``(..., N)``."""
    if mask is None:
        return each.mean(dim=-1)
    anchors = mask.sum(dim=-1)
    return (each * anchors).sum(dim=-1) / anchors.sum(dim=-1).clamp_min(1)


def _halved(z: Tensor, mask: Tensor | None) -> Tensor:
    """The larger of two steps, of real ones only; 0 where neither is real."""
    half = z.shape[-2] // 2
    if mask is not None:
        z = z.masked_fill(~mask[..., None], float("-inf"))
    pooled = torch.maximum(z[..., 0 : 2 * half : 2, :], z[..., 1 : 2 * half : 2, :])
    return pooled if mask is None else pooled.masked_fill(pooled == float("-inf"), 0.0)
