"""``index`` and ``search``: series in a file become an index, and queries find those like them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.output import (
    PICTURE_SUFFIXES,
    TABLE_SUFFIXES,
    Output,
    check_outputs,
    note,
    print_json,
    working,
    write_table,
)
from softclt.cli.settings import check_input, check_model

if TYPE_CHECKING:
    import pandas as pd

    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.data.dataset import Split
    from softclt.data.sources import SeriesSource
    from softclt.search import SeriesIndex

Index = Annotated[Path, typer.Argument(metavar="INDEX", help="Folder that 'softclt index' wrote.")]


@options.reads_tables
def index(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Folder for the index.")],
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Folder that 'softclt fit' wrote, or a name of 'softclt list models' "
            "[default: base].",
        ),
    ] = None,
    metadata: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Columns to filter by: .csv or .parquet, with ids."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of DATA to filter by instead of a value; as often as needed.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=2, help="Search in long series: steps of the parts to be found."),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(min=1, help="Steps from part to part [default: a quarter of --window]."),
    ] = None,
    without_series: Annotated[
        bool,
        typer.Option("--without-series", help="Keep no values: no pictures and no --rerank."),
    ] = False,
    add: Annotated[
        bool, typer.Option("--add", help="Add to the index that is there; new ids only.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Likewise; ids that are there get the new series.")
    ] = False,
    split: options.Split = "train",
    force: options.Force = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have many series: make an index of them, in which 'softclt search' finds those alike.

    The folder holds their embeddings, ids, labels, the columns that you name and, unless you say
    otherwise, the series. It is there whole or not at all.
    """
    if add and update:
        raise ValueError("--add refuses ids that are there, --update replaces them; give one")
    there = add or update
    check_outputs(
        Output(out, goes_on=there, needs=["lancedb"]), force=force, reads=[data, metadata]
    )
    check_input(data)
    if there and (window or stride or without_series):
        raise ValueError(f"--window, --stride and --without-series are decided in {out} already")
    if not there or model is not None:
        check_model(model or Path("base"))

    from softclt.search import SeriesIndex

    if there:
        made = SeriesIndex.load(out, model)
    X, ids, known = _read(data, split, columns, column or [], metadata)
    out.parent.mkdir(parents=True, exist_ok=True)
    if not there:
        cut = {"window": window, "stride": stride, "keep_series": not without_series}
        made = SeriesIndex(model or "base", **cut, scratch=out.parent)
    n, d, t = getattr(X, "X", X).shape
    note(f"indexing {n} series of {d} channel(s) and up to {t} steps of {data}")
    with about(data), working("indexing"):
        (made.update if update else made.add)(X, ids, known)
        made.save(out)
    facts = made.facts()
    note(f"{facts['series']} series in {out}, {facts['bytes'] / 1e6:.1f} MB")
    if as_json:
        print_json({"out": str(out), **facts})


@options.reads_tables
def search(
    index: Index,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="File of series to look for.")],
    out: Annotated[Path, typer.Option(help="Table to write: .csv or .parquet.")],
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Hits for each query.")] = 10,
    where: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="Only rows like: region = 'north' AND area > 10."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of queries above their hits: .png, .pdf or .svg.")
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Measure the nearest again: dtw, or see 'softclt list distances'.",
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(min=1, help="How many are measured again [default: 10 for each hit]."),
    ] = None,
    split: options.Split = "train",
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have an index and some series: find the series most like each of them."""
    check_outputs(
        Output(out, TABLE_SUFFIXES, needs=["lancedb"]),
        Output(plot, PICTURE_SUFFIXES, "--plot"),
        force=force,
        reads=[query],
    )
    check_input(query)

    from softclt.data import read_series
    from softclt.search import SeriesIndex

    opened = SeriesIndex.load(index)
    opened.check_search(k, where, rerank)
    if plot is not None and not opened.keeps_series:
        raise ValueError(f"--plot draws series, which {index} does not keep")
    table = read_series(query, split=split, **columns)
    note(f"looking for {len(table)} series of {query} among {len(opened)} in {index}")
    with about(query):
        hits = opened.search(table, k, where, rerank=rerank, candidates=candidates)
    write_table(hits, out, safe_csv)
    if plot is not None:
        _draw(opened, table, hits, plot, where)
    note(f"{len(hits)} hits in {out}" + ("" if plot is None else f", drawn in {plot}"))
    if as_json:
        print_json({"out": str(out), "queries": len(table), "hits": len(hits), "plot": plot})


def _read(
    data: str, split: "Split", names: "Columns", wanted: list[str], metadata: Path | None
) -> tuple["SeriesTable | SeriesSource", Any, "pd.DataFrame | None"]:
    """The series, their ids where they have some, and a row for each with what is known."""
    import pandas as pd

    from softclt.data import read_series
    from softclt.data.sources import open_if_large
    from softclt.reports.metadata import columns_by_id, columns_of_file

    if (source := open_if_large(data, **names)) is not None:  # stays on disk
        if wanted:
            raise ValueError(
                f"{data} is read in parts, so --column cannot be; give the columns with --metadata"
            )
        return source, None, None if metadata is None else columns_by_id(metadata, source.ids())
    known = []
    if wanted:
        own, left = columns_of_file(Path(data), wanted, names)
        names = {**names, "values": left}
        known.append(own)
    series = read_series(data, split=split, **names)
    if series.labels is not None:
        known.append(pd.DataFrame({"label": series.labels}))
    if metadata is not None:
        known.append(columns_by_id(metadata, series.ids))
    table = pd.concat(known, axis=1) if known else None
    return series, None, table


def _draw(
    index: "SeriesIndex",
    queries: "SeriesTable",
    hits: "pd.DataFrame",
    plot: Path,
    where: str | None,
) -> None:
    from softclt.reports.figures import save_figure
    from softclt.reports.hits import MOST_HITS, MOST_QUERIES, Panel, hits_figure
    from softclt.validation import series_lengths

    names = queries.ids if queries.has_ids else range(len(queries))
    lengths = series_lengths(queries.X)
    columns = []
    for name, x, length in list(zip(names, queries.X, lengths, strict=True))[:MOST_QUERIES]:
        own = hits[hits["query"] == name].head(MOST_HITS)
        column = [Panel(f"query {name}", x[:, :length])]
        for hit, values in zip(own.to_dict("records"), index.series(own), strict=True):
            place = f", steps {hit['start']} to {hit['end'] - 1}" if "start" in hit else ""
            title = f"{hit['rank']}: {hit['id']}{place} (distance {hit['distance']:.3g})"
            column.append(Panel(title, values, hit.get("start", 0)))
        columns.append(column)
    columns += [[]] * (len(queries) - len(columns))
    heading = f"{len(index)} series" + ("" if where is None else f" where {where}")
    save_figure(hits_figure(columns, heading), plot)
