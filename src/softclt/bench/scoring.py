"""One data set of a suite, scored: probes read what was trained, and choices are made."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from softclt.bench.choices import chosen_lines, judge_job
from softclt.bench.configurations import Row
from softclt.bench.embedding import EmbeddedUnit
from softclt.bench.units import Line, Trained, Unit, failed, failed_unit
from softclt.identity import settings_key
from softclt.methods.learner import RepresentationLearner
from softclt.methods.stacks import stack_key
from softclt.parallel import Job, RunJobs, one_by_one
from softclt.selection import training_scores
from softclt.tasks.evaluation import Outcome, Together, device_of, filled, seeded_clone, tasks
from softclt.tasks.few_labels import first_phase_of
from softclt.tasks.kept import load_once
from softclt.tasks.result import Result
from softclt.tasks.together import Embedded

SLOW_PROBES = ("svm", "linear")  # they begin first, so that nothing long is left for the end


def run_unit(unit: Unit, at_once: bool = False) -> Iterator[Result]:
    """Lines of a unit as they come, in this process; what fails is a line with its error.

    Args:
        unit: What is wanted.
        at_once: Train all models in one go, as a GPU likes it. Else they are trained and scored one
            after the other, so that little is lost if the process is killed.
    """
    if "reading" not in tasks.tags(unit.task):
        yield from _whole_runs(unit, at_once)
        return
    try:
        embedded = EmbeddedUnit(unit)
        parts = [unit.embedded()] if at_once else embedded.parts()
    except Exception as error:
        yield from failed_unit(unit, error)
        return
    results: dict[Line, Result] = {}
    for part in parts:
        embedded.embed(part)
        rows = [row for row in unit.rows if not unit.needs_all_seeds(row)]
        yield from _noted(_score_rows(embedded, rows, part, one_by_one), results)
    yield from score_unit(embedded, one_by_one, results)


def _whole_runs(unit: Unit, at_once: bool) -> Iterator[Result]:
    """Lines of a task that does more than read embeddings; if at once, those of a stack are."""
    data = load_once(unit.facts.asked) if unit.data is None else unit.data
    together: Together | None = tasks.tags(unit.task).get("together") if at_once else None
    groups: dict[Any, list[tuple[Row, int]]] = {}
    for row in unit.rows:
        for seed in unit.seeds:
            if (row.name, seed) in unit.todo:
                key = _stack(row.model) or (row.name, seed), settings_key(row.options)
                groups.setdefault(key, []).append((row, seed))
    for lines in groups.values():
        if together is not None and len(lines) > 1:
            models = [seeded_clone(row.model, seed) for row, seed in lines]
            try:
                outcomes = together(models, data, **lines[0][0].options)
            except Exception as error:  # whose it is will show when each is run alone
                warnings.warn(
                    f"{len(lines)} runs in one go failed ({error}); each is run alone",
                    stacklevel=2,
                )
                outcomes = []
            for (row, seed), model, outcome in zip(lines, models, outcomes, strict=False):
                yield filled(unit.blank(row.name, seed), outcome, device_of(model), len(lines))
            if outcomes:
                continue
        for row, seed in lines:
            blank = unit.blank(row.name, seed)
            try:
                model = seeded_clone(row.model, seed)
                outcome = tasks[unit.task](model, data, **row.options)
            except Exception as error:
                yield failed(blank, error)
                continue
            yield filled(blank, outcome, device_of(model))


def _stack(model: Any) -> Any:
    """The same for models whose training without labels can be one stack; None for others."""
    first = first_phase_of(model)
    return stack_key(first) if isinstance(first, RepresentationLearner) else None


def score_unit(
    embedded: EmbeddedUnit, run_jobs: RunJobs, there: Mapping[Line, Result] | None = None
) -> Iterator[Result]:
    """Lines of a unit whose models are trained, first the rows, then the choices.

    Args:
        embedded: The unit.
        run_jobs: Does the work.
        there: Lines that are done; those of ``unit.known`` are, too.
    """
    unit = embedded.unit
    results: dict[Line, Result] = dict(unit.known) | dict(there or {})
    rows = [row for row in unit.rows if there is None or unit.needs_all_seeds(row)]
    yield from _noted(_score_rows(embedded, rows, list(embedded.found), run_jobs), results)
    judged = [judge_job(embedded, *judgement) for judgement in unit.judged()]
    yield from chosen_lines(embedded, results, dict(run_jobs(judged)), run_jobs)


def _score_rows(
    embedded: EmbeddedUnit, rows: Sequence[Row], part: Sequence[Trained], run_jobs: RunJobs
) -> Iterator[Result]:
    """Missing lines of some rows, of the models of a part."""
    unit = embedded.unit
    blanks: dict[Line, tuple[Result, Embedded]] = {}
    jobs: list[Job] = []
    for row in sorted(rows, key=lambda row: row.options.get("probe") not in SLOW_PROBES):
        for seed in unit.seeds:
            line, trained = (row.name, seed), (row.base, seed)
            if line not in unit.todo or trained not in part:
                continue
            blank, one = unit.blank(*line), embedded.found[trained]
            if isinstance(one, str):
                yield failed(blank, one)
                continue
            blanks[line] = blank, one
            jobs.append(_score_job(embedded, line, row, one, seed))
    for key, answer in run_jobs(jobs):
        blank, one = blanks[key]
        if isinstance(answer, Outcome):
            yield one.result(blank, answer)
        else:
            yield failed(blank, answer)


def _noted(results: Iterator[Result], there: dict[Line, Result]) -> Iterator[Result]:
    """The same results, each entered in a table on its way."""
    for result in results:
        if not result.error:
            there[result.configuration, result.seed] = result
        yield result


def _score_job(embedded: EmbeddedUnit, line: Line, row: Row, one: Embedded, seed: int) -> Job:
    unit = embedded.unit
    score = tasks.tags(unit.task)["reading"].score
    args = (one.R_train, one.R_test, embedded.y_train, embedded.y_test)
    if not (unit.criteria and row.grid):
        return Job(line, score, args, row.options)
    evidence = {
        "y": embedded.y_train,
        "distances": embedded.distances(row.base),
        "others": embedded.others(row.base, seed),
    }
    return Job(line, _score_and_judge, (score, args, row.options, evidence))


def _score_and_judge(
    score: Any, args: tuple[Any, ...], options: Mapping[str, Any], evidence: Mapping[str, Any]
) -> Outcome:
    outcome: Outcome = score(*args, **options)
    return replace(outcome, metrics=outcome.metrics | training_scores(args[0], **evidence))
