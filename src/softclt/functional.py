"""Soft contrastive losses as pure functions: embeddings and weights in, a scalar out.

For an anchor a with similarities s_ab to the other 2K - 1 vectors and targets w_ab, each loss is

    Z_a * logsumexp_b(s_ab) - r_a . sum_b(w_ab r_b),    Z_a = sum_b w_ab,

the paper's cross-entropy with the sum over b taken apart. K is the number of series (instance loss)
or of steps (temporal loss). The first term is computed block by block together with its gradient,
the second needs no similarity at all, so nothing of size (2K, 2K) outlives a block. ``weights`` are
targets: no gradient flows into them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TemporalWeights = Callable[[int, int], Tensor]

# Similarities held at a time, in elements. A group (one series, or one step) of up to _WHOLE is
# taken in one piece: then softmax + its transpose needs one matrix product instead of two.
_BLOCK = 1 << 22
_WHOLE = 1 << 26


def soft_instance_loss(
    z1: Tensor,
    z2: Tensor,
    weights: Tensor | None = None,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
) -> Tensor:
    """Soft instance-wise loss (equations (2), (3)): the mean over 2N anchors at each of T steps.

    Args:
        z1, z2: Two views of the same N series, ``(..., N, T, M)``; the result has shape ``...``.
        weights: Soft assignments with ones on the diagonal, ``(N, N)`` or with z's leading shape.
            ``None`` is the identity, i.e. the usual hard loss.
        mask: ``(N, T)`` or with z's leading shape, True where a step is real. Other steps are no
            anchors, positives or negatives, whatever they hold.
        normalize_weights: Divide the weights of each anchor by their sum.
    """
    z1, z2, mask = _check_views(z1, z2, mask)
    n = z1.shape[-3]
    if weights is not None and weights.shape[-2:] != (n, n):
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}; expected ({n}, {n}) for N = {n}"
        )
    if mask is not None:
        mask = mask.mT
    return _contrast(z1.transpose(-3, -2), z2.transpose(-3, -2), weights, mask, normalize_weights)


def soft_temporal_loss(
    z1: Tensor,
    z2: Tensor,
    weights: Tensor | None = None,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
) -> Tensor:
    """Soft temporal loss (equations (5), (6)): the mean over 2T anchors in each of N series.

    Args:
        z1, z2: Two views of the same N series, ``(..., N, T, M)``; the result has shape ``...``.
        weights: Soft assignments with ones on the diagonal, ``(T, T)``, or by lag: ``(T,)`` with
            lag 0 first; a shorter vector means 0 for all longer lags. ``None`` is hard.
        mask: As in :func:`soft_instance_loss`.
        normalize_weights: Divide the weights of each anchor by their sum.
    """
    z1, z2, mask = _check_views(z1, z2, mask)
    t = z1.shape[-2]
    by_lag = weights is not None and weights.ndim == 1
    if weights is not None and (
        len(weights) > t or not len(weights) if by_lag else weights.shape[-2:] != (t, t)
    ):
        raise ValueError(
            f"weights have shape {tuple(weights.shape)}; "
            f"expected ({t}, {t}), or ({t},) by lag, for T = {t}"
        )
    return _contrast(z1, z2, weights, mask, normalize_weights, by_lag)


def hierarchical_loss(
    z1: Tensor,
    z2: Tensor,
    instance_weights: Tensor | None = None,
    temporal_weights: TemporalWeights | None = None,
    lam: float = 0.5,
    mask: Tensor | None = None,
    normalize_weights: bool = False,
) -> Tensor:
    """Joint loss (equation (7)) at every resolution: max-pooled by 2 until one step is left.

    The mean over levels counts the last one, which has an instance term only (the paper is silent;
    this is TS2Vec's and the authors' code).

    Args:
        z1, z2: Two views of the same N series, ``(..., N, T, M)``; the result has shape ``...``.
        instance_weights: As ``weights`` of :func:`soft_instance_loss`, the same at every level.
        temporal_weights: From the number of steps at a level and the level (0 is full resolution)
            to the weights by lag. ``None`` is hard.
        lam: Share of the instance term.
        mask: As in :func:`soft_instance_loss`. Trailing masked steps count as absent; a pooled
            step is real if any of its steps is.
        normalize_weights: Divide the weights of each anchor by their sum.
    """
    z1, z2, mask = _check_views(z1, z2, mask)
    total = z1.new_zeros(z1.shape[:-3])
    level = 0
    lengths = None if mask is None else _lengths(mask)
    while True:
        if mask is not None and lengths is not None:
            t = (
                int(lengths.max()) if lengths.numel() else 0
            )  # what is masked in all series is not there
            z1, z2, mask = z1[..., :t, :], z2[..., :t, :], mask[..., :t]
        t = z1.shape[-2]
        if t == 0:
            return total + _zero(z1, z2)
        if lam > 0:
            loss = soft_instance_loss(z1, z2, instance_weights, mask, normalize_weights)
            total = total + lam * loss
        if lam < 1 and t > 1:
            weights = None if temporal_weights is None else temporal_weights(t, level)
            loss = _contrast(z1, z2, weights, mask, normalize_weights, by_lag=True)
            total = total + (1 - lam) * loss
        level += 1
        if t == 1:
            return total / level
        if mask is not None and lengths is not None:
            lengths = lengths // 2
            z1, _ = _halve(z1, mask, lengths)
            z2, mask = _halve(z2, mask, lengths)
        else:
            z1, z2 = _pool(z1), _pool(z2)


def _check_views(
    z1: Tensor, z2: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Views in float32 or better, with zeros at masked steps."""
    if z1.shape != z2.shape or z1.ndim < 3:
        raise ValueError(
            f"z1 and z2 have shapes {tuple(z1.shape)} and {tuple(z2.shape)}; "
            "expected two views of one shape (..., N, T, M)"
        )
    if not (z1.is_floating_point() and z2.is_floating_point()):
        raise TypeError(f"z1 and z2 are {z1.dtype} and {z2.dtype}; expected floating point")
    dtype = torch.promote_types(torch.promote_types(z1.dtype, z2.dtype), torch.float32)
    z1, z2 = z1.to(dtype), z2.to(dtype)
    if mask is None:
        return z1, z2, None
    if mask.shape[-2:] != z1.shape[-3:-1] or mask.dtype != torch.bool:
        raise ValueError(
            f"mask is {mask.dtype} of shape {tuple(mask.shape)}; expected bool of shape "
            f"{tuple(z1.shape[-3:-1])}, True where a step is real"
        )
    masked = ~mask[..., None]
    return z1.masked_fill(masked, 0.0), z2.masked_fill(masked, 0.0), mask


