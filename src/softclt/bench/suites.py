"""Suites: data sets x configurations x seeds, as ``suites.toml`` or a file of your own says.

The head of ``suites.toml`` documents the format.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

from sklearn.base import clone

from softclt.bench.configurations import (
    MOST_LINES,
    MOST_SEEDS,
    STRATEGIES,
    Choice,
    Configurations,
    Row,
    plain,
)
from softclt.schema import TABLE, TEXTS, check_kind, table_of
from softclt.validation import check_range, did_you_mean

ARCHIVES = "archives"

_LONGEST_FILE = 2**24  # bytes


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
        raise ValueError(
            f"unknown suite {wanted!r}; known: {', '.join(suites)}; {hint}"
            f"{did_you_mean(wanted, suites)}"
        )
    reader = Configurations(wanted, suites[wanted], device, select, bool(file))
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
    sets = {pattern: {k: plain(v) for k, v in own.items()} for pattern, own in table.items()}
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


def _beside(entry: Any, file: Path) -> Any:
    """Paths of data are relative to the suite's own file."""
    if isinstance(entry, str) and entry.startswith("."):
        return str(file.parent / entry)
    return entry
