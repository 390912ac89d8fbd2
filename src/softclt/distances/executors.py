"""Who works on a list of tasks, when not threads: processes, any executor, or a Ray cluster.

Each function yields what the task returns, item after item, and drops what has not begun after an
error or Ctrl-C. A task may be done twice: it must not mind.
"""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs

Item = TypeVar("Item")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

ATTEMPTS = 3  # after which a task whose worker dies is given up


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
    """Work in new processes of this machine, in any order; those that die are replaced.

    Given up are tasks that are left when the processes died ``ATTEMPTS`` times without finishing
    a single one in between.
    """
    waiting = dict(enumerate(items))
    deaths = 0
    while waiting:
        before = len(waiting)
        # Spawned, since threads of numba and torch do not survive a fork.
        pool = ProcessPoolExecutor(
            min(workers, before), multiprocessing.get_context("spawn"), begin_worker
        )
        futures: dict[Future[Result], int] = {}
        try:
            with suppress(BrokenExecutor):
                for key, item in waiting.items():
                    futures[pool.submit(task, item)] = key
            for future in as_completed(futures):
                with suppress(BrokenExecutor):
                    result = future.result()
                    del waiting[futures[future]]
                    yield result
        finally:
            pool.shutdown(cancel_futures=True)
        deaths = 0 if len(waiting) < before else deaths + 1
        if deaths == ATTEMPTS:
            raise RuntimeError(
                f"{len(waiting)} task(s) are left, and worker processes died {deaths} times in a "
                "row: they may need more memory, or the script that starts them lacks "
                "`if __name__ == '__main__':`. What was finished is kept"
            )


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
    try:
        import ray
    except ImportError:
        raise ModuleNotFoundError("Ray is not installed: pip install 'softclt[ray]'") from None

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
                "metric needs, in the versions of this process"
            ) from error
        except ray.exceptions.RayError as error:
            raise RuntimeError(
                f"Ray gave up on a task after {ATTEMPTS} more attempts ({error}). What was "
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
