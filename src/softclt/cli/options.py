"""Arguments and options that several commands share, each written once."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from softclt.progress import quietly

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.csv .parquet .npz .npy .ts .tsv .arff) or a registered name: "
        "see 'softclt list data'.",
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Folder that 'softclt fit' wrote, or a name of 'softclt list models'.",
    ),
]
Embedder = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Folder that 'softclt fit' wrote, a name of 'softclt list models', or a file that "
        "'softclt export' wrote.",
    ),
]
Trained = Annotated[
    Path | None,
    typer.Option(help="Folder that 'softclt fit' wrote, instead of learning here."),
]
Method = Annotated[str, typer.Option(help="See 'softclt list methods'.")]
Preset = Annotated[
    str | None, typer.Option(help="Published settings to start from: see 'softclt list presets'.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any parameter of the method; give it as often as needed.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")]
Split = Annotated[
    Literal["train", "test", "all"],
    typer.Option(help="Part to read, where data have a training and a test part."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
SafeCsv = Annotated[
    bool,
    typer.Option("--safe-csv", help="In a CSV, an apostrophe before what a spreadsheet computes."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def examples(*lines: str) -> str:
    """The end of a help text; its lines stay as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options for reading tables; it gets them in its argument ``columns``."""

    @wraps(command)
    def with_columns(**arguments: Any) -> None:
        own = {name: arguments.pop(name) for name in _TABLE_OPTIONS}
        if own["values"] is not None:
            own["values"] = [name.strip() for name in own["values"].split(",")]
        command(columns=own, **arguments)

    signature = inspect.signature(command)
    own = dict(signature.parameters)
    del own["columns"]
    last = [own.pop(name) for name in ("as_json",) if name in own]
    parameters = [*own.values(), *_TABLE_OPTIONS.values(), *last]
    with_columns.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_columns.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_columns


def may_be_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option ``--quiet``, under which notes and progress bars are not shown."""

    @wraps(command)
    def with_quiet(*, quiet: bool, **arguments: Any) -> None:
        with quietly() if quiet else nullcontext():
            command(**arguments)

    signature = inspect.signature(command)
    parameters = [*signature.parameters.values(), _QUIET]
    with_quiet.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_quiet.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_quiet


def _table_option(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=Annotated[kind, option],
    )


_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No notes and no progress on stderr; warnings and errors stay."
        ),
    ],
)

_TABLE_OPTIONS = {
    one.name: one
    for one in (
        _table_option(
            "id",
            str | None,
            None,
            typer.Option("--id", metavar="COLUMN", help="Column that names the series."),
        ),
        _table_option(
            "time",
            str | None,
            None,
            typer.Option("--time", metavar="COLUMN", help="Column of the time: the table is long."),
        ),
        _table_option(
            "label",
            str | None,
            None,
            typer.Option("--label", metavar="COLUMN", help="Column of the class."),
        ),
        _table_option(
            "values",
            str | None,
            None,
            typer.Option(
                "--values", metavar="COLUMNS", help="Columns of the values, with commas between."
            ),
        ),
        _table_option(
            "decimal",
            Literal[".", ","],
            ".",
            typer.Option("--decimal", help="How numbers are written: 1.5 or 1,5."),
        ),
        _table_option(
            "duplicates",
            Literal["error", "first", "mean"],
            "error",
            typer.Option("--duplicates", help="What becomes of steps that have the same time."),
        ),
        _table_option(
            "bad_values",
            Literal["error", "nan"],
            "error",
            typer.Option("--bad-values", help="nan: cells that are no numbers are missing."),
        ),
        _table_option(
            "resample",
            str | None,
            None,
            typer.Option(
                "--resample",
                metavar="STEP",
                help="Make steps of one length, means of what falls into them: 1h, 15min, or a "
                "number where times are numbers.",
            ),
        ),
    )
}
