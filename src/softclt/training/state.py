"""Where training stands, for one model or a stack of them."""

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from softclt.encoders import Encoder
from softclt.encoders.stacked import alone, one_of, side_by_side, stacked
from softclt.silence import without_warnings

_COMPILER_FOLDER = "TORCHINDUCTOR_CACHE_DIR"

NewOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


@dataclass
class TrainingState:
    """What training needs to go on: the last iterates, the optimiser, the running means.

    Attributes:
        module: Parameters with a leading axis of R models.
        optimizer: Over them.
        averaged: Mean of the initial parameters and all iterates; ``module`` itself for a method
            that takes the last iterate.
        step: Steps taken.
        losses: By model, of each step.
    """

    module: Encoder
    optimizer: torch.optim.Optimizer
    averaged: Encoder
    step: int = 0
    losses: list[list[float]] = field(default_factory=lambda: [[]])


def new_state(
    module: Encoder, new_optimizer: NewOptimizer, averages: bool = True, n_models: int = 1
) -> TrainingState:
    """The beginning of training, of a network or a stack of ``n_models``."""
    _import_compiler()
    averaged = copy.deepcopy(module).requires_grad_(False) if averages else module
    losses: list[list[float]] = [[] for _ in range(n_models)]
    return TrainingState(module, new_optimizer(module.parameters()), averaged, losses=losses)


@cache
def _import_compiler() -> None:
    """Import what torch's optimisers import, as if it left the process as it was.

    It writes a folder into the environment, which it finds again by itself, and adds a filter of
    warnings.
    """
    before = os.environ.get(_COMPILER_FOLDER)
    with without_warnings():
        import torch._dynamo  # noqa: F401
    if before is None:
        os.environ.pop(_COMPILER_FOLDER, None)


def stack_states(states: Sequence[TrainingState], new_optimizer: NewOptimizer) -> TrainingState:
    """States at the same step side by side; a single one as it is."""
    if len(states) == 1:
        return states[0]
    module = stacked([state.module for state in states])
    averaged = module
    if states[0].averaged is not states[0].module:
        averaged = stacked([state.averaged for state in states])
    losses = [losses for state in states for losses in state.losses]
    optimizer = new_optimizer(module.parameters())
    stack = TrainingState(module, optimizer, averaged, states[0].step, losses)
    moments = [optimizer_tensors(state) for state in states]
    restore_optimizer(
        stack,
        {
            name: side_by_side(module, [own[name] for own in moments]) if value.ndim > 0 else value
            for name, value in moments[0].items()
        },
    )
    return stack


def split_state(state: TrainingState, new_optimizer: NewOptimizer) -> list[TrainingState]:
    """The states of the models of a stack."""
    if len(state.losses) == 1:
        return [state]
    moments = optimizer_tensors(state)
    states = []
    for r, losses in enumerate(state.losses):
        module = one_of(state.module, r)
        averaged = module if state.averaged is state.module else one_of(state.averaged, r)
        optimizer = new_optimizer(module.parameters())
        own = TrainingState(module, optimizer, averaged, state.step, [losses])
        restore_optimizer(
            own, {k: alone(module, v, r) if v.ndim > 0 else v for k, v in moments.items()}
        )
        states.append(own)
    return states


def optimizer_tensors(state: TrainingState) -> dict[str, Tensor]:
    """The optimiser's moments by parameter name, for storage."""
    names = [name for name, _ in state.module.named_parameters()]
    stored: dict[str, Tensor] = {}
    for i, moments in state.optimizer.state_dict()["state"].items():
        stored |= {f"{names[i]}.{key}": torch.as_tensor(value) for key, value in moments.items()}
    return stored


def restore_optimizer(state: TrainingState, stored: dict[str, Tensor]) -> None:
    """Put moments made by :func:`optimizer_tensors` back."""
    names = [name for name, _ in state.module.named_parameters()]
    moments: dict[int, dict[str, Any]] = {}
    for full_name, value in stored.items():
        name, key = full_name.rsplit(".", 1)
        moments.setdefault(names.index(name), {})[key] = value
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": moments, "param_groups": groups})
