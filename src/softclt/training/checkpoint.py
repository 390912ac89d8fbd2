"""Training that outlives its process: where each stack stands, whole, in a file of its own.

A file is safetensors with the rest as JSON in its header. One rename puts it in place, so at any
moment it is one good checkpoint; tensors and JSON in two files could be of two moments.
"""

import itertools
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softclt.files import held, whole_file
from softclt.persistence import json_safe, versions
from softclt.training.distributed import Group
from softclt.training.history import History
from softclt.training.state import TrainingState, optimizer_tensors, restore_optimizer

FORMAT = 1

_OVERDUE = 120.0  # seconds after which a checkpoint is written even between two looks
_HEADER = "softclt"  # where safetensors' own metadata have our JSON
_SAME_VERSIONS = ("softclt", "torch", "numpy")  # other ones may compute other bits

_NOTHING_KEPT = "there is none yet"

_log = logging.getLogger(__name__)


class CheckpointError(ValueError):
    """A checkpoint that is damaged, or of another run."""


class Checkpoint:
    """The file of one stack.

    Args:
        path: Its folder is made, and found writable, before any work is done.
        run: All that the training depends on; a file of another run is refused.
        group: Processes that train together, of which the first reads and writes for all.
        history: Written and cut with the checkpoint.
    """

    def __init__(
        self, path: Path, run: dict[str, Any], group: Group, history: History | None = None
    ) -> None:
        self.path, self.group = path, group
        self.history = history if group.rank == 0 else None
        self.run = json_safe(run | {"versions": {k: versions()[k] for k in _SAME_VERSIONS}})
        self._written = time.monotonic()
        self._kept = _NOTHING_KEPT
        group.from_first(self._make_folder)

    @property
    def overdue(self) -> bool:
        """Whether the last one is long ago."""
        return time.monotonic() - self._written > _OVERDUE

    def restore(self, state: TrainingState) -> list[dict[str, Any]] | None:
        """Put ``state`` where the file says that training stood, if there is one.

        Returns:
            What was said of each model at the end, or None if training has not ended.
        """
        found = self.group.from_first(self._read_own)
        if found is None:
            return None
        header, tensors = found
        losses = tensors.pop("losses").tolist()
        put_back(state, tensors)
        state.step, state.losses = header["step"], losses
        self._kept = f"that of step {state.step} is still there"
        facts: list[dict[str, Any]] | None = header["facts"]
        if facts is None and self.group.rank == 0:
            _log.warning("going on from step %d, which %s has kept", state.step, self.path.parent)
        return facts

    def write(self, state: TrainingState, facts: Sequence[dict[str, Any]] | None = None) -> None:
        """Replace the file; an error leaves the one before.

        Args:
            state: Where training stands.
            facts: What to say of each model, once training has ended.
        """
        from safetensors.torch import save

        self._written = time.monotonic()
        if self.group.rank > 0:
            return
        tensors = tensors_of(state)
        tensors["losses"] = torch.tensor(state.losses, dtype=torch.float64)  # (R, steps)
        header = {"format": FORMAT, "step": state.step, "run": self.run, "facts": json_safe(facts)}
        content = save(
            {name: t.detach().cpu().contiguous() for name, t in tensors.items()},
            {_HEADER: json.dumps(header, allow_nan=False)},
        )
        if self.history is not None:
            with self._clear_errors():
                self.history.write(state, ended=facts is not None)
        with self._clear_errors(), whole_file(self.path, durable=True) as temporary:
            for left in self.path.parent.glob(f".{self.path.stem}-*"):  # by processes killed here
                left.unlink(missing_ok=True)
            temporary.write_bytes(content)
        self._kept = f"that of step {state.step} is still there"

    def _make_folder(self) -> None:
        with self._clear_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path.parent, os.W_OK):
                raise PermissionError(13, "no permission to write there")

    def _read_own(self) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """What the file holds, if there is one and it is of this run."""
        if not self.path.is_file():
            self._cut_history(None)
            return None
        header, tensors = _read(self.path)
        different = _differences(header["run"], self.run)
        if different:
            raise CheckpointError(
                f"{self.path} is a checkpoint of another run: {different}; "
                "choose another folder, or remove this one"
            )
        if header["facts"] is None:
            self._cut_history(header["step"])
        return header, tensors

    def _cut_history(self, step: int | None) -> None:
        if self.history is not None:
            with self._clear_errors():
                self.history.go_on_from(step)

    def _clear_errors(self) -> AbstractContextManager[None]:
        return _clear_errors(self.path, self._kept)


