"""Distances between the series that networks see, as the steps of their training ask for them."""

from collections.abc import Hashable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softclt.data.corpus import Corpus
from softclt.data.dataset import fingerprint
from softclt.data.preparation import scale_each_series
from softclt.distances import BatchDistances
from softclt.distances.of_sets import SetDistances
from softclt.distances.store import matrix_of
from softclt.identity import settings_key
from softclt.methods.feeding import feed_distances
from softclt.methods.prepared import Series
from softclt.methods.weights import BatchWeights
from softclt.training.course import Weights
from softclt.training.feed import Feed
from softclt.training.neighbours import NeighbourRows
from softclt.validation import Floats32, check_distances

if TYPE_CHECKING:
    from softclt.methods.learner import RepresentationLearner
    from softclt.methods.soft import SoftLearner

Distances = BatchDistances | SetDistances


def key_of_distances(
    model: "SoftLearner", series: Series, n_steps: int, device: torch.device
) -> Hashable:
    """The same for models whose `distances_of` one call of ``fit`` are the same."""
    seen = series.sections
    if isinstance(seen, Feed):  # which only the models of one stack share
        compared: Hashable = id(seen)
    else:
        compared = fingerprint(model._as_compared(seen))
    options = _options(model, n_steps, device) | {"device": str(device)}
    return compared, settings_key(options, model.distance_scale)


def distances_of(
    model: "SoftLearner", series: Series, X: Any, given: Any, n_steps: int, device: torch.device
) -> Distances:
    """Distances between the series that a network sees of X.

    Args:
        model: The method.
        series: What its network sees.
        X: What was given to ``fit``; distances are within each set of a corpus.
        given: Raw distances, if the caller has them.
        n_steps: Batches that will be asked for.
        device: Where they are wanted.
    """
    if isinstance(X, Corpus):
        return _within_sets(model, X, series.sections, n_steps, device)
    own = _given(given, series, model)
    return batch_distances(model, series.sections, own, n_steps, device)


def _within_sets(
    model: "SoftLearner", corpus: Corpus, seen: Any, n_steps: int, device: torch.device
) -> SetDistances:
    """Distances within the sets of a corpus; what was made up is alike by how it was made."""
    starts = np.cumsum([0, *corpus.sizes])
    between: list[BatchDistances | int | None] = []
    for siblings, start, stop in zip(corpus.siblings, starts, starts[1:], strict=False):
        if siblings == 0:
            own = batch_distances(model, seen[start:stop], None, n_steps, device)
            assert not isinstance(own, SetDistances)
            between.append(own)
        else:
            between.append(siblings if siblings > 1 else None)
    return SetDistances(between, starts[:-1], device)


def batch_distances(
    model: "SoftLearner", seen: Floats32 | Feed, given: Any, n_steps: int, device: torch.device
) -> Distances:
    """Distances of any batch of the series that a network sees, as its method wants them.

    Args:
        model: The method.
        seen: Its series.
        given: Raw distances between them, if the caller has them.
        n_steps: Batches that will be asked for.
        device: Where they are wanted.
    """
    each_scaled = model.distance_scale == "series"
    options: dict[str, Any] = {"distances": given, "progress": model.progress}
    options |= _options(model, n_steps, device)
    if isinstance(seen, Feed):
        return feed_distances(seen, each_scaled, options)
    seen = model._as_compared(seen)
    return BatchDistances(scale_each_series(seen) if each_scaled else seen, **options)


def _options(model: "SoftLearner", n_steps: int, device: torch.device) -> dict[str, Any]:
    """What decides distances, besides the series."""
    return {
        "metric": model.distance,
        "mode": model.distance_mode,
        "normalize": model.distance_normalize,
        "steps": n_steps,
        "batch_size": model.batch_size,
        "device": device,
        **(model.distance_params or {}),
    }


def late_weights(
    models: "Sequence[SoftLearner]", seen: Floats32, given: Any, n_steps: int, x: Tensor
) -> Weights:
    """Instance weights of batches, made when one asks: a phase that has ended needs none.

    Args:
        models: A stack.
        seen, given, n_steps: See `batch_distances`.
        x: The same series, in the same order: the rows of a batch are rows of both.
    """

    @cache
    def weights() -> BatchWeights:
        between = batch_distances(models[0], seen, given, n_steps, x.device)
        return BatchWeights(between, [model._instance_weights for model in models], x.dtype)

    return lambda rows: weights()(rows)


def _given(distances: Any, series: Series, lead: "SoftLearner") -> Any:
    """The caller's distances between the series that the networks see; None if he has none."""
    if distances is None or isinstance(series.sections, Feed):  # which has no matrix of all pairs
        return distances
    distances = check_distances(matrix_of(distances), series.n_seen)
    if len(series.sections) != series.n_seen:
        raise ValueError(
            f"distances are between {series.n_seen} series, but these are cut into sections "
            f"(max_train_length={lead.max_train_length}); leave `distances` out"
        )
    return distances


def neighbour_rows(
    lead: "RepresentationLearner", between: Distances | None, X: Any
) -> NeighbourRows | None:
    """What chooses the rows of a batch; None: every series in turn."""
    corpus = X if isinstance(X, Corpus) else None
    neighbours = lead.get_params(deep=False).get("neighbours", 0)
    if corpus is None and (between is None or neighbours == 0):
        return None
    sets = between.sets if isinstance(between, SetDistances) else [between]
    matrices: list[torch.Tensor | int | None] = [
        one.matrix if isinstance(one, BatchDistances) else one for one in sets
    ]
    if neighbours > 0 and any(
        isinstance(one, BatchDistances) and one.matrix is None for one in sets
    ):
        raise ValueError(
            "neighbours need all distances at once, and there are too many series for that; "
            "give `distances`, or set neighbours=0"
        )
    if corpus is None:
        assert isinstance(matrices[0], torch.Tensor)
        return NeighbourRows(matrices, [len(matrices[0])], [1.0], neighbours)
    if between is None:
        matrices = [None] * len(corpus.sizes)
    return NeighbourRows(matrices, corpus.sizes, corpus.weights, neighbours)
