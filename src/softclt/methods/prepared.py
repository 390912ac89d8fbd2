"""Series as a network is to see them: checked, scaled, cut into sections, with their times."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from softclt.data.corpus import Corpus
from softclt.data.dataset import fingerprint
from softclt.data.preparation import Scale, centre, find_scale, split_sections
from softclt.data.sources import left_on_disk
from softclt.data.times import uneven_times
from softclt.methods.feeding import prepare_feed
from softclt.training.distributed import current_group
from softclt.training.feed import Feed
from softclt.validation import (
    Floats,
    Floats32,
    check_series,
    observed_steps,
    refuse_small,
    series_lengths,
    warn_if_axes_look_swapped,
)

if TYPE_CHECKING:
    from softclt.methods.learner import RepresentationLearner

Model = TypeVar("Model", bound="RepresentationLearner")


@dataclass(frozen=True)
class Series:
    """What the network sees of X."""

    n_channels: int
    scale: Scale
    size: int
    digest: str
    n_seen: int
    sections: Floats32 | Feed
    times: Floats32 | None = None  # of the sections, (N, T), where they are uneven


@dataclass(frozen=True)
class Seen:
    """The series as a training step takes them."""

    x: Tensor  # on the device; a stand-in with a feed
    times: Tensor | None = None
    feed: Feed | None = None


def prepare(lead: Model, X: Any, times: Any, goes_on: bool) -> Series:
    """What a network is to see of X; on the scale of before if its training goes on."""
    if (source := left_on_disk(X)) is not None:
        if times is not None:
            raise ValueError("times are for series in memory; these stay on disk: leave times out")
        feed, digest, scale = prepare_feed(lead, source, goes_on)
        n_channels = feed.sets[0].shape[1]
        return Series(n_channels, scale, math.prod(source.shape), digest, len(feed), feed)
    X = checked(lead, X.values if isinstance(X, Corpus) else X, goes_on)
    scale = lead.scale_ if goes_on else find_scale(X, lead.scale)
    seen = lead._scaled(X, scale)
    for c in range(X.shape[1]):
        if not np.nan_to_num(seen[:, c]).any():  # it was 0 before, or it has become that
            largest = np.abs(X[:, c]).max(initial=0, where=~np.isnan(X[:, c]))
            refuse_small(largest, np.finfo(np.float32).tiny, c)
    sections = split_sections(seen, lead.max_train_length)
    uneven = _uneven_times(lead, times, X)
    if uneven is not None:
        uneven = split_sections(uneven[:, None], lead.max_train_length)[:, 0]
    if len(sections) > len(seen):
        kept = observed_steps(sections).any(axis=1)
        sections, uneven = sections[kept], None if uneven is None else uneven[kept]
    return Series(X.shape[1], scale, X.size, fingerprint(X), len(seen), sections, uneven)


def checked(model: "RepresentationLearner", X: Any, goes_on: bool) -> Floats:
    """Series ``(N, D, T)`` that a model can be fitted on, without what pads all of them."""
    series = check_series(X, n_channels=model.n_features_in_ if goes_on else None, min_length=2)
    warn_if_axes_look_swapped(series)
    if model.mask_padding:  # what pads all series is not there
        series = series[..., : max(2, int(series_lengths(series).max()))]
    refuse_empty(model, series)
    return series


def refuse_empty(model: "RepresentationLearner", X: Floats) -> None:
    """Refuse series ``(N, D, T)`` to learn from of which nothing can be seen."""
    if np.isnan(X).all():
        raise ValueError(
            f"X (shape {X.shape}) has no value: nothing can be learned from missing ones alone"
        )
    model._refuse_empty(X)


def _uneven_times(lead: Model, times: Any, X: Floats) -> Floats32 | None:
    """Times ``(N, T)`` in usual gaps; None where they do not matter."""
    if times is None:
        return None
    times = np.asarray(times)[..., : X.shape[-1]]  # what pads all series is not in X
    uneven = uneven_times(times, series_lengths(X), X.shape[-1])
    if uneven is None or lead._temporal_weights(torch.zeros(())) is None:
        return None
    if not lead._by_time:
        raise ValueError(
            f"the steps are not evenly spaced, and {type(lead).__name__} weighs steps by their "
            "number only; leave times out, or put the series on a grid"
        )
    if current_group().size > 1:
        raise ValueError("times of unevenly spaced steps need one process; leave times out")
    return uneven


def on_device(series: Series, lead: Model, device: torch.device) -> Seen:
    """Series and their times, shifted alike."""
    sections, times = series.sections, series.times
    assert isinstance(sections, np.ndarray)
    if times is not None:
        sections = np.concatenate([sections, times[:, None]], axis=1)
    x = torch.as_tensor(centre(sections), dtype=lead._dtype(), device=device)
    if times is None:
        return Seen(x)
    return Seen(x[:, :-1].contiguous(), x[:, -1].nan_to_num())
