"""The commands in one place: names, help and examples; what they do is in the files beside."""

from typing import Annotated

import typer

from softclt.cli.bench import bench
from softclt.cli.cache import cache
from softclt.cli.check import check
from softclt.cli.classify import classify
from softclt.cli.cluster import cluster
from softclt.cli.demo import demo
from softclt.cli.detect import detect
from softclt.cli.distances import distances
from softclt.cli.doctor import doctor
from softclt.cli.doors import doors
from softclt.cli.embed import embed
from softclt.cli.errors import Commands, show_tracebacks
from softclt.cli.explore import explore
from softclt.cli.export import export
from softclt.cli.figures import figures
from softclt.cli.forecast import forecast
from softclt.cli.listing import list_names
from softclt.cli.models import fit, info
from softclt.cli.options import examples, may_be_quiet
from softclt.cli.pretrain import pretrain
from softclt.cli.report import report
from softclt.cli.scores import evaluate
from softclt.cli.search import index, search
from softclt.cli.serve import serve

app = typer.Typer(
    name="softclt",
    cls=Commands,
    rich_markup_mode=None,  # plain help: brackets mean what they say, and it is there at once
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from softclt import __version__

        typer.echo(f"softclt {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "softclt demo                                             see it work on real data",
        "softclt fit sales.csv --id store --time day --out model/",
        "softclt embed model/ sales.csv --id store --time day --out emb.parquet",
        "softclt classify labelled.csv new.csv --label kind --out predictions.csv",
    ),
)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; so does SOFTCLT_DEBUG=1.")
    ] = False,
) -> None:
    """Learn from time series without labels, and put what was learned to work."""
    if debug:
        show_tracebacks()
    if context.invoked_subcommand is None:
        typer.echo(doors())


