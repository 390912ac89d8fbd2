"""Pieces of work that a process can do for another: scoring embeddings, above all."""

import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from softclt.distances.executors import ATTEMPTS, begin_worker


@dataclass(frozen=True)
class Job:
    """A call to make; it can be pickled if its parts can.

    Attributes:
        key: What the answer is for; any value.
    """

    key: Any
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        """The answer, or the exception in its place."""
        try:
            return self.function(*self.args, **self.kwargs)
        except Exception as error:
            return error


#: Does jobs in any order, and yields the key of each with its answer or exception.
RunJobs = Callable[[Iterable[Job]], Iterator[tuple[Any, Any]]]


def one_by_one(jobs: Iterable[Job]) -> Iterator[tuple[Any, Any]]:
    """Do jobs in this process, in their order."""
    for job in jobs:
        yield job.key, job()


class Workers:
    """Processes that do jobs while this one does something else; threads may share them.

    A job whose process dies is done again in a process of its own, so that it takes no other job
    down; after three deaths its answer is an exception. An error in the block, or Ctrl-C, ends them
    at once, and `run` in other threads with a CancelledError.

    Args:
        n: How many.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._others = set(multiprocessing.active_children())
        self._lock, self._alone = threading.Lock(), threading.Lock()
        self._pool = self._new_pool(n)
        self._spare: ProcessPoolExecutor | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped = kind is not None
        for pool in (self._pool, self._spare):
            if pool is not None:
                pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:  # shutdown alone would wait for what is being done
            for worker in set(multiprocessing.active_children()) - self._others:
                worker.terminate()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Any, Any]]:
        """Do jobs, a `RunJobs`."""
        waiting = {self._submit(job): job for job in jobs}
        for future in as_completed(waiting):
            job = waiting[future]
            try:
                answer = future.result()
            except CancelledError:
                raise
            except BrokenExecutor:
                answer = self._again(job)
            except Exception as error:  # it could not be pickled, or not be unpickled there
                answer = error
            yield job.key, answer

    def _submit(self, job: Job) -> Future[Any]:
        with self._lock:
            try:
                return self._pool.submit(job)
            except BrokenExecutor:
                self._pool = self._new_pool(self._n)
                return self._pool.submit(job)

    def _again(self, job: Job) -> Any:
        """One job at a time in one process: it alone can be the reason for a death."""
        with self._alone:
            for _ in range(ATTEMPTS):
                if self._stopped:
                    raise CancelledError
                if self._spare is None:
                    self._spare = self._new_pool(1)
                try:
                    return self._spare.submit(job).result()
                except BrokenExecutor:
                    self._spare = None
                except Exception as error:
                    return error
        return RuntimeError(
            f"the process that worked on it died {ATTEMPTS} times; it may need more memory"
        )

    @staticmethod
    def _new_pool(n: int) -> ProcessPoolExecutor:
        # Spawned, since threads of numba and torch do not survive a fork.
        return ProcessPoolExecutor(n, multiprocessing.get_context("spawn"), _begin)


def _begin() -> None:
    begin_worker()
    use_one_core()


def use_one_core() -> None:
    """Keep the libraries of this process to one thread each: its neighbours use the others."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    torch.set_num_threads(1)
    threadpool_limits(1)
