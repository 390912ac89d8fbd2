"""Arguments and options that several commands share, each written once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from softclt.data.columns import Columns

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
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

Id = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column that names the series.")
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="COLUMN", help="Column of the time: the table is long."),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column of the class.")
]
Values = Annotated[
    str | None,
    typer.Option("--values", metavar="COLUMNS", help="Columns of the values, with commas between."),
]


def examples(*lines: str) -> str:
    """The end of a help text; its lines stay as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def column_names(
    id: str | None, time: str | None, label: str | None, values: str | None
) -> "Columns":
    """The column options of a command as `softclt.data.read_series` wants them."""
    names = None if values is None else [name.strip() for name in values.split(",")]
    return {"id": id, "time": time, "label": label, "values": names}
