"""What a command says and writes: results on stdout, the rest on stderr, files whole or not."""

import json
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softclt.files import whole_file
from softclt.plaintext import visible, without_formulas
from softclt.progress import is_quiet, progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from softclt.data import SeriesTable

TABLE_SUFFIXES = (".csv", ".parquet")
PICTURE_SUFFIXES = (".png", ".pdf", ".svg")

# Package -> what to tell somebody who lacks it.
_EXTRAS = {
    "pyarrow": "Parquet files need pyarrow: pip install 'softclt[data]', or write .csv",
    "matplotlib": "pictures need matplotlib: pip install 'softclt[report]'",
    "jinja2": "a page needs jinja2: pip install 'softclt[report]'",
    "umap": "this projection needs umap-learn: pip install umap-learn",
    "lancedb": "search needs lancedb: pip install 'softclt[search]'",
    "ray": "Ray is not installed: pip install 'softclt[ray]'",
    **dict.fromkeys(
        ("onnx", "onnxscript", "onnxruntime"),
        "ONNX files need onnx, onnxscript and onnxruntime: pip install 'softclt[export]'",
    ),
    "aeon": "the sample data need aeon: pip install 'softclt[data]'",
}
_NEEDED_FOR = dict.fromkeys(PICTURE_SUFFIXES, "matplotlib") | {".parquet": "pyarrow"}
_NEEDED_FOR[".html"] = "jinja2"


@dataclass(frozen=True)
class Output:
    """A file or folder that a command will write.

    Attributes:
        path: Where; None where the option was not given.
        suffixes: Of the files that it may be; none for a folder.
        option: Its name, for messages.
        goes_on: What is there is continued or updated on purpose, so it needs no --force.
        needs: Packages beside those that the suffix asks for.
    """

    path: Path | None
    suffixes: Sequence[str] = ()
    option: str = "--out"
    goes_on: bool = False
    needs: Sequence[str] = ()


def check_outputs(*outputs: Output, force: bool = False, reads: Sequence[object] = ()) -> None:
    """Refuse what cannot or should not be written, before any work is done for it.

    Every path that a command writes goes through here: its kind, whether its folder can be written,
    whether the packages for it are there, whether something is there already.

    Args:
        outputs: Of the command.
        force: Whether what is there may be replaced.
        reads: Files that the command reads, which none of them may replace.
    """
    seen = {Path(str(one)).absolute(): str(one) for one in reads if one is not None}
    for output in outputs:
        if output.path is None:
            continue
        _check_kind(output.path, output)
        at = output.path.absolute()
        if at in seen:
            raise ValueError(f"{output.option} {output.path} would replace {seen[at]}")
        seen[at] = f"{output.option} {output.path}"
        _check_writable(output.path, output.option)
        for package in (*output.needs, *filter(None, [_NEEDED_FOR.get(output.path.suffix)])):
            check_extra(package)
        if output.goes_on or force or not output.path.exists():
            continue
        if output.suffixes:
            words = "is there already; choose another name or add --force"
        elif any(output.path.iterdir()):
            words = "is not empty; choose another folder or add --force"
        else:
            continue
        raise FileExistsError(f"{output.option} {output.path} {words}")


def check_extra(package: str) -> None:
    """Refuse to begin where a package is missing that will be needed."""
    if find_spec(package) is None:
        raise ModuleNotFoundError(_EXTRAS[package], name=package)


def check_serving() -> None:
    """Refuse to begin where a package is missing that a server needs."""
    for package in ("fastapi", "uvicorn", "prometheus_client", "pyarrow", "jinja2"):
        if find_spec(package) is None:
            words = f"a server needs {package}: pip install 'softclt[serve]'"
            raise ModuleNotFoundError(words, name=package)


def _check_kind(path: Path, output: Output) -> None:
    if output.suffixes and path.suffix not in output.suffixes:
        kinds = " or ".join(output.suffixes)
        raise ValueError(f"{output.option} {path} ends with {path.suffix!r}; expected {kinds}")
    if output.suffixes and path.is_dir():
        raise IsADirectoryError(f"{output.option} {path} is a folder; expected the name of a file")
    if not output.suffixes and path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{output.option} {path} is a file; expected a folder")


