"""``fit`` and ``info``: from files to a model, and what a model is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.export import open_onnx
from softclt.cli.output import Output, check_outputs, note, print_json, say, shape_in_words, tell
from softclt.cli.settings import build_model

if TYPE_CHECKING:
    from softclt.data.columns import Columns


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

    note(f"fitting {method} on {shape_in_words(X)} of {data}{training_words(model, X.shape)}")
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
