"""Fitting: many configurations or seeds on the same series in one go; one is the special case."""

import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch

from softclt.data.corpus import Corpus
from softclt.data.dataset import fingerprint
from softclt.data.sources import ChannelSets, SeriesSource, left_on_disk
from softclt.distances.store import matrix_of
from softclt.identity import settings_key
from softclt.methods.between import Distances, distances_of, key_of_distances, neighbour_rows
from softclt.methods.fitted import Fitted
from softclt.methods.prepared import Seen, Series, on_device, prepare
from softclt.methods.stacks import chunks, course_of, stackable
from softclt.methods.weights import BatchWeights
from softclt.training.callbacks import Callback
from softclt.training.checkpoint import (
    Checkpoint,
    TrainingStopped,
    alone,
    kept_seeds,
    stack_files,
)
from softclt.training.course import Course
from softclt.training.distributed import Group, current_group
from softclt.training.feed import Feed
from softclt.training.history import History
from softclt.training.loop import fit_loop
from softclt.training.schedules import LearningRates
from softclt.training.state import TrainingState, split_state, stack_states
from softclt.validation import (
    check_ignored_labels,
    check_random_state_seed,
    check_series,
)

if TYPE_CHECKING:
    from softclt.methods.learner import RepresentationLearner
    from softclt.methods.soft import SoftLearner

Model = TypeVar("Model", bound="RepresentationLearner")

# Parameters that came after the first checkpoints, and what says that they have no effect.
LATER_PARAMETERS = {
    "neighbours": 0,
    "targets": "distances",
    "target_params": None,
    "queue_size": 64,
}


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
        y: See ``fit``.
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
        call = _Call(
            X=X,
            y=y,
            distances=distances,
            times=times,
            files=files,
            callbacks=tuple(callbacks),
            group=processes,
            numbers=numbers,
            title=title,
            locks=locks,
        )
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
    y: Any
    distances: Any
    times: Any
    files: Iterator[Path | None]
    callbacks: Sequence[Callback]
    group: Group
    numbers: dict[int, int]  # of each model, by its id
    title: str
    locks: ExitStack  # on the checkpoints, until all are done
    between: dict[Any, Distances | None] = field(default_factory=dict)

    @cached_property
    def given(self) -> str | None:
        """Fingerprint of the caller's distances."""
        return (
            None if self.distances is None else fingerprint(np.asarray(matrix_of(self.distances)))
        )


def _fit_group(models: Sequence[Model], call: _Call) -> None:
    """Fit models that differ in what varies within a stack only."""
    lead = models[0]
    previous = [model._previous_training() if model.warm_start else None for model in models]
    goes_on = previous[0] is not None
    series = prepare(lead, call.X, call.times, goes_on)
    device = lead._torch_device()
    sections, digest = series.sections, series.digest
    if isinstance(sections, Feed):
        n_steps = lead._n_steps(series.size, sections.n_in_batches(lead.batch_size))
        seen = Seen(sections.stand_in(lead._dtype(), device), feed=sections)
    else:
        n_steps = lead._n_steps(series.size, len(sections))
        seen = on_device(series, lead, device)
    distance_seconds = 0.0
    for part in chunks(range(len(models)), lead._stack_size(seen.x) if seen.times is None else 1):
        file, own = next(call.files), [models[i] for i in part]
        call.locks.enter_context(alone(file, call.group))
        before = [previous[i] for i in part]
        seeds = call.group.from_first(lambda: _seeds(own, before, kept_seeds(file)))  # noqa: B023
        states = [
            previous[i] or model._new_training(seed, device, series.n_channels)
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
            model._become(
                Fitted(
                    n_channels=series.n_channels,
                    scale=model.scale_ if goes_on else series.scale,
                    seed=seed,
                    device=device,
                    fingerprint=digest,
                    module=trained.averaged,
                    n_iter=trained.step,
                    history={"loss": trained.losses[0], **fact},
                    training=trained,
                )
            )
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
    seen: Seen,
    between: Distances | None,
    call: _Call,
) -> Course:
    """What a stack learns from the series, until ``rates.last``."""
    lead, x = models[0], seen.x
    weights = None
    if between is not None and any(model._is_soft_between_series() for model in models):
        weights = BatchWeights(between, [model._instance_weights for model in models], x.dtype)
    return replace(
        course_of(models, x, seeds),
        weights=weights,
        rates=rates,
        group=call.group,
        feed=seen.feed,
        rows=neighbour_rows(lead, between, call.X),
        repeats=lead._repeats,
        times=seen.times,
        about=None if seen.feed is not None else lead._about(x),
        labels=_labels(lead, call.y, x) if lead._needs_labels() else None,
    )


def _labels(lead: Model, y: Any, x: torch.Tensor) -> torch.Tensor:
    """Class numbers of the series x, -1 where unknown."""
    if y is None:
        raise ValueError(f"{type(lead).__name__} learns from labels here; give them to fit as y")
    if len(y) != len(x):
        raise ValueError(
            f"y has a label for each of {len(y)} series, but these are cut into {len(x)} sections "
            f"or read batch by batch; set max_train_length above their length, or give an array"
        )
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    unknown = np.asarray(y) == -1 if classes.dtype.kind in "iuf" else np.zeros(len(y), bool)
    return torch.as_tensor(np.where(unknown, -1, numbers), device=x.device)


def _train(
    models: Sequence[Model],
    state: TrainingState,
    course: Course,
    between: Distances | None,
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
        for name, without in LATER_PARAMETERS.items():  # as before there were these
            if name in params and params[name] == without:
                del params[name]
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


def _distances(
    models: Sequence[Model], series: Series, call: _Call, n_steps: int, device: torch.device
) -> Distances | None:
    """Distances between the series that the networks see; None where none needs them."""
    lead = models[0]
    if not any(model._needs_distances() for model in models):
        return None
    if "distance" not in lead.get_params(deep=False):
        raise TypeError(
            f"{type(lead).__name__} has instance weights, but no parameters of distances; "
            "derive it from SoftLearner"
        )
    soft = cast("SoftLearner", lead)
    key = key_of_distances(soft, series, n_steps, device)
    if key not in call.between:
        if len(series.sections) == 1:
            warnings.warn(
                "there is one series only: nothing to compare it with, "
                "and tau_instance has no effect",
                stacklevel=5,
            )
            call.between[key] = None
        else:
            own = call.X, call.distances
            call.between[key] = distances_of(soft, series, *own, n_steps, device)
    return call.between[key]
