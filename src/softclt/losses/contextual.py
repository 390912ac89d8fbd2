"""The losses of TS-TCC and CA-TCC as pure functions: between views, classes, and futures.

The first two are soft contrastive losses at a single step, with other targets, and are computed as
such; see :func:`softclt.functional.soft_instance_loss`.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from softclt.losses import functional
from softclt.losses.functional import SharedBatch
from softclt.precision import full_precision


def nt_xent(
    z1: Tensor,
    z2: Tensor,
    temperature: float = 0.2,
    weights: Tensor | None = None,
    group: SharedBatch | None = None,
) -> Tensor:
    """Two views of each series against all others by cosine: the mean over 2N anchors.

    Args:
        z1, z2: ``(..., N, M)``, of any length; the loss has the leading shape.
        temperature: Similarities are divided by it.
        weights: Soft assignments with ones on the diagonal, ``(N, N)`` or with z's leading shape;
            those of an anchor are divided by their sum. None: its other view is all.
        group: Processes that have further series of the batch: see
            :func:`softclt.functional.hierarchical_loss`.

    Example:
        >>> z = torch.eye(3)
        >>> nt_xent(z, z, temperature=0.2)
        tensor(0.0266)
    """
    one, two = (normalize(z, dim=-1) for z in _full(z1, z2))
    return _at_one_step(one, two, weights, temperature, group)


def supervised_contrast(z1: Tensor, z2: Tensor, labels: Tensor, temperature: float = 0.2) -> Tensor:
    """Views of series of one class against all others: the mean over 2N anchors, times temperature.

    An anchor's positives are the other view of its series and both views of those of its class, in
    equal shares. As CA-TCC has it, similarities are products of the vectors as they are, and the
    loss is multiplied by the temperature.

    Args:
        z1, z2: ``(..., N, M)``; the loss has the leading shape.
        labels: Whole numbers ``(..., N)`` or ``(N,)``. Below 0 is unknown: such a series has no
            positive but itself.
        temperature: Similarities are divided by it.
    """
    one, two = _full(z1, z2)
    same = (labels[..., :, None] == labels[..., None, :]) & (labels >= 0)[..., None]
    itself = torch.eye(labels.shape[-1], dtype=torch.bool, device=labels.device)
    weights = (same | itself).to(one.dtype)
    return temperature * _at_one_step(one, two, weights, temperature)


def future_contrast(future: Tensor, predicted: Tensor, mask: Tensor | None = None) -> Tensor:
    """Each future step against the predictions made for it from all series of a batch.

    The mean over series and steps of the negative logarithm of the share that the prediction from
    the step's own series has. Nothing is divided by a temperature, as in TS-TCC.

    Args:
        future: Features of the K steps that follow, in one view, ``(..., N, K, M)``.
        predicted: What the other view predicts for them, likewise.
        mask: ``(..., N, K)``, False where a series has no such step, which then is neither an
            anchor nor predicted for others.
    """
    future, predicted = _full(future, predicted)
    with torch.autocast(future.device.type, enabled=False), full_precision(future.device):
        logits = future.transpose(-3, -2) @ predicted.transpose(-3, -2).mT  # (..., K, N, N)
        own = torch.eye(logits.shape[-1], dtype=torch.bool, device=logits.device)
        if mask is None:
            shares = logits.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)  # (..., K, N)
            return -shares.mean(dim=(-2, -1))
        real = mask.mT  # (..., K, N)
        # The diagonal stays, so that a row of which nothing else is left is no NaN.
        logits = logits.masked_fill(~real[..., None, :] & ~own, float("-inf"))
        shares = logits.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)
        return -(shares * real).sum(dim=(-2, -1)) / real.sum(dim=(-2, -1)).clamp_min(1)


def _at_one_step(
    z1: Tensor,
    z2: Tensor,
    weights: Tensor | None,
    temperature: float,
    group: SharedBatch | None = None,
) -> Tensor:
    one, two = (z[..., None, :] / temperature**0.5 for z in (z1, z2))  # (..., N, 1, M)
    if group is None or group.size == 1:
        return functional.soft_instance_loss(one, two, weights, normalize_weights=True)
    return functional.hierarchical_loss(
        one, two, weights, lam=1.0, normalize_weights=True, group=group
    )


def _full(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    """In float32 or better, also under autocast."""
    dtype = torch.promote_types(torch.promote_types(one.dtype, two.dtype), torch.float32)
    return one.to(dtype), two.to(dtype)
