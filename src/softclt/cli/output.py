"""What a command says and writes: results on stdout, the rest on a terminal's stderr only."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softclt.files import whole_file
from softclt.optional import needed

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

TABLE_SUFFIXES = (".csv", ".parquet")
PICTURE_SUFFIXES = (".png", ".pdf", ".svg")


def watched() -> bool:
    """Whether a person looks on: stderr is a terminal."""
    return stderr().is_terminal


def stderr() -> "Console":
    """The console of messages and progress bars."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def stdout() -> "Console":
    """The console of results."""
    from rich.console import Console

    return Console(highlight=False)


def note(message: str) -> None:
    """Say something to a person who looks on; no line for a log file."""
    console = stderr()
    if console.is_terminal:
        console.print(message, markup=False, soft_wrap=True)


def new_table(*texts: str, numbers: Sequence[str]) -> "Table":
    """A table with columns of texts and, set to the right, of numbers."""
    from rich.table import Table

    table = Table(*texts)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def print_table(table: "Table", title: str, *notes: str) -> None:
    """A result for a person on stdout: the title, the table and, below it, what it rests on."""
    console = stdout()
    console.print(title, style="bold", markup=False)
    console.print(table)
    for line in notes:
        console.print(line, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout; what is not finite is null."""
    from softclt.persistence import json_safe

    typer.echo(json.dumps(json_safe(value), allow_nan=False, indent=2))


def check_suffix(path: Path, suffixes: tuple[str, ...], option: str = "--out") -> None:
    """Refuse an output file of an unknown kind, or one that cannot be written, before any work."""
    if path.suffix not in suffixes:
        raise ValueError(
            f"{option} {path} ends with {path.suffix!r}; expected {' or '.join(suffixes)}"
        )
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder; expected the name of a file")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        reason = "may not be written to" if there.is_dir() else "is a file"
        raise ValueError(f"{option} {path} cannot be written: {there} {reason}")
    if path.suffix == ".parquet":
        with needed("Parquet files need pyarrow: pip install 'softclt[data]', or write .csv"):
            import pyarrow  # noqa: F401


def write_table(table: "pd.DataFrame", path: Path) -> None:
    """Write a table whole or not at all, as CSV or Parquet."""
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)
