"""Fitting: many configurations or seeds on the same series in one go; one is the special case."""

import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from softclt.data.corpus import Corpus
from softclt.data.dataset import fingerprint
from softclt.data.preparation import centre, find_scale, scale_each_series, split_sections
from softclt.data.sources import ChannelSets, SeriesSource, left_on_disk
from softclt.data.times import uneven_times
from softclt.distances import BatchDistances
from softclt.distances.of_sets import SetDistances
from softclt.distances.store import matrix_of
from softclt.identity import settings_key
from softclt.methods.feeding import feed_distances, prepare_feed
from softclt.methods.stacks import chunks, speaker, stackable
from softclt.methods.weights import BatchWeights, stacked_temporal
from softclt.training.callbacks import Callback
from softclt.training.checkpoint import (
    Checkpoint,
    TrainingStopped,
    alone,
    kept_seeds,
    stack_files,
)
from softclt.training.distributed import Group, current_group
from softclt.training.feed import Feed
from softclt.training.history import History
from softclt.training.loop import Course, Weights, fit_loop
from softclt.training.neighbours import NeighbourRows
from softclt.training.schedules import LearningRates
from softclt.training.state import TrainingState, split_state, stack_states
from softclt.validation import (
    Floats,
    Floats32,
    check_distances,
    check_ignored_labels,
    check_random_state_seed,
    check_series,
    observed_steps,
    refuse_small,
    series_lengths,
    warn_if_axes_look_swapped,
)

if TYPE_CHECKING:
    from softclt.methods.learner import RepresentationLearner
    from softclt.methods.soft import SoftLearner

Model = TypeVar("Model", bound="RepresentationLearner")


def fit_many(
    models: Iterable[Model],
    X: Any,
    y: Any = None,
    distances: Any = None,
    times: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
    *,
    title: str = "training",
) -> list[Model]:
    """Fit models on the same series, those that share an architecture side by side.

    Each model becomes what its own ``fit`` would have made of it, up to rounding. What is the same
    for all is done once: checks, scaling, distances. Models that differ in taus, alpha, lam, lr,
    assignments or seed only take their steps together, as one stack of batched products; on a GPU
    that costs little more than one model. On a CPU, where nothing is left to share, they are
    trained one after the other.

    Args:
        models: Fitted in place.
        X: See ``fit``; or a `softclt.data.Corpus`.
        y: Ignored; here for pipelines.
        distances: See ``fit``.
        times: See ``fit``. Where they are uneven, models are trained one after the other.
        checkpoint: Folder; see ``fit``. Stacks that are done are not trained again.
        callbacks: See ``fit``; each stack calls them, and one that returns True ends that stack.
        title: Of the bar.

    Example:
        >>> from softclt import TS2Vec
        >>> from softclt.data import waves
        >>> small = {"output_dims": 8, "hidden_dims": 4, "depth": 2, "max_iter": 2}
        >>> grid = [TS2Vec(tau_instance=tau, random_state=0, **small) for tau in (5.0, 20.0, None)]
        >>> fitted = fit_many(grid, waves(n_per_class=4, length=30, random_state=0).X_train)
        >>> fitted == grid, [model.n_iter_ for model in fitted]
        (True, [2, 2, 2])
    """
    models = list(models)
    for model in models:
        model._check_parameters()
    numbers = {id(model): i for i, model in enumerate(models)}
    source = left_on_disk(X)
    X = X if source is None else source
    if y is not None:
        check_ignored_labels(y, _n_series(X))
    files, processes = stack_files(checkpoint), current_group()
    with ExitStack() as locks:
        call = _Call(X, distances, times, files, tuple(callbacks), processes, numbers, title, locks)
        for group in stackable(models):
            _fit_group(group, call)
    return models


def _n_series(X: Any) -> int:
    if isinstance(X, (SeriesSource, ChannelSets)):
        return X.shape[0] if isinstance(X, SeriesSource) else sum(map(len, X.sets))
    return len(check_series(X.values if isinstance(X, Corpus) else X))


@dataclass(frozen=True)
class _Call:
    """What is asked for, and what all groups of models share."""

    X: Any
    distances: Any
    times: Any
    files: Iterator[Path | None]
    callbacks: Sequence[Callback]
    group: Group
    numbers: dict[int, int]  # of each model, by its id
    title: str
    locks: ExitStack  # on the checkpoints, until all are done
    between: dict[Any, BatchDistances | SetDistances | None] = field(default_factory=dict)

    @cached_property
    def given(self) -> str | None:
        """Fingerprint of the caller's distances."""
        return (
            None if self.distances is None else fingerprint(np.asarray(matrix_of(self.distances)))
        )