def _lengths(mask: Tensor) -> Tensor:
    """Steps up to the last real one, ``(..., N)``."""
    steps = torch.arange(1, mask.shape[-1] + 1, device=mask.device)
    return (mask * steps).amax(dim=-1) if mask.shape[-1] else mask.new_zeros(mask.shape[:-1]).long()


def _pool(z: Tensor) -> Tensor:
    """Maximum over pairs of steps; an odd last step is dropped."""
    end = z.shape[-2] // 2 * 2
    return torch.maximum(z[..., 0:end:2, :], z[..., 1:end:2, :])


def _halve(z: Tensor, mask: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Pool real steps only; steps beyond the halved ``lengths`` are masked."""
    pooled = _pool(z.masked_fill(~mask[..., None], float("-inf")))
    end = mask.shape[-1] // 2 * 2
    inside = torch.arange(end // 2, device=mask.device) < lengths[..., None]
    mask = (mask[..., 0:end:2] | mask[..., 1:end:2]) & inside
    return pooled.masked_fill(~mask[..., None], 0.0), mask


def _zero(z1: Tensor, z2: Tensor) -> Tensor:
    """Zero of the leading shape that still has a (zero) gradient."""
    return (z1.sum(dim=(-3, -2, -1)) + z2.sum(dim=(-3, -2, -1))) * 0.0


class _Problem(NamedTuple):
    """What G groups of K vectors a view are contrasted with; L leading indices, or 1 for all."""

    weights: Tensor | None  # (L | 1, K, K), or (L | 1, band) by lag, or None: hard
    by_lag: bool
    mask: Tensor | None  # (L | 1, G, K)
    normalize: bool


def _contrast(
    z1: Tensor,
    z2: Tensor,
    weights: Tensor | None,
    mask: Tensor | None,
    normalize: bool,
    by_lag: bool = False,
) -> Tensor:
    """Contrast two views ``(..., G, K, M)`` within each group under soft targets."""
    lead, (g, k, m) = z1.shape[:-3], z1.shape[-3:]
    if k == 1 or g == 0:
        return _zero(z1, z2)
    if weights is not None:
        weights = weights.detach().to(z1)
        weights = weights.reshape(-1, *weights.shape[-1 if by_lag else -2 :])
    if mask is not None:
        mask = mask.reshape(-1, g, k)
    problem = _Problem(weights, by_lag, mask, normalize)
    wants_grad = torch.is_grad_enabled() and (z1.requires_grad or z2.requires_grad)
    flat1, flat2 = (z.reshape(-1, g, k, m) for z in (z1, z2))
    loss: Tensor = _Contrast.apply(flat1, flat2, problem, wants_grad)  # type: ignore[no-untyped-call]
    return loss.reshape(lead)


class _Contrast(torch.autograd.Function):
    """The loss with its gradient taken on the way, so that backward only scales it."""

    @staticmethod
    def forward(ctx: Any, z1: Tensor, z2: Tensor, problem: _Problem, wants_grad: bool) -> Tensor:
        with torch.autocast(z1.device.type, enabled=False), _full_precision():
            loss, grads = _loss_and_gradients(z1, z2, problem, wants_grad)
        ctx.save_for_backward(*grads)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_loss.reshape(-1, 1, 1, 1)
        g1, g2 = ctx.saved_tensors
        return scale * g1, scale * g2, None, None


@contextmanager
def _full_precision() -> Iterator[None]:
    """No TF32: the two terms cancel, and must come from the same rounding."""
    before = torch.get_float32_matmul_precision()
    if before != "highest":
        torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if before != "highest":
            torch.set_float32_matmul_precision(before)


def _loss_and_gradients(
    z1: Tensor, z2: Tensor, problem: _Problem, wants_grad: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Loss ``(L,)`` of views ``(L, G, K, M)`` and, if wanted, its gradients for both."""
    n_lead, g, k, _ = z1.shape
    positive, others = _weight_sums(problem, z1)  # W_ii and the sum over j != i of W_ij
    z_sum = positive + 2 * others  # Z_a, the same for both views of i
    share = 1 / z_sum if problem.normalize else torch.ones_like(z_sum)
    if problem.mask is None:
        share = share / (2 * g * k)
    else:
        real = problem.mask.to(z1.dtype)
        anchors = 2 * real.sum(dim=(-2, -1), keepdim=True)
        # An anchor with nobody but its own positive has nothing to contrast: exactly 0.
        contrasted = real * (real.sum(dim=-1, keepdim=True) > 1)
        share = share * contrasted / anchors.clamp_min(1)
    share = share.expand(-1, g, k)  # (L | 1, G, K)
    coefficient = (share * z_sum).repeat(1, 1, 2).expand(n_lead, -1, -1)  # (L, G, 2K)

    attraction, pull1, pull2 = _attraction(z1, z2, problem, share, positive, wants_grad)
    z = torch.cat([z1, z2], dim=-2).reshape(n_lead * g, 2 * k, -1)
    real2 = None
    if problem.mask is not None:
        real2 = problem.mask.repeat(1, 1, 2).expand(n_lead, -1, -1).reshape(n_lead * g, 2 * k)
    repulsion, push = _weighted_logsumexp(
        z, coefficient.reshape(n_lead * g, 2 * k), real2, wants_grad
    )
    loss = repulsion.reshape(n_lead, g).sum(dim=-1) - attraction
    if push is None or pull1 is None or pull2 is None:
        return loss, ()
    push = push.view(n_lead, g, 2 * k, -1)
    push1, push2 = push[..., :k, :], push[..., k:, :]
    return loss, (push1.sub_(pull1), push2.sub_(pull2))


def _weight_sums(problem: _Problem, z: Tensor) -> tuple[Tensor, Tensor]:
    """W_ii and the sum of W_ij over real j != i, broadcastable to ``(L, G, K)``."""
    k = z.shape[-2]
    if problem.weights is None:
        return z.new_ones(1, 1, 1), z.new_zeros(1, 1, 1)
    if problem.by_lag:
        positive = problem.weights[:, None, :1]  # (L, 1, 1)
    else:
        positive = problem.weights.diagonal(dim1=-2, dim2=-1)[:, None]  # (L, 1, K)
    real = z.new_ones(1, 1, k) if problem.mask is None else problem.mask.to(z.dtype)
    return positive, _mix(problem, real[..., None])[..., 0]


def _attraction(
    z1: Tensor, z2: Tensor, problem: _Problem, share: Tensor, positive: Tensor, wants_grad: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """sum_a share_a r_a . sum_{b != a}(w_ab r_b) for each leading index, and its gradients.

    With S = z1 + z2, both anchors of i together have S_i . (W' S)_i + 2 W_ii z1_i . z2_i, where W'
    is W without its diagonal: the positive is added by itself, not by subtracting a self pair.
    """
    pair = 2 * (share * positive)[..., None]  # (L | 1, G, K, 1)
    value = (pair * z1 * z2).sum(dim=(1, 2, 3))
    pull1, pull2 = (pair * z2, pair * z1) if wants_grad else (None, None)
    if problem.weights is not None:
        both = z1 + z2
        shared = share[..., None] * both
        mixed = _mix(problem, both)
        value = value + (shared * mixed).sum(dim=(1, 2, 3))
        if pull1 is not None and pull2 is not None:
            back = share[..., None] * mixed + _mix(problem, shared, transpose=True)
            pull1, pull2 = pull1.add_(back), pull2.add_(back)
    return value, pull1, pull2


def _mix(problem: _Problem, x: Tensor, transpose: bool = False) -> Tensor:
    """W without its diagonal (or its transpose) times x ``(L, G, K, M)``."""
    w = problem.weights
    assert w is not None
    if problem.by_lag:
        return _toeplitz(w, x)  # symmetric
    k = w.shape[-1]
    w = w.masked_fill(torch.eye(k, dtype=torch.bool, device=w.device), 0.0)
    return torch.einsum("lji,lgjm->lgim" if transpose else "lij,lgjm->lgim", w, x)


def _toeplitz(by_lag: Tensor, x: Tensor) -> Tensor:
    """sum_j by_lag[|i - j|] x_j over j != i within the band, for x ``(L, G, K, M)``."""
    k, reach = x.shape[-2], by_lag.shape[-1] - 1
    if reach == 0:
        return torch.zeros_like(x)
    w = torch.nn.functional.pad(
        by_lag[:, 1:], (1, k - 1 - reach)
    )  # (L, K): no self, 0 beyond the band
    rows = min(k, max(64, min(reach, _BLOCK // k)))
    lead = max(len(w), len(x))
    out = x.new_empty(lead, *x.shape[1:])
    steps = torch.arange(k, device=x.device)
    for start in range(0, k, rows):
        stop = min(k, start + rows)
        first, last = max(0, start - reach), min(k, stop + reach)
        lags = (steps[start:stop, None] - steps[None, first:last]).abs()
        out[:, :, start:stop] = w[:, lags][:, None] @ x[:, :, first:last]
    return out


def _weighted_logsumexp(
    z: Tensor, coefficient: Tensor, real: Tensor | None, wants_grad: bool
) -> tuple[Tensor, Tensor | None]:
    """sum_a c_a logsumexp_{b != a}(z_a . z_b) in each group, and its gradient for z.

    Args:
        z: Vectors ``(G, A, M)``.
        coefficient: c ``(G, A)``, 0 for vectors that are no anchors.
        real: Candidates ``(G, A)``; None means all.
        wants_grad: Whether to compute the gradient.
    """
    g, a, _ = z.shape
    value = z.new_zeros(g)
    grad = torch.zeros_like(z) if wants_grad else None
    whole = a * a <= _WHOLE
    rows = a if whole else max(1, _BLOCK // a)
    groups = max(1, _BLOCK // (rows * a))
    for first in range(0, g, groups):
        part = slice(first, first + groups)
        zg = z[part]
        for start in range(0, a, rows):
            block = slice(start, min(a, start + rows))
            s = zg[:, block] @ zg.mT  # (groups, rows, A)
            s.diagonal(offset=start, dim1=-2, dim2=-1).fill_(float("-inf"))
            if real is not None:
                s.masked_fill_(~real[part, None, :], float("-inf"))
            # In place: s becomes exp(s - max), then the softmax times c; no candidate, no weight.
            top = s.amax(dim=-1, keepdim=True).clamp_min_(torch.finfo(s.dtype).min)
            norm = (
                s.sub_(top).exp_().sum(dim=-1, keepdim=True).clamp_min_(torch.finfo(s.dtype).tiny)
            )
            c = coefficient[part, block, None]
            value[part] += (c * (top + norm.log())).sum(dim=(-2, -1))
            if grad is None:
                continue
            p = s.mul_(c / norm)
            if whole:
                torch.bmm(p + p.mT, zg, out=grad[part])
            else:
                grad[part, block] += p @ zg
                grad[part] += p.mT @ zg[:, block]
    return value, grad
