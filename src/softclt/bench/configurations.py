"""The configurations of a suite: from their tables to rows and choices, all models built."""

import inspect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softclt.methods import EmbeddingEnsemble, RepresentationLearner
from softclt.schema import (
    FLAG,
    LIST,
    TABLE,
    TEXT,
    TEXTS,
    Kind,
    check_entries,
    either,
    list_of,
    table_of,
    whole_number,
)
from softclt.tasks.evaluation import models_of, tasks, tau_choice_of
from softclt.validation import check_choice, check_known

STRATEGIES = ("train", "unlabelled", "oracle")
ORACLE = "oracle"

# The most that a suite may ask for: far more than anybody runs, and planned in moments.
MOST_SEEDS, MOST_MEMBERS, MOST_POINTS, MOST_LINES = 10_000, 1_000, 5_000, 1_000_000
_MOST_LIKE = 100  # configurations that are like each other in a row

_KINDS_OF_BOTH = {
    "method": TEXT,
    "preset": TEXT,
    "params": TABLE,
    "probe": either(TEXT, TEXTS),
    "chosen_probe": either(TEXT, TEXTS),
    "replicas": whole_number(1, MOST_MEMBERS),
    "select": TEXTS,
    "options": TABLE,
}
_KINDS_OF_A_SUITE = {
    "about": TEXT,
    "task": TEXT,
    "data": list_of(either(TEXT, TABLE), "names and tables"),
    "seeds": whole_number(1, MOST_SEEDS),
    "groups": TEXTS,
    "criteria": FLAG,
    "sets": table_of(TABLE, "tables of parameters"),
    "configurations": table_of(TABLE, "tables"),
    **_KINDS_OF_BOTH,
}
_KINDS_OF_A_CONFIGURATION = {
    "like": TEXT,
    "members": list_of(TABLE, f"at most {MOST_MEMBERS} tables"),
    "grid": table_of(LIST, "lists of values"),
    "among": TEXTS,
    "control": TEXT,
    **_KINDS_OF_BOTH,
}


@dataclass(frozen=True)
class Row:
    """A row of the table: one line of results for each data set and seed.

    Attributes:
        base: Name of the model; rows with the same base read the same embedding.
        options: Of the task, e.g. ``{"probe": "ridge"}``.
        control: Name of the row that differs in softness alone.
        grid: Name of the configuration whose grid the model is a point of; empty for others.
    """

    name: str
    base: str
    model: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    control: str = ""
    grid: str = ""


@dataclass(frozen=True)
class Choice:
    """A row whose model is chosen among others, for each data set and seed anew.

    Attributes:
        strategy: What the choice looks at: ``"train"``, ``"unlabelled"`` or ``"oracle"``.
        models: Base names of the models to choose among.
        source: What they are, for the lines: ``{"grid": ...}``, values by parameter, or
            ``{"among": ...}``, such grids by configuration.
        preferred: Position of the model to take among equals; None is the first.
    """

    name: str
    strategy: str
    models: tuple[str, ...]
    source: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    control: str = ""
    preferred: int | None = None


