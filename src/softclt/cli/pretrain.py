"""``pretrain``: an encoder for all series, from a corpus of many data sets."""

from pathlib import Path
from typing import Annotated

import typer

from softclt.cli import options
from softclt.cli.output import Output, check_outputs, note, print_json, say
from softclt.cli.settings import parse_settings


def pretrain(
    corpus: Annotated[
        str,
        typer.Argument(metavar="CORPUS", help="A TOML file; base and synthetic are shipped ones."),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the model.")] = None,
    gather: Annotated[
        Path | None,
        typer.Option(
            help="Only write the real series of the corpus into this .npz file, which is a CORPUS "
            "where their data sets are not."
        ),
    ] = None,
    settings: options.Settings = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps training [default: OUT-training]; it goes on there."),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """You have many unlabelled series: train an encoder on all of them once, to use it everywhere.

    The folder is a model like those that softclt list models shows, with a manifest of what it has
    seen. If the command is stopped or killed, the same command goes on. With torchrun, several
    processes share the work.
    """
    kept = checkpoint or (out and out.with_name(f"{out.name}-training"))
    check_outputs(
        Output(gather, (".npz",), "--gather"),
        Output(out),
        Output(kept, option="--checkpoint", goes_on=True),
        force=force,
    )
    if gather is not None:
        from softclt.data.corpus import write_corpus

        note(f"gathering the corpus {corpus}")
        n_series = write_corpus(corpus, gather)
        say(f"{n_series} series in {gather}: softclt pretrain {gather} --out model/")
        return
    if out is None:
        raise typer.BadParameter("a folder for the model is missing", param_hint="--out")
    own = parse_settings(settings)

    from softclt.data.corpus import read_corpus
    from softclt.methods import SeriesContrast
    from softclt.methods.learner import find_device
    from softclt.pretrained import write_manifest
    from softclt.training.distributed import current_group, processes_of_torchrun

    note(f"gathering the corpus {corpus}")
    found = read_corpus(corpus, find_device(own.get("device", "auto")).type)
    asked = {"max_iter": 4000, "random_state": 0, **found.manifest["asked"].get("training", {})}
    asked |= {"progress": True} | own
    model = SeriesContrast(**asked)
    with processes_of_torchrun():
        if current_group().rank == 0:
            note(
                f"training on {len(found)} series of {len(found.names)} sets for "
                f"{model.max_iter} steps; {kept} keeps it, history-0.jsonl in it has each step"
            )
        model.fit(found, checkpoint=kept)
        model.set_params(progress=False)
        model.save(out)
        if current_group().rank == 0:
            write_manifest(out, found.manifest)
    seconds = model.history_["seconds"]["training"]
    if as_json:
        facts = {"out": str(out), "series": len(found), "sets": len(found.names)}
        print_json(facts | {"steps": model.n_iter_, "seconds": seconds})
    else:
        say(f"model in {out}: softclt embed {out} DATA --out embeddings.csv")