@dataclass(frozen=True)
class _Series:
    """What the network sees of X."""

    size: int
    digest: str
    n_seen: int
    sections: Floats32 | Feed
    times: Floats32 | None = None  # of the sections, (N, T), where they are uneven


@dataclass(frozen=True)
class _Seen:
    """The series as a training step takes them."""

    x: Tensor  # on the device; a stand-in with a feed
    times: Tensor | None = None
    feed: Feed | None = None


def _fit_group(models: Sequence[Model], call: _Call) -> None:
    """Fit models that differ in what varies within a stack only."""
    lead = models[0]
    previous = [model._previous_training() if model.warm_start else None for model in models]
    series = _prepare(models, call, previous[0] is not None)
    device = lead._torch_device()
    sections, digest = series.sections, series.digest
    if isinstance(sections, Feed):
        n_steps = lead._n_steps(series.size, sections.n_in_batches(lead.batch_size))
        seen = _Seen(sections.stand_in(lead._dtype(), device), feed=sections)
    else:
        n_steps = lead._n_steps(series.size, len(sections))
        seen = _on_device(series, lead, device)
    distance_seconds = 0.0
    for part in chunks(range(len(models)), lead._stack_size(seen.x) if seen.times is None else 1):
        file, own = next(call.files), [models[i] for i in part]
        call.locks.enter_context(alone(file, call.group))
        before = [previous[i] for i in part]
        seeds = call.group.from_first(lambda: _seeds(own, before, kept_seeds(file)))  # noqa: B023
        states = [
            previous[i] or model._new_training(seed, device)
            for i, model, seed in zip(part, own, seeds, strict=True)
        ]
        state = stack_states(states, lead._optimizer)
        rates, checkpoint, facts = _rates(own, state.step, state.step + n_steps), None, None
        stopped: TrainingStopped | None = None
        if file is not None:
            run = _run(own, seeds, state, rates.last, digest, seen.times, call)
            history = History(file.parent, [call.numbers[id(model)] for model in own], rates)
            checkpoint = Checkpoint(file, run, call.group, history)
            facts = checkpoint.restore(state)
        if facts is None:
            start = time.perf_counter()
            with call.group.first_then_others():
                between = _distances(models, series, call, n_steps, device)
            distance_seconds += time.perf_counter() - start
            course = _course(own, seeds, rates, seen, between, call)
            facts, stopped = _train(own, state, course, between, checkpoint, call)
            for fact in facts:
                fact["seconds"]["distances"] = distance_seconds
            if checkpoint is not None and stopped is None:
                checkpoint.write(state, facts)
        apart = split_state(state, lead._optimizer)
        for model, trained, seed, fact in zip(own, apart, seeds, facts, strict=True):
            model.seed_, model.device_, model.fingerprint_ = seed, str(device), digest
            model.training_state_, model.module_ = trained, trained.averaged.eval()
            model.n_iter_ = trained.step
            model.history_ = {"loss": trained.losses[0], **fact}
        if stopped is not None:
            if checkpoint is None:
                warnings.warn(
                    f"the model is fitted as far as training came, {state.step} of {rates.last} "
                    "steps; fit with warm_start=True goes on from there",
                    stacklevel=4,
                )
            raise stopped


def _course(
    models: Sequence[Model],
    seeds: Sequence[int],
    rates: LearningRates,
    seen: _Seen,
    between: BatchDistances | SetDistances | None,
    call: _Call,
) -> Course:
    """What a stack learns from the series, until ``rates.last``."""
    lead, x = models[0], seen.x
    weights = None
    if between is not None and any(model._is_soft_between_series() for model in models):
        weights = BatchWeights(between, [model._instance_weights for model in models], x.dtype)
    shares = [model._instance_share() for model in models]
    return Course(
        objective=speaker(models)._loss,
        x=x,
        weights=weights,
        temporal=stacked_temporal([model._temporal_weights(x) for model in models]),
        lam=shares[0] if len(set(shares)) == 1 else x.new_tensor(shares),
        seeds=seeds,
        batch_size=lead.batch_size,
        max_length=lead.max_train_length,
        layout=lead._layout,
        precision=lead.precision,
        rates=rates,
        group=call.group,
        feed=seen.feed,
        rows=_neighbour_rows(lead, between, call),
        repeats=lead._repeats,
        times=seen.times,
    )


