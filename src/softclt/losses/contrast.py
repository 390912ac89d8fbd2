"""The kernel of all losses: two views of the same vectors, contrasted within groups.

For an anchor a with similarities s_ab to the other 2K - 1 vectors of its group and targets w_ab,
the loss is

    Z_a * logsumexp_b(s_ab) - sum_b(w_ab s_ab),    Z_a = sum_b w_ab,

the paper's cross-entropy with the sum over b taken apart. Similarities are taken block by block,
together with the gradient, so that nothing of size (2K, 2K) is kept. For weights by lag the second
term is r_a . sum_b(w_ab r_b), a convolution over time that needs no (K, K) matrix either.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

# Similarities held at a time, in elements. A group of up to _WHOLE is taken in one piece: then the
# gradient needs one matrix product, with softmax + its transpose, instead of two.
_BLOCK = 1 << 22
_WHOLE = 1 << 26
# Weights by lag of up to so many steps are written out as a matrix: quicker than the convolution.
_DENSE = 128
# On a CPU, similarities are multiplied out above the diagonal only, so many rows at a time, and
# matrices of more than _FLAT rows are transposed in tiles, which stay in the cache.
_ROWS = 128
_FLAT = 1024
_TILE = 256
# There, so many similarities at a time stay in the cache.
_CACHED = 1 << 20
# Similarities up to so far from a shift have an exp in float32, with room for sums of them.
_REACH = 60.0
_BITS = 1 / math.log(2)  # exp(x) = 2 ** (_BITS * x)


class Term(NamedTuple):
    """Targets of a loss, and what it counts.

    Attributes:
        weights: ``(K, K)``, or by lag ``(K,)`` or shorter; also with a leading axis of L. None:
            hard.
        share: Factor on the loss, one number or ``(L,)``.
        by_lag: How to read the weights.
    """

    weights: Tensor | None
    share: float | Tensor = 1.0
    by_lag: bool = False


class _Problem(NamedTuple):
    """G groups of K vectors a view, for each of L leading indices; 1 where they share."""

    weights: Tensor | None  # (L | 1, K, K), or (L | 1, band) by lag, or None: hard
    by_lag: bool
    mask: Tensor | None  # (L | 1, G, K)
    normalize: bool
    share: float | Tensor  # of the loss: one number or (L, 1, 1)


def _problem(term: Term, z: Tensor, mask: Tensor | None, normalize: bool) -> _Problem:
    k, weights, by_lag = z.shape[2] // 2, term.weights, term.by_lag
    if weights is not None:
        weights = _check_weights(weights.detach().to(z), len(z), k, by_lag)
        if by_lag and k <= _DENSE:
            steps = torch.arange(k, device=z.device)
            weights, by_lag = _lag_matrix(weights, steps, steps), False
    share = term.share.view(-1, 1, 1) if isinstance(term.share, Tensor) else term.share
    return _Problem(weights, by_lag and weights is not None, mask, normalize, share)


def _check_weights(weights: Tensor, n_lead: int, k: int, by_lag: bool) -> Tensor:
    """Weights as ``(L | 1, K, K)``, or ``(L | 1, band)`` by lag."""
    own = weights.shape[-1:] if by_lag else weights.shape[-2:]
    fits = 1 <= own[0] <= k if by_lag else own == (k, k)
    if not fits or weights.shape[: -len(own)].numel() not in (1, n_lead):
        expected = f"({k},) or shorter by lag" if by_lag else f"({k}, {k})"
        raise ValueError(f"weights have shape {tuple(weights.shape)}; expected {expected}")
    return weights.reshape(-1, *own)


def contrast(
    z: Tensor, term: Term, mask: Tensor | None, normalize: bool, grad: Tensor | None
) -> Tensor:
    """Mean loss of all anchors, contrasted within each group, times the term's share: ``(L,)``.

    Args:
        z: Two views of the same vectors, one behind the other, float32 or better, contiguous
            ``(L, G, 2K, M)``; 0 where masked.
        term: Targets, and what the loss counts.
        mask: ``(L | 1, G, K)``, False where a vector is not there.
        normalize: Divide the weights of each anchor by their sum.
        grad: Of z's shape: gets the gradient, or None.
    """
    n_lead, g, k, m = z.shape[0], z.shape[1], z.shape[2] // 2, z.shape[3]
    problem = _problem(term, z, mask, normalize)
    if k == 1:
        if grad is not None:
            grad.zero_()
        return z.new_zeros(n_lead)
    positive, z_sum = _weight_sums(problem, z)  # W_ii and Z_i, the same for both views of i
    share = _share_of_anchor(problem, z_sum, 2 * g * k) * problem.share
    matrix, pull = None, share * positive
    if problem.weights is not None and not problem.by_lag:
        matrix, pull = problem.weights, share
        if len(matrix) > 1:
            matrix = matrix.repeat_interleave(g, dim=0)  # (L * G, K, K)

    def by_anchor(x: Tensor) -> Tensor:
        return x.expand(n_lead, g, k).unsqueeze(-2).expand(-1, -1, 2, -1).reshape(-1, 2 * k)

    losses = _contrast_groups(
        z.view(-1, 2 * k, m),
        by_anchor(share * z_sum),
        by_anchor(pull),
        matrix,
        None if mask is None else by_anchor(mask),
        None if grad is None else grad.view(-1, 2 * k, m),
    )
    loss = losses.view(n_lead, g).sum(dim=-1)
    if problem.by_lag:
        view1, view2 = z.chunk(2, dim=-2)
        loss = loss - _attract_by_lag(view1 + view2, problem, share, grad)
    return loss


def _weight_sums(problem: _Problem, z: Tensor) -> tuple[Tensor, Tensor]:
    """W_ii and Z_i = W_ii + 2 sum of W_ij over real j != i, broadcastable to ``(L, G, K)``."""
    w, k = problem.weights, z.shape[-2] // 2
    if w is None:
        one = z.new_ones(1, 1, 1)
        return one, one
    real = None if problem.mask is None else problem.mask.to(z.dtype)
    if not problem.by_lag:
        positive = w.diagonal(dim1=-2, dim2=-1)[:, None]  # (L, 1, K)
        everyone = w.sum(dim=-1)[:, None] if real is None else real @ w.mT
        return positive, 2 * everyone - positive
    positive = w[:, None, :1]  # (L, 1, 1)
    if real is None:
        up_to = pad(w[:, 1:], (1, k - w.shape[-1])).cumsum(dim=-1)  # (L, K): lags 1 to i
        others = (up_to + up_to.flip(-1))[:, None]
    else:
        others = _toeplitz(w, real[..., None])[..., 0]
    return positive, positive + 2 * others


def _share_of_anchor(problem: _Problem, z_sum: Tensor, n_anchors: int) -> Tensor:
    """What an anchor's loss counts in the mean, broadcastable to ``(L, G, K)``."""
    share = 1 / z_sum if problem.normalize else z_sum.new_ones(1, 1, 1)
    if problem.mask is None:
        return share / n_anchors
    n_real = problem.mask.sum(dim=(-2, -1), keepdim=True)
    return torch.where(problem.mask, share / (2 * n_real), 0.0)


