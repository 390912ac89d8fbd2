"""Runs, each result written down as soon as it is there: the loop that all of them go through.

`run_all` is for runs of one's own. A table of data sets and configurations is a suite: see
`softclt.bench.running`.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from softclt.data import Dataset
from softclt.parallel import in_processes, use_one_core
from softclt.tasks.evaluation import describe, evaluate
from softclt.tasks.kept import keep_until_exit, keeping, load_once
from softclt.tasks.result import Result, read_results

Item = TypeVar("Item")
Work = Callable[[Item], Iterable[Result]]
Answer = tuple[int, list[Result]]  # number of an item, its results
OnResult = Callable[[Result], None]
GivenUp = Callable[[Item, Exception], Iterable[Result]]


@dataclass(frozen=True)
class Run:
    """Arguments of one call of `evaluate`; data that go by name are loaded by each worker."""

    task: str
    model: Any
    data: Dataset | str
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)


@keeping()
def run_all(
    runs: Sequence[Run],
    out: str | os.PathLike[str] | None = None,
    *,
    n_workers: int = 1,
    on_result: OnResult | None = None,
) -> list[Result]:
    """Results of ``runs`` in their order; the first run that fails ends all with its error.

    Args:
        runs: What to run.
        out: A file of results: what it holds already is not run again, what is new is appended.
        n_workers: Processes, with one torch thread each; 1 stays in this process.
        on_result: Called with every result, found or new, e.g. to move a progress bar.
    """
    wanted = _identities(runs)
    done = {result.identity(): result for result in results_in(out)}
    missing = {key: run for key, run in zip(wanted, runs, strict=True) if key not in done}
    if on_result is not None:
        for key in wanted:
            if key in done:
                on_result(done[key])
    ledger = Ledger(out, on_result)
    work_off(_run, list(missing.values()), ledger, n_workers if len(missing) > 1 else 1)
    done |= {result.identity(): result for result in ledger.new}
    return [done[key] for key in wanted]


def _run(run: Run) -> Iterator[Result]:
    yield evaluate(run.task, run.model, _loaded(run.data), run.seed, **run.options)


def _identities(runs: Sequence[Run]) -> list[str]:
    data = {name: _loaded(name) for name in {run.data for run in runs}}
    return [
        describe(run.task, run.model, data[run.data], run.seed, **run.options).identity()
        for run in runs
    ]


def _loaded(data: Dataset | str) -> Dataset:
    return load_once(data) if isinstance(data, str) else data


class Ledger:
    """Results in the order in which they came, each in a file before the next; for all threads."""

    def __init__(self, out: str | os.PathLike[str] | None, on_result: OnResult | None) -> None:
        self.new: list[Result] = []
        self._out, self._on_result, self._lock = out, on_result, threading.Lock()

    def keep(self, results: Iterable[Result]) -> None:
        """Write results down as they come."""
        for result in results:
            with self._lock:
                if self._out is not None:
                    result.append_to(self._out)
                self.new.append(result)
                if self._on_result is not None:
                    self._on_result(result)


def results_in(out: str | os.PathLike[str] | None) -> list[Result]:
    """What a file holds already; nothing where there is none."""
    return read_results(out) if out is not None and Path(out).exists() else []


def work_off(
    work: Work[Item],
    items: Sequence[Item],
    ledger: Ledger,
    workers: int = 1,
    given_up: GivenUp[Item] | None = None,
    answers: Iterator[Answer] | None = None,
) -> None:
    """Keep the results of all items: here one by one, from another process an item's in its end.

    Args:
        work: From an item to its results.
        items: In the order in which they begin.
        ledger: Gets the results.
        workers: Processes; 1 stays in this one.
        given_up: Results of an item whose workers died again and again; None raises the error.
        answers: Of `apart` on the numbered items, from wherever it runs, instead of processes here.
    """
    if workers == 1 and answers is None:
        for item in items:
            ledger.keep(work(item))
        return
    waiting = dict(enumerate(items))
    if answers is None:
        answers = in_processes(partial(apart, work), list(waiting.items()), workers)
    try:
        for number, results in answers:
            del waiting[number]
            ledger.keep(results)
    except RuntimeError as error:
        if given_up is None:
            raise
        for item in waiting.values():
            ledger.keep(given_up(item, error))


def apart(work: Work[Item], numbered: tuple[int, Item]) -> Answer:
    """The work on an item in a process that does nothing else."""
    use_one_core()
    keep_until_exit()
    number, item = numbered
    return number, list(work(item))