def _neighbour_rows(
    lead: "RepresentationLearner", between: BatchDistances | SetDistances | None, call: _Call
) -> NeighbourRows | None:
    """What chooses the rows of a batch; None: every series in turn."""
    corpus = call.X if isinstance(call.X, Corpus) else None
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


def _train(
    models: Sequence[Model],
    state: TrainingState,
    course: Course,
    between: BatchDistances | SetDistances | None,
    checkpoint: Checkpoint | None,
    call: _Call,
) -> tuple[list[dict[str, Any]], TrainingStopped | None]:
    """Train a stack to the end of its rates, or to Ctrl-C.

    Returns:
        What to say of each model, besides its losses; and what stopped training.
    """
    lead, start = models[0], time.perf_counter()
    rates, weights = course.rates, course.weights
    assert rates is not None
    state.optimizer.param_groups[0]["lr"] = rates.lr[0]  # not that of an earlier fit
    n_steps = rates.last - state.step
    stopped, look = None, (lead.progress, checkpoint, call.callbacks)
    try:
        fit_loop(state, course, n_steps, *look, title=call.title)
    except TrainingStopped as stop:
        stopped = stop
    seconds = time.perf_counter() - start
    facts = []
    for model in models:
        soft = weights is not None and model._is_soft_between_series()
        facts.append(
            {
                "distance_mode": between.mode if soft and between is not None else None,
                "distances": weights.facts if soft and isinstance(weights, BatchWeights) else None,
                "trained_together": len(models),
                "seconds": {"training": seconds},
            }
        )
    return facts, stopped


def _rates(models: Sequence[Model], first: int, last: int) -> LearningRates:
    lr, schedule = [model.lr for model in models], [model.lr_schedule for model in models]
    return LearningRates(lr, schedule, first, last)


def _seeds(
    models: Sequence[Model], previous: Sequence[TrainingState | None], kept: Sequence[int]
) -> list[int]:
    """Of each model; a checkpoint's where the model leaves it open."""
    seeds = []
    for i, (model, old) in enumerate(zip(models, previous, strict=True)):
        if old is not None:
            seeds.append(model.seed_)
        elif model.random_state is None and i < len(kept):
            seeds.append(kept[i])
        else:
            seeds.append(check_random_state_seed(model.random_state))
    return seeds


def _run(
    models: Sequence[Model],
    seeds: Sequence[int],
    state: TrainingState,
    last: int,
    digest: str,
    times: torch.Tensor | None,
    call: _Call,
) -> dict[str, Any]:
    """All that the training of a stack depends on, for its checkpoint."""
    begins_with = [p.detach().cpu().numpy() for p in state.module.parameters()]
    soft = any(model._is_soft_between_series() for model in models)
    own = []
    for model, seed in zip(models, seeds, strict=True):
        params = model.get_params(deep=False)
        for name in ("progress", "random_state"):
            params.pop(name, None)
        if (encoder := params.pop("encoder", None)) is not None:
            params["encoder"] = settings_key(encoder)
        if params.get("neighbours") == 0:  # as before there was this parameter
            del params["neighbours"]
        own.append({"method": type(model).__qualname__, "seed": seed, **params})
    by_time = {} if times is None else {"times": fingerprint(times.cpu().numpy())}
    return by_time | {
        "data": digest,
        "distances": call.given if soft else None,
        "models": own,
        "first_step": state.step,
        "last_step": last,
        "goes_on_from": fingerprint(*begins_with) if state.step > 0 else None,
    }


