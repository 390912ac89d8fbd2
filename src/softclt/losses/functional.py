"""Soft contrastive losses as pure functions: embeddings and weights in, a scalar out.

Every loss is a mean over anchors of the paper's cross-entropy against soft targets; the arithmetic
is in `softclt.losses.contrast` and `softclt.losses.hierarchy`. ``weights`` are targets: no gradient
flows into them.
"""

from collections.abc import Callable
from functools import cache
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softclt.losses.contrast import Term
from softclt.losses.hierarchy import Level, sum_of_levels

TemporalWeights = Callable[[int, int], Tensor]


class LagWeights:
    """`TemporalWeights` that are computed once, and live as long as this.

    Args:
        weights: From steps and level to weights by lag.
        any_length: Whether those of a short series are the first of those of a longer one, as if
            a weight depends on its lag alone. Then those of some lengths serve for all.
    """

    def __init__(self, weights: TemporalWeights, any_length: bool) -> None:
        self.any_length = any_length
        self._weights = cache(weights)

    def __call__(self, length: int, level: int) -> Tensor:
        """Weights by lag ``(..., length)`` or shorter."""
        if not self.any_length:
            return self._weights(length, level)
        return self._weights(1 << (length - 1).bit_length(), level)[..., :length]


class SharedBatch(Protocol):
    """Processes that share a batch."""

    @property
    def size(self) -> int:
        """How many they are."""
        ...

    def gather(self, x: Tensor, dim: int) -> Tensor:
        """Their parts side by side; its gradient is for a mean over processes to follow."""
        ...


def soft_instance_loss(
    z1: Tensor,
    z2: Tensor,
    weights: Tensor | None = None,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
) -> Tensor:
    """Soft instance-wise loss (equations (2), (3)): the mean over 2N anchors at each of T steps.

    Args:
        z1, z2: Two views of the same N series, ``(..., N, T, M)``; the loss has the leading shape.
        weights: Soft assignments with ones on the diagonal, ``(N, N)`` or with z's leading shape.
            ``None`` is the identity, i.e. the usual hard loss.
        mask: ``(N, T)`` or with z's leading shape, True where a step is real. Other steps are no
            anchors, positives or negatives, whatever they hold.
        normalize_weights: Divide the weights of each anchor by their sum.
    """
    z1, z2, mask = _check_views(z1, z2, mask)
    return sum_of_levels(z1, z2, [Level(Term(weights), None, _flat(mask))], normalize_weights)


def soft_temporal_loss(
    z1: Tensor,
    z2: Tensor,
    weights: Tensor | None = None,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
) -> Tensor:
    """Soft temporal loss (equations (5), (6)): the mean over 2T anchors in each of N series.

    Args:
        z1, z2: Two views of the same N series, ``(..., N, T, M)``; the loss has the leading shape.
        weights: Soft assignments with ones on the diagonal, ``(T, T)`` or with z's leading shape;
            or by lag, ``(T,)`` with lag 0 first (a shorter vector has 0 for all longer lags).
            ``None`` is hard.
        mask: As in :func:`soft_instance_loss`.
        normalize_weights: Divide the weights of each anchor by their sum.
    """
    z1, z2, mask = _check_views(z1, z2, mask)
    term = Term(weights, by_lag=weights is not None and weights.ndim == 1)
    return sum_of_levels(z1, z2, [Level(None, term, _flat(mask))], normalize_weights)


def hierarchical_loss(
    z1: Tensor,
    z2: Tensor,
    instance_weights: Tensor | None = None,
    temporal_weights: TemporalWeights | None = None,
    lam: float | Tensor = 0.5,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
    max_levels: int | None = None,
    group: SharedBatch | None = None,
) -> Tensor:
    """Joint loss (equation (7)) at every resolution: max-pooled by 2 until one step is left.

    The mean over levels counts the last one, which has an instance term only (the paper is silent;
    this is TS2Vec's and the authors' code).

    Args:
        z1, z2: Two views of the same N series, ``(..., N, T, M)``; the loss has the leading shape.
        instance_weights: As ``weights`` of :func:`soft_instance_loss`, the same at every level.
        temporal_weights: From the steps of the longest series at a level, and the level (0 is full
            resolution), to the weights by lag. ``None`` is hard.
        lam: Share of the instance term; a tensor of z's leading shape for a share of each.
        mask: As in :func:`soft_instance_loss`. Trailing masked steps count as absent; a pooled step
            is real if any of its steps is.
        normalize_weights: Divide the weights of each anchor by their sum.
        max_levels: Stop after so many levels; 1 is the joint loss at full resolution.
        group: Processes that have further series of the batch, as many each, e.g.
            ``softclt.training.current_group()``. Series are then contrasted with those of all
            processes, in whose order ``instance_weights`` are, and steps within their series. The
            mean over processes, of losses and of gradients, is what one would have of the batch.
    """
    z1, z2, mask = _check_views(z1, z2, mask)
    group = None if group is None or group.size == 1 else group
    everyone = mask if mask is None or group is None else group.gather(mask, -2)
    longest = [z1.shape[-2]]  # one number for each mask
    if mask is not None and everyone is not None:
        lengths = _lengths(everyone)  # (..., N)
        longest = lengths.reshape(-1, lengths.shape[-1]).amax(dim=-1).tolist()
        t = max(1, *longest)  # what is masked in all series is not there
        z1, z2, mask, everyone = z1[..., :t, :], z2[..., :t, :], mask[..., :t], everyone[..., :t]
    n_levels = [min(t.bit_length(), max_levels or t.bit_length()) for t in longest]
    part: float | Tensor = 1 / max(1, n_levels[0])  # of a level in the mean
    if len(n_levels) > 1:
        part = 1 / z1.new_tensor(n_levels).clamp_min_(1)
    levels = []
    for level, own in enumerate(_pooled_masks(mask, max(n_levels))):
        steps = [t >> level for t in longest]
        instance = temporal = None
        if isinstance(lam, Tensor) or lam > 0:
            instance = Term(instance_weights, lam * part)
        if max(steps) > 1 and (isinstance(lam, Tensor) or lam < 1):
            weights = None
            if temporal_weights is not None:
                weights = _lag_weights(temporal_weights, steps, level, z1.shape[:-3])
            temporal = Term(weights, (1 - lam) * part, by_lag=True)
        levels.append(Level(instance, temporal, own))
    if group is None:
        return sum_of_levels(z1, z2, levels, normalize_weights)
    across, within = [], []
    for here, all_real in zip(levels, _pooled_masks(everyone, len(levels)), strict=True):
        across.append(Level(here.instance, None, all_real))
        within.append(Level(None, _for_the_mean(here, all_real, group.size), here.mask))
    loss = sum_of_levels(group.gather(z1, -3), group.gather(z2, -3), across, normalize_weights)
    return loss + sum_of_levels(z1, z2, within, normalize_weights)


