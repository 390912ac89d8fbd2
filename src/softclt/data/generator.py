"""Synthetic series of many kinds, to learn from without any real one."""

from typing import TYPE_CHECKING

import numpy as np

from softclt.validation import Floats32, check_range

if TYPE_CHECKING:
    import torch

_AT_ONCE = 2**20  # values that are made together: bounds the memory
_MOST_AT_ONCE = 2048  # series


def synthetic_series(
    n_series: int,
    length: int = 256,
    *,
    random_state: int = 0,
    siblings: int = 1,
    device: "str | torch.device" = "cpu",
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
    from softclt.data.generator_blocks import block  # data are read without torch

    check_range(n_series, "n_series", 0)
    check_range(length, "length", 8)
    check_range(siblings, "siblings", 1)
    at_once = min(_MOST_AT_ONCE, _AT_ONCE // length)
    families = max(1, at_once // siblings)  # of a block: no family lies in two
    x = np.empty((n_series, 1, length), np.float32)
    for start in range(0, n_series, families * siblings):
        n = min(families * siblings, n_series - start)
        seeds = np.random.SeedSequence((random_state, start))
        made = block(-(-n // siblings), siblings, length, seeds, device)
        x[start : start + n, 0] = made[:n].cpu().numpy()
    return x
