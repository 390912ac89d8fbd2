"""What TNC minimises, as a pure function: which windows lie in one neighbourhood?"""

import torch
from torch import Tensor
from torch.nn import functional as F


def neighbourhood_loss(
    near: Tensor,
    far: Tensor,
    near_targets: Tensor | None = None,
    far_targets: Tensor | None = None,
    unlabelled: float = 0.05,
    anchors: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of neighbours and of others, half and half: a mean over anchors.

    A window outside the neighbourhood need not be of another kind: of those, the share
    ``unlabelled`` counts as positive, which is a target of that height. Soft targets say how much
    two windows belong together; what they leave open is unlabelled as before.

    Args:
        near: Logits of anchors with windows of their neighbourhood, ``(..., B, K)``.
        far: With windows outside, ``(..., B, L)``.
        near_targets: Of the former, in [0, 1]; None: 1.
        far_targets: Of the latter; None: 0.
        unlabelled: Share of what is outside that is positive all the same.
        anchors: Which count, ``(..., B)``; None: all. The loss has their leading shape.
    """
    dtype = torch.promote_types(near.dtype, torch.float32)
    near, far = near.to(dtype), far.to(dtype)
    ones, zeros = torch.ones_like(near), torch.zeros_like(far)
    near_targets = ones if near_targets is None else near_targets.to(dtype)
    far_targets = zeros if far_targets is None else far_targets.to(dtype)
    far_targets = unlabelled + (1 - unlabelled) * far_targets
    each = [
        F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(dim=-1)
        for logits, targets in ((near, near_targets), (far, far_targets))
    ]
    of_anchor = (each[0] + each[1]) / 2  # (..., B)
    if anchors is None:
        return of_anchor.mean(dim=-1)
    return (of_anchor * anchors).sum(dim=-1) / anchors.sum(dim=-1).clamp_min(1)
