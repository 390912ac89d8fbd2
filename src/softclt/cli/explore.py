"""``explore``: a page to look around in the embedding of a file."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.output import Output, check_outputs, note, print_json, working
from softclt.cli.settings import check_model
from softclt.files import whole_file

if TYPE_CHECKING:
    import pandas as pd

    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.data.dataset import Split

COLOURS = 8  # clusters: as many colours can be told apart


@options.reads_tables
def explore(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Page to write: .html.")],
    projection: Annotated[
        Literal["auto", "tsne", "pca", "umap"],
        typer.Option(help="How to draw it; auto is t-SNE up to 10,000 series, PCA for more."),
    ] = "auto",
    neighbors: Annotated[
        int, typer.Option(min=1, max=50, help="Nearest series to draw beside one.")
    ] = 8,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of DATA to colour by instead of a value; as often as needed.",
        ),
    ] = None,
    colors: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="More columns to colour by: .csv or .parquet, with ids."
        ),
    ] = None,
    points: Annotated[
        int, typer.Option(min=16, help="Points that the page keeps of each series and channel.")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same map.")] = 0,
    split: options.Split = "train",
    force: options.Force = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have a model and series: look around in their embedding, in a browser.

    Writes one HTML file that needs no network. Pointing at a dot draws its series and its nearest
    neighbours in the embedding; dots are coloured by label or by any column, found by id, and a
    lasso exports the ids inside. Without labels the first colours are clusters that were found.
    """
    needs = ["umap"] if projection == "umap" else []
    check_outputs(Output(out, (".html",), needs=needs), force=force, reads=[data, colors])
    check_model(model)
    series, known = _read(data, split, columns, column or [], colors)

    import pandas as pd

    from softclt.bench.estimates import embedding_words
    from softclt.methods import load_model
    from softclt.reports.explore import explore_page
    from softclt.search import find_clusters

    learner = load_model(model)
    note(
        f"embedding {len(series)} series of {data} with {model}, then placing them on a map"
        f"{embedding_words(learner, series.X.shape)}"
    )
    with about(data), working("embedding"):
        embeddings = learner.transform(series.X)  # (N, M)
    with working("placing them on a map"):
        if series.labels is None:
            labels = find_clusters(embeddings, most=COLOURS, random_state=seed).labels
            found = pd.Series([str(label + 1) for label in labels], name="cluster found")
            asked = column or colors is not None
            known = pd.concat([known, found] if asked else [found, known], axis=1)
        page = explore_page(
            series,
            embeddings,
            known,
            model=f"{model} ({type(learner).__name__})",
            projection=projection,
            n_neighbors=neighbors,
            max_points=points,
            seed=seed,
        )
    with whole_file(out) as temporary:
        temporary.write_text(page.html, encoding="utf-8")
    note(f"page in {out}: open it in a browser")
    if as_json:
        facts = {"out": str(out), "series": page.series, "projection": page.projection}
        more = {"neighbors_kept": page.kept, "columns": page.columns, "bytes": out.stat().st_size}
        print_json(facts | more)


def _read(
    data: str, split: "Split", names: "Columns", wanted: list[str], colors: Path | None
) -> tuple["SeriesTable", "pd.DataFrame"]:
    """The series, and a row for each with all that they may be coloured by."""
    import pandas as pd

    from softclt.data import read_series
    from softclt.reports.metadata import columns_by_id, columns_of_file, columns_of_series

    own = pd.DataFrame()
    if wanted:
        own, left = columns_of_file(Path(data), wanted, names)
        names = {**names, "values": left}
    series = read_series(data, split=split, **names)
    n_train = len(read_series(data, split="train", **names)) if split == "all" else None
    tables = [columns_of_series(series, n_train), own]
    if colors is not None:
        tables.append(columns_by_id(colors, series.ids))
    columns = pd.concat(tables, axis=1)
    times_seen = Counter[str]()
    distinct = []
    for name in columns.columns:  # a second "label" is called "label (2)"
        times_seen[name] += 1
        distinct.append(name if times_seen[name] == 1 else f"{name} ({times_seen[name]})")
    return series, columns.set_axis(distinct, axis=1)