def _contrast_groups(
    z: Tensor,
    log_weight: Tensor,
    pull: Tensor,
    matrix: Tensor | None,
    real: Tensor | None,
    grad: Tensor | None,
) -> Tensor:
    """sum_a(c_a logsumexp_{b != a}(s_ab) - pull_a sum_{b != a}(W_ab s_ab)) in each group ``(G,)``.

    Args:
        z: Vectors of both views ``(G, 2K, M)``; s are their products.
        log_weight: c ``(G, 2K)``.
        pull: ``(G, 2K)``.
        matrix: W ``(G | 1, K, K)``, for either view of b; None: 1 for the positive, else 0.
        real: Candidates ``(G, 2K)``; None means all.
        grad: Where the gradient for z is written, or None.
    """
    g, a, _ = z.shape
    losses = z.new_zeros(g)
    whole = a * a <= _WHOLE
    if grad is not None and not whole:
        grad.zero_()
    rows = a if whole else max(1, _BLOCK // a)
    groups = max(1, (_BLOCK if z.is_cuda else min(_BLOCK, _CACHED)) // (rows * a))
    halved = whole and matrix is None and real is None and not z.is_cuda and a > _ROWS
    for first in range(0, g, groups):
        part = slice(first, first + groups)
        zg = z[part]
        if halved and (shift := _one_shift(zg)) is not None:
            own = None if grad is None else grad[part]
            losses[part] = _contrast_half(zg, shift, log_weight[part], pull[part], own)
            continue
        for start in range(0, a, rows):
            block = slice(start, min(a, start + rows))
            c, f = log_weight[part, block, None], pull[part, block]
            s = _similarities(zg) if whole else zg[:, block] @ zg.mT  # (groups, rows, 2K)
            if matrix is None:
                ahead, behind = _diagonal(s, start + a // 2), _diagonal(s, start - a // 2)
                attraction = torch.cat([ahead, behind], dim=-1)
            else:
                w = matrix if len(matrix) == 1 else matrix[part]
                w = w.repeat(1, 2, 2)[:, block]
                _diagonal(w, start).zero_()
                attraction = (s * w).sum(dim=-1)
            _diagonal(s, start).fill_(float("-inf"))
            if real is not None:
                s.masked_fill_(~real[part, None, :], float("-inf"))
            # In place: s becomes exp(s - max), then c times the softmax, 0 without a candidate.
            top = s.amax(dim=-1, keepdim=True)
            if real is not None:
                top.clamp_min_(torch.finfo(s.dtype).min)
            norm = s.sub_(top).exp_().sum(dim=-1, keepdim=True)
            if real is not None:
                norm.clamp_min_(torch.finfo(s.dtype).tiny)
            losses[part] += ((c * (top + norm.log()))[..., 0] - f * attraction).sum(dim=-1)
            if grad is None:
                continue
            p = s.mul_(c / norm)
            if matrix is None:
                ahead.sub_(f[:, : ahead.shape[-1]])
                behind.sub_(f[:, ahead.shape[-1] :])
            else:
                p.addcmul_(f[..., None], w, value=-1)
            if whole:
                torch.bmm(_plus_transposed(p), zg, out=grad[part])
            else:
                grad[part, block].baddbmm_(p, zg)
                grad[part].baddbmm_(p.mT, zg[:, block])
    return losses


def _one_shift(z: Tensor) -> float | None:
    """What to take off all similarities of ``(G, 2K, M)`` before exp; None: they differ too much.

    No similarity is above the largest squared norm, and no anchor's largest one is below that to
    its positive: with the middle of the two, no sum is lost to overflow or underflow.
    """
    view1, view2 = z.chunk(2, dim=-2)
    high = float(torch.linalg.vector_norm(z, dim=-1).amax()) ** 2
    low = float((view1 * view2).sum(dim=-1).amin())
    return (high + low) / 2 if high - low < 2 * _REACH else None


def _contrast_half(
    z: Tensor, shift: float, log_weight: Tensor, pull: Tensor, grad: Tensor | None
) -> Tensor:
    """`_contrast_groups` without weights, from similarities above the diagonal alone.

    One shift for all anchors, instead of each one's largest similarity, leaves exp(s - shift) as
    symmetric as s, and so the gradient's matrix: nothing is transposed, and half is never made.
    """
    a, k = z.shape[1], z.shape[1] // 2
    pulls = pull[:, :k] + pull[:, k:]  # of both anchors of a positive pair
    norm, loss, blocks = torch.zeros_like(pull), -shift * pull.sum(dim=-1), []
    bits = z.new_full((1, 1, 1), -shift * _BITS)
    for start in range(0, a, _ROWS):
        stop = min(a, start + _ROWS)
        # (G, rows, 2K - start), in powers of 2: torch's exp takes three times as long as exp2
        s = torch.baddbmm(bits, z[:, start:stop], z[:, start:].mT, alpha=_BITS)
        loss -= (pulls[:, start:stop] * _diagonal(s, k)).sum(dim=-1) / _BITS
        s.exp2_()
        _diagonal(s, 0).zero_()
        norm[:, start:stop] += s.sum(dim=-1)
        norm[:, stop:] += s[..., stop - start :].sum(dim=-2)
        blocks.append((start, stop, s))
    loss += (log_weight * (norm.log() + shift)).sum(dim=-1)
    if grad is None:
        return loss
    grad.zero_()
    share = log_weight / norm
    for start, stop, s in blocks:
        s *= share[:, start:stop, None] + share[:, None, start:]
        _diagonal(s, k).sub_(pulls[:, start:stop])
        _diagonal(s, -k).sub_(pulls[:, start : max(start, stop - k)])
        grad[:, start:stop].baddbmm_(s, z[:, start:])
        grad[:, stop:].baddbmm_(s[..., stop - start :].mT, z[:, start:stop])
    return loss


def _similarities(z: Tensor) -> Tensor:
    """``z @ z.mT`` of ``(G, A, M)``."""
    a = z.shape[-2]
    if z.is_cuda or a <= _ROWS:
        return z @ z.mT
    s = z.new_empty(len(z), a, a)
    for start in range(0, a, _ROWS):
        stop = min(a, start + _ROWS)
        torch.bmm(z[:, start:stop], z[:, start:].mT, out=s[:, start:stop, start:])
        s[:, stop:, start:stop] = s[:, start:stop, stop:].mT
    return s


def _plus_transposed(x: Tensor) -> Tensor:
    """``x + x.mT`` of ``(G, A, A)``, in place where A is large."""
    a = x.shape[-1]
    if x.is_cuda or a <= _FLAT:
        return x + x.mT
    tiles = [slice(start, start + _TILE) for start in range(0, a, _TILE)]
    for i, rows in enumerate(tiles):
        for columns in tiles[i:]:
            both = x[:, rows, columns] + x[:, columns, rows].mT
            x[:, rows, columns], x[:, columns, rows] = both, both.mT
    return x


def _diagonal(x: Tensor, offset: int) -> Tensor:
    return x.diagonal(offset=offset, dim1=-2, dim2=-1)


def _attract_by_lag(both: Tensor, problem: _Problem, share: Tensor, grad: Tensor | None) -> Tensor:
    """sum_a share_a r_a . sum_b(w_ab r_b) over the other steps, without a similarity.

    With S = z1 + z2 ``(L, G, K, M)``, both anchors of a step together have S_i . (W' S)_i, where W'
    is W without its diagonal. Its gradient, the same for both views, is taken off ``grad``.
    """
    w = problem.weights
    assert w is not None
    share = share[..., None]
    back = share * _toeplitz(w, both)
    if problem.mask is None and not problem.normalize:
        back *= 2  # the share is the same for all, and W' is symmetric
    else:
        back += _toeplitz(w, share * both)
    if grad is not None:
        for view in grad.chunk(2, dim=-2):
            view.sub_(back)
    return (both * back).sum(dim=(1, 2, 3)) / 2


def _toeplitz(by_lag: Tensor, x: Tensor) -> Tensor:
    """sum_j by_lag[|i - j|] x_j over j != i within the band, for x ``(L, G, K, M)``."""
    k, reach = x.shape[-2], by_lag.shape[-1] - 1
    others = pad(by_lag[:, 1:], (1, 0))
    # A wide band of rows has fewer products, a narrow one fewer zeros; on a GPU launches cost more.
    rows = min(k, max(1024 if x.is_cuda else 64, min(reach, _BLOCK // k)))
    out = x.new_empty(max(len(others), len(x)), *x.shape[1:])
    steps = torch.arange(k, device=x.device)
    for start in range(0, k, rows):
        stop = min(k, start + rows)
        first, last = max(0, start - reach), min(k, stop + reach)
        w = _lag_matrix(others, steps[start:stop], steps[first:last])
        out[:, :, start:stop] = w[:, None] @ x[:, :, first:last]
    return out


def _lag_matrix(by_lag: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Weights of the lags between two runs of steps, ``(L, rows, columns)``; 0 beyond the band."""
    lags = (rows[:, None] - columns).abs_().clamp_max_(by_lag.shape[-1])
    return pad(by_lag, (0, 1))[:, lags]
