"""From results to rows: one for each configuration, with its scores by data set and seed."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from softclt.bench.suites import read_suite, shipped_suites
from softclt.tasks import tasks
from softclt.tasks.result import Result

ORACLE = "oracle"
PUBLISHED = "published"

# Without effect once both taus are None: a hard control may have them as it likes.
_SOFT_ONLY = (
    *("tau_instance", "tau_temporal", "alpha", "instance_assignment", "temporal_assignment"),
    *("tau_growth", "normalize_weights", "weight_cut", "distance", "distance_params"),
    *("distance_scale", "distance_normalize", "distance_mode"),
)
_SAME_MODEL = ("random_state", "device", "progress", "n_jobs")
_CHOSEN = ("train", "unlabelled", ORACLE)  # taus that differ from data set to data set
_POINT = re.compile(r"(.*\S)\([^()]*\)( · \w+)?")
_TOLD_FIRST = ("method", "probe", "tau_instance", "tau_temporal")


@dataclass
class Row:
    """A competitor: one of our configurations or a published method.

    Attributes:
        scores: Data set -> seed -> score; published scores stand under seed 0.
        kind: See `kind`; or ``"published"``.
        tau_choice: How the taus were chosen; for a published row what its source says.
        control: Name of the hard row that differs in softness alone.
        source: Where published scores come from.
        point: Whether it is a point of a grid, ``NAME(5, 0.5)``, of which ``NAME train`` or the
            like chose: best of many by its scores, it would be an oracle.
        groups: Data set -> kind of group -> group, e.g. ``{"seasonality": "strong"}``.
        criteria: By which criteria without labels its taus were chosen.
    """

    name: str
    kind: str
    tau_choice: str = ""
    control: str = ""
    method: str = ""
    probe: str = ""
    source: str = ""
    point: bool = False
    scores: dict[str, dict[int, float]] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    criteria: set[str] = field(default_factory=set)

    @property
    def oracle(self) -> bool:
        """Whether test labels chose something: an upper bound, never a score to claim."""
        return ORACLE in self.tau_choice

    @property
    def published(self) -> bool:
        """Whether somebody else's scores are quoted."""
        return self.kind == PUBLISHED

    def mean(self, dataset: str) -> float:
        """Mean over seeds."""
        seeds = self.scores[dataset]
        return sum(seeds.values()) / len(seeds)


@dataclass
class Table:
    """Rows of one suite and task, and what did not make it into them.

    Attributes:
        results: All that were given, failed ones too.
        failed: Results with an error or without a finite score.
        replaced: How many results an equal one with a later date took the place of.
    """

    suite: str
    task: str
    metric: str
    rows: list[Row]
    results: list[Result]
    failed: list[Result]
    replaced: int = 0

    @property
    def datasets(self) -> list[str]:
        """Names of all data sets of our rows, sorted."""
        own = (row for row in self.rows if not row.published)
        return sorted({name for row in own for name in row.scores}, key=str.lower)

    def row(self, name: str) -> Row | None:
        """The row of this name."""
        return next((row for row in self.rows if row.name == name), None)


def kind(result: Result) -> str:
    """The kind of model a result belongs to: ``"untrained"``, ``"hard"`` or ``"soft"``.

    A method that knows no softness is its own kind.
    """
    if any(_last(key) == "max_iter" and value == 0 for key, value in result.params.items()):
        return "untrained"
    if result.tau_choice == "none":
        return result.method
    return "hard" if result.tau_choice == "hard" else "soft"


def tabulate(results: Iterable[Result], metric: str | None = None) -> list[Table]:
    """A table for each suite and task that has the metric, in the order of the results.

    Args:
        results: Of one or several suites.
        metric: None is what each task looks at first.
    """
    parts: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        parts.setdefault((result.suite, result.task), []).append(result)
    tables = []
    for (suite, task), own in parts.items():
        first = _tag(task, "metric", "accuracy") if metric is None else metric
        if any(_scores(result, first) for result in own) or all(r.error for r in own):
            tables.append(_table(suite, task, first, own))
    if not tables:
        known = sorted({name for own in parts.values() for r in own for name in r.metrics})
        raise ValueError(
            f"no result has the metric {metric or 'accuracy'!r}; "
            f"there are {', '.join(known) or 'no results'}"
        )
    return tables


def _tag(task: str, name: str, default: Any) -> Any:
    """What a task is registered with; results may be of one that is not here."""
    return tasks.tags(task).get(name, default) if task in tasks else default


def _scores(result: Result, metric: str) -> dict[str, float]:
    """Probe -> score: several where a result has ``<probe>.<metric>`` for several probes."""
    if metric in result.metrics:
        return {"": result.metrics[metric]}
    end = "." + metric
    return {name.removesuffix(end): v for name, v in result.metrics.items() if name.endswith(end)}


