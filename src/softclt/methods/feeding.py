"""Fitting and encoding of series that are read batch by batch."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.data.preparation import Moments, Scale, blocks_of
from softclt.data.sources import ChannelSets, SeriesSource
from softclt.data.sources.sections import EachScaled, StreamedSeries
from softclt.distances import BatchDistances
from softclt.distances.of_sets import SetDistances
from softclt.training.feed import Feed
from softclt.validation import Floats, Floats32, check_series, warn_if_axes_look_swapped

if TYPE_CHECKING:
    from softclt.methods.learner import RepresentationLearner

Encode = Callable[[Floats], Floats32]


def prepare_feed(
    lead: "RepresentationLearner", X: SeriesSource | ChannelSets, goes_on: bool
) -> tuple[Feed, str, Scale]:
    """What the networks see of X, its fingerprint, and its scale: that of before if it goes on."""
    sets = _sets(X)
    for source in sets:
        like = np.broadcast_to(np.float32(0), (1, *source.shape[1:]))
        n_channels = lead.n_features_in_ if goes_on else None
        check_series(like, name=source.name, n_channels=n_channels, min_length=2)
        if isinstance(X, SeriesSource):
            warn_if_axes_look_swapped(like, source.name)
    surveys = [source.look(lead.progress) for source in sets]
    for source, survey in zip(sets, surveys, strict=True):
        if not survey.some.any():
            raise ValueError(
                f"{source.name} (shape {source.shape}) has no step at which all its channels have "
                "a value: nothing can be learned from missing values alone"
            )
        empty = np.flatnonzero(~survey.some)
        if len(empty):
            raise ValueError(
                f"series {empty[0]} of {source.name} has no step at which all its channels have a "
                f"value ({len(empty)} such series); leave it out"
            )
    scale: Scale = lead.scale_ if goes_on else lead.scale
    if not goes_on and scale == "channel":
        moments = Moments(sets[0].shape[1])
        for survey in surveys:
            moments.merge(survey.moments)
        scale = moments.scale()
    as_seen = partial(lead._scaled, scale=scale)
    seen = [
        StreamedSeries(source, as_seen, lead.max_train_length, trimmed=lead.mask_padding)
        for source in sets
    ]
    fingerprints = [survey.fingerprint for survey in surveys]
    digest = fingerprints[0]
    if len(sets) > 1:
        digest = hashlib.sha256(" ".join(fingerprints).encode()).hexdigest()[:16]
    return Feed(seen), digest, scale


def feed_distances(
    feed: Feed, each_scaled: bool, options: dict[str, Any]
) -> BatchDistances | SetDistances:
    """Distances between the series of a feed, within each set; for options see `BatchDistances`."""
    sources = [EachScaled(own) if each_scaled else own for own in feed.sets]
    between = [BatchDistances(source, **options) for source in sources]
    return between[0] if len(between) == 1 else SetDistances(between, feed.starts)


def encode_source(encode: Encode, X: SeriesSource | ChannelSets, level: str) -> Floats32:
    """Representations of all series of a source, read some at a time.

    Those of several sets follow each other, which have one length at the level ``instance`` only.
    """
    sets = _sets(X)
    if len(sets) > 1 and level != "instance":
        raise ValueError(
            f"level is {level!r}, but the data sets may have different lengths; encode each alone"
        )
    out, done = np.empty((0,), np.float32), 0
    for source in sets:
        for rows in blocks_of(source.shape):
            index = np.arange(*rows.indices(len(source)))
            try:
                part = encode(source.take(index))
            except ValueError as error:
                place = f"{source.name}, series {index[0]} to {index[-1]}"
                raise ValueError(f"{place}: {error}") from None
            if done == 0:
                out = np.empty((sum(map(len, sets)), *part.shape[1:]), np.float32)
            out[done : done + len(part)] = part
            done += len(part)
    return out


def _sets(X: SeriesSource | ChannelSets) -> Sequence[SeriesSource]:
    return X.sets if isinstance(X, ChannelSets) else [X]
