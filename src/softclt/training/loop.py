"""The one training loop of the library: a stack of R models takes its steps together."""

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt.precision import quick_products
from softclt.progress import progress_bar
from softclt.training import views as augment
from softclt.training.callbacks import Callback, Progress
from softclt.training.checkpoint import Checkpoint, TrainingStopped, ctrl_c_waits
from softclt.training.course import Batch, Course
from softclt.training.distributed import Group
from softclt.training.feed import FedBatch, Fetcher
from softclt.training.randomness import StepDraws, Stream, batch_rows, stream_keys
from softclt.training.schedules import RateFactors
from softclt.training.state import TrainingState
from softclt.validation import Ints

PRECISIONS = {"auto": torch.float32, "float32": torch.float32, "float64": torch.float64}
HALF_PRECISION = "bfloat16"  # float32 weights, bfloat16 arithmetic where it is safe

_SCHEDULED = 256  # steps whose rows go to the device at once
_LOOK_EVERY = 100  # steps between two looks at the loss, each of which waits for the device
_ASK_EVERY = 10  # steps after which processes ask each other whether one wants a checkpoint


def fit_loop(
    state: TrainingState,
    course: Course,
    n_steps: int,
    progress: bool = False,
    checkpoint: Checkpoint | None = None,
    callbacks: Sequence[Callback] = (),
    title: str = "training",
) -> None:
    """Train ``state`` in place for ``n_steps`` more steps, under a bar with the title.

    Every 100 steps and at the end the losses are looked at, callbacks are called, any of which may
    end training by returning True, and the checkpoint is written. Ctrl-C waits for the end of a
    step, and raises `TrainingStopped`.
    """
    stepper, group = _Stepper(state, course), course.group
    recent: list[Tensor] = []
    last = state.step + n_steps
    with (
        progress_bar(title, n_steps, progress and group.rank == 0) as advance,
        ctrl_c_waits(
            checkpoint is not None or group.size == 1, patient=group.size > 1
        ) as interrupted,
    ):
        while state.step < last:
            recent.append(stepper.take(state.step))
            state.step += 1
            advance(1)
            # By the number of the step, so that callbacks of a run that goes on come as before.
            due = state.step % _LOOK_EVERY == 0 or state.step == last
            if not due and not _wanted(checkpoint, interrupted, state.step, group):
                continue
            _look(state, course, recent)
            recent.clear()
            if due and group.from_first(lambda: _tell(callbacks, state, last)):
                break
            if checkpoint is not None:
                checkpoint.write(state)
                if group.any(interrupted()):
                    raise TrainingStopped(
                        f"stopped at step {state.step} of {last}; the same call goes on from "
                        f"there, with what {checkpoint.path.parent} has kept"
                    )
            elif interrupted():
                raise TrainingStopped(f"stopped at step {state.step} of {last}")


def _wanted(
    checkpoint: Checkpoint | None, interrupted: Callable[[], bool], step: int, group: Group
) -> bool:
    """Whether any process wants to stop, or a checkpoint, between two looks."""
    if checkpoint is None:
        return interrupted()
    if group.size > 1 and step % _ASK_EVERY:
        return False
    return group.any(checkpoint.overdue or interrupted())


def _look(state: TrainingState, course: Course, recent: list[Tensor]) -> None:
    """Keep the losses of the last steps, and stop at one that is no number."""
    new = torch.stack(recent).tolist()  # (steps, R)
    for r, losses in enumerate(state.losses):
        losses.extend(values[r] for values in new)
    for step, values in enumerate(new, state.step - len(new)):
        for r, value in enumerate(values):
            if not math.isfinite(value):
                raise FloatingPointError(_trouble(f"the loss became {value}", course, r, step))
    shape = len(state.losses), -1
    finite = [p.isfinite().reshape(shape).all(dim=1) for p in state.module.parameters()]
    for r, sound in enumerate(torch.stack(finite).all(dim=0).tolist()):
        if not sound:
            raise FloatingPointError(
                _trouble("weights became infinite or nan", course, r, state.step - 1)
            )