def _table(suite: str, task: str, metric: str, results: list[Result]) -> Table:
    fine = [result for result in results if not result.error]
    table = Table(suite, task, metric, [], results, [r for r in results if r.error])
    named: dict[str, list[Result]] = {}
    for result, name in zip(fine, row_names(fine), strict=True):
        named.setdefault(name, []).append(result)
    controls = {name: own[0].control or _control(own[0], named) for name, own in named.items()}
    for name in _in_order_of(suite, named):
        own = named[name]
        rows: dict[str, Row] = {}
        dates: dict[tuple[str, str, int], str] = {}
        for result in own:
            found = _scores(result, metric)
            if not found or any(math.isnan(value) for value in found.values()):
                table.failed.append(result)
            for probe, value in found.items():
                if math.isnan(value):
                    continue
                row = rows.setdefault(probe, _new_row(name, probe, result, controls[name]))
                key = (probe, result.dataset, result.seed)
                table.replaced += key in dates
                if dates.get(key, "") <= result.created:
                    dates[key] = result.created
                    row.scores.setdefault(result.dataset, {})[result.seed] = value
                row.groups.setdefault(result.dataset, {}).update(result.groups)
                if criterion := result.options.get("criterion"):
                    row.criteria.add(criterion)
                if result.tau_choice not in row.tau_choice.split("+"):
                    row.tau_choice += f"+{result.tau_choice}"
        table.rows += rows.values()
    table.rows += _rows_beside(fine, task, metric)
    names = [row.name for row in table.rows]
    for row in table.rows:
        if row.control not in names:  # its control may have several probes
            row.control = f"{row.control} · {row.probe}" if row.control else ""
        grid = _POINT.fullmatch(row.name)
        row.point = grid is not None and any(name.startswith(grid[1] + " ") for name in names)
    return table


def _in_order_of(suite: str, names: Iterable[str]) -> list[str]:
    """Rows as a shipped suite has them, others behind as they came: workers end in any order."""
    if suite not in shipped_suites():
        return list(names)
    known = read_suite(suite)
    order = [row.name for row in known.rows] + [choice.name for choice in known.choices]
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def _rows_beside(results: list[Result], task: str, metric: str) -> list[Row]:
    """What every run of a task scores without learning: the same for all models and seeds."""
    rows = []
    for prefix, title in _tag(task, "beside", {}).items():
        row = Row(title, title, tau_choice="none")
        for result in results:
            value = result.metrics.get(f"{prefix}.{metric}", math.nan)
            if not math.isnan(value):
                row.scores[result.dataset] = {0: value}
                row.groups.setdefault(result.dataset, {}).update(result.groups)
        if row.scores:
            rows.append(row)
    return rows


def _new_row(name: str, probe: str, result: Result, control: str) -> Row:
    end = f" · {probe}" if probe else ""
    return Row(
        name + end,
        kind(result),
        tau_choice=result.tau_choice,
        control=control + end if control else "",
        method=result.method,
        probe=probe or result.probe,
    )


def row_names(results: Sequence[Result]) -> list[str]:
    """What each result's row is called: its configuration, or else its `kind`.

    Where a kind stands for several different models, what tells them apart is added.
    """
    signatures = [_signature(result) for result in results]
    by_kind: dict[str, list[dict[str, str]]] = {}
    for result, signature in zip(results, signatures, strict=True):
        if not result.configuration:
            known = by_kind.setdefault(kind(result), [])
            if signature not in known:
                known.append(signature)
    names = []
    for result, signature in zip(results, signatures, strict=True):
        base = kind(result)
        names.append(result.configuration or _distinct(base, signature, by_kind[base]))
    return names


def _distinct(base: str, own: dict[str, str], known: list[dict[str, str]]) -> str:
    """``base`` and as few of its own parameters as tell it from all others of its kind."""
    others = [other for other in known if other != own]
    words: list[str] = []
    while others:
        key = max(_ordered(own), key=lambda k: sum(other.get(k) != own[k] for other in others))
        words.append(f"{key} {own[key]}")
        others = [other for other in others if other.get(key) == own[key]]
    return f"{base} ({', '.join(words)})" if words else base


def _ordered(signature: dict[str, str]) -> list[str]:
    first = [key for key in _TOLD_FIRST if key in signature]
    return first + [key for key in signature if key not in first]


def _signature(result: Result) -> dict[str, str]:
    """What makes a result another row than the next, as texts."""
    left_out = set(_SAME_MODEL)
    if result.tau_choice in _CHOSEN:
        left_out |= {"tau_instance", "tau_temporal", "param_list"}
    elif kind(result) != "soft":
        left_out |= set(_SOFT_ONLY)
    params = {key: value for key, value in result.params.items() if _last(key) not in left_out}
    whole = {"method": result.method, "probe": result.probe, "tau_choice": result.tau_choice}
    return {key: _text(value) for key, value in (whole | params).items()}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _control(result: Result, named: dict[str, list[Result]]) -> str:
    """The one hard row that has everything but softness in common with a soft result."""
    if kind(result) != "soft":
        return ""
    wanted = _apart_from_softness(result)
    found = [
        name
        for name, own in named.items()
        if kind(own[0]) == "hard" and _apart_from_softness(own[0]) == wanted
    ]
    return found[0] if len(found) == 1 else ""


def _apart_from_softness(result: Result) -> dict[str, str]:
    left_out = {*_SOFT_ONLY, "tau_choice"}
    return {key: value for key, value in _signature(result).items() if _last(key) not in left_out}


def _last(key: str) -> str:
    """The parameter's own name: ``max_iter`` of ``estimator__max_iter``."""
    return key.rpartition("__")[2]
