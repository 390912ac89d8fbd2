"""``embed``: series of files as embeddings, in one table or part by part."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.export import open_onnx
from softclt.cli.output import (
    Output,
    check_extra,
    check_outputs,
    note,
    print_json,
    say,
    shape_in_words,
    working,
)
from softclt.cli.settings import check_model

if TYPE_CHECKING:
    from softclt.data.columns import Columns
    from softclt.data.sources import SeriesSource
    from softclt.embedding import Embedded, Recipe

_SUFFIXES = (".parquet", ".csv", ".npz")


class Level(StrEnum):
    """What gets an embedding of its own."""

    instance = "instance"
    timestamp = "timestamp"
    window = "window"


@options.reads_tables
def embed(
    model: options.Embedder,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A file (.csv .parquet .npz .npy .ts .tsv .arff), a folder of Parquet files, a "
            "URL of one, or a registered name: see 'softclt list data'.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="File to write: .parquet, .csv or .npz. Without a suffix: folder with a part for "
            "each Parquet file of DATA; it goes on where it was."
        ),
    ],
    level: Annotated[
        Level, typer.Option(help="One embedding for each series, step or window.")
    ] = Level.instance,
    window: Annotated[
        int | None, typer.Option(min=1, help="Steps of a window, with --level window.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, help="Steps from window to window [default: no overlap].")
    ] = None,
    causal: Annotated[bool, typer.Option("--causal", help="A step never sees its future.")] = False,
    context: Annotated[
        int, typer.Option(min=0, help="How many steps back a step sees, with --causal.")
    ] = 200,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="auto|ADDRESS|local", help="Make the parts of a folder on a Ray cluster."
        ),
    ] = None,
    split: options.Split = "train",
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have a model and series in a file: write their embeddings as a table, ids kept.

    A large file is read, and its table written, piece by piece, so that its size does not matter.
    A folder of Parquet files becomes one table, or, where --out is a folder, a part for each file:
    stop the command, kill it, and the same command goes on with the parts that are missing.
    """
    parts = out.suffix == ""
    if parts:
        _check_folder(data, out)
        check_outputs(Output(out, goes_on=True, needs=["pyarrow"]))
    else:
        check_outputs(Output(out, _SUFFIXES), force=force, reads=[data])
    if ray is not None:
        _check_ray(model, out, parts)
    asked = _asked(level, window, stride, causal, context)
    learner: Any = open_onnx(model, level, causal)
    if learner is None:
        check_model(model)

    from softclt.data.sources import ParquetSource, open_if_large, open_to_read_once

    X: Any
    if parts:
        X = ParquetSource(data, **columns)
    elif level is Level.instance:
        X = open_to_read_once(data, **columns)
    else:
        X = open_if_large(data, **columns)  # a CSV has times, which belong into the table
    series = None
    if X is None:
        from softclt.data import read_series

        series = read_series(data, split=split, **columns)
        X = series.X

    speed = ", without torch"
    if learner is None:
        from softclt.bench.estimates import embedding_words
        from softclt.methods import load_model

        learner = load_model(model)
        speed = embedding_words(learner, X.shape) if ray is None else ""
    elif series is None:
        learner.progress = False  # there is a bar of all parts
    note(f"embedding {shape_in_words(X)} of {data} with {model}{speed}")

    from softclt.embedding import Recipe, embed_parts

    recipe = Recipe(learner, **asked)
    if parts:
        try:
            with about(data):
                made = embed_parts(
                    *(recipe, X, out),
                    **_identity(model, learner),
                    ray=ray,
                    anew=force,
                    progress=True,
                )
        except KeyboardInterrupt:
            note(f"the parts that are finished are in {out}; the same command goes on")
            raise
        _tell_parts(made, out, as_json)
        return
    start = time.perf_counter()
    with about(data):
        if series is None:
            shape = _stream(recipe, X, out, safe_csv)
        else:
            shape = _at_once(recipe, series, out, safe_csv)
    rate = _rate(len(X), time.perf_counter() - start)
    note(f"{shape_in_words(X)} embedded in {out}, {rate}")
    if as_json:
        print_json({"out": str(out), "level": level, "shape": shape})


