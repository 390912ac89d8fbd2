"""Series of many families at once: parts that are drawn, mixed, and warped in time."""

import numpy as np
import torch
from torch import Tensor

from softclt.data.generator_parts import KINDS, Draws, smooth, standard

_MOST_PARTS = 3


def block(
    families: int, siblings: int, t: int, seeds: np.random.SeedSequence, device: str | torch.device
) -> Tensor:
    """Whole families ``(F * siblings, T)``, one after the other."""
    rng = np.random.default_rng(seeds)  # what a family is made of: the host has to know it
    device = torch.device(device)
    random = torch.Generator(device).manual_seed(int(seeds.generate_state(1)[0]))
    makers, odds = zip(*KINDS, strict=True)
    kinds = rng.choice(len(makers), (families, _MOST_PARTS), p=np.divide(odds, sum(odds)))
    n_parts = 1 + rng.choice(_MOST_PARTS, families, p=(0.45, 0.37, 0.18))
    used = np.arange(_MOST_PARTS) < n_parts[:, None]  # (F, parts)
    parts = torch.zeros(families, _MOST_PARTS, siblings, t, device=device)
    for kind, make in enumerate(makers):
        family, part = (torch.from_numpy(i) for i in np.nonzero(used & (kinds == kind)))
        if len(family):
            draws = Draws(len(family), siblings, t, random)
            # A part that happens to be flat becomes noise.
            made = standard(make(draws) + 1e-6 * draws.noise(t))
            parts[family.to(device), part.to(device)] = made.view(-1, siblings, t)
    all_of_them = Draws(families, siblings, t, random)
    shares = all_of_them.setting(0.25, 1, _MOST_PARTS) * (1 + 0.05 * all_of_them.noise(_MOST_PARTS))
    parts *= shares.view(families, siblings, -1).mT[..., None]  # (F, parts, siblings, T)
    times = (n_parts > 1) & (rng.random(families) < 0.15)
    product = standard(parts[:, 0]) * standard(parts[:, 1]) + parts[:, 2]
    x = torch.where(torch.from_numpy(times).to(device)[:, None, None], product, parts.sum(dim=1))
    warped = torch.from_numpy(np.flatnonzero(rng.random(families) < 0.25)).to(device)
    if len(warped):
        draws = Draws(len(warped), siblings, t, random)
        x[warped] = _warp(draws, x[warped].view(-1, t)).view(-1, siblings, t)
    noise = all_of_them.size(0.01, 0.3) * all_of_them.chance(0.4)
    return standard(standard(x).view(-1, t) + noise * all_of_them.noise(t))


def _warp(d: Draws, x: Tensor) -> Tensor:
    """The same values on a time that runs now faster, now slower."""
    at = (d.size(0.15, 0.8) * smooth(d)).exp().cumsum(dim=1)
    at = (at - at[:, :1]) / (at[:, -1:] - at[:, :1]) * (d.t - 1)
    left = at.long().clamp(0, d.t - 2)
    return torch.lerp(x.gather(1, left), x.gather(1, left + 1), at - left)
