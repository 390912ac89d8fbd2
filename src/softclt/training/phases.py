"""One stretch of training after the other on the same network, each with files of its own."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from softclt.data.dataset import fingerprint
from softclt.encoders import Encoder
from softclt.training.callbacks import Callback
from softclt.training.checkpoint import Checkpoint, alone, has_ended
from softclt.training.course import Course
from softclt.training.distributed import current_group
from softclt.training.history import History
from softclt.training.loop import fit_loop
from softclt.training.schedules import CONSTANT, LearningRates
from softclt.training.state import NewOptimizer, TrainingState, new_state


@dataclass(frozen=True)
class Phase:
    """What one phase learns, from what, and for how long.

    Attributes:
        name: Of its folder, its bar and in messages, such as ``fine-tune``.
        number: Place among the phases of a method, from 1 on; folders sort by it.
        course: Objective, series, labels and seed. Its ``rates`` are made here.
        n_steps: Steps to take.
        new_optimizer: From all parameters to their optimiser.
        lr, lr_schedule: See `TS2Vec`.
        frozen: Beginnings of the names of parameters that stay as they are. Batch statistics and
            dropout of frozen parts are switched off too: such modules are in evaluation mode.
        run: All that the result depends on besides the weights that it starts from, for JSON; a
            checkpoint of another run is refused.
    """

    name: str
    number: int
    course: Course
    n_steps: int
    new_optimizer: NewOptimizer
    lr: float
    lr_schedule: str = CONSTANT
    frozen: tuple[str, ...] = ()
    run: dict[str, Any] = field(default_factory=dict)


class PhaseMissingError(ValueError):
    """A phase that should have been run before is not in the folder."""


def run_phase(
    phase: Phase,
    module: Encoder,
    folder: str | Path | None = None,
    *,
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
    found_only: bool = False,
) -> list[dict[str, Any]]:
    """Train ``module`` in place; what is in the phase's own folder is gone on with, or taken over.

    Where several processes train together, each of them does all of a phase: labels are few, and a
    batch of them cannot be shared out.

    Args:
        phase: What to do.
        module: Starts from its weights; a stack of as many networks as the course has seeds.
            Afterwards it is in evaluation mode and nothing of it is frozen.
        folder: Holds a folder for each phase, ``2-fine-tune``, of one network; None keeps nothing.
        progress: Show a bar.
        callbacks: See ``fit``; one that returns True ends this phase.
        found_only: Do not train; an error if the phase has not ended in an earlier call.

    Returns:
        Of each network, ``loss`` of each step and ``seconds`` of training.
    """
    start = fingerprint(*(value.cpu().numpy() for value in module.state_dict().values()))
    n_models = len(phase.course.seeds)
    state = new_state(module, phase.new_optimizer, averages=False, n_models=n_models)
    rates = LearningRates([phase.lr] * n_models, [phase.lr_schedule] * n_models, 0, phase.n_steps)
    checkpoint = None
    with ExitStack() as locks:
        if folder is not None:
            file = phase_file(folder, phase.number, phase.name)
            locks.enter_context(alone(file, current_group()))
            models = [{"seed": seed} for seed in phase.course.seeds]
            run = {"phase": phase.name, "starts_from": start, "last_step": phase.n_steps}
            run |= {"models": models, **phase.run}
            checkpoint = Checkpoint(file, run, current_group(), History(file.parent, [0], rates))
        facts = None if checkpoint is None else checkpoint.restore(state)
        if facts is None:
            if found_only:
                raise _missing(phase.name, folder)
            facts = [_train(phase, state, rates, checkpoint, progress, callbacks)]
            if checkpoint is not None:
                checkpoint.write(state, facts)
    module.eval()
    return [{"loss": losses, **facts[0]} for losses in state.losses]


def phase_folder(folder: str | os.PathLike[str], number: int, name: str) -> Path:
    """Where a phase keeps its files."""
    return Path(folder) / f"{number}-{name}"


def phase_file(folder: str | Path, number: int, name: str) -> Path:
    """The checkpoint of a phase of one model."""
    return phase_folder(folder, number, name) / "stack-0.safetensors"


def check_ended(folder: str | Path | None, number: int, name: str) -> None:
    """Refuse a folder in which a phase has not come to its end."""
    if folder is None or not has_ended(phase_file(folder, number, name)):
        raise _missing(name, folder)


def _missing(name: str, folder: str | Path | None) -> PhaseMissingError:
    where = ": there is no checkpoint" if folder is None else f" to its end in {folder}"
    return PhaseMissingError(
        f"the phase {name!r} has not been run{where}; name it in `phases` as well, or give the "
        "folder in which it was run"
    )


def _train(
    phase: Phase,
    state: TrainingState,
    rates: LearningRates,
    checkpoint: Checkpoint | None,
    progress: bool,
    callbacks: Sequence[Callback],
) -> dict[str, Any]:
    began = time.perf_counter()
    with _frozen(state.module, phase.frozen):
        fit_loop(
            state,
            replace(phase.course, rates=rates),
            rates.last - state.step,
            progress,
            checkpoint,
            callbacks,
            title=phase.name,
        )
    return {"seconds": time.perf_counter() - began}


@contextmanager
def _frozen(module: nn.Module, names: tuple[str, ...]) -> Iterator[None]:
    """In training mode, but for the parts whose names begin so."""
    module.train()
    for name, part in module.named_modules():
        if names and f"{name}.".startswith(names):
            part.eval()
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(not (names and name.startswith(names)))
    try:
        yield
    finally:
        module.requires_grad_(True).eval()
