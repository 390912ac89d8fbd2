"""Fitting: many configurations or seeds on the same series in one go; one is the special case."""

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from softclt.data.base import fingerprint
from softclt.distances import BatchDistances
from softclt.methods.weights import BatchWeights, stacked_temporal
from softclt.preparation import Float32s, centre, channel_scale, scale_each_series, split_sections
from softclt.training.loop import Task, fit_loop
from softclt.training.state import TrainingState, split_state, stack_states
from softclt.validation import (
    check_distances,
    check_random_state_seed,
    check_series,
    observed_steps,
    series_lengths,
    warn_if_axes_look_swapped,
)

if TYPE_CHECKING:
    from softclt.methods.base import RepresentationLearner

Model = TypeVar("Model", bound="RepresentationLearner")


def fit_many(models: Iterable[Model], X: Any, y: Any = None, distances: Any = None) -> list[Model]:
    """Fit models on the same series, those that share an architecture side by side.

    Each model becomes what its own ``fit`` would have made of it, up to rounding. What is the same
    for all is done once: checks, scaling, distances. Models that differ in taus, alpha, lam, lr,
    assignments or seed only take their steps together, as one stack of batched products; on a GPU
    that costs little more than one model. On a CPU, where nothing is left to share, they are
    trained one after the other.

    Args:
        models: Fitted in place.
        X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
        y: Ignored; here for pipelines.
        distances: See ``fit``.

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
    shared: dict[Any, BatchDistances | None] = {}
    for group in _groups(models):
        _fit_group(group, X, distances, shared)
    return models


@dataclass(frozen=True)
class _Series:
    """What the network sees of X."""

    X: Any
    some: NDArray[np.bool_]  # (N,): series with any value
    n_seen: int
    sections: Float32s


def _fit_group(
    models: Sequence[Model], X: Any, distances: Any, shared: dict[Any, BatchDistances | None]
) -> None:
    """Fit models that differ in what varies within a stack only."""
    lead = models[0]
    previous = [model._previous_training() if model.warm_start else None for model in models]
    series = _prepare(models, X, previous[0] is not None)
    seeds = [
        check_random_state_seed(model.random_state) if old is None else model.seed_
        for model, old in zip(models, previous, strict=True)
    ]
    device = lead._torch_device()
    n_steps = lead._n_steps(series.X.size, len(series.sections))
    start = time.perf_counter()
    between = _distances(models, series, distances, n_steps, device, shared)
    distance_seconds = time.perf_counter() - start
    x = torch.as_tensor(centre(series.sections), dtype=lead._dtype(), device=device)
    digest = fingerprint(series.X)
    for part in _chunks(range(len(models)), lead._stack_size(x)):
        states = []
        for i in part:
            old = previous[i]
            states.append(old if old is not None else models[i]._new_training(seeds[i], device))
        own = [models[i] for i in part]
        _fit_stack(own, states, [seeds[i] for i in part], x, between, n_steps, distance_seconds)
        for model in own:
            model.device_, model.fingerprint_ = str(device), digest


def _fit_stack(
    models: Sequence[Model],
    states: Sequence[TrainingState],
    seeds: Sequence[int],
    x: torch.Tensor,
    between: BatchDistances | None,
    n_steps: int,
    distance_seconds: float,
) -> None:
    lead, start = models[0], time.perf_counter()
    weights = None
    if between is not None and any(model._is_soft_between_series() for model in models):
        weights = BatchWeights(between, [model._instance_weights for model in models], x.dtype)
    state = stack_states(states)
    rates, shares = [model.lr for model in models], [model.lam for model in models]
    task = Task(
        lead._loss,
        x,
        weights,
        stacked_temporal([model._temporal_weights(x) for model in models]),
        shares[0] if len(set(shares)) == 1 else x.new_tensor(shares),
        seeds,
        lead.batch_size,
        lead.max_train_length,
        lead._layout,
        lead.precision,
        None if len(set(rates)) == 1 else x.new_tensor(rates) / rates[0],
    )
    fit_loop(state, task, n_steps, lead.progress)
    seconds = time.perf_counter() - start
    for model, own, seed in zip(models, split_state(state), seeds, strict=True):
        model.seed_ = seed
        model.training_state_ = own
        model.module_ = own.averaged.eval()
        model.n_iter_ = own.step
        soft = weights is not None and model._is_soft_between_series()
        model.history_ = {
            "loss": own.losses[0],
            "distance_mode": between.mode if soft and between is not None else None,
            "distances": weights.facts if soft and weights is not None else None,
            "trained_together": len(models),
            "seconds": {"distances": distance_seconds, "training": seconds},
        }


def _prepare(models: Sequence[Model], X: Any, goes_on: bool) -> _Series:
    lead = models[0]
    X = check_series(X, n_channels=lead.n_features_in_ if goes_on else None, min_length=2)
    warn_if_axes_look_swapped(X)
    if lead.mask_padding:
        X = X[..., : max(2, int(series_lengths(X).max()))]  # what pads all series is not there
    some = np.asarray(observed_steps(X).any(axis=1))
    if not some.any():
        raise ValueError(
            f"X (shape {X.shape}) has no step at which all its channels have a value: "
            "nothing can be learned from missing values alone"
        )
    if not some.all():
        warnings.warn(f"{(~some).sum()} series without any value are left out", stacklevel=5)
    if not goes_on:
        scale = channel_scale(X) if lead.scale == "channel" else None
        for model in models:
            model.n_features_in_, model.scale_ = X.shape[1], scale
    seen = lead._scaled(X if some.all() else X[some])
    sections = split_sections(seen, lead.max_train_length)
    if len(sections) > len(seen):
        sections = sections[observed_steps(sections).any(axis=1)]
    return _Series(X, some, len(seen), sections)


def _distances(
    models: Sequence[Model],
    series: _Series,
    distances: Any,
    n_steps: int,
    device: torch.device,
    shared: dict[Any, BatchDistances | None],
) -> BatchDistances | None:
    """Distances between the series that the networks see; None where none needs them."""
    lead, sections = models[0], series.sections
    if not any(model._is_soft_between_series() for model in models):
        return None
    if len(sections) == 1:
        warnings.warn(
            "there is one series only: the instance part of the loss is 0, "
            "and tau_instance has no effect",
            stacklevel=5,
        )
        return None
    from softclt.distances.store import matrix_of

    if distances is not None:
        distances = check_distances(matrix_of(distances), len(series.some))
        if len(sections) != series.n_seen:
            raise ValueError(
                f"distances are between {series.n_seen} series, but these are cut into sections "
                f"(max_train_length={lead.max_train_length}); leave `distances` out"
            )
        distances = distances[np.ix_(series.some, series.some)]
    key = repr([getattr(lead, name, None) for name in _OF_DISTANCES])
    if key not in shared:
        shared[key] = BatchDistances(
            scale_each_series(sections) if lead.distance_scale == "series" else sections,
            metric=lead.distance,
            mode=lead.distance_mode,
            normalize=lead.distance_normalize,
            steps=n_steps,
            batch_size=lead.batch_size,
            distances=distances,
            device=device,
            progress=lead.progress,
            **(lead.distance_params or {}),
        )
    return shared[key]


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


def _groups(models: Sequence[Model]) -> Iterator[list[Model]]:
    """Models that can be stacked, in the order in which the first of each group was given."""
    groups: dict[Any, list[Model]] = {}
    for i, model in enumerate(models):
        shared = {
            name: value
            for name, value in model.get_params(deep=False).items()
            if name not in model._varies
        }
        previous = model._previous_training() if model.warm_start else None
        step = 0 if previous is None else previous.step
        # What says nothing of itself but its address is the same only if it is the same object.
        key = (type(model), repr(shared), step) if model._varies else i
        groups.setdefault(key, []).append(model)
    yield from groups.values()


def _chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
