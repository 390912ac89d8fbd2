"""What TNC minimises, as a pure function: which windows lie in one neighbourhood?"""

import torch
from torch import Tensor
from torch.nn import functional as F


def neighbourhood_loss(
    near: Tensor,
    far: Tensor,
    targets: Tensor | None = None,
    unlabelled: float = 0.05,
    anchors: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of neighbours and of others, half and half: a mean over anchors.

    A window outside the neighbourhood need not be of another kind: of those, the share
    ``unlabelled`` counts as positive, which is a target of that height. Soft targets say how much
    such a window belongs to the anchor; what they leave to 1 is unlabelled as before.

    Args:
        near: Logits of anchors with windows of their neighbourhood, ``(..., B, K)``.
        far: With windows outside, ``(..., B, L)``.
        targets: Of the latter, in [0, 1]; None: 0.
        unlabelled: Share of what is outside that is positive all the same.
        anchors: Which count, ``(..., B)``; None: all. The loss has their leading shape.
    """
    dtype = torch.promote_types(near.dtype, torch.float32)
    near, far = near.to(dtype), far.to(dtype)
    targets = torch.zeros_like(far) if targets is None else targets.to(dtype)
    pairs = (near, torch.ones_like(near)), (far, unlabelled + (1 - unlabelled) * targets)
    each = [
        F.binary_cross_entropy_with_logits(logits, wanted, reduction="none").mean(dim=-1)
        for logits, wanted in pairs
    ]
    of_anchor = (each[0] + each[1]) / 2  # (..., B)
    if anchors is None:
        return of_anchor.mean(dim=-1)
    return (of_anchor * anchors).sum(dim=-1) / anchors.sum(dim=-1).clamp_min(1)
