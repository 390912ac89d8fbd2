"""``figures``: the paper's pictures, on any data set, from models trained for them."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.output import (
    PICTURE_SUFFIXES,
    Output,
    check_extra,
    check_outputs,
    note,
    print_json,
    say,
    tell,
)
from softclt.cli.settings import build_model, check_input

if TYPE_CHECKING:
    from softclt.data.columns import Columns


class Format(StrEnum):
    """Of the files."""

    png = "png"
    pdf = "pdf"
    svg = "svg"


@options.reads_tables
def figures(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="See 'softclt list figures'; all if none."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A file or a registered name for all figures, instead of their own."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("figures"),
    format: Annotated[Format, typer.Option(help="pdf and svg are drawn in lines.")] = Format.png,
    steps: Annotated[int, typer.Option(min=1, help="Of training; more show more.")] = 100,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    force: options.Force = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You want to see what soft assignments do: the paper's figures, on your data or its own.

    Trains a soft TS2Vec and its hard control once for each data set, with a small budget, and
    writes a file for each figure. Captions, which say what was trained, are printed.
    """
    check_extra("matplotlib")
    check_outputs(Output(out, goes_on=True))
    if data is not None:
        check_input(data)
    model = build_model("ts2vec", None, settings, max_iter=steps, random_state=seed)

    from softclt.data import load
    from softclt.reports.figures import draw, save_figure

    chosen = names or _possible(data)
    files = [Output(out / f"{name}.{format}", PICTURE_SUFFIXES) for name in chosen]
    check_outputs(*files, force=force, reads=[data])
    given = None if data is None else load(data, **columns)
    note(
        f"drawing {len(chosen)} figure(s) into {out}; models train {steps} steps for each data set"
    )
    written = []
    for name, picture in draw(chosen, given, model):
        path = out / f"{name}.{format}"
        save_figure(picture.figure, path)
        written.append({"name": name, "title": picture.title, "caption": picture.caption})
        written[-1]["file"] = str(path)
        note(f"{len(written)} of {len(chosen)}: {path}")
        if not as_json:
            say(f"{path}: {picture.title}. {picture.caption}")
    if as_json:
        print_json(written)


def _possible(data: str | None) -> list[str]:
    """All figures, less those whose own data set is not here; they are named on stderr."""
    from softclt.data import available
    from softclt.reports.figures import figures

    if data is not None:
        return figures.names()
    here = available()
    own = {name: figures.tags(name)["data"] for name in figures.names()}
    missing = {name: needed for name, needed in own.items() if needed not in {None, *here}}
    for name, needed in missing.items():
        tell(f"{name} is left out, {needed} is not here; --data helps")
    return [name for name in own if name not in missing]
