"""What the rivals minimise, as pure functions of R models side by side."""

import torch
from torch import Tensor
from torch.nn import functional as F


def class_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of logits ``(R, B, L)`` and labels ``(R, B)``: the mean of each model."""
    return _cross_entropy(logits, labels).mean(dim=-1)


def pseudo_label_loss(weak: Tensor, strong: Tensor, threshold: float) -> Tensor:
    """What FixMatch learns without labels: the mean over all series, ``(R,)``.

    A series whose likeliest class in the weak view is at least as likely as the threshold has that
    class for a label of its strong view. The others count as 0.

    Args:
        weak, strong: Logits of both views, ``(R, B, L)``; no gradient flows into the weak one.
        threshold: In [0, 1].
    """
    likely, classes = _full(weak.detach()).softmax(dim=-1).max(dim=-1)
    return (_cross_entropy(strong, classes) * (likely >= threshold)).mean(dim=-1)


def consistency_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Squared distance of class probabilities: the mean over series, ``(R,)``.

    Args:
        student, teacher: Logits ``(R, B, L)``; no gradient flows into the teacher's.
    """
    gap = _full(student).softmax(dim=-1) - _full(teacher.detach()).softmax(dim=-1)
    return gap.square().sum(dim=-1).mean(dim=-1)


def relation_loss(same: Tensor, other: Tensor, alike: Tensor) -> Tensor:
    """Binary cross-entropy of whether a past and a future belong together, ``(R,)``.

    Args:
        same: Logits of a series' past with its own future, ``(R, B)``, whose target is 1.
        other: Of its past with another series' future, ``(R, B)``.
        alike: Targets of the latter: 0, or how alike the two series are.
    """
    each = _binary(same, torch.ones_like(same)) + _binary(other, alike)
    return each.mean(dim=-1) / 2


def recognition_loss(logits: Tensor, kinds: Tensor) -> Tensor:
    """Mean over series and kinds of the binary cross-entropies of "is it of this kind", ``(R,)``.

    Args:
        logits: ``(R, B, K)``.
        kinds: Of each series, ``(R, B)``.
    """
    return _binary(logits, F.one_hot(kinds, logits.shape[-1])).mean(dim=(-2, -1))


def triplet_loss(anchor: Tensor, near: Tensor, far: Tensor, weights: Tensor | None) -> Tensor:
    """Logistic losses of scalar products, of T-Loss: the mean over anchors, ``(R,)``.

    An anchor's positive counts as much as the mean of its negatives, the ``far`` of all others.

    Args:
        anchor, near, far: Vectors of parts of each series, ``(R, B, M)``.
        weights: Targets of the negatives ``(R, B, B)``, ones on the diagonal; None: 0.
    """
    anchor, near, far = _full(anchor), _full(near), _full(far)
    own = (anchor * near).sum(dim=-1)
    loss = _binary(own, torch.ones_like(own))  # (R, B)
    b = anchor.shape[1]
    if b > 1:
        others = anchor @ far.mT  # (R, B, B)
        pushed = _binary(others, torch.zeros_like(others) if weights is None else weights)
        itself = torch.eye(b, dtype=torch.bool, device=others.device)
        loss = loss + pushed.masked_fill(itself, 0.0).sum(dim=-1) / (b - 1)
    return loss.mean(dim=-1)


def ramp_up(step: Tensor, n_steps: int) -> Tensor:
    """From e^-5 at the first step to 1 after ``n_steps``, as exp(-5 (1 - t)^2)."""
    passed = (step / max(1, n_steps)).clamp(max=1.0)
    return torch.exp(-5 * (1 - passed) ** 2)


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    flat = _full(logits).flatten(0, 1)
    return F.cross_entropy(flat, labels.flatten(), reduction="none").view(labels.shape)


def _binary(logits: Tensor, targets: Tensor) -> Tensor:
    full = _full(logits)
    return F.binary_cross_entropy_with_logits(full, targets.to(full), reduction="none")


def _full(x: Tensor) -> Tensor:
    """In float32 or better, also under autocast."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
