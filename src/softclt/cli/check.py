"""``check``: what is in a file, and what each command would do with it."""

import logging
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING, Any

import typer

from softclt.cli import options
from softclt.cli.output import print_json, say, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.data.dataset import Split
    from softclt.data.inspection import Findings
    from softclt.data.sources import SeriesSource

SHOWN = 5  # things of a kind that are named
_LENIENT = {"decimal": ",", "duplicates": "first", "bad_values": "nan"}


@options.reads_tables
def check(
    data: options.Data,
    split: options.Split = "train",
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You were given a file of series: see what is in it before anything is learned from it.

    Says how many series there are and how long, where values are missing, where steps are uneven,
    which channels never change, what is far out, and what each command would do. Trains nothing.
    The exit code is 2 if the file cannot be read as it was asked for.
    """
    from softclt.data import DataError, read_series
    from softclt.data.inspection import inspect_table
    from softclt.data.sources import open_if_large
    from softclt.reports.prospects import prospects

    large = open_if_large(data, **columns)
    if large is not None:
        _check_large(data, large, as_json)
        return
    needed: list[str] = []
    try:
        table = read_series(data, split=split, **columns)
    except DataError as error:
        columns, needed = _lenient(data, split, columns, error)
        tell(error)
        table = read_series(data, split=split, **columns)
    found = inspect_table(table)
    with _unsaid():  # what reading says was said
        would = prospects(data, columns, table, found)
    if as_json:
        print_json(_facts(data, table, found) | {"needs": needed, "commands": would})
    else:
        for line in _in_words(data, table, found):
            say(line)
        if needed:
            say(f"- cannot be read as it is; this is how it looks with {' '.join(needed)}")
        say("")
        for command, sentence in would.items():
            say(f"softclt {command:9}  {sentence}")
    if needed:
        raise typer.Exit(2)


def _check_large(data: str, source: "SeriesSource", as_json: bool) -> None:
    """What one look at series tells that stay on disk."""
    survey = source.look(progress=True)
    n, d, t = source.shape
    facts = {
        "data": data,
        "series": n,
        "channels": d,
        "shortest": survey.shortest,
        "longest": survey.longest,
        "empty": int((~survey.some).sum()),
        "complete": survey.complete,
    }
    would = (
        "reads it in parts; classify, detect, forecast, distances and explore read it as a whole"
    )
    if as_json:
        print_json(facts | {"commands": {"fit": would, "embed": would}})
        return
    say(f"{data}: {n} series of {d} channel(s), {survey.shortest} to {survey.longest} steps")
    say("- no value is missing" if survey.complete else "- values are missing, or lengths differ")
    if facts["empty"]:
        say(f"- {facts['empty']} series without any value")
    say(f"- large: {n * d * t:,} values, looked at in parts; single outliers are not looked for")
    say()
    say(f"softclt fit, embed  {would}")


def _lenient(
    data: str, split: "Split", columns: "Columns", error: Exception
) -> "tuple[Columns, list[str]]":
    """Options with which most of a file can be read, few of them, and how they are written."""
    import numpy as np

    from softclt.data import DataError, read_series

    best, found, most = None, list[str](), 0
    names = [name for name in _LENIENT if columns.get(name) != _LENIENT[name]]
    for n in range(1, len(names) + 1):
        for chosen in combinations(names, n):
            own: Any = {**columns, **{name: _LENIENT[name] for name in chosen}}
            try:
                with _unsaid():
                    known = int(np.isfinite(read_series(data, split=split, **own).X).sum())
            except DataError:
                continue
            if known > most:
                best, most = own, known
                found = [f"--{name.replace('_', '-')} {_LENIENT[name]}" for name in chosen]
    if best is None:
        raise error
    return best, found


@contextmanager
def _unsaid() -> "Iterator[None]":
    """Without the log of what is only tried."""
    logger = logging.getLogger("softclt")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _facts(data: str, table: "SeriesTable", found: "Findings") -> dict[str, Any]:
    gap = found.longest_gap
    return {
        "data": data,
        "series": len(table),
        "channels": found.channels,
        "shortest": int(found.lengths.min()),
        "longest": int(found.lengths.max()),
        "empty": found.empty,
        "missing": {
            "values": found.missing,
            "series": found.missing_in,
            "longest_gap": None if gap is None else vars(gap),
        },
        "times": None
        if found.usual_step is None
        else {
            "first": _ends(table)[0],
            "last": _ends(table)[1],
            "usual_step": found.usual_step,
            "uneven_series": found.uneven,
            "unsorted_at": table.unsorted_at or None,
        },
        "constant": [{"series": i, "channel": name} for i, name in found.constant],
        "outliers": [vars(one) for one in found.outliers],
        "repeated_ids": found.repeated_ids,
        "labels": found.labels,
    }


def _in_words(data: str, table: "SeriesTable", found: "Findings") -> list[str]:
    from softclt.data.inspection import FAR
    from softclt.reports.document import counted

    low, high = int(found.lengths.min()), int(found.lengths.max())
    steps = f"{low} to {high} steps" if low != high else counted(high, "step")
    n, d = len(table), len(found.channels)
    lines = [f"{data}: {n} series of {counted(d, 'channel')}, {steps}"]
    if found.usual_step is not None:
        unit = " s" if _dates(table) else ""
        first, last = _ends(table)
        lines.append(f"times from {first} to {last}, usually {found.usual_step:g}{unit} apart")
    if found.labels:
        classes = ", ".join(f"{name} ({count})" for name, count in sorted(found.labels.items()))
        lines.append(f"labels: {classes}")
    strange = []
    if found.empty:
        strange.append(f"without any value: {_some(found.empty)}")
    if gap := found.longest_gap:
        strange.append(
            f"{counted(found.missing, 'value')} missing inside {found.missing_in} series; the "
            f"longest gap is {counted(gap.steps, 'step')}, in {gap.channel} of series {gap.series} "
            f"from step {gap.step}"
        )
    if found.uneven:
        strange.append(
            f"uneven steps in {len(found.uneven)} series: {_some(found.uneven)} "
            "(--resample makes them even)"
        )
    if table.unsorted_at:
        strange.append(f"times not in order at {table.unsorted_at}; they are sorted")
    if found.constant:
        named = _some([f"{name} of series {i}" for i, name in found.constant])
        strange.append(f"never changes: {named}")
    if found.outliers:
        named = _some(
            [
                f"{o.value:g} in {o.channel} of series {o.series}, step {o.step}"
                for o in found.outliers
            ]
        )
        strange.append(
            f"far out, more than {FAR:g} robust standard deviations from the middle of the "
            f"channel: {named}"
        )
    if found.repeated_ids:
        strange.append(f"ids of more than one series: {_some(found.repeated_ids)}")
    return [*lines, *(f"- {line}" for line in strange or ["nothing strange"])]


def _some(things: list[Any]) -> str:
    named = ", ".join(map(str, things[:SHOWN]))
    return named if len(things) <= SHOWN else f"{named} and {len(things) - SHOWN} more"


def _dates(table: "SeriesTable") -> bool:
    return table.times is not None and table.times.dtype.kind == "M"


def _ends(table: "SeriesTable") -> list[Any]:
    """The first and the last time of all series, as the file writes them."""
    import numpy as np

    assert table.times is not None
    known = table.times[~(np.isnat(table.times) if _dates(table) else np.isnan(table.times))]
    return table.as_written(np.array([known.min(), known.max()]))
