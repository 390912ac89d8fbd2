"""Synthetic series of many kinds, to learn from without any real one."""

import numpy as np
import torch
from torch import Tensor

from softclt.data.generator_parts import KINDS, Draws, smooth, standard
from softclt.validation import Floats32, check_range

_AT_ONCE = 2**20  # values that are made together: bounds the memory
_MOST_AT_ONCE = 2048  # series
_MOST_PARTS = 3


def synthetic_series(
    n_series: int,
    length: int = 256,
    *,
    random_state: int = 0,
    siblings: int = 1,
    device: str | torch.device = "cpu",
) -> Floats32:
    """Series ``(N, 1, T)``, each standardised: the same seed gives the same ones.

    Each is a sum, or at times a product, of one to three parts drawn from: Gaussian processes
    (smooth, rough, periodic, sums and products of two, with trends and spikes), noise with a
    power-law spectrum or with resonances, waves and chirps with envelopes, bumps and bursts, steps,
    profiles and regimes, motifs that come again like heart beats, and smooth closed outlines. A
    quarter of them is warped in time.

    Args:
        n_series: How many.
        length: Steps of each.
        random_state: Seed.
        siblings: So many series that follow one another come from the same process, like members
            of a class: what the parts are and their sizes and periods are the same up to some per
            cent, the noise is new, and places and phases are, more or less. The last of these
            families may be cut.
        device: Where they are made. A CPU and a GPU draw different ones from a seed.

    Example:
        >>> synthetic_series(3, 64, random_state=0).shape
        (3, 1, 64)
    """
    check_range(n_series, "n_series", 0)
    check_range(length, "length", 8)
    check_range(siblings, "siblings", 1)
    at_once = min(_MOST_AT_ONCE, _AT_ONCE // length)
    families = max(1, at_once // siblings)  # of a block: no family lies in two
    x = np.empty((n_series, 1, length), np.float32)
    for start in range(0, n_series, families * siblings):
        n = min(families * siblings, n_series - start)
        seeds = np.random.SeedSequence((random_state, start))
        made = _block(-(-n // siblings), siblings, length, seeds, torch.device(device))
        x[start : start + n, 0] = made[:n].cpu().numpy()
    return x


def _block(
    families: int, siblings: int, t: int, seeds: np.random.SeedSequence, device: torch.device
) -> Tensor:
    """Whole families ``(F * siblings, T)``, one after the other."""
    rng = np.random.default_rng(seeds)  # what a family is made of: the host has to know it
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
