"""Runs of one's own, side by side in processes, each result written down as soon as it is there.

A table of data sets and configurations is a suite: see `softclt.bench.running`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softclt.data import Dataset
from softclt.parallel import in_processes, use_one_core
from softclt.tasks.evaluation import describe, evaluate
from softclt.tasks.kept import keep_until_exit, keeping, load_once
from softclt.tasks.result import Result, read_results


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
    on_result: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Results of ``runs`` in their order; the first run that fails ends all with its error.

    Args:
        runs: What to run.
        out: A file of results: what it holds already is not run again, what is new is appended.
        n_workers: Processes, with one torch thread each; 1 stays in this process.
        on_result: Called with every result, found or new, e.g. to move a progress bar.
    """
    wanted = _identities(runs)
    done: dict[str, Result] = {}
    if out is not None and Path(out).exists():
        done = {result.identity(): result for result in read_results(out)}

    def keep(identity: str, result: Result, new: bool) -> None:
        done[identity] = result
        if new and out is not None:
            result.append_to(out)
        if on_result is not None:
            on_result(result)

    missing = {}
    for identity, run in zip(wanted, runs, strict=True):
        if identity in done:
            keep(identity, done[identity], new=False)
        else:
            missing[identity] = run
    if n_workers == 1 or len(missing) < 2:
        for identity, run in missing.items():
            keep(identity, _run(run), new=True)
    else:
        for identity, result in in_processes(_run_there, list(missing.items()), n_workers):
            keep(identity, result, new=True)
    return [done[identity] for identity in wanted]


def _run(run: Run) -> Result:
    data = load_once(run.data) if isinstance(run.data, str) else run.data
    return evaluate(run.task, run.model, data, run.seed, **run.options)


def _run_there(item: tuple[str, Run]) -> tuple[str, Result]:
    use_one_core()
    keep_until_exit()
    return item[0], _run(item[1])


def _identities(runs: Sequence[Run]) -> list[str]:
    data = {d: load_once(d) if isinstance(d, str) else d for d in {run.data for run in runs}}
    return [
        describe(run.task, run.model, data[run.data], run.seed, **run.options).identity()
        for run in runs
    ]