def _asked(
    level: Level, window: int | None, stride: int | None, causal: bool, context: int
) -> dict[str, Any]:
    """Arguments of ``encode``; what does not fit together is refused before a model is loaded."""
    if level is Level.window and window is None:
        raise ValueError("--level window needs --window, the steps of a window")
    if level is not Level.window and (window or stride):
        raise ValueError(f"--window and --stride belong to --level window; the level is {level}")
    asked = {"level": str(level), "window": window, "stride": stride}
    return asked | {"causal": causal, "context": context}


def _check_folder(data: str, out: Path) -> None:
    """Refuse a folder of parts for what has no parts."""
    from softclt.data.sources.places import is_url

    path = Path(data).expanduser()
    if not (is_url(data) or path.is_dir() or path.suffix.lower() == ".parquet"):
        raise ValueError(
            f"--out {out} has no suffix, so it is a folder of parts, and {data} is no folder of "
            f"Parquet files; for one table expected {' or '.join(_SUFFIXES)}"
        )


def _check_ray(model: Path, out: Path, parts: bool) -> None:
    if not parts:
        raise ValueError(
            f"--ray works on parts, and --out {out} is one table; expected a folder, and a folder "
            "of Parquet files as DATA"
        )
    if model.suffix == ".onnx":
        raise ValueError(
            f"{model} is not sent to a cluster; with --ray use the model that it was exported from"
        )
    check_extra("ray")


def _identity(model: Path, learner: Any) -> dict[str, Any]:
    """What tells its embeddings from those of other models."""
    if (facts := getattr(learner, "facts", None)) is not None:
        own = {name: facts.get(f"softclt.{name}") for name in ("method", "pooling", "layers")}
        return {"sha256": facts["softclt.sha256"], "model": own | {"file": "onnx"}}
    from softclt import pretrained
    from softclt.persistence import read_config

    folder = pretrained.folder_of(model) if pretrained.is_pretrained(model) else model
    config = read_config(folder)
    own = {"method": config["method"], "channels": getattr(learner, "channels", None)}
    if hasattr(learner, "read_out"):
        own |= dict(zip(("pooling", "layers"), learner.read_out(), strict=True))
    return {"sha256": config["sha256"], "model": own}


def _stream(recipe: "Recipe", X: "SeriesSource", out: Path, safe_csv: bool) -> list[int]:
    """Embed a source block by block; the shape of all embeddings."""
    from softclt.embedding import embedded_blocks, embedding_writer
    from softclt.progress import progress_bar

    shape: list[int] = []
    with (
        embedding_writer(out, len(X), recipe.step, safe_csv=safe_csv) as write,
        progress_bar("embedding", len(X), enabled=True, unit="series") as advance,
    ):
        for ids, embeddings in embedded_blocks(recipe, X):
            write(ids, embeddings)
            advance(len(ids))
            shape = [len(X), *embeddings.shape[1:]]
    return shape


def _at_once(recipe: "Recipe", series: Any, out: Path, safe_csv: bool) -> list[int]:
    """The same for series in memory."""
    from contextlib import nullcontext

    from softclt.embedding import embedding_writer

    own_bar = getattr(recipe.model, "facts", None) is not None
    with nullcontext() if own_bar else working("embedding"):
        embeddings = recipe.embed(series.X)  # (N, M) or (N, steps, M)
    with embedding_writer(out, len(embeddings), recipe.step, series.times, safe_csv) as write:
        write(series.ids, embeddings)
    return list(embeddings.shape)


def _tell_parts(made: "Embedded", out: Path, as_json: bool) -> None:
    if as_json:
        print_json({"out": str(out), **vars(made)})
        return
    words = f"{made.made} part(s) made, {made.found} were there"
    if made.damaged:
        words += f", {len(made.damaged)} damaged ones made again"
    if made.made:
        words += f"; {made.series} series, {_rate(made.series, made.seconds)}"
    say(f"{words}; {out} is complete")


def _rate(n_series: int, seconds: float) -> str:
    from softclt.progress import rate_in_words, time_in_words

    return f"{time_in_words(seconds)}, {rate_in_words(n_series / seconds, 'series')}"
