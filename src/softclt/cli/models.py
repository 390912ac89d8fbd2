"""``fit``, ``embed`` and ``info``: from files to a model, and from a model to embeddings."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.export import open_onnx
from softclt.cli.output import (
    Output,
    check_outputs,
    note,
    print_json,
    say,
    tell,
    working,
    write_table,
)
from softclt.cli.settings import build_model, check_model
from softclt.files import whole_file

if TYPE_CHECKING:
    import pandas as pd

    from softclt.data.columns import Columns
    from softclt.validation import Floats


class Level(StrEnum):
    """What gets an embedding of its own."""

    instance = "instance"
    timestamp = "timestamp"
    window = "window"


@options.reads_tables
def fit(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    method: options.Method = "ts2vec",
    preset: options.Preset = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    distances: Annotated[
        Path | None,
        typer.Option(help="Folder that 'softclt distances' made of the same series."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps training; if killed, the same command goes on."),
    ] = None,
    split: options.Split = "train",
    force: options.Force = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have series without labels: learn a representation of them and keep it as a model.

    The model is a folder with safetensors and JSON; 'softclt embed' uses it, and so does
    softclt.load_model in Python. A column of labels is named only to be left out of the values.
    """
    check_outputs(Output(out), Output(checkpoint, option="--checkpoint", goes_on=True), force=force)

    from softclt.data import read_series
    from softclt.data.sources import open_if_large

    X: Any = open_if_large(data, **columns)  # stays on disk
    if X is None:
        X = read_series(data, split=split, **columns).X
    model = build_model(method, preset, settings, random_state=seed)
    if distances is not None:
        from softclt.distances import open_store

        open_store(distances)  # or an error, before there is work

    from softclt.bench.estimates import training_words
    from softclt.training.distributed import processes_of_torchrun

    note(f"fitting {method} on {_shape(X)} of {data}{training_words(model, X.shape)}")
    asked = model.get_params(deep=False).get("progress")
    if asked is False:
        model.set_params(progress=True)
    asked_for = {"distances": distances, "checkpoint": checkpoint}
    try:
        with about(data), processes_of_torchrun():
            model.fit(X, **{name: at for name, at in asked_for.items() if at is not None})
            if asked is not None:
                model.set_params(progress=asked)
            model.save(out)
    except KeyboardInterrupt as interruption:
        if interruption.args:  # how to go on
            tell(interruption)
        if checkpoint is None and hasattr(model, "module_"):
            model.save(out)
            note(f"model as far as it was trained in {out}")
        raise
    note(f"model in {out}")
    if as_json:
        n, d, t = X.shape
        loss = getattr(model, "history_", {}).get("loss", [])
        print_json(
            {
                "model": str(out),
                "method": method,
                "series": n,
                "channels": d,
                "length": t,
                "iterations": len(loss),
                "final_loss": loss[-1] if len(loss) else None,
                "device": str(getattr(model, "device_", "cpu")),
            }
        )