app.command(
    short_help="See it work on real data, with scores and a picture.",
    epilog=examples("softclt demo", "softclt demo --quick --out /tmp/demo"),
)(demo)
app.command(
    short_help="See what is in a file before anything is learned from it.",
    epilog=examples(
        "softclt check sales.csv --id store --time day",
        "softclt check sheet.csv --decimal , --duplicates mean --resample 1h",
        "softclt check ucr/GunPoint --split all --json",
    ),
)(check)
app.command(
    short_help="Learn a model from series without labels.",
    epilog=examples(
        "softclt fit sales.csv --id store --time day --values price,volume --out model/",
        "softclt fit ucr/GunPoint --out model/ --set tau_instance=10 --set max_iter=100",
        "softclt fit series.npz --out model/ --preset hard --force",
    ),
)(fit)
app.command(
    short_help="Train one encoder on many data sets, to use it on all.",
    epilog=examples(
        "softclt pretrain corpus.toml --out model/",
        "softclt pretrain base --out model/ --set max_iter=8000 --set device=cuda",
        "torchrun --nproc-per-node 2 -m softclt pretrain corpus.toml --out model/",
    ),
)(pretrain)
app.command(
    short_help="Turn series into embeddings with a model.",
    epilog=examples(
        "softclt embed base sales.csv --id store --time day --out emb.csv",
        "softclt embed model/ sales.csv --id store --time day --out emb.parquet",
        "softclt embed model/ series.npz --out steps.npz --level timestamp --causal",
        "softclt embed model/ long.csv --out windows.csv --level window --window 24",
        "softclt embed model.onnx sales.csv --id store --time day --out emb.parquet",
        "softclt embed base folder/ --out parts/                  Parquet files, part by part",
        "softclt embed base s3://bucket/folder --ray auto --out parts/",
    ),
)(embed)
app.command(
    short_help="Write a model as an ONNX file, which runs without torch.",
    epilog=examples(
        "softclt export base --out base.onnx",
        "softclt export model/ --out model.onnx --force",
        "softclt embed base.onnx sales.csv --id store --time day --out emb.parquet",
    ),
)(export)
app.command(
    short_help="Make an index of series, to find those that are alike.",
    epilog=examples(
        "softclt index sales.csv --id store --time day --out index/",
        "softclt index sales.csv --id store --time day --column region --out index/",
        "softclt index long.npz --window 128 --out index/",
        "softclt index more.csv --id store --time day --out index/ --add",
    ),
)(index)
app.command(
    short_help="Find the series of an index that are most like yours.",
    epilog=examples(
        "softclt search index/ query.csv -k 10 --out hits.csv",
        "softclt search index/ query.csv --where \"region = 'north'\" --out hits.csv",
        "softclt search index/ query.csv --rerank dtw --out hits.csv --plot hits.png",
    ),
)(search)
app.command(
    short_help="Find groups of alike series, what is typical and what is odd.",
    epilog=examples(
        "softclt cluster sales.csv --id store --time day --out clusters.csv --plot clusters.png",
        "softclt cluster ucr/Trace --model base -k 4 --out clusters.csv",
        "softclt cluster series.npz --method hdbscan --out clusters.parquet",
    ),
)(cluster)
app.command(
    short_help="Look around in an embedding: a page for the browser.",
    epilog=examples(
        "softclt explore base ucr/GunPoint --split all --out explore.html",
        "softclt explore model/ sales.csv --id store --time day --column region --out map.html",
        "softclt explore model/ series.npz --projection pca --colors about.csv --out map.html",
    ),
)(explore)
app.command(
    short_help="See what a model is and where it comes from.",
    epilog=examples("softclt info model/", "softclt info base.onnx", "softclt info model/ --json"),
)(info)
app.command(
    short_help="Score a method on data with labels, over seeds.",
    epilog=examples(
        "softclt evaluate classification ucr/GunPoint --out results.jsonl",
        "softclt evaluate classification ucr/GunPoint --preset hard --probe svm --probe knn",
        "softclt evaluate semi_supervised ucr/ItalyPowerDemand --option shares=[5,20]",
    ),
)(evaluate)
app.command(
    short_help="Compare methods on many data sets, and go on after a break.",
    epilog=examples(
        "softclt bench quick",
        "softclt bench ucr --data archives/ --dry-run",
        "softclt bench ucr --data archives/ --sets 'ucr/G*' --seeds 1 --select train,unlabelled",
        "softclt bench mine.toml --workers 4 --out results/",
    ),
)(bench)
app.command(
    short_help="See what results say: a page, a document or a table.",
    epilog=examples(
        "softclt report",
        "softclt report results/ --baselines peers.csv --peer MiniRocket --out report.html",
        "softclt report results.jsonl --metric f1_macro --out report.md",
    ),
)(report)
app.command(
    short_help="Label series from labels of others: of all of them, or of a few.",
    epilog=examples(
        "softclt classify series.csv --labels few.csv --out predictions.csv --report report.html",
        "softclt classify sales.csv --id store --time day --label kind --out predictions.csv",
        "softclt classify a.npz --labels few.csv --method catcc --checkpoint kept/ --out p.csv",
        "softclt classify labelled.csv new.csv --label kind --out p.csv --report page.html",
        "softclt classify labelled.csv new.csv --label kind --model base --out predictions.csv",
        "softclt classify train.ts new.ts --classifier linear --out predictions.parquet",
    ),
)(classify)
app.command(
    short_help="Find steps that do not belong, and write alarms.",
    epilog=examples(
        "softclt detect load.csv --out alarms.csv --plot alarms.png",
        "softclt detect machines.csv --id machine --time time --train 0.3 --out alarms.csv",
        "softclt detect load.csv --model model/ --out alarms.csv",
        "softclt detect load.csv --scorer sr --threshold own --out alarms.csv",
    ),
)(detect)
app.command(
    short_help="Forecast what comes after the end of series, with intervals.",
    epilog=examples(
        "softclt forecast load.csv --horizon 24 --out forecast.csv --plot forecast.png",
        "softclt forecast sales.csv --id store --time day --horizon 14 --out next.csv",
        "softclt forecast load.csv --model model/ --coverage 0.8 --out forecast.csv",
    ),
)(forecast)
app.command(
    short_help="Compute the distances between all series, to keep.",
    epilog=examples(
        "softclt distances series.npz --metric dtw --window 0.1 --out distances/",
        "softclt distances sales.csv --id store --time day --metric tam --out distances/",
        "softclt distances series.npz --out distances/ --ray auto",
    ),
)(distances)
app.command(
    short_help="Draw the paper's figures from models trained for them.",
    epilog=examples(
        "softclt figures layers timestamps --data ucr/Adiac",
        "softclt figures --out figures/ --format pdf --steps 200",
    ),
)(figures)
app.command(
    short_help="Answer requests over HTTP: embeddings, hits, classes, alarms.",
    epilog=examples(
        "softclt serve base",
        "softclt serve index/ classifier/ detector/ --port 9000",
        "softclt serve base --host 0.0.0.0 --token-file token.txt --limit seconds=60",
    ),
)(serve)
app.add_typer(cache, name="cache")
app.command(
    short_help="See what is installed here, and test that it works.",
    epilog=examples("softclt doctor", "softclt doctor --json"),
)(doctor)
app.command(
    "list",
    short_help="Names of methods, distances, data sets, presets, ...",
    epilog=examples("softclt list", "softclt list distances", "softclt list data --json"),
)(list_names)

for group in (app, cache):
    for command in group.registered_commands:
        assert command.callback is not None
        command.callback = may_be_quiet(command.callback)


def main() -> None:
    """Run the command line and leave with its exit code."""
    app(prog_name="softclt")