def _prepare(models: Sequence[Model], call: _Call, goes_on: bool) -> _Series:
    lead, X = models[0], call.X
    if (source := left_on_disk(X)) is not None:
        if call.times is not None:
            raise ValueError("times are for series in memory; these stay on disk: leave times out")
        feed, digest = prepare_feed(models, source, goes_on)
        return _Series(math.prod(source.shape), digest, len(feed), feed)
    X = checked(lead, X.values if isinstance(X, Corpus) else X, goes_on)
    if not goes_on:
        scale = find_scale(X, lead.scale)
        for model in models:
            model.n_features_in_, model.scale_ = X.shape[1], scale
    seen = lead._scaled(X)
    for c in range(X.shape[1]):
        if not np.nan_to_num(seen[:, c]).any():  # it was 0 before, or it has become that
            largest = np.abs(X[:, c]).max(initial=0, where=~np.isnan(X[:, c]))
            refuse_small(largest, np.finfo(np.float32).tiny, c)
    sections = split_sections(seen, lead.max_train_length)
    times = _uneven_times(lead, call, X)
    if times is not None:
        times = split_sections(times[:, None], lead.max_train_length)[:, 0]
    if len(sections) > len(seen):
        kept = observed_steps(sections).any(axis=1)
        sections, times = sections[kept], None if times is None else times[kept]
    return _Series(X.size, fingerprint(X), len(seen), sections, times)


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


def _uneven_times(lead: Model, call: _Call, X: Floats) -> Floats32 | None:
    """Times ``(N, T)`` in usual gaps; None where they do not matter."""
    if call.times is None:
        return None
    times = np.asarray(call.times)[..., : X.shape[-1]]  # what pads all series is not in X
    uneven = uneven_times(times, series_lengths(X), X.shape[-1])
    if uneven is None or lead._temporal_weights(torch.zeros(())) is None:
        return None
    if not lead._by_time:
        raise ValueError(
            f"the steps are not evenly spaced, and {type(lead).__name__} weighs steps by their "
            "number only; leave times out, or put the series on a grid"
        )
    if call.group.size > 1:
        raise ValueError("times of unevenly spaced steps need one process; leave times out")
    return uneven


def _on_device(series: _Series, lead: Model, device: torch.device) -> _Seen:
    """Series and their times, shifted alike."""
    sections, times = series.sections, series.times
    assert isinstance(sections, np.ndarray)
    if times is not None:
        sections = np.concatenate([sections, times[:, None]], axis=1)
    x = torch.as_tensor(centre(sections), dtype=lead._dtype(), device=device)
    if times is None:
        return _Seen(x)
    return _Seen(x[:, :-1].contiguous(), x[:, -1].nan_to_num())


def _distances(
    models: Sequence[Model], series: _Series, call: _Call, n_steps: int, device: torch.device
) -> BatchDistances | SetDistances | None:
    """Distances between the series that the networks see; None where none needs them."""
    lead, sections = models[0], series.sections
    if not any(model._needs_distances() for model in models):
        return None
    params = lead.get_params(deep=False)
    if "distance" not in params:
        raise TypeError(
            f"{type(lead).__name__} has instance weights, but no parameters of distances; "
            "derive it from SoftLearner"
        )
    soft = cast("SoftLearner", lead)
    key = settings_key([params[name] for name in _OF_DISTANCES])
    if key not in call.between:
        if len(sections) == 1:
            warnings.warn(
                "there is one series only: nothing to compare it with, "
                "and tau_instance has no effect",
                stacklevel=5,
            )
            call.between[key] = None
            return None
        if isinstance(call.X, Corpus):
            call.between[key] = _within_sets(soft, call.X, sections, n_steps, device)
        else:
            given = _given(call.distances, series, lead)
            call.between[key] = batch_distances(soft, sections, given, n_steps, device)
    return call.between[key]


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
) -> BatchDistances | SetDistances:
    """Distances of any batch of the series that a network sees, as its method wants them.

    Args:
        model: The method.
        seen: Its series.
        given: Raw distances between them, if the caller has them.
        n_steps: Batches that will be asked for.
        device: Where they are wanted.
    """
    each_scaled = model.distance_scale == "series"
    options = {
        "metric": model.distance,
        "mode": model.distance_mode,
        "normalize": model.distance_normalize,
        "steps": n_steps,
        "batch_size": model.batch_size,
        "distances": given,
        "device": device,
        "progress": model.progress,
        **(model.distance_params or {}),
    }
    if isinstance(seen, Feed):
        return feed_distances(seen, each_scaled, options)
    seen = model._as_compared(seen)
    return BatchDistances(scale_each_series(seen) if each_scaled else seen, **options)


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


def _given(distances: Any, series: _Series, lead: Model) -> Any:
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


_OF_DISTANCES = (
    "distance",
    "distance_params",
    "distance_scale",
    "distance_normalize",
    "distance_mode",
    "scale",
    "mask_padding",
    "max_train_length",
    "batch_size",
    "max_iter",
    "max_epochs",
    "device",
)
