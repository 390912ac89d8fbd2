"""Momentum contrast as a pure function, with any number of weighted positives."""

import torch
from torch import Tensor


def soft_queue_loss(
    query: Tensor,
    keys: Tensor,
    queue: Tensor,
    weights: Tensor | None = None,
    temperature: float = 0.07,
    normalize_weights: bool = False,
) -> Tensor:
    """Loss of anchors against their positives and a queue of negatives: the mean over N anchors.

    Each positive stands against the queue alone, never against another positive: for positives
    with similarities s_k, weights w_k and L the log-sum-exp over the queue, an anchor's loss is the
    sum of w_k * log(1 + exp(L - s_k)). One positive of weight 1 is MoCo's cross-entropy.

    Args:
        query: Anchors ``(..., N, M)``, unit vectors; the loss has the leading shape.
        keys: Positives of each ``(..., N, K, M)``; no gradient flows into them.
        queue: Negatives of all ``(..., Q, M)``; likewise.
        weights: Of the positives, ``(..., N, K)``; None: 1 for all. An anchor whose weights are all
            0 is none, and the mean is over the others.
        temperature: Similarities are divided by it.
        normalize_weights: Divide the weights of each anchor by their sum.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    with torch.autocast(query.device.type, enabled=False):
        query, keys, queue = query.to(dtype), keys.detach().to(dtype), queue.detach().to(dtype)
        positive = (query[..., None, :] * keys).sum(dim=-1) / temperature  # (..., N, K)
        negative = (query @ queue.mT / temperature).logsumexp(dim=-1, keepdim=True)
        losses = torch.logaddexp(negative, positive) - positive
        weights = torch.ones_like(losses) if weights is None else weights.to(dtype)
        total = weights.sum(dim=-1)  # (..., N)
        anchors = total > 0
        if normalize_weights:
            weights = weights / total.where(anchors, 1.0)[..., None]
        return (weights * losses).sum(dim=(-2, -1)) / anchors.sum(dim=-1).clamp_min(1)
