"""Views of a batch."""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softclt.training.randomness import StepDraws, Stream, numpy_generator

N_CROPS = 16  # of each length of data: few enough shapes to plan for, enough to see all scales


class Crop(NamedTuple):
    """Two overlapping windows, in steps: [first, overlap_end) and [overlap_start, last)."""

    first: int
    overlap_start: int
    overlap_end: int
    last: int

    @property
    def overlap(self) -> int:
        """Steps that both windows have."""
        return self.overlap_end - self.overlap_start


def step_crop(length: int, step: int) -> Crop:
    """The windows of a step, for series of a length; the same for all seeds.

    Each round of steps has all of them once, in an order of its own: a short training sees overlaps
    of all lengths, as a long one does.
    """
    crops = crops_of(length)
    round_, place = divmod(step, len(crops))
    return crops[_order(length, round_, len(crops))[place]]


@lru_cache(maxsize=64)  # all steps of a round ask for it
def _order(length: int, round_: int, n: int) -> list[int]:
    order: list[int] = numpy_generator(Stream.CROPS, length, round_).permutation(n).tolist()
    return order


@lru_cache(maxsize=256)
def crops_of(length: int, min_overlap: int = 2) -> list[Crop]:
    """The windows that series of a length are seen through.

    Overlaps of all lengths are equally likely, taken from evenly spread parts of their range; each
    lies at a random place and is extended to either side at random.
    """
    rng = numpy_generator(Stream.CROPS, length)
    shortest = min(min_overlap, length)
    n = min(N_CROPS, length - shortest + 1)
    edges = np.linspace(shortest, length + 1, n + 1)
    crops = []
    for low, high in pairwise(edges):
        overlap = int(low + rng.random() * (high - low))
        start = int(rng.integers(0, length - overlap + 1))
        end = start + overlap
        first, last = int(rng.integers(0, start + 1)), int(rng.integers(end, length + 1))
        crops.append(Crop(first, start, end, last))
    return crops


