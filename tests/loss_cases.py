"""Random inputs and one call of every loss, for the tests of the losses and of their kernel."""

import torch

from softclt import functional as F

# Every way through the kernel: similarities whole or in rows of blocks, lag weights dense or not.
PATHS = {
    "whole": {},
    "blocks": {"_WHOLE": 1, "_BLOCK": 30},
    "upper half and tiles": {"_ROWS": 2, "_FLAT": 3, "_TILE": 2},
    "by lag": {"_DENSE": 0},
    "blocks by lag": {"_WHOLE": 1, "_BLOCK": 30, "_DENSE": 0},
}


def views(n, t, m, seed=0, lead=()):
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(2, *lead, n, t, m, generator=rng, dtype=torch.float64)
    return z[0].requires_grad_(), z[1].requires_grad_()


def assignments(k, seed=0, lead=()):
    """Random weights, asymmetric, with ones on the diagonal."""
    rng = torch.Generator().manual_seed(seed)
    w = torch.rand(*lead, k, k, generator=rng, dtype=torch.float64)
    w.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    return w


def by_lag(t, k=0, tau=0.4):
    return 2 * torch.sigmoid(-tau * 2.0**k * torch.arange(t, dtype=torch.float64))


def some_mask(n, t, seed=0, lead=()):
    return torch.rand(*lead, n, t, generator=torch.Generator().manual_seed(seed)) > 0.3


def _instance(z1, z2, mask=None, normalize=False):
    return F.soft_instance_loss(z1, z2, assignments(z1.shape[-3]), mask, normalize)


def _temporal(z1, z2, mask=None, normalize=False):
    return F.soft_temporal_loss(z1, z2, assignments(z1.shape[-2]), mask, normalize)


def _by_lag(z1, z2, mask=None, normalize=False):
    return F.soft_temporal_loss(z1, z2, by_lag(z1.shape[-2]), mask, normalize)


def _hierarchical(z1, z2, mask=None, normalize=False):
    weights = assignments(z1.shape[-3])
    return F.hierarchical_loss(z1, z2, weights, by_lag, 0.3, mask, normalize)


def _hard(z1, z2, mask=None, normalize=False):
    return F.hierarchical_loss(z1, z2, None, None, 0.3, mask, normalize)


LOSSES = {
    "instance": _instance,
    "temporal": _temporal,
    "temporal by lag": _by_lag,
    "hierarchical": _hierarchical,
    "hard": _hard,
}
