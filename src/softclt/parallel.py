"""Who works on a list of tasks, when not threads: processes, any executor, or a Ray cluster.

What has not begun is dropped after an error or Ctrl-C. A task may be done twice: it must not mind.
"""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs

from softclt.optional import needed

Item = TypeVar("Item")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

ATTEMPTS = 3  # after which a task whose worker dies is given up


class WorkerDied(RuntimeError):
    """A task took its process down again and again."""


def worker_count(n_jobs: int | None) -> int:
    """How many threads or processes ``n_jobs`` stands for; -1 is one a core."""
    if n_jobs == 0 or not isinstance(n_jobs, (int, np.integer, type(None))):
        raise ValueError(f"n_jobs is {n_jobs!r}; expected a number of threads, or -1 for all cores")
    return int(effective_n_jobs(n_jobs))


def on_executor(
    task: Callable[[Item], Result], items: Sequence[Item], executor: Executor
) -> Iterator[Result]:
    """Work on an executor of the caller, in the order of the items."""
    futures: list[Future[Result]] = []
    try:
        futures += [executor.submit(task, item) for item in items]
        for future in futures:
            yield future.result()
    except BrokenExecutor as error:
        raise RuntimeError(
            f"a worker of the executor died ({error}). What was finished is kept: the same call "
            "with a new executor goes on where it was"
        ) from error
    finally:
        for future in futures:
            future.cancel()


def in_processes(
    task: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[Result]:
    """Work in new processes of this machine, in any order; see `Workers` for those that die.

    An item that is given up for its deaths is an error in the end, when the others are done; at
    once after ``ATTEMPTS`` such items in a row, since then it is not the items.
    """
    given_up: list[WorkerDied] = []
    in_a_row = 0
    with Workers(max(1, min(workers, len(items)))) as processes:
        for _, answer in processes.run(Job(None, task, (item,)) for item in items):
            if isinstance(answer, WorkerDied):
                given_up.append(answer)
                in_a_row += 1
                if in_a_row == ATTEMPTS:
                    raise answer
                continue
            if isinstance(answer, Exception):
                raise answer
            in_a_row = 0
            yield answer
    if given_up:
        raise given_up[0]


def on_ray(
    task: Callable[[Shared, Item], Result],
    shared: Shared,
    items: Iterable[Item],
    address: str,
    *,
    workers: int | None = None,
    gpus: int = 0,
) -> Iterator[Result]:
    """Work on a Ray cluster, in any order; Ray does again what a worker that died had to do.

    Args:
        task: Called with ``shared`` and an item, on machines that have softclt installed.
        shared: Sent to each machine once; arrays in it are read-only there.
        items: One task each; few are under way at a time.
        address: ``"auto"``, an address, or ``"local"`` for a Ray of this call's own. A Ray that
            this process is connected to already is used in any case.
        workers: CPUs of a Ray of this call's own; ``None`` takes all.
        gpus: That a task needs.
    """
    with needed("Ray is not installed: pip install 'softclt[ray]'"):
        import ray

    with _connection(address, workers):
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=ATTEMPTS)(task)
        common = ray.put(shared)
        waiting = iter(items)
        running: list[Any] = []
        try:
            while True:
                # Asked every time, since a cluster may grow; more than it has, so that it does.
                room = max(1, 2 * int(ray.cluster_resources().get("CPU", 1)) - len(running))
                running += [remote.remote(common, item) for item in islice(waiting, room)]
                if not running:
                    return
                (done, *_), running = ray.wait(running)
                yield ray.get(done)
        except ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, ray.exceptions.RayError):
                raise error.cause from error  # what the task itself raised
            reason = str(error.cause).partition("\n")[0]
            raise RuntimeError(
                f"a worker of Ray cannot begin ({reason}); it needs softclt and all that the "
                "work needs, in the versions of this process"
            ) from error
        except ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0]
            raise RuntimeError(
                f"Ray gave up on a task after {ATTEMPTS} more attempts ({reason}). What was "
                "finished is kept: the same call goes on where it was"
            ) from error
        finally:
            for reference in running:
                ray.cancel(reference)


@contextmanager
def _connection(address: str, workers: int | None) -> Iterator[None]:
    """A connection to Ray for a while, unless there is one."""
    import ray

    if ray.is_initialized():
        yield
        return
    own: dict[str, Any] = {}
    if address == "local":
        own = {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except ConnectionError as error:
        raise ValueError(
            f"no Ray cluster answers at {address!r}; start one with 'ray start --head', give its "
            "address, or use 'local'"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def begin_worker() -> None:
    """Leave Ctrl-C to the parent, and do not outlive a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
        return WorkerDied(
            f"the process that worked on it died {ATTEMPTS} times: it may need more memory, or the "
            "script that starts it lacks `if __name__ == '__main__':`. What was finished is kept"
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