def _for_the_mean(level: Level, everyone: Tensor | None, size: int) -> Term | None:
    """The temporal term, so that a mean over processes counts all real anchors alike."""
    term, mask = level.temporal, level.mask
    if term is None or mask is None or everyone is None:
        return term
    n_own, n_all = (m.sum(dim=(-2, -1)) for m in (mask, everyone))
    return term._replace(share=term.share * size * n_own / n_all.clamp_min(1))


def _check_views(
    z1: Tensor, z2: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Views in float32 or better, with zeros at masked steps."""
    if z1.shape != z2.shape or z1.ndim < 3 or 0 in z1.shape:
        raise ValueError(
            f"z1 and z2 have shapes {tuple(z1.shape)} and {tuple(z2.shape)}; "
            "expected two views of one shape (..., N, T, M) without a 0"
        )
    if not (z1.is_floating_point() and z2.is_floating_point()):
        raise TypeError(f"z1 and z2 are {z1.dtype} and {z2.dtype}; expected floating point")
    dtype = torch.promote_types(torch.promote_types(z1.dtype, z2.dtype), torch.float32)
    z1, z2 = z1.to(dtype), z2.to(dtype)
    if mask is None:
        return z1, z2, None
    if mask.shape not in (z1.shape[-3:-1], z1.shape[:-1]) or mask.dtype != torch.bool:
        raise ValueError(
            f"mask is {mask.dtype} of shape {tuple(mask.shape)}; expected bool of shape "
            f"{tuple(z1.shape[-3:-1])}, True where a step is real"
        )
    masked = ~mask[..., None]
    return z1.masked_fill(masked, 0.0), z2.masked_fill(masked, 0.0), mask


def _lengths(mask: Tensor) -> Tensor:
    """Steps up to the last real one, ``(..., N)``."""
    return (mask * torch.arange(1, mask.shape[-1] + 1, device=mask.device)).amax(dim=-1)


def _pooled_masks(mask: Tensor | None, n_levels: int) -> list[Tensor | None]:
    """At each level ``(L | 1, N, T)``; a pooled step is real if any of its steps is.

    Series halve with floor, as if nothing stood behind their last real step.
    """
    if mask is None:
        return [None] * n_levels
    lengths, masks = _lengths(mask), []
    for _ in range(n_levels):
        masks.append(_flat(mask))
        half, lengths = mask.shape[-1] // 2, lengths // 2
        either = mask[..., 0 : 2 * half : 2] | mask[..., 1 : 2 * half : 2]
        mask = either & (torch.arange(half, device=mask.device) < lengths[..., None])
    return masks


def _flat(mask: Tensor | None) -> Tensor | None:
    """A mask ``(..., N, T)`` as ``(L | 1, N, T)``."""
    return None if mask is None else mask.reshape(-1, *mask.shape[-2:])


def _lag_weights(
    temporal_weights: TemporalWeights, steps: list[int], level: int, lead: torch.Size
) -> Tensor:
    """Weights by lag at one level; a row for each mask where those of their longest series differ.

    If they are the same for all lengths, a short series has further lags to steps that are masked.
    """
    if len(set(steps)) == 1 or getattr(temporal_weights, "any_length", False):
        return temporal_weights(max(steps), level)
    made = [temporal_weights(max(1, t), level) for t in steps]
    rows = [w if w.ndim == 1 else w.flatten(end_dim=-2)[i] for i, w in enumerate(made)]
    return pad_sequence(rows, batch_first=True).reshape(*lead, -1)
