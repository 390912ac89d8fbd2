"""One data set of a suite: the lines it has in the end, and what they need."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from softclt.bench.configurations import ORACLE, STRATEGIES, Choice, Row
from softclt.bench.sets import SetFacts
from softclt.bench.suites import Suite
from softclt.data import Dataset
from softclt.persistence import json_safe
from softclt.selection import choose, criterion_of, metric_of
from softclt.tasks.evaluation import announce, tau_choice_of
from softclt.tasks.result import Result

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
        own = self.templates[model, seed]
        return replace(self.blank(choice.name, seed), method=own.method, params=own.params)

    def judged(self) -> dict[tuple[str, str, int], None]:
        """Strategy, model and seed of every judgement that the choices ask for."""
        return {
            (choice.strategy, base, seed): None
            for choice in self.choices
            for seed in self.seeds
            if choice.strategy != ORACLE and (choice.name, seed) in self.todo
            for base in choice.models
            if self.said(choice.strategy, base, seed) is None
        }

    def said(self, strategy: str, base: str, seed: int) -> float | None:
        """What the lines that are there say of a model by a strategy's criterion."""
        own = (self.known.get((row.name, seed)) for row in self.rows if row.base == base)
        said = (line.metrics.get(metric_of(strategy)) for line in own if line is not None)
        return next((score for score in said if score is not None), None)

    def line_of(
        self, base: str, choice: Choice, seed: int, results: Mapping[Line, Result]
    ) -> Result | None:
        """A line of a model that was read in a choice's way: a row's, or that of another choice."""
        model = next(row.name for row in self.rows if row.base == base)
        wanted = _reading(self.templates[model, seed])
        wanted |= {"options": _reading(self.templates[choice.name, seed])["options"]}
        return next((line for line in results.values() if _reading(line) == wanted), None)

    def measured(self) -> list[str]:
        """Models that need distances in data space, to be judged without labels or in all ways."""
        found = {row.base for row in self.rows if self.needs_all_seeds(row)}
        return sorted(found | {base for how, base, _ in self.judged() if how == "unlabelled"})

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
        return list(found | self._chosen_unread())

    def _chosen_unread(self) -> dict[Trained, None]:
        """Models that lines which are there choose, and that were not read in the choice's way.

        If others are still to be judged, the choice may fall on one of them instead.
        """
        found: dict[Trained, None] = {}
        for choice in self.choices:
            for seed in self.seeds:
                if choice.strategy == ORACLE or (choice.name, seed) not in self.todo:
                    continue
                said = [self.said(choice.strategy, base, seed) for base in choice.models]
                scores = [math.nan if score is None else score for score in said]
                if all(map(math.isnan, scores)):
                    continue
                base = choice.models[choose(scores, choice.preferred)]
                if self.line_of(base, choice, seed, self.known) is None:
                    found[base, seed] = None
        return found

    def pick(
        self,
        choice: Choice,
        seed: int,
        results: Mapping[Line, Result],
        judgements: Mapping[Any, Any],
    ) -> str:
        """The model that a choice falls on; test labels have a say in the oracle's alone."""
        scores, errors = [], []
        for base in choice.models:
            score: Any = float("nan")
            if choice.strategy == ORACLE:
                there = self.line_of(base, choice, seed, results)
                if there is not None:
                    score = next(iter(there.metrics.values()))
            elif (said := self.said(choice.strategy, base, seed)) is not None:
                score = said
            else:
                answer = judgements.get((choice.strategy, base, seed))
                if answer is None:
                    raise ValueError(f"{base} was not judged")
                if isinstance(answer, Exception):
                    errors.append(f"{type(answer).__name__}: {answer}")
                else:
                    score = answer[0]
            scores.append(score)
        if all(math.isnan(score) for score in scores):
            why = (errors or ["all failed"])[0]
            raise ValueError(f"none of the models could be judged: {why}")
        return choice.models[choose(scores, choice.preferred)]


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
            first = next(row.model for row in suite.rows if row.base == one.models[0])
            line = _template(suite, one, first, seed, one.strategy)
            how = json_safe(dict(one.source))  # another grid or criterion, another choice
            if one.strategy == "unlabelled":
                how["criterion"] = criterion_of(one.strategy)
            lines[one.name, seed] = replace(line, options=line.options | how)
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


def _reading(line: Result) -> dict[str, Any]:
    """What was read, and how: the same for a model of a grid and a choice that fell on it."""
    params = {key: value for key, value in line.params.items() if key != "device"}
    of_a_choice = ("grid", "among", "criterion")
    options = {k: value for k, value in line.options.items() if k not in of_a_choice}
    return {"method": line.method, "params": params, "options": options, "seed": line.seed}


def failed(blank: Result, error: object) -> Result:
    """The line of a run that went wrong."""
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return replace(blank, metrics={}, error=" ".join(words.split()))


def failed_unit(unit: Unit, error: object) -> Iterator[Result]:
    """The lines of a unit of which nothing came."""
    lines = unit.lines()
    for line in sorted(unit.todo):
        yield failed(lines[line], error)
