"""Suites: data sets x configurations x seeds, as ``suites.toml`` or a file of your own says.

The head of ``suites.toml`` documents the format.
"""

import inspect
import itertools
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

from sklearn.base import clone

from softclt.methods import EmbeddingEnsemble, methods
from softclt.schema import (
    FLAG,
    LIST,
    TABLE,
    TEXT,
    TEXTS,
    Kind,
    check_entries,
    check_kind,
    either,
    list_of,
    table_of,
    whole_number,
)
from softclt.tasks.evaluation import tasks, tau_choice_of
from softclt.validation import check_choice, check_known, check_range

STRATEGIES = ("train", "unlabelled", "oracle")
ORACLE = "oracle"

ARCHIVES = "archives"

# The most that a suite may ask for: far more than anybody runs, and planned in moments.
MOST_SEEDS, MOST_MEMBERS, MOST_POINTS, MOST_LINES = 10_000, 1_000, 5_000, 1_000_000
_MOST_LIKE = 100  # configurations that are like each other in a row
_LONGEST_FILE = 2**24  # bytes

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


@dataclass(frozen=True)
class Suite:
    """What is to be run, all models built.

    Attributes:
        data: Entries as `Sets.find` takes them.
        archives: What archives have in full.
        criteria: Whether lines of grid points also hold every criterion of `softclt.selection`.
        sets: Parameters on some data sets, by names or patterns; see `on_set`.
    """

    name: str
    task: str
    data: Sequence[Any]
    seeds: int
    rows: tuple[Row, ...]
    choices: tuple[Choice, ...]
    groups: tuple[str, ...] = ()
    archives: Mapping[str, Sequence[str]] = field(default_factory=dict)
    criteria: bool = False
    about: str = ""
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def on_set(self, name: str) -> "Suite":
        """The suite on one data set: methods that have the set's own parameters take them."""
        own: dict[str, Any] = {}
        for pattern, params in self.sets.items():
            if fnmatchcase(name, pattern):
                own |= params
        return replace(self, rows=tuple(_with(row, own) for row in self.rows)) if own else self


def shipped_suites() -> dict[str, str]:
    """Names of the suites that come with the library, and what they are about."""
    tables = _read(None)
    return {name: table.get("about", "") for name, table in tables.items() if name != ARCHIVES}


def read_suite(
    name: str,
    *,
    configurations: Sequence[str] = (),
    methods_only: Sequence[str] = (),
    select: Sequence[str] | None = None,
    seeds: int | None = None,
    device: str | None = None,
) -> Suite:
    """The suite of a shipped name, ``FILE.toml`` or ``FILE.toml:NAME``.

    Args:
        name: A file needs a name behind it only where it holds several suites.
        configurations: Keep these alone.
        methods_only: Keep configurations of these methods alone.
        select: Strategies for every grid, instead of the suite's own; ``["default"]`` is none.
        seeds: Their number, instead of the suite's own.
        device: For all models.
    """
    file, _, wanted = name.partition(":") if ".toml" in name else ("", "", name)
    tables = _read(Path(file) if file else None)
    archives = {**_read(None)[ARCHIVES], **tables.get(ARCHIVES, {})}
    suites = {key: table for key, table in tables.items() if key != ARCHIVES}
    if file and not wanted and len(suites) == 1:
        wanted = next(iter(suites))
    if wanted not in suites:
        hint = f"say which: {file}:NAME" if file and not wanted else "or give a file, FILE.toml"
        raise ValueError(f"unknown suite {wanted!r}; known: {', '.join(suites)}; {hint}")
    reader = _Reader(wanted, suites[wanted], device, select, bool(file))
    chosen = reader.chosen(configurations, methods_only)
    rows, choices = reader.rows(chosen)
    if not choices and set(select or ()) & set(STRATEGIES):
        raise ValueError(
            f"there is nothing to select: no configuration of {wanted!r} that is run has a grid"
        )
    table = suites[wanted]
    seeds = table.get("seeds", 3) if seeds is None else seeds
    check_range(seeds, "seeds", 1, MOST_SEEDS)
    if (n_lines := seeds * (len(rows) + len(choices))) > MOST_LINES:
        raise ValueError(
            f"the suite {wanted!r} has {len(rows) + len(choices)} rows and {seeds} seeds, that is "
            f"{n_lines} runs on every data set; expected at most {MOST_LINES}"
        )
    data = table.get("data", [])
    if not data:
        raise ValueError(f"the suite {wanted!r} names no data; give it data = ['ucr/*'], ...")
    return Suite(
        name=wanted,
        task=reader.task,
        data=[_beside(entry, Path(file)) for entry in data] if file else data,
        seeds=seeds,
        rows=tuple(rows),
        choices=tuple(choices),
        groups=tuple(table.get("groups", ())),
        archives=archives,
        criteria=bool(table.get("criteria", False)),
        about=table.get("about", ""),
        sets=_of_sets(wanted, table.get("sets", {}), reader.rows(reader.chosen((), ()))[0]),
    )