class Configurations:
    """What the table of a suite says, checked; `rows` builds what is to be run."""

    def __init__(
        self,
        name: str,
        table: Mapping[str, Any],
        device: str | None,
        select: Sequence[str] | None,
        theirs: bool,
    ) -> None:
        self._theirs = theirs
        _check_table(table, _KINDS_OF_A_SUITE, f"the suite {name!r}")
        self.task = table.get("task", "classification")
        known = inspect.signature(tasks[self.task]).parameters
        self._has_probe = "probe" in known
        self._kinds, self._kind = models_of(self.task)
        self._device = device
        for strategy in select or ():
            check_choice(strategy, (*STRATEGIES, "default"), "select")
        self._select = None if select is None else [s for s in select if s != "default"]
        own = table.get("configurations", {})
        if not own:
            raise ValueError(f"the suite {name!r} has no configurations")
        common = {key: table[key] for key in _KINDS_OF_BOTH if key in table}
        self._tables = {key: self._inherited(key, own, common, ()) for key in own}
        for key, inherited in self._tables.items():
            if "among" in inherited:
                self._check_among(key)

    def _inherited(
        self, name: str, own: Mapping[str, Any], common: Mapping[str, Any], below: tuple[str, ...]
    ) -> dict[str, Any]:
        """A configuration with what it is ``like``, and what holds for the whole suite."""
        if len(below) > _MOST_LIKE:
            raise ValueError(f"more than {_MOST_LIKE} configurations are like each other in a row")
        if name not in own or name in below:
            raise ValueError(
                f"configuration {below[-1]!r} is like {name!r}; expected another one of "
                f"{', '.join(own)}"
            )
        table = own[name]
        _check_table(table, _KINDS_OF_A_CONFIGURATION, f"the configuration {name!r}")
        base = dict(common)
        if "like" in table:
            base = self._inherited(table["like"], own, common, (*below, name))
        both = {key: base.get(key, {}) | table.get(key, {}) for key in ("params", "options")}
        return base | {key: table[key] for key in table if key != "like"} | both

    def chosen(self, configurations: Sequence[str], methods_only: Sequence[str]) -> list[str]:
        """Names of the configurations to run."""
        for asked in configurations:
            check_choice(asked, list(self._tables), "a configuration")
        for asked in methods_only:
            self._kinds[asked]
        wanted = {name: self._tables[name].get("among", [name]) for name in self._tables}
        needed = {part for name in configurations for part in (name, *wanted[name])}
        known = {name: table.get("method", self._kind) for name, table in self._tables.items()}
        return [
            name
            for name, parts in wanted.items()
            if (not configurations or name in needed)
            and (not methods_only or all(known[part] in methods_only for part in parts))
        ]

    def rows(self, names: Iterable[str]) -> tuple[list[Row], list[Choice]]:
        """All rows of some configurations."""
        rows: list[Row] = []
        choices: list[Choice] = []
        for name in names:
            among = self._tables[name].get("among")
            if among is not None:
                grids = {other: self._grid(other) for other in among}
                models = {k: m for other in among for k, m in self._models(other).items()}
                choices += self._choices(name, {"among": grids}, models)
                continue
            grid, models = self._grid(name), self._models(name)
            for base, model in models.items():
                for options, end in self._readings(name, "probe"):
                    control = self._control(name, options)
                    rows.append(
                        Row(base + end, base, model, options, control, name if grid else "")
                    )
            if grid:
                choices += self._choices(name, {"grid": grid}, models)
        return rows, choices

    def _grid(self, name: str) -> dict[str, Any]:
        grid = {key: plain(values) for key, values in self._tables[name].get("grid", {}).items()}
        n_points = math.prod(map(len, grid.values()))
        if not 0 < n_points <= MOST_POINTS:
            raise ValueError(
                f"the grid of the configuration {name!r} has {n_points} points; expected at least "
                f"one, and at most {MOST_POINTS}"
            )
        return grid

    def _models(self, name: str) -> dict[str, Any]:
        """The points of a configuration's grid, or its one model, by base name."""
        grid = self._grid(name)
        found = {}
        for values in itertools.product(*grid.values()):
            inside = ", ".join(map(_word, values))
            point = dict(zip(grid, values, strict=True))
            found[f"{name}({inside})" if grid else name] = self._model(name, point)
        return found

    def _check_among(self, name: str) -> None:
        """Whether a choice has models to choose among, and for an oracle their scores."""
        table = self._tables[name]
        if "grid" in table or not table["among"] or not table.get("select"):
            raise ValueError(
                f"configuration {name!r} chooses among others; it needs their names, a select, "
                "and no grid"
            )
        known = [key for key, own in self._tables.items() if "among" not in own]
        oracle = ORACLE in self._strategies(name)
        for other in table["among"]:
            check_choice(other, known, f"a configuration that {name!r} chooses among")
            read = [options for options, _ in self._readings(other, "probe")]
            for options, _ in self._readings(name, "probe"):
                if oracle and options not in read:
                    raise ValueError(
                        f"{name!r} has an oracle of {options}; {other!r} is not read with that"
                    )

    def _choices(
        self, name: str, source: Mapping[str, Any], models: Mapping[str, Any]
    ) -> list[Choice]:
        found = []
        for strategy in self._strategies(name):
            check_choice(strategy, STRATEGIES, "select")
            # The best on the test set is known for the probes that read all points, no others.
            key = "probe" if strategy == ORACLE else "chosen_probe"
            for options, end in self._readings(name, key):
                found.append(
                    Choice(
                        name=f"{name} {strategy}{end}",
                        strategy=strategy,
                        models=tuple(models),
                        source=source,
                        options=options,
                        control=self._control(name, options),
                        preferred=_default_of(list(models.values())),
                    )
                )
        return found

    def _strategies(self, name: str) -> Sequence[str]:
        return self._tables[name].get("select", ()) if self._select is None else self._select

    def _probes(self, name: str, key: str) -> list[str]:
        table = self._tables[name]
        probe = table.get(key, table.get("probe", "svm"))
        return [probe] if isinstance(probe, str) else list(probe)

    def _readings(self, name: str, key: str) -> list[tuple[dict[str, Any], str]]:
        """Options of the task for each row that a model gives, and the end of the row's name."""
        options = dict(self._tables[name].get("options", {}))
        if not self._has_probe:
            return [(options, "")]
        several = len({*self._probes(name, "probe"), *self._probes(name, "chosen_probe")}) > 1
        return [
            (options | {"probe": probe}, f" · {probe}" if several else "")
            for probe in self._probes(name, key)
        ]

    def _control(self, name: str, options: Mapping[str, Any]) -> str:
        """Name of the row that is the control: same options of the task."""
        control = self._tables[name].get("control", "")
        if not control:
            return ""
        check_choice(control, list(self._tables), f"the control of {name!r}")
        if self._tables[control].keys() & {"grid", "among"}:
            raise ValueError(f"the control {control!r} of {name!r} has a grid; expected one model")
        for own, end in self._readings(control, "probe"):
            if own == options:
                return f"{control}{end}"
        raise ValueError(
            f"{name!r} is read with {dict(options)}, its control {control!r} is not; "
            "a control needs the same probes"
        )

    def _model(self, name: str, point: Mapping[str, Any]) -> Any:
        table = self._tables[name]
        kind = self._kinds[table.get("method", self._kind)]
        params = {key: plain(value) for key, value in table["params"].items()} | dict(point)
        known = list(inspect.signature(kind).parameters)
        if self._device is not None and "device" in known:
            params["device"] = self._device
        check_known(params, known, f"configuration {name!r}: {kind.__name__}", "parameter")
        preset = table.get("preset")
        if preset is not None and not hasattr(kind, "from_preset"):
            raise ValueError(f"configuration {name!r}: {kind.__name__} has no presets")
        model = kind(**params) if preset is None else kind.from_preset(preset, **params)
        members = table.get("members")
        if members is None and "replicas" not in table:
            return _checked(name, model, [model], self._theirs)
        different = None if members is None else [plain(own) for own in members]
        n_members = table.get("replicas", len(members or ()))
        if not 0 < n_members <= MOST_MEMBERS:
            raise ValueError(
                f"configuration {name!r} has {n_members} members; expected 1 to {MOST_MEMBERS}"
            )
        ensemble = EmbeddingEnsemble(model, n_members, param_list=different)
        return _checked(name, ensemble, ensemble.new_members(), self._theirs)


def _checked(name: str, model: Any, learners: Sequence[Any], theirs: bool) -> Any:
    """The model, if its parameters are such that it can be fitted; ``theirs``: of a user's file."""
    for learner in learners:
        try:
            if not hasattr(learner, "_check_parameters"):  # of another package
                continue
            learner._check_parameters()
            if theirs and isinstance(learner, RepresentationLearner):
                learner.check_size()
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"configuration {name!r}: {error}") from None
    return model


def plain(value: Any) -> Any:
    """TOML has no null: ``"none"`` stands for None, in lists and tables too."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if value == "none" else value


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()  # as TOML has it
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _default_of(taken: Sequence[Any]) -> int | None:
    """Position of the model that is nothing but the library's defaults in what a grid varies."""
    return next((i for i, model in enumerate(taken) if tau_choice_of(model) == "default"), None)


def _check_table(table: Mapping[str, Any], kinds: Mapping[str, Kind], of: str) -> None:
    """Refuse keys that a table may not have, and values of another kind."""
    check_known(table, sorted(kinds), of, "key")
    check_entries(table, {key: kinds[key] for key in table}, f"{of}: ")