def overlapping_crops(x: Tensor, crop: Crop, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Both windows of series ``(..., D, T)``, each series shifted by its own offset ``(...)``.

    The overlap is the last ``crop.overlap`` steps of the first view and the first of the second.
    """
    return (
        take_steps(x, offsets + crop.first, crop.overlap_end - crop.first),
        take_steps(x, offsets + crop.overlap_start, crop.last - crop.overlap_start),
    )


def distort(
    x: Tensor, draws: StepDraws, view: int, probability: float = 0.5, sigma: float = 0.5
) -> Tensor:
    """Series ``(R, B, D, T)``, some scaled, some shifted, some with noise.

    Each of the three happens to a series by itself. The factor and the shift are one number for a
    channel, the noise is one for every value.
    """
    _, b, d, t = x.shape
    scaled, shifted, jittered = draws.keep((b, 3), probability, view, Stream.DISTORTED).unbind(-1)
    factor = 1 + sigma * draws.normal(Stream.SCALE, (b, d, 1), view)
    x = torch.where(scaled[..., None, None], x * factor, x)
    shift = sigma * draws.normal(Stream.SHIFT, (b, d, 1), view)
    x = torch.where(shifted[..., None, None], x + shift, x)
    noise = sigma * draws.normal(Stream.JITTER, (b, d, t), view)
    return torch.where(jittered[..., None, None], x + noise, x)


def jitter_and_scale(
    x: Tensor, draws: StepDraws, scale_sigma: float = 1.1, jitter_sigma: float = 0.0
) -> Tensor:
    """The weak view of TS-TCC: series ``(R, B, D, T)`` times numbers around 2, and noise.

    A factor is one number for each step of a series, shared by its channels, so that a step keeps
    its direction. The paper of TS-TCC adds noise, its code does not: without ``jitter_sigma``
    nothing is added.
    """
    _, b, d, t = x.shape
    x = x * (2 + scale_sigma * draws.normal(Stream.SCALE, (b, 1, t), 0))
    return x if jitter_sigma == 0 else x + jitter_sigma * draws.normal(Stream.JITTER, (b, d, t), 0)


def permute_and_jitter(
    x: Tensor,
    draws: StepDraws,
    max_segments: int = 8,
    jitter_sigma: float = 0.8,
    complete: bool = False,
) -> Tensor:
    """The strong view of TS-TCC: segments of series ``(R, B, D, T)`` in another order, and noise.

    All channels of a step stay together. The original writes the first channel into all others
    wherever it permutes.

    Args:
        x: NaN where missing.
        draws: Of the step.
        max_segments: A series is cut into 1 to ``max_segments`` - 1 segments, at random steps.
        jitter_sigma: Standard deviation of the noise.
        complete: Nothing is missing. Else what is cut lies between the first and the last observed
            step of a series, and what is missing between them moves along.
    """
    _, b, d, t = x.shape
    order = _permuted_steps(x, draws, max_segments, complete)
    x = x.gather(-1, order[..., None, :].expand_as(x))
    return x + jitter_sigma * draws.normal(Stream.JITTER, (b, d, t), 1)


def _permuted_steps(x: Tensor, draws: StepDraws, max_segments: int, complete: bool) -> Tensor:
    """For each place ``(R, B, T)`` the step that moves there."""
    r, b, _, t = x.shape
    steps = torch.arange(t, device=x.device).expand(r, b, t)
    before, behind = torch.zeros_like(steps, dtype=torch.bool), steps >= t
    if not complete:
        observed = ~x.isnan().any(dim=-2)
        before = observed.cumsum(dim=-1) == 0
        behind = (observed.flip(-1).cumsum(dim=-1) == 0).flip(-1)
    # A segment begins where one of the n - 1 smallest random numbers stands.
    any_number, none = (1 << 31) - 1, 1 << 31
    n_segments = 1 + draws.integers(Stream.SEGMENTS, max_segments - 1, (b,))
    numbers = draws.integers(Stream.CUTS, any_number, (b, t))
    first = (~before).int().argmax(dim=-1, keepdim=True)
    numbers = numbers.masked_fill(before | behind | (steps == first), none)
    smallest = torch.nn.functional.pad(numbers, (0, max_segments), value=none).sort(dim=-1).values
    cuts = numbers < smallest.gather(-1, n_segments[..., None] - 1)
    segment = cuts.cumsum(dim=-1)
    place = draws.integers(Stream.PLACES, any_number, (b, max_segments - 1)).argsort(dim=-1)
    moved = place.gather(-1, segment) * t + steps
    moved = torch.where(before, steps - t, torch.where(behind, max_segments * t + steps, moved))
    return moved.argsort(dim=-1)


def take_steps(x: Tensor, starts: Tensor, length: int) -> Tensor:
    """``length`` steps of series ``(..., D, T)``, from its own start ``(...)`` on in each."""
    steps = starts[..., None] + torch.arange(length, device=x.device)  # (..., length)
    return x.gather(-1, steps[..., None, :].expand(*x.shape[:-1], length))


def stretched(x: Tensor, start: Tensor, share: Tensor, length: int) -> Tensor:
    """A part of each series, stretched or squeezed to a length.

    Args:
        x: Complete series ``(B, D, T)``.
        start: Where it begins, as a share of the series, ``(B,)``.
        share: Of the series that it has, ``(B,)``; start + share is 1 at most.
        length: Steps of the result.
    """
    b, d, t = x.shape
    grid = torch.linspace(0, 1, length, device=x.device, dtype=x.dtype)
    places = (start[:, None] + share[:, None] * grid) * (t - 1)  # (B, length)
    before = places.floor().clamp(0, max(0, t - 2)).long()
    part = (places - before)[:, None]
    left = x.gather(-1, before[:, None].expand(b, d, length))
    right = x.gather(-1, (before + 1).clamp(max=t - 1)[:, None].expand(b, d, length))
    return left.lerp(right, part)


def standardised(x: Tensor) -> Tensor:
    """Each channel of each series ``(..., T)`` with mean 0 and spread 1; a constant is 0."""
    x = x - x.mean(dim=-1, keepdim=True)
    return x / x.std(dim=-1, correction=0, keepdim=True).clamp_min(1e-6)
