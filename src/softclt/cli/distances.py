"""``distances``: the distance matrix of a file as a folder of tiles."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.output import Output, check_extra, check_outputs, note, print_json, say
from softclt.cli.settings import parse_settings

if TYPE_CHECKING:
    from softclt.data.columns import Columns
    from softclt.distances.store import DistanceStore, Filled


@options.reads_tables
def distances(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Folder for the distances; it goes on where it was.")],
    metric: Annotated[str, typer.Option(help="See 'softclt list distances'.")] = "dtw",
    window: Annotated[
        float | None,
        typer.Option(help="Sakoe-Chiba band as a share of the longer series, 0 to 1."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the metric, or unequal=resample; as often as needed.",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 takes all cores.")] = -1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Work in so many processes instead.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="auto|ADDRESS|local", help="Work on a Ray cluster instead."),
    ] = None,
    split: options.Split = "train",
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have many series and need all their distances: compute them once, and keep them.

    The folder holds the matrix in tiles. Stop the command, kill it, start it on several machines
    that share the folder: the same command goes on with the tiles that are missing, and makes
    damaged ones again. In Python, softclt.distances.open_store reads it.
    """
    check_outputs(Output(out, goes_on=True))
    if ray is not None:
        check_extra("ray")
    params = parse_settings(settings)

    from softclt.data import read_series
    from softclt.distances import DistanceStore
    from softclt.distances.measure import Measure

    unequal = params.pop("unequal", "error")
    measure = Measure(metric, window, params, unequal)
    series = read_series(data, split=split, **columns)
    store = DistanceStore.of(out, measure, measure.prepare(series.X)[0], device)
    if series.has_ids:
        store.keep_ids(series.ids)
    note(
        f"{metric} distances of {len(store)} series of {data} in {len(store.tiles())} tiles, "
        f"into {out}; its lines say how long it may take"
    )
    with about(data):
        filled = store.fill(n_jobs=jobs, processes=processes, ray=ray, device=device, progress=True)
    if as_json:
        print_json({"out": str(out), "series": len(store), "metric": metric, **vars(filled)})
    else:
        say(_in_words(store, filled))


def _in_words(store: "DistanceStore", filled: "Filled") -> str:
    from softclt.progress import rate_in_words

    words = f"{len(store)} series: {filled.made} tile(s) made, {filled.found} were there"
    if filled.damaged:
        words += f", {len(filled.damaged)} damaged ones made again"
    if not filled.made:
        return f"{words}; {store.folder} is complete"
    rate = rate_in_words(filled.cells / filled.seconds, "cells")
    return f"{words}; {filled.seconds:.1f} s, {rate}; in {store.folder}"