@contextmanager
def alone(path: Path | None, group: Group) -> Iterator[None]:
    """Keep other processes from a checkpoint: two that write to one would double its history."""
    with ExitStack() as stack:
        if path is not None:
            group.from_first(lambda: _take(stack, path))
        yield


def _take(stack: ExitStack, path: Path) -> None:
    try:
        with _clear_errors(path, _NOTHING_KEPT):
            stack.enter_context(held(path.with_name(f".{path.stem}.lock"), wait=False))
    except BlockingIOError:
        raise CheckpointError(
            f"{path} is in use: another process trains with it; wait until it has ended, or choose "
            "another folder"
        ) from None


@contextmanager
def _clear_errors(path: Path, kept: str) -> Iterator[None]:
    try:
        yield
    except BlockingIOError:  # says nothing about the disk
        raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"the checkpoint cannot be written ({error.strerror or error}; {kept}): make "
            "room, or choose another folder; the same call goes on",
            str(path),
        ) from error


def stack_files(folder: str | os.PathLike[str] | None) -> Iterator[Path | None]:
    """A file for each stack, in the order in which they are trained; None without a folder."""
    for i in itertools.count():
        yield None if folder is None else Path(folder) / f"stack-{i}.safetensors"


def kept_seeds(path: Path | None) -> list[int]:
    """Seeds of the models of a checkpoint; none if there is no such file."""
    if path is None or not path.is_file():
        return []
    return [model["seed"] for model in _read(path)[0]["run"]["models"]]


def has_ended(path: Path) -> bool:
    """Whether a file is there, and of a training that has come to its end."""
    return path.is_file() and _read(path)[0]["facts"] is not None


def tensors_of(state: TrainingState) -> dict[str, Tensor]:
    """All tensors of a state by name."""
    tensors: dict[str, Tensor] = {}
    tensors |= {f"averaged.{k}": v for k, v in state.averaged.state_dict().items()}
    if state.module is not state.averaged:
        tensors |= {f"last.{k}": v for k, v in state.module.state_dict().items()}
    return tensors | {f"optimizer.{k}": v for k, v in optimizer_tensors(state).items()}


def put_back(state: TrainingState, tensors: dict[str, Tensor]) -> None:
    """The reverse of :func:`tensors_of`."""
    state.averaged.load_state_dict(under("averaged.", tensors))
    if state.module is not state.averaged:
        state.module.load_state_dict(under("last.", tensors))
    restore_optimizer(state, {k: v.clone() for k, v in under("optimizer.", tensors).items()})


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose name begins so, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


class TrainingStopped(KeyboardInterrupt):
    """Ctrl-C, heard between two steps: the state of training is whole."""


@contextmanager
def ctrl_c_waits(enabled: bool, patient: bool = False) -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C wait for the end of a step, in the middle of which no state can be kept.

    Yields a function that tells whether it was pressed; pressed again, it does not wait, unless
    ``patient``: torchrun passes on what its processes have had from the terminal already.
    """
    default = signal.default_int_handler
    in_charge = threading.current_thread() is threading.main_thread()
    if not (enabled and in_charge and signal.getsignal(signal.SIGINT) is default):
        yield lambda: False
        return
    pressed = threading.Event()

    def remember(number: int, frame: Any) -> None:
        pressed.set()
        if not patient:
            signal.signal(signal.SIGINT, default)

    signal.signal(signal.SIGINT, remember)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, default)
    if pressed.is_set():  # after the last look
        raise TrainingStopped("stopped after the last step")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[_HEADER])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is no checkpoint, or a damaged one ({error}); remove it to begin again"
        ) from None
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {header.get('format')}, this version of softclt reads {FORMAT}; "
            "use the version that wrote it, or another folder"
        )
    return header, tensors


def _differences(there: Any, here: Any) -> str:
    there, here = dict(_leaves(there)), dict(_leaves(here))
    nothing = "missing"
    return ", ".join(
        f"{name} is {there.get(name, nothing)!r} there and {here.get(name, nothing)!r} here"
        for name in sorted(there | here)
        if there.get(name, nothing) != here.get(name, nothing)
    )


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and texts of nested JSON, each with the way to it: ``models.0.lr``."""
    if not isinstance(value, (dict, list)):
        yield name, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(inner, f"{name}.{key}" if name else str(key))
