"""Choosing among models, for each seed of a unit: by training series, or as an oracle."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from softclt.bench.configurations import Choice
from softclt.bench.embedding import EmbeddedUnit
from softclt.bench.units import Line, failed
from softclt.parallel import Job, RunJobs
from softclt.selection import embedding_score
from softclt.tasks.evaluation import Outcome, tasks
from softclt.tasks.result import Result
from softclt.tasks.together import Embedded
from softclt.validation import Floats


def judge_job(embedded: EmbeddedUnit, strategy: str, base: str, seed: int) -> Job:
    """The job that judges what a model with a seed makes of the training series."""
    one = embedded.found[base, seed]
    R = one.R_train if isinstance(one, Embedded) else one
    evidence: dict[str, Any] = {"y": embedded.y_train}
    if strategy == "unlabelled":
        others = embedded.others(base, seed)
        evidence = {"distances": embedded.distances(base), "others": others}
    return Job((strategy, base, seed), _judge, (strategy, R, evidence))


def _judge(strategy: str, R: Floats | str, evidence: Mapping[str, Any]) -> tuple[float, float]:
    """How good an embedding looks by the training series alone, and the time it took to say."""
    if isinstance(R, str):
        raise RuntimeError(R)
    start = time.perf_counter()
    return embedding_score(strategy, R, **evidence), time.perf_counter() - start


def chosen_lines(
    embedded: EmbeddedUnit,
    results: Mapping[Line, Result],
    judgements: Mapping[Any, Any],
    run_jobs: RunJobs,
) -> Iterator[Result]:
    """Lines of the choices; only what has not been read yet is read now."""
    unit = embedded.unit
    blanks: dict[Line, tuple[Result, dict[str, float], Embedded]] = {}
    jobs = []
    for choice in unit.choices:
        for seed in unit.seeds:
            line = (choice.name, seed)
            if line not in unit.todo:
                continue
            try:
                base = unit.pick(choice, seed, results, judgements)
            except ValueError as error:
                yield failed(unit.blank(*line), str(error))
                continue
            blank = unit.blank_choice(choice, base, seed)
            seconds = _seconds_of_a_choice(embedded, choice, seed, results, judgements)
            if (there := unit.line_of(base, choice, seed, results)) is not None:
                names = ("metrics", "probe", "device", "trained_together", "created", "versions")
                same = {name: getattr(there, name) for name in names}
                yield replace(blank, **same, seconds=there.seconds | seconds)
                continue
            one = embedded.found[base, seed]
            if isinstance(one, str):
                yield failed(blank, one)
                continue
            blanks[line] = blank, seconds, one
            args = (one.R_train, one.R_test, embedded.y_train, embedded.y_test)
            jobs.append(Job(line, tasks.tags(unit.task)["reading"].score, args, choice.options))
    for key, answer in run_jobs(jobs):
        blank, seconds, one = blanks[key]
        if isinstance(answer, Outcome):
            result = one.result(blank, answer)
            yield replace(result, seconds=result.seconds | seconds)
        else:
            yield failed(blank, answer)


def _seconds_of_a_choice(
    embedded: EmbeddedUnit,
    choice: Choice,
    seed: int,
    results: Mapping[Line, Result],
    judgements: Mapping[Any, Any],
) -> dict[str, float]:
    """What a choice costs: all that it chooses among is trained, embedded and judged."""
    unit, seconds = embedded.unit, {"fit": 0.0, "encode": 0.0, "select": 0.0}
    for base in choice.models:
        one = embedded.found.get((base, seed))
        own = (results.get((row.name, seed)) for row in unit.rows if row.base == base)
        there = one if isinstance(one, Embedded) else next(filter(None, own), None)
        for phase in ("fit", "encode"):
            seconds[phase] += there.seconds.get(phase, 0.0) if there is not None else 0.0
        answer = judgements.get((choice.strategy, base, seed))
        if isinstance(answer, tuple):
            seconds["select"] += answer[1]
    return seconds
