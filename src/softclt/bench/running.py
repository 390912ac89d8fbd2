"""Running a suite: what is missing, who works on it, and a line for each result at once."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from softclt.bench.embedding import EmbeddedUnit, embed_unit
from softclt.bench.runs import Ledger, OnResult, apart, results_in, work_off
from softclt.bench.scoring import run_unit, score_unit
from softclt.bench.sets import SetFacts, Sets
from softclt.bench.suites import Suite
from softclt.bench.units import Unit, failed_unit, key_of, templates
from softclt.files import whole_file
from softclt.parallel import Workers, on_ray
from softclt.tasks.evaluation import tasks
from softclt.tasks.kept import keeping, load_once
from softclt.tasks.result import Result

# Embeddings that wait for probes while the GPU goes on: bytes, and data sets.
WAITING_BYTES, WAITING_UNITS = 8e9, 16


@dataclass(frozen=True)
class Plan:
    """What a suite is to do with the data sets that are here.

    Attributes:
        units: What is missing, the largest data set first.
        done: Lines that are there.
        missing: Data sets that the suite names and that are not here.
        damaged: Data sets that cannot be read, and why.
    """

    suite: Suite
    sets: tuple[SetFacts, ...]
    units: tuple[Unit, ...]
    done: tuple[Result, ...]
    missing: tuple[str, ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()

    @property
    def n_todo(self) -> int:
        """Lines that are missing."""
        return sum(len(unit.todo) for unit in self.units)


def make_plan(
    suite: Suite, out: str | os.PathLike[str] | None = None, sets: Sequence[str] = ()
) -> Plan:
    """What is to be run, and what a file of results already holds.

    Args:
        suite: See `read_suite`.
        out: The file. Runs in it that failed are run again.
        sets: Names or patterns of the data sets to take, if not all of the suite's.
    """
    results = results_in(out)
    known: dict[str, dict[str, str]] = {}
    for result in results:
        known.setdefault(result.fingerprint, {}).update(result.groups)
    found = Sets(suite.archives, suite.groups, known)
    facts = found.find(suite.data, sets)
    there = {key_of(result): result for result in results if not result.error}
    units: list[Unit] = []
    done: list[Result] = []
    seeds, shared = tuple(range(suite.seeds)), templates(suite)
    for one in sorted(facts, key=_size, reverse=True):
        own_suite = suite.on_set(one.asked)
        rows, choices = own_suite.rows, suite.choices
        lines = shared if own_suite is suite else templates(own_suite)
        unit = Unit(suite.task, one, seeds, rows, choices, lines, criteria=suite.criteria)
        keys = {line: key_of(blank) for line, blank in unit.lines().items()}
        own = {line: there[key] for line, key in keys.items() if key in there}
        done += own.values()
        if todo := frozenset(keys) - frozenset(own):
            units.append(replace(unit, todo=todo, known=own))
    return Plan(
        suite,
        tuple(facts),
        tuple(units),
        tuple(done),
        tuple(found.missing),
        tuple(found.damaged.items()),
    )


@keeping()
def run_plan(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    ray: str | None = None,
    device: str = "cpu",
    on_result: OnResult | None = None,
) -> list[Result]:
    """Run what is missing; each result is appended to a file when it is there. The new results.

    Args:
        plan: See `make_plan`.
        out: The file of results. Lines of failed runs leave it first, and groups that are known by
            now are written into the lines that were there.
        workers: Processes. On a GPU this process trains, and they let probes read what it has
            trained, or, for a task that does more than that, each takes a data set and shares the
            GPU; on a CPU each takes a data set with one seed, or all of them where a choice
            compares seeds. Lines of a process come in the end. None is one, all but one core for
            probes beside a GPU, and all of a Ray's. One process writes each line at once.
        ray: Address of a Ray cluster that takes whole data sets instead.
        device: Where models train: ``"cpu"`` or ``"cuda"``.
        on_result: Called with every new result.
    """
    _tidy(out, plan)
    ledger = Ledger(out, on_result)
    gpu, cores = device.startswith("cuda"), os.cpu_count() or 1
    reads = gpu and "reading" in tasks.tags(plan.suite.task)
    work = partial(run_unit, at_once=gpu)
    if ray is not None:
        loaded = (replace(unit, data=load_once(unit.facts.asked)) for unit in plan.units)
        answers = on_ray(apart, work, enumerate(loaded), ray, workers=workers, gpus=int(gpu))
        work_off(work, plan.units, ledger, given_up=failed_unit, answers=answers)
        return ledger.new
    workers = (max(1, cores - 1) if reads else 1) if workers is None else workers
    if reads and workers > 1:
        _train_here_and_read_there(plan.units, workers, ledger)
        return ledger.new
    units: Sequence[Unit] = plan.units
    if workers > 1 and not gpu:  # a GPU takes the seeds of a data set side by side
        units = [part for unit in units for part in unit.by_seed()]
    work_off(work, units, ledger, workers, failed_unit)
    return ledger.new


def _size(facts: SetFacts) -> int:
    return (facts.n_train + facts.n_test) * facts.n_channels * facts.length


def _tidy(out: str | os.PathLike[str], plan: Plan) -> None:
    """Take lines of failed runs that are run again out of the file, and complete groups."""
    before = results_in(out)
    again = {key_of(line) for u in plan.units for k, line in u.lines().items() if k in u.todo}
    groups = {facts.fingerprint: dict(facts.groups) for facts in plan.sets}
    after = []
    for result in before:
        if result.error and key_of(result) in again:
            continue
        if result.suite == plan.suite.name:
            own = result.groups | groups.get(result.fingerprint, {})
            result = replace(result, groups=own)
        after.append(result)
    if after != before:
        with whole_file(out) as temporary:
            temporary.write_text("".join(result.to_json() + "\n" for result in after))


def _train_here_and_read_there(units: Sequence[Unit], workers: int, ledger: Ledger) -> None:
    """This process has the GPU busy, while processes beside it let probes read the embeddings."""
    room = _Room()

    def read(embedded: EmbeddedUnit, processes: Workers) -> None:
        try:
            ledger.keep(score_unit(embedded, processes.run))
        finally:
            room.leave(embedded.n_bytes)

    readings: list[Future[None]] = []
    with ThreadPoolExecutor(WAITING_UNITS) as threads, Workers(workers) as processes:
        for unit in units:
            try:
                embedded = embed_unit(unit)
            except Exception as error:
                ledger.keep(failed_unit(unit, error))
                continue
            room.enter(embedded.n_bytes)
            readings.append(threads.submit(read, embedded, processes))
            for reading in readings:
                if reading.done():
                    reading.result()  # what went wrong there, such as a full disk, ends all here
        for reading in readings:
            reading.result()


class _Room:
    """Holds back who would bring more than fits, until somebody leaves."""

    def __init__(self) -> None:
        self._bytes, self._units = 0, 0
        self._changed = threading.Condition()

    def enter(self, n_bytes: int) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._units == 0
                    or (self._units < WAITING_UNITS and self._bytes + n_bytes <= WAITING_BYTES)
                )
            )
            self._bytes, self._units = self._bytes + n_bytes, self._units + 1

    def leave(self, n_bytes: int) -> None:
        with self._changed:
            self._bytes, self._units = self._bytes - n_bytes, self._units - 1
            self._changed.notify_all()