def _check_writable(path: Path, option: str) -> None:
    """Make and drop a file: what the rights say is not all, a disk may be read-only."""
    inside = [path] if path.is_dir() else path.absolute().parents
    there = next(folder for folder in inside if folder.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{option} {path} cannot be written: {there} is a file")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise PermissionError(
            f"{option} {path} cannot be written: {there} may not be written to ({error.strerror})"
        ) from None


def watched() -> bool:
    """Whether a person looks on: stderr is a terminal."""
    return stderr().is_terminal


def stderr() -> "Console":
    """The console of messages and progress bars."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def stdout() -> "Console":
    """The console of results."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def say(text: object = "") -> None:
    """A line of the result, on stdout; nothing in it is a command to the terminal."""
    end_notes()
    typer.echo(visible(text))


def tell(message: object) -> None:
    """A line on stderr that a person should see: a warning, or an error."""
    typer.echo(f"softclt: {visible(message)}", err=True)


def tell_sorted(table: "SeriesTable") -> None:
    """Say on stderr where the steps of a file were not in the order of their times."""
    if table.unsorted_at:
        tell(f"{table.source}, {table.unsorted_at}: times are not in order; they were sorted")


def note(message: object) -> None:
    """Say on stderr what begins, what is there and where it went.

    In a log it waits for a second: an error at once is then the one line to read. With --quiet
    nothing is said.
    """
    if is_quiet():
        return
    _doing.append(visible(message))
    if watched():
        stderr().print(visible(message), soft_wrap=True)
    else:
        _waiting.add(visible(message))


_doing: deque[str] = deque(maxlen=1)


def begin_notes() -> None:
    """Forget what an earlier command of this process did."""
    _doing.clear()


def doing() -> str:
    """What a command does: its last note, or what all do before the first."""
    return _doing[-1] if _doing else "reading and checking"


def wait_for_others() -> None:
    """From now on the command waits to be asked, so there is no work to tell of."""
    _doing.append("")


class _Waiting:
    """Notes that are held back for a second, or until somebody else speaks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def add(self, line: str) -> None:
        with self._lock:
            self._lines.append(line)
            if self._timer is None:
                self._timer = threading.Timer(1.0, self.end)
                self._timer.daemon = True
                self._timer.start()

    def end(self, drop: bool = False) -> None:
        """Say what is there, or forget it."""
        with self._lock:
            lines, self._lines = self._lines, []
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if lines and not drop:
                typer.echo("\n".join(lines), err=True)


_waiting = _Waiting()


def end_notes(*, drop: bool = False) -> None:
    """Say all notes now; or drop those of a command that has failed within a second."""
    _waiting.end(drop)


def working(words: str) -> "AbstractContextManager[Callable[[int], None]]":
    """While some work goes on that nobody counts: a bar, or a line every 30 seconds in a log."""
    return progress_bar(words, None, enabled=True)


def new_table(*texts: str, numbers: Sequence[str]) -> "Table":
    """A table with columns of texts and, set to the right, of numbers."""
    from rich.table import Table

    class Plain(Table):
        """A table whose cells are text, whatever is in them."""

        def add_row(self, *cells: Any, **more: Any) -> None:
            super().add_row(*(visible(cell) for cell in cells), **more)

    table = Plain(*map(visible, texts))
    for name in numbers:
        table.add_column(visible(name), justify="right")
    return table


def print_table(table: "Table", title: str, *notes: str) -> None:
    """A result for a person on stdout: the title, the table and, below it, what it rests on."""
    end_notes()
    console = stdout()
    console.print(visible(title), style="bold")
    console.print(table)
    for line in notes:
        console.print(visible(line), soft_wrap=True)


def shape_in_words(X: Any) -> str:
    """How many series, channels and steps there are."""
    n, d, t = X.shape
    return f"{n} series of {d} channel(s) and up to {t} steps"


def print_json(value: Any) -> None:
    """One JSON document on stdout; what is not finite is null."""
    from softclt.persistence import json_safe

    end_notes()
    typer.echo(json.dumps(json_safe(value), allow_nan=False, indent=2))


def write_table(table: "pd.DataFrame", path: Path, safe_csv: bool = False) -> None:
    """Write a table whole or not at all, as CSV or Parquet.

    Args:
        table: What to write.
        path: Its suffix says how.
        safe_csv: Whether texts of a CSV that a spreadsheet would compute get an apostrophe.
    """
    if safe_csv and path.suffix == ".csv":
        table = without_formulas(table)
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)
