"""What training leaves for people to look at: losses and rates, as JSON lines and for TensorBoard.

A line is a step, not a look at the losses: a fit of 200 steps has two looks, which are no curve,
and the loss of a single step is mostly noise, which only its neighbours tell from a trend. Lines
are written before the checkpoint of the same look. So whoever goes on from a checkpoint finds all
lines up to its step, and cuts off those that come after.
"""

import json
import logging
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from softclt.files import append_lines, json_lines
from softclt.persistence import utc_now
from softclt.training.schedules import LearningRates
from softclt.training.state import TrainingState

_TO_TENSORBOARD = 10  # a step in so many: each of its numbers costs as much as ten lines

_log = logging.getLogger(__name__)


class History:
    """Losses and learning rates of the models of a stack, by step, in a folder; for one writer.

    Each model has a file ``history-0.jsonl`` and, if tensorboard is installed, a run
    ``tensorboard/model-0``, by its number in the call.

    Args:
        folder: Exists when the first line is written.
        numbers: Of the models, ``(R,)``.
        rates: Of the fit, whose first and last step they tell too.
    """

    def __init__(self, folder: Path, numbers: Sequence[int], rates: LearningRates) -> None:
        self.paths = [folder / f"history-{number}.jsonl" for number in numbers]
        self.runs = [folder / "tensorboard" / f"model-{number}" for number in numbers]
        self.rates = rates
        self.start = time.perf_counter()
        self._written = [rates.first] * len(self.paths)  # last step in each file
        self._writers: list[Any] | None = None

    def go_on_from(self, step: int | None) -> None:
        """Drop what an earlier process wrote of later steps, or left torn; None: all of it."""
        first = self.rates.first
        self._written = [_cut(path, first, first if step is None else step) for path in self.paths]

    def write(self, state: TrainingState, ended: bool = False) -> None:
        """Add the steps since the last time; the state has the losses of all of them."""
        seen = {"seconds": round(time.perf_counter() - self.start, 3), "time": utc_now()}
        for r, path in enumerate(self.paths):
            steps = range(self._written[r] + 1, state.step + 1)
            if not steps:
                continue
            new = [
                {"step": k, "loss": loss, "lr": self.rates.of(r, k - 1)}
                for k, loss in zip(steps, state.losses[r][-len(steps) :], strict=True)
            ]
            self._to_tensorboard(r, new)
            append_lines(path, json_lines(line | seen for line in new))
            self._written[r] = state.step
        if ended:
            for writer in self._writers or ():
                writer.close()
            self._writers = None

    def _to_tensorboard(self, r: int, lines: Sequence[dict[str, Any]]) -> None:
        """Before the lines, so that the files tell from which step on a run has to be purged."""
        if self._writers is None:
            self._writers = _event_writers(self.runs, self._written)
        if not self._writers:
            return
        for line in lines:
            if line["step"] % _TO_TENSORBOARD == 0 or line["step"] == self.rates.last:
                for name in ("loss", "lr"):
                    self._writers[r].add_scalar(name, line[name], line["step"])
        self._writers[r].flush()


def _cut(path: Path, first: int, last: int) -> int:
    """Cut a file behind its lines of the steps after ``first`` up to ``last``: the last it has."""
    if not path.is_file():
        return first
    written, size = first, 0
    with path.open("r+b") as file:
        for line in file:
            if written == last or _step_of(line) != written + 1:
                break
            written, size = written + 1, size + len(line)
        file.truncate(size)
    return written


def _step_of(line: bytes) -> int | None:
    """None if the line is torn."""
    try:
        return int(json.loads(line)["step"]) if line.endswith(b"\n") else None
    except (ValueError, KeyError, TypeError):
        return None


def _event_writers(runs: Sequence[Path], written: Sequence[int]) -> list[Any]:
    """TensorBoard's writer for each run, which hides what is there of later steps; or none."""
    if find_spec("tensorboard") is None:
        return []
    try:
        from torch.utils.tensorboard import SummaryWriter
    except Exception as error:  # nobody asked for it by name, so nobody's training ends with it
        _log.warning("tensorboard is installed, but cannot be used (%s)", error)
        return []
    return [
        SummaryWriter(run, purge_step=step + 1) for run, step in zip(runs, written, strict=True)
    ]
