"""The one training loop of the library."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.progress import progress_bar
from softclt.training.randomness import StepDraws, Stream, batch_rows

PRECISIONS = {"auto": torch.float32, "float32": torch.float32, "float64": torch.float64}
HALF_PRECISION = "bfloat16"  # float32 weights, bfloat16 arithmetic where it is safe


@dataclass(frozen=True)
class Batch:
    """What a method's loss gets.

    Attributes:
        x: Values ``(B, D, T)``, NaN where missing.
        mask: ``(B, T)``, True at observed steps; None when nothing is missing in the data set.
        index: Rows of the data set, ``(B,)``.
        start: First step of x in the series, when they are longer than what a step takes.
        weights: Soft instance assignments ``(B, B)``; None is hard.
    """

    x: Tensor
    mask: Tensor | None
    index: Tensor
    start: int
    weights: Tensor | None


Loss = Callable[[Encoder, Batch, StepDraws], Tensor]
Weights = Callable[[Tensor], Tensor]  # rows of the data set (B,) -> soft assignments (B, B)


@dataclass
class TrainingState:
    """What training needs to go on: the last iterate, the optimiser, the running mean."""

    module: Encoder
    optimizer: torch.optim.Optimizer
    averaged: Encoder
    step: int = 0
    losses: list[float] = field(default_factory=list)


def fit_loop(
    state: TrainingState,
    loss: Loss,
    x: Tensor,
    weights: Weights | None,
    *,
    seed: int,
    n_steps: int,
    batch_size: int,
    max_length: int,
    precision: str = "auto",
    progress: bool = False,
) -> None:
    """Train ``state`` in place for ``n_steps`` more steps.

    Args:
        state: Where training stands; its step counter goes on.
        loss: The method's loss of a batch.
        x: The data set ``(N, D, T)`` on the device, NaN where missing.
        weights: Gives the soft instance assignments of a batch on the device; None is hard.
        seed: All draws come from it and the step.
        n_steps: Steps to take.
        batch_size: Series in a batch; all of them if there are fewer.
        max_length: Steps of a series that a batch holds; a random window of longer ones.
        precision: float32, float64 (as the module is), or bfloat16 by autocast.
        progress: Show a bar.
    """
    n, _, t = x.shape
    batch_size = min(batch_size, n)
    observed = ~x.isnan().any(dim=1)  # (N, T)
    complete = bool(observed.all())
    history: list[Tensor] = []
    with progress_bar("training", n_steps, progress) as advance:
        for step in range(state.step, state.step + n_steps):
            draws = StepDraws(seed, step, x.device, x.dtype)
            index = torch.from_numpy(batch_rows(seed, step, n, batch_size)).to(x.device)
            start = (
                int(draws.own(Stream.WINDOW).integers(t - max_length + 1)) if t > max_length else 0
            )
            window = slice(start, start + max_length)
            batch = Batch(
                x=x[index, :, window],
                mask=None if complete else observed[index, window],
                index=index,
                start=start,
                weights=None if weights is None else weights(index),
            )
            with torch.autocast(x.device.type, torch.bfloat16, enabled=precision == HALF_PRECISION):
                value = loss(state.module, batch, draws)
            state.optimizer.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
            state.optimizer.step()
            _average(state.averaged, state.module, step + 1)
            history.append(value.detach())
            advance(1)
    state.step += n_steps
    new = torch.stack(history).tolist() if history else []
    state.losses.extend(new)
    bad = next((i for i, value in enumerate(new) if not math.isfinite(value)), None)
    if bad is not None:
        raise FloatingPointError(
            f"the loss became {new[bad]} at step {state.step - n_steps + bad}; "
            "a smaller lr, or scaled data, usually helps"
        )


@torch.no_grad()
def _average(averaged: Encoder, module: Encoder, n_before: int) -> None:
    """Running mean of the initial weights and all iterates, as TS2Vec's AveragedModel keeps it."""
    mean: list[Tensor] = list(averaged.parameters())
    new: list[Tensor] = list(module.parameters())
    torch._foreach_lerp_(mean, new, 1 / (n_before + 1))


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
