"""``cluster``: series in a file become groups of alike ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    say,
    working,
    write_table,
)
from softclt.cli.settings import check_input, check_model

if TYPE_CHECKING:
    import pandas as pd

    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.search import Clusters


@options.reads_tables
def cluster(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Table to write: .csv or .parquet.")],
    model: Annotated[
        Path,
        typer.Option(
            metavar="MODEL",
            help="Folder that 'softclt fit' wrote, or a name of 'softclt list models'.",
        ),
    ] = Path("base"),
    k: Annotated[
        int | None,
        typer.Option(
            "-k", "--k", min=1, help="Number of clusters [default: the best silhouette, 2 to 20]."
        ),
    ] = None,
    method: Annotated[
        Literal["kmeans", "hdbscan"],
        typer.Option(help="hdbscan finds the number itself, and leaves out what is alone."),
    ] = "kmeans",
    plot: Annotated[
        Path | None, typer.Option(help="Picture of each cluster: .png, .pdf or .svg.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same clusters.")] = 0,
    split: options.Split = "train",
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have series without labels: find groups of alike ones, what is typical, what is odd.

    The table has the cluster of each series (the largest is 0, none is -1), how sure that is, the
    distance to the cluster's centre, the medoid of each cluster, and which series are odd in it.
    """
    check_outputs(
        Output(out, TABLE_SUFFIXES),
        Output(plot, PICTURE_SUFFIXES, "--plot"),
        force=force,
        reads=[data],
    )
    if method == "hdbscan" and k is not None:
        raise ValueError("--method hdbscan finds the number of clusters itself; leave -k out")
    check_input(data)
    check_model(model)

    from softclt.bench.estimates import embedding_words
    from softclt.data import read_series
    from softclt.methods import load_model
    from softclt.search import find_clusters

    series = read_series(data, split=split, **columns)
    learner = load_model(model)
    words = embedding_words(learner, series.X.shape)
    note(f"embedding {len(series)} series of {data} with {model}, then clustering{words}")
    with about(data), working("embedding"):
        embeddings = learner.encode(series.X)  # (N, M)
    with about(data), working("clustering"):
        clusters = find_clusters(embeddings, k, method=method, random_state=seed)
    write_table(cluster_table(series, clusters), out, safe_csv)
    if plot is not None:
        from softclt.reports.clusters import clusters_figure
        from softclt.reports.figures import save_figure

        heading = f"{Path(data).name}: {clusters.n_clusters} clusters of {len(series)} series"
        save_figure(clusters_figure(series.X, clusters, heading), plot)
    _tell(series, clusters, out, plot, as_json)


def cluster_table(series: "SeriesTable", clusters: "Clusters") -> "pd.DataFrame":
    """A row a series: ``id, cluster, confidence, distance, medoid, odd``."""
    import pandas as pd

    return pd.DataFrame(
        {
            "id": series.ids,
            "cluster": clusters.labels,
            "confidence": clusters.confidence,
            "distance": clusters.distance,
            "medoid": clusters.medoid,
            "odd": clusters.odd,
        }
    )


def _tell(
    series: "SeriesTable", clusters: "Clusters", out: Path, plot: Path | None, as_json: bool
) -> None:
    import numpy as np

    found = []
    for one in range(clusters.n_clusters):
        own = clusters.labels == one
        medoid = series.ids[int(np.flatnonzero(own & clusters.medoid)[0])]
        odd = [series.ids[i] for i in np.flatnonzero(own & clusters.odd)]
        found.append({"cluster": one, "series": int(own.sum()), "medoid": medoid, "odd": odd})
    alone = int((clusters.labels < 0).sum())
    if as_json:
        facts = {"out": str(out), "plot": None if plot is None else str(plot)}
        print_json({**facts, "clusters": found, "in_none": alone, "silhouettes": clusters.scores})
        return
    where = f"in {out}" + ("" if plot is None else f", drawn in {plot}")
    say(f"{clusters.n_clusters} clusters of {len(series)} series {where}")
    if clusters.scores:
        best = clusters.scores[clusters.n_clusters]
        say(f"This number has the best mean silhouette of those tried: {best:.2f}.")
    if alone:
        say(f"{alone} series are in none.")
    for one in found:
        odd = f", {len(one['odd'])} odd" if one["odd"] else ""
        say(f"  {one['cluster']}: {one['series']} series, the most typical {one['medoid']}{odd}")