def _trouble(what: str, course: Course, r: int, step: int) -> str:
    n, seed = course.n_series, course.seeds[r]
    if course.feed is None:
        rows = batch_rows(seed, step, n, course.n_in_batch).tolist()
    else:
        rows = course.feed.rows(seed, step, course.batch_size).tolist()
    model = "" if len(course.seeds) == 1 else f" of model {r} of {len(course.seeds)} (seed {seed})"
    return (
        f"{what} at step {step}{model}, whose batch was rows {rows} of the {n} training series; "
        "a smaller lr, or scaled data (scale='channel', no extreme values in these rows), "
        "usually helps"
    )


def _tell(callbacks: Sequence[Callback], state: TrainingState, last: int) -> bool:
    """Call them all; whether any of them ends training."""
    now = [losses[-1] for losses in state.losses]
    told = Progress(state.step, last, now, state.losses)
    answers = [callback(told) for callback in callbacks]
    return any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers)


class _Stepper:
    """Takes one step after the other; on a GPU, steps of a shape seen before as a CUDA graph."""

    def __init__(self, state: TrainingState, course: Course) -> None:
        self.state, self.course = state, course
        x = course.x
        self.n, self.length = course.n_series, x.shape[-1]
        self.batch_size = course.n_in_batch
        self.part = course.group.part(self.batch_size)
        self.observed, self.fetch = None, None
        if course.feed is not None:
            self.fetch = Fetcher(course.feed, course.seeds, course.batch_size, course.group)
        else:
            observed = ~x.isnan().any(dim=1)  # (N, T)
            self.observed = None if bool(observed.all()) else observed
        self.keys = stream_keys(course.seeds, x.device)
        self.parameters: list[Tensor] = list(state.module.parameters())
        self.averaged: list[Tensor] = list(state.averaged.parameters())
        self.buffers = list(zip(state.averaged.buffers(), state.module.buffers(), strict=True))
        # What changes from step to step, at addresses that stay the same.
        r, b = len(course.seeds), self.batch_size
        self.counter = torch.zeros((), dtype=torch.int32, device=x.device)
        self.share = torch.zeros((), dtype=x.dtype, device=x.device)
        self.index = torch.zeros(r, b, dtype=torch.int64, device=x.device)
        self.lr_factors: RateFactors | None = None
        if course.rates is not None and not course.rates.same:
            base = state.optimizer.param_groups[0]["lr"]
            self.lr_factors = RateFactors(course.rates, base, self.share)
        self.fed: Tensor | None = None
        self.held: dict[Hashable, Tensor] = {}
        self.weights: Tensor | None = None
        self.rows: Tensor | None = None
        self.rows_from = 0
        self.graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor] | None] = {}
        self.pool: Any = None

    def take(self, step: int) -> Tensor:
        """Take a step: the losses ``(R,)``."""
        self._bring(step)
        # What is missing decides shapes too, and only the host can see it.
        capturable = self.course.x.device.type == "cuda" and self.course.group.size == 1
        if not capturable or self.observed is not None:
            return self._step(step)
        layout = self.course.layout(min(self.length, self.course.max_length), step)
        shape = self.index.shape, self.length, layout
        if shape not in self.graphs:  # shapes that come once are not worth a graph
            self.graphs[shape] = None
            return self._step(step)
        captured = self.graphs[shape]
        if captured is None:
            captured = self.graphs[shape] = self._capture(step)
        graph, losses = captured
        graph.replay()
        return losses.clone()

    def _bring(self, step: int) -> None:
        """Put this step's rows, weights and counters where the step looks for them."""
        if self.fetch is not None:
            rows_of_step = self._receive(self.fetch(step))
        else:
            rows_of_step = self._look_up(step)
        self.counter.fill_(step)
        self.share.fill_(1 / (step + 2))
        if self.lr_factors is not None:
            self.lr_factors.bring(step)
        if self.course.weights is not None:
            self.weights = self._hold("weights", self.course.weights(rows_of_step))

    def _look_up(self, step: int) -> Tensor:
        """The rows of this step's batch."""
        if self.rows is None or not 0 <= step - self.rows_from < len(self.rows):
            rows = [
                [self._rows_of(seed, step + k) for seed in self.course.seeds]
                for k in range(_SCHEDULED)
            ]
            self.rows = torch.from_numpy(np.array(rows)).to(self.index.device)  # (steps, R, B)
            if self.course.apart:
                numbers = torch.arange(len(self.course.seeds), device=self.index.device)
                self.rows += self.n * numbers[:, None]
            self.rows_from = step
        self.index.copy_(self.rows[step - self.rows_from])
        return self.index

    def _rows_of(self, seed: int, step: int) -> Ints:
        if self.course.rows is not None:
            return self.course.rows(seed, step, self.batch_size)
        return batch_rows(seed, step, self.n, self.batch_size)

    def _receive(self, batch: FedBatch) -> Tensor:
        """Take over series that are not on the device; their rows stay on the host, too."""
        self.index = self._hold("index", batch.rows)
        self.fed = self._hold("x", batch.x.to(self.course.x.dtype))
        self.observed = None if batch.mask is None else batch.mask.to(self.index.device)
        self.part, self.length = self.course.group.part(batch.rows.shape[1]), batch.x.shape[-1]
        return batch.rows

    def _hold(self, name: str, value: Tensor) -> Tensor:
        """A copy on the device, at an address of its own for each shape."""
        key = name, value.shape
        if key not in self.held:
            self.held[key] = torch.empty_like(value, device=self.index.device)
        if self.index.is_cuda and not value.is_cuda:
            value = value.pin_memory()  # so that nothing waits for the copy
        return self.held[key].copy_(value, non_blocking=True)

    def _step(self, step: int) -> Tensor:
        course, state = self.course, self.state
        draws = StepDraws(self.keys, step, self.counter, course.x.dtype, course.group.rank)
        batch = self._batch(draws)
        with quick_products(course.x.device, course.precision):
            with _autocast(course):
                losses = course.objective(state.module, batch, draws)
            state.optimizer.zero_grad(set_to_none=True)
            losses.sum().backward()  # type: ignore[no-untyped-call]
        losses = losses.detach()
        course.group.average_([losses, *(p.grad for p in self.parameters if p.grad is not None)])
        self._update()
        return losses

    def _batch(self, draws: StepDraws) -> Batch:
        course, index = self.course, self.index[:, self.part]
        x, mask = self.fed, self.observed
        if x is None:
            x, mask = course.x[index], None if mask is None else mask[index]
        times = None if course.times is None else course.times[index]
        about = None if course.about is None else course.about[index]
        labels = course.labels
        if labels is not None:
            labels = labels.expand(len(index), -1).gather(1, index)
        start = torch.zeros(len(index), dtype=torch.int64, device=x.device)
        if self.length > course.max_length:
            start = draws.integers(Stream.WINDOW, self.length - course.max_length + 1)
            each = start[:, None].expand(index.shape)
            x = augment.take_steps(x, each, course.max_length)
            if mask is not None:
                mask = augment.take_steps(mask[..., None, :], each, course.max_length)[..., 0, :]
            if times is not None:
                times = augment.take_steps(times[..., None, :], each, course.max_length)[..., 0, :]
        return Batch(
            x=x,
            mask=mask,
            index=index,
            start=start,
            weights=self.weights,
            temporal=course.temporal,
            lam=course.lam,
            group=course.group,
            times=times,
            labels=labels,
            about=about,
        )

    @torch.no_grad()
    def _update(self) -> None:
        if self.lr_factors is None:
            self.state.optimizer.step()
        else:  # an optimiser's step is proportional to its rate
            before = [parameter.clone() for parameter in self.parameters]
            self.state.optimizer.step()
            for old, new in zip(before, self.parameters, strict=True):
                factors = self.lr_factors.now
                factors = factors.view(-1, *[1] * (new.ndim - 1)) if new.ndim else factors[0]
                new.copy_(old.lerp(new, factors))
        if self.state.averaged is self.state.module:
            return
        # Running mean of the initial weights and all iterates, as TS2Vec's AveragedModel keeps it.
        gaps = list(torch._foreach_sub(self.parameters, self.averaged))
        torch._foreach_mul_(gaps, self.share)
        torch._foreach_add_(self.averaged, gaps)
        for kept, last in self.buffers:
            kept.copy_(last)

    def _capture(self, step: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        graph = torch.cuda.CUDAGraph()
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self.pool):
            losses = self._step(step)
        return graph, losses


def _autocast(course: Course) -> AbstractContextManager[Any]:
    if course.precision != HALF_PRECISION:
        return nullcontext()
    return torch.autocast(course.x.device.type, torch.bfloat16)
