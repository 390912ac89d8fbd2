"""One data set of a suite: the lines it has in the end, and what they need."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from softclt.data import Dataset
from softclt.persistence import json_safe
from softclt.tasks.base import announce, tau_choice_of
from softclt.tasks.result import Result
from softclt.tasks.sets import SetFacts
from softclt.tasks.suites import ORACLE, STRATEGIES, Choice, Row, Suite

Line = tuple[str, int]  # name of a row, seed
Trained = tuple[str, int]  # name of a model, seed


@dataclass(frozen=True)
class Unit:
    """What a suite still wants of one data set.

    Attributes:
        templates: All its lines without data set and scores, see `templates`.
        todo: Lines that are wanted, of rows and choices.
        known: Lines of grid points that are there.
        criteria: Whether lines of grid points hold every criterion of `softclt.selection`.
        data: The data set, for those who cannot load it; else it is loaded by its name.
    """

    task: str
    facts: SetFacts
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    choices: tuple[Choice, ...]
    templates: Mapping[Line, Result]
    todo: frozenset[Line] = frozenset()
    known: Mapping[Line, Result] = field(default_factory=dict)
    criteria: bool = False
    data: Dataset | None = None

    def lines(self) -> dict[Line, Result]:
        """All lines that the data set has in the end, without scores."""
        return {line: self.blank(*line) for line in self.templates}

    def blank(self, name: str, seed: int) -> Result:
        """The line of a row or choice without its scores."""
        facts = self.facts
        return replace(
            self.templates[name, seed],
            dataset=facts.name,
            fingerprint=facts.fingerprint,
            groups=dict(facts.groups),
        )

    def blank_choice(self, choice: Choice, base: str, seed: int) -> Result:
        """The line of a choice that fell on a model."""
        model = next(row.name for row in self.rows if row.base == base)
        params = self.templates[model, seed].params
        return replace(self.blank(choice.name, seed), params=params)

    def points(self, grid: str) -> list[str]:
        """Models of a grid by their base names."""
        return list(dict.fromkeys(row.base for row in self.rows if row.grid == grid))

    def judged(self) -> dict[tuple[str, str, int], None]:
        """Strategy, model and seed of every judgement that the choices ask for."""
        return {
            (choice.strategy, base, seed): None
            for choice in self.choices
            for seed in self.seeds
            if choice.strategy != ORACLE and (choice.name, seed) in self.todo
            for base in self.points(choice.grid)
        }

    def measured(self) -> list[str]:
        """Grids that need distances in data space, to be judged without labels or in all ways."""
        found = {row.grid for row in self.rows if self.needs_all_seeds(row)}
        judged = {base for strategy, base, _ in self.judged() if strategy == "unlabelled"}
        return sorted(found | {row.grid for row in self.rows if row.base in judged})

    def by_seed(self) -> list["Unit"]:
        """A unit for each seed, unless a line compares seeds with each other: more to share out."""
        if self.measured():
            return [self]
        parts = []
        for seed in self.seeds:
            todo = frozenset(line for line in self.todo if line[1] == seed)
            if todo:
                parts.append(replace(self, seeds=(seed,), todo=todo))
        return parts

    def needs_all_seeds(self, row: Row) -> bool:
        """Whether a missing line of a row compares seeds with each other."""
        todo = any((row.name, seed) in self.todo for seed in self.seeds)
        return bool(self.criteria and row.grid) and todo

    def embedded(self) -> list[Trained]:
        """Models and seeds that have to be trained."""
        found: dict[Trained, None] = {}
        for row in self.rows:
            for seed in self.seeds:
                if (row.name, seed) in self.todo:
                    found[row.base, seed] = None
                    if self.needs_all_seeds(row):
                        found |= {(row.base, other): None for other in self.seeds}
        for strategy, base, seed in self.judged():
            found[base, seed] = None
            if strategy == "unlabelled":
                found |= {(base, other): None for other in self.seeds}
        return list(found)


def templates(suite: Suite) -> dict[Line, Result]:
    """The lines that every data set of a suite gets, without data set and scores."""
    lines = {}
    for seed in range(suite.seeds):
        for row in suite.rows:
            choice = tau_choice_of(row.model)
            if row.grid and choice == "default":  # a point of a grid that happens to be the default
                choice = "fixed"
            lines[row.name, seed] = _template(suite, row, row.model, seed, choice)
        for one in suite.choices:
            first = next(row.model for row in suite.rows if row.grid == one.grid)
            line = _template(suite, one, first, seed, one.strategy)
            options = line.options | {"grid": json_safe(one.points)}  # another grid, another choice
            lines[one.name, seed] = replace(line, options=options)
    return lines


def _template(suite: Suite, row: Row | Choice, model: Any, seed: int, tau_choice: str) -> Result:
    line = announce(suite.task, model, "", "", seed, tau_choice=tau_choice, **row.options)
    return replace(line, suite=suite.name, configuration=row.name, control=row.control)


def key_of(result: Result) -> str:
    """Equal for a line that is wanted and one that is there.

    What a choice fell on is left open, and so is the device.
    """
    if result.configuration and result.tau_choice in STRATEGIES:
        return replace(result, params={}, method="").identity()
    params = {key: value for key, value in result.params.items() if key != "device"}
    return replace(result, params=params).identity()


def failed(blank: Result, error: object) -> Result:
    """The line of a run that went wrong."""
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return replace(blank, metrics={}, error=" ".join(words.split()))


def failed_unit(unit: Unit, error: object) -> Iterator[Result]:
    """The lines of a unit of which nothing came."""
    lines = unit.lines()
    for line in sorted(unit.todo):
        yield failed(lines[line], error)
