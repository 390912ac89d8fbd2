"""What a bench was asked to run, beside its results: a report then knows what is missing."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from softclt.bench.running import Plan
from softclt.files import append_lines, json_lines
from softclt.tasks.result import Result

SUFFIX = ".commands"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asked:
    """One call of a bench.

    Attributes:
        command: As it was typed.
        suite: Its name.
        rows: Names of what runs on every data set, as results call them.
        sets: Names of the data sets.
        seeds: How many.
        absent: Data sets of the suite that were not there, or could not be read.
    """

    command: str
    suite: str
    rows: tuple[str, ...]
    sets: tuple[str, ...]
    seeds: int
    absent: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan, command: str) -> "Asked":
        """What a plan asks for."""
        rows = [name for unit in plan.units for name, _ in sorted(unit.todo, key=str)]
        rows += [result.configuration for result in plan.done]
        return cls(
            command=command,
            suite=plan.suite.name,
            rows=tuple(dict.fromkeys(rows)),
            sets=tuple(facts.name for facts in plan.sets),
            seeds=plan.suite.seeds,
            absent=(*plan.missing, *(name for name, _ in plan.damaged)),
        )

    def write(self, results: Path) -> None:
        """Add it to the file beside the results, unless it is the last line there."""
        path = results.with_suffix(SUFFIX)
        if self not in (read_asked(results) if path.exists() else [])[-1:]:
            append_lines(path, json_lines([asdict(self)]))


def read_asked(path: Path) -> list[Asked]:
    """All calls whose results are in a file, or in the files of a folder and below."""
    if path.is_dir():
        files = sorted(path.rglob(f"*{SUFFIX}"))
    else:
        name = path.name.removesuffix(".gz").removesuffix(".jsonl")
        files = [path.with_name(f"{name}{SUFFIX}")]
    found = []
    for file in files:
        if not file.is_file():
            continue
        for number, line in enumerate(file.read_text("utf-8", errors="replace").splitlines(), 1):
            try:
                found.append(_of_json(json.loads(line)))
            except (ValueError, TypeError, KeyError):
                _log.warning("%s, line %d: does not say what was asked; left out", file, number)
    return found


def never_ran(asked: Sequence[Asked], results: Sequence[Result]) -> list[str]:
    """Sentences on rows, data sets and seeds that were asked for and have no line at all."""
    sentences = []
    for suite in dict.fromkeys(one.suite for one in asked):
        calls = [one for one in asked if one.suite == suite]
        own = [result for result in results if result.suite == suite]
        wanted = {
            (row, name, seed)
            for one in calls
            for row in one.rows
            for name in one.sets
            for seed in range(one.seeds)
        }
        there = {(r.configuration, r.dataset, r.seed) for r in own}
        missing = wanted - there
        for kind, at in (("row", 0), ("data set", 1)):
            seen = {line[at] for line in there}
            gone = [name for name in dict.fromkeys(_names(calls, at)) if name not in seen]
            if gone:
                plural = "s" if len(gone) > 1 else ""
                sentences.append(f"Never run in {suite}: the {kind}{plural} {', '.join(gone)}.")
        absent = list(dict.fromkeys(name for one in calls for name in one.absent))
        if absent:
            sentences.append(f"Not there when {suite} was run: {', '.join(absent)}.")
        if missing and own:
            sentences.append(
                f"{len(missing)} of the {len(wanted)} runs that {suite} was asked for are missing."
            )
    return sentences


def _names(calls: Sequence[Asked], at: int) -> list[str]:
    return [name for one in calls for name in (one.sets if at else one.rows)]


def _of_json(values: Mapping[str, Any]) -> Asked:
    texts = {name: tuple(map(str, values[name])) for name in ("rows", "sets", "absent")}
    return Asked(str(values["command"]), str(values["suite"]), seeds=int(values["seeds"]), **texts)
