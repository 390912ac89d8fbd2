"""Soft contrastive losses as pure functions: embeddings and weights in, a scalar out.

Every loss is a mean over anchors of the paper's cross-entropy against soft targets; the arithmetic
is in :mod:`softclt.contrast`. ``weights`` are targets: no gradient flows into them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softclt.contrast import contrast, zero_with_gradient

TemporalWeights = Callable[[int, int], Tensor]


class Group(Protocol):
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
    return _contrast_series(z1, z2, mask, weights, normalize_weights)


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
    by_lag = weights is not None and weights.ndim == 1
    return contrast(z1, z2, weights, mask, normalize_weights, by_lag)


def hierarchical_loss(
    z1: Tensor,
    z2: Tensor,
    instance_weights: Tensor | None = None,
    temporal_weights: TemporalWeights | None = None,
    lam: float | Tensor = 0.5,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
    max_levels: int | None = None,
    group: Group | None = None,
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
    own = _Views(*_check_views(z1, z2, mask))
    group = None if group is None or group.size == 1 else group
    everyone = own if group is None else own.gathered(group)
    longest = [z1.shape[-2]]  # one number for each mask
    if everyone.mask is not None:
        lengths = _lengths(everyone.mask)  # (..., N)
        longest = lengths.reshape(-1, lengths.shape[-1]).amax(dim=-1).tolist()
    n_levels = [min(t.bit_length(), max_levels or t.bit_length()) for t in longest]
    levels = list(_pyramid(own, max(n_levels), max(longest)))
    all_levels = levels if group is None else _pyramid(everyone, max(n_levels), max(longest))
    total = own.z1.new_zeros(own.z1.shape[:-3])
    for level, (own, everyone) in enumerate(zip(levels, all_levels, strict=True)):
        steps = [t >> level for t in longest]
        if isinstance(lam, Tensor) or lam > 0:
            loss = _contrast_series(*everyone, instance_weights, normalize_weights)
            total = total + lam * loss
        if max(steps) > 1 and (isinstance(lam, Tensor) or lam < 1):
            weights = None
            if temporal_weights is not None:
                weights = _lag_weights(temporal_weights, steps, level, total.shape)
            loss = contrast(own.z1, own.z2, weights, own.mask, normalize_weights, by_lag=True)
            if group is not None and own.mask is not None and everyone.mask is not None:
                n_own, n_all = (m.sum(dim=(-2, -1)) for m in (own.mask, everyone.mask))
                loss = loss * (group.size * n_own / n_all.clamp_min(1))
            total = total + (1 - lam) * loss
    if not total.requires_grad:
        total = total + zero_with_gradient(own.z1, own.z2)  # nothing to contrast at any level
    if len(n_levels) == 1:
        return total / max(1, n_levels[0])
    return total / total.new_tensor(n_levels).clamp_min_(1).view(total.shape)


class _Views(NamedTuple):
    """Two views of the same series, zero where masked."""

    z1: Tensor  # (..., N, T, M)
    z2: Tensor
    mask: Tensor | None  # (..., N, T)

    def gathered(self, group: Group) -> "_Views":
        """Those of all processes."""
        mask = None if self.mask is None else group.gather(self.mask, -2)
        return _Views(group.gather(self.z1, -3), group.gather(self.z2, -3), mask)


def _pyramid(views: _Views, n_levels: int, longest: int) -> Iterator[_Views]:
    """The views at each level, without the steps behind the longest series."""
    lengths = None if views.mask is None else _lengths(views.mask)
    for level in range(n_levels):
        if level > 0:
            views, lengths = _halve(views, lengths)
        if views.mask is not None:
            t = longest >> level
            views = _Views(views.z1[..., :t, :], views.z2[..., :t, :], views.mask[..., :t])
        yield views


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


def _halve(views: _Views, lengths: Tensor | None) -> tuple[_Views, Tensor | None]:
    """Pool pairs of steps, real ones only; steps beyond the halved lengths are masked."""
    z1, z2, mask = views
    if mask is None or lengths is None:
        return _Views(_pool(z1), _pool(z2), None), None
    masked = ~mask[..., None]
    z1, z2 = (_pool(z.masked_fill(masked, float("-inf"))) for z in (z1, z2))
    mask, lengths = _pool(mask[..., None])[..., 0], lengths // 2
    mask = mask & (torch.arange(mask.shape[-1], device=mask.device) < lengths[..., None])
    masked = ~mask[..., None]
    return _Views(z1.masked_fill(masked, 0.0), z2.masked_fill(masked, 0.0), mask), lengths


def _pool(z: Tensor) -> Tensor:
    """Maximum over pairs of steps ``(..., T, M)``; an odd last step is dropped."""
    half = z.shape[-2] // 2
    pairs = z[..., : 2 * half, :].reshape(*z.shape[:-2], half, 2, z.shape[-1])
    return pairs.amax(dim=-2)


def _lag_weights(
    temporal_weights: TemporalWeights, steps: list[int], level: int, lead: torch.Size
) -> Tensor:
    """Weights by lag at one level; a row for each mask where their longest series differ."""
    if len(set(steps)) == 1:
        return temporal_weights(steps[0], level)
    made = [temporal_weights(max(1, t), level) for t in steps]
    rows = [w if w.ndim == 1 else w.flatten(end_dim=-2)[i] for i, w in enumerate(made)]
    return pad_sequence(rows, batch_first=True).reshape(*lead, -1)


def _contrast_series(
    z1: Tensor, z2: Tensor, mask: Tensor | None, weights: Tensor | None, normalize: bool
) -> Tensor:
    """Contrast the N series of ``(..., N, T, M)`` at each step: T groups of N."""
    mask = None if mask is None else mask.mT
    return contrast(z1.transpose(-3, -2), z2.transpose(-3, -2), weights, mask, normalize)