@options.reads_tables
def embed(
    model: options.Embedder,
    data: options.Data,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .csv or .npz.")],
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
    split: options.Split = "train",
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You have a model and series in a file: write their embeddings as a table, ids kept."""
    check_outputs(Output(out, (".parquet", ".csv", ".npz")), force=force, reads=[data])
    encode_options = _encode_options(level, window, stride) | {"causal": causal, "context": context}
    learner: Any = open_onnx(model, level, causal)
    if learner is None:
        check_model(model)

    from softclt.data import read_series
    from softclt.data.sources import open_if_large

    X: Any = open_if_large(data, **columns)  # read in parts
    series = None
    if X is None:
        series = read_series(data, split=split, **columns)
        X = series.X

    if learner is not None:
        note(f"embedding {_shape(X)} of {data} with {model}, without torch")
        with about(data):
            embeddings = learner.transform(X)
    else:
        from softclt.bench.estimates import embedding_words
        from softclt.methods import load_model

        learner = load_model(model)
        note(f"embedding {_shape(X)} of {data} with {model}{embedding_words(learner, X.shape)}")
        with about(data), working("embedding"):
            embeddings = learner.encode(X, **encode_options)  # (N, M) or (N, steps, M)
    ids = X.ids() if series is None else series.ids  # those of a source are known by now
    times = None if series is None else series.times
    if out.suffix == ".npz":
        _write_npz(ids, embeddings, out)
    else:
        step = (stride or window or 1) if level is Level.window else 1
        write_table(embedding_table(ids, embeddings, step, times), out, safe_csv)
    note(f"{_shape(X)} embedded in {out}")
    if as_json:
        print_json({"out": str(out), "level": level, "shape": list(embeddings.shape)})


def info(model: options.Embedder, as_json: options.Json = False) -> None:
    """You were given a model: see its method, parameters, data and versions."""
    if (exported := open_onnx(model)) is not None:
        kept = {
            key.removeprefix("softclt."): value for key, value in sorted(exported.facts.items())
        }
        _print_facts({"file": str(model), **kept}, as_json)
        return
    from softclt import pretrained
    from softclt.persistence import read_model

    folder = pretrained.folder_of(model) if pretrained.is_pretrained(model) else model
    config, tensors = read_model(folder)  # refuses what is no model or is damaged
    fitted = config["fitted"]
    losses = fitted.get("history", {}).get("loss") or [None]
    facts = {
        "model": str(model),
        "method": config["method"],
        "channels": fitted.get("n_features_in"),
        "iterations": fitted.get("n_iter"),
        "final_loss": losses[-1],
        "weights": sum(t.numel() for k, t in tensors.items() if k.startswith("averaged.")),
        "can_train_on": config.get("training"),
        "fingerprint": config.get("fingerprint"),
        "params": config["params"],
        "versions": config.get("versions", {}),
    }
    _print_facts(facts, as_json)


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            say(f"{key}:")
            for name, inner in value.items():
                say(f"  {name}: {inner}")
        else:
            say(f"{key}: {value}")


def embedding_table(
    ids: list[Any], embeddings: "Floats", stride: int = 1, times: Any = None
) -> "pd.DataFrame":
    """A row for each embedding: ``id``, its first ``step`` unless it is the series, ``emb_0 ...``.

    Args:
        ids: Of the series.
        embeddings: ``(N, M)``, or ``(N, W, M)`` with NaN where a series has ended.
        stride: Steps from one embedding of a series to its next.
        times: Of the steps, ``(N, T)``, if they are known.
    """
    import numpy as np
    import pandas as pd

    if embeddings.ndim == 2:
        embeddings = embeddings[:, None]  # (N, 1, M)
        keys: dict[str, Any] = {"id": ids}
    else:
        rows, places = np.nonzero(~np.isnan(embeddings).all(axis=-1))
        keys = {"id": [ids[row] for row in rows], "step": places * stride}
        if times is not None:
            keys["time"] = times[rows, places * stride]
        embeddings = embeddings[rows, places][:, None]
    columns = [f"emb_{i}" for i in range(embeddings.shape[-1])]
    values = pd.DataFrame(embeddings[:, 0], columns=columns)
    return pd.concat([pd.DataFrame(keys), values], axis=1)


def _encode_options(level: Level, window: int | None, stride: int | None) -> dict[str, Any]:
    """Arguments of ``encode``; what does not fit together is refused before a model is loaded."""
    if level is Level.window and window is None:
        raise ValueError("--level window needs --window, the steps of a window")
    if level is not Level.window and (window or stride):
        raise ValueError(f"--window and --stride belong to --level window; the level is {level}")
    return {"level": str(level), "window": window, "stride": stride}


def _write_npz(ids: list[Any], embeddings: "Floats", out: Path) -> None:
    """``ids`` and ``embeddings``, with nothing pickled inside."""
    import numpy as np

    names = np.asarray(ids)
    if names.dtype == object:
        names = names.astype(str)
    with whole_file(out) as temporary:
        np.savez_compressed(temporary, ids=names, embeddings=embeddings)


def _shape(X: "Floats") -> str:
    n, d, t = X.shape
    return f"{n} series of {d} channel(s) and up to {t} steps"