def _of_sets(
    suite: str, table: Mapping[str, Mapping[str, Any]], rows: Sequence[Row]
) -> dict[str, dict[str, Any]]:
    """Parameters by data set, of which each belongs to some method of the suite."""
    known = {name.split("__")[-1] for row in rows for name in row.model.get_params()}
    sets = {pattern: {k: _plain(v) for k, v in own.items()} for pattern, own in table.items()}
    for pattern, own in sets.items():
        for name in own:
            if name not in known:
                raise ValueError(
                    f"the suite {suite!r} sets {name!r} on {pattern}; no method of it has that"
                )
    return sets


def _with(row: Row, params: Mapping[str, Any]) -> Row:
    """The row with those of the parameters that its model, or the members of it, have."""
    own = {
        name: params[name.split("__")[-1]]
        for name in row.model.get_params()
        if name.split("__")[-1] in params
    }
    return replace(row, model=clone(row.model).set_params(**own)) if own else row


def _read(path: Path | None) -> dict[str, Any]:
    try:
        if path is not None and path.is_file() and path.stat().st_size > _LONGEST_FILE:
            raise ValueError("it is longer than any suite")
        text = (files("softclt.bench") / "suites.toml" if path is None else path).read_text("utf-8")
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no TOML of suites: {error}") from None
    for name, table in tables.items():
        check_kind(table, table_of(TEXTS, "lists") if name == ARCHIVES else TABLE, f"[{name}]")
    return tables


def _check_table(table: Mapping[str, Any], kinds: Mapping[str, Kind], of: str) -> None:
    """Refuse keys that a table may not have, and values of another kind."""
    check_known(table, sorted(kinds), of, "key")
    check_entries(table, {key: kinds[key] for key in table}, f"{of}: ")


def _beside(entry: Any, file: Path) -> Any:
    """Paths of data are relative to the suite's own file."""
    if isinstance(entry, str) and entry.startswith("."):
        return str(file.parent / entry)
    return entry


class _Reader:
    """From the table of a suite to rows and choices."""

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
            methods[asked]
        wanted = {name: self._tables[name].get("among", [name]) for name in self._tables}
        needed = {part for name in configurations for part in (name, *wanted[name])}
        known = {name: table.get("method", "ts2vec") for name, table in self._tables.items()}
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
        grid = {key: _plain(values) for key, values in self._tables[name].get("grid", {}).items()}
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
        kind = methods[table.get("method", "ts2vec")]
        params = {key: _plain(value) for key, value in table["params"].items()} | dict(point)
        known = list(inspect.signature(kind).parameters)
        if self._device is not None and "device" in known:
            params["device"] = self._device
        check_known(params, known, f"configuration {name!r}: {kind.__name__}", "parameter")
        preset = table.get("preset")
        model = kind(**params) if preset is None else kind.from_preset(preset, **params)
        members = table.get("members")
        if members is None and "replicas" not in table:
            return _checked(name, model, [model], self._theirs)
        different = None if members is None else [_plain(own) for own in members]
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
            learner._check_parameters()
            if theirs:
                learner.check_size()
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"configuration {name!r}: {error}") from None
    return model


def _plain(value: Any) -> Any:
    """TOML has no null: ``"none"`` stands for None, in lists and tables too."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
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
