"""One thread that computes, for all requests: those that wait side by side are computed together.

A network takes little longer for thirty series than for one. While a batch is computed, requests
wait; the next batch takes all of them that fit together. So nobody waits for company, and under
load the batches grow by themselves. One thread is enough: the arithmetic has threads of its own.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softclt.validation import Floats

AT_ONCE = 1 << 18  # values of series in one batch; a larger request is computed in parts

Work = Callable[[Floats], Sequence[Any]]

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Job:
    """Series of one request, and what is to be made of them: a result for each of the N."""

    work: Work
    X: Floats
    group: Hashable | None
    future: "Future[list[Any]]" = field(default_factory=Future)
    abandoned: bool = False

    def begins(self) -> bool:
        """Whether somebody still waits for it; from now on it cannot be cancelled."""
        return not self.abandoned and self.future.set_running_or_notify_cancel()


class Batcher:
    """Computes what is submitted, in the order in which it came.

    Args:
        seen: Told of the number of series of each batch.
    """

    def __init__(self, seen: Callable[[int], object] = lambda n: None) -> None:
        self._seen = seen
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="softclt-compute", daemon=True)
        self._thread.start()

    async def submit(self, work: Work, X: Floats, group: Hashable | None = None) -> list[Any]:
        """What ``work`` makes of series ``(N, D, T)``: a result for each.

        Whoever is cancelled meanwhile gives up: what has not begun is not computed.

        Args:
            work: A result for each series, which no other series changes.
            X: Series.
            group: Series with the same group may be computed in one batch, by the work of any of
                them. None: these alone, and all of them at once.
        """
        if group is not None:
            group = group, X.shape[1], X.shape[2].bit_length()  # lengths that are about the same
        job = _Job(work, X, group)
        with self._changed:
            if self._closed:
                raise RuntimeError("this server is stopping")
            self._jobs.append(job)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            job.abandoned = True
            raise

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _loop(self) -> None:
        while jobs := self._next():
            self._run(jobs)

    def _next(self) -> list[_Job]:
        """The first job, with all that go with it; nothing at the end."""
        with self._changed:
            while not self._jobs:
                if self._closed:
                    return []
                self._changed.wait()
            first = self._jobs.popleft()
            together, left = [first], deque[_Job]()
            n, t = len(first.X), first.X.shape[2]
            for job in self._jobs:
                rows, longest = n + len(job.X), max(t, job.X.shape[2])
                fits = job.group is not None and job.group == first.group
                if fits and rows * first.X.shape[1] * longest <= AT_ONCE:
                    together.append(job)
                    n, t = rows, longest
                else:
                    left.append(job)
            self._jobs = left
            return together

    def _run(self, jobs: list[_Job]) -> None:
        jobs = [job for job in jobs if job.begins()]
        if not jobs:
            return
        try:
            results = self._computed(jobs)
        except ValueError as error:  # one of the series cannot be taken: the others can
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
            for job in jobs if len(jobs) > 1 else ():
                self._run_alone(job)
        except BaseException as error:
            for job in jobs:
                job.future.set_exception(error)
        else:
            start = 0
            for job in jobs:
                job.future.set_result(results[start : start + len(job.X)])
                start += len(job.X)

    def _run_alone(self, job: _Job) -> None:
        try:
            job.future.set_result(self._computed([job]))
        except BaseException as error:
            job.future.set_exception(error)

    def _computed(self, jobs: list[_Job]) -> list[Any]:
        """A result for each series of the jobs."""
        X = padded([job.X for job in jobs])
        n, d, t = X.shape
        rows = n if jobs[0].group is None else max(1, AT_ONCE // (d * t))
        results: list[Any] = []
        for start in range(0, n, rows):
            if all(job.abandoned for job in jobs):
                return [None] * n
            part = X[start : start + rows]
            self._seen(len(part))
            try:
                results.extend(jobs[0].work(part))
            except ValueError as error:
                if start == 0:
                    raise
                raise ValueError(f"{error} (counted from series {start} on)") from None
        return results


def padded(parts: Sequence[Floats]) -> Floats:
    """Series ``(N_i, D, T_i)`` below each other, NaN behind the short ones."""
    if len(parts) == 1:
        return parts[0]
    longest = max(part.shape[2] for part in parts)
    X = np.full((sum(map(len, parts)), parts[0].shape[1], longest), np.nan)
    start = 0
    for part in parts:
        X[start : start + len(part), :, : part.shape[2]] = part
        start += len(part)
    return X
