"""``export``: a model as one ONNX file, which runs without Python or torch."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.output import Output, check_outputs, note, print_json, working
from softclt.cli.settings import check_model

if TYPE_CHECKING:
    from softclt.export import OnnxModel

SUFFIX = ".onnx"
_NEEDS = ("onnx", "onnxscript", "onnxruntime")


def export(
    model: options.Model,
    out: Annotated[Path, typer.Option(help="File to write: .onnx.")],
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """You have a model and want to run it where there is no torch: write it as one ONNX file.

    The file takes raw series, of any number and any length, with NaN where values are missing:
    scaling, encoder and pooling are inside. It is compared with the model before it is kept.
    """
    check_outputs(Output(out, (SUFFIX,), needs=_NEEDS), force=force, reads=[model])
    check_model(model)

    from softclt.export import export_onnx

    note(f"writing {model} as ONNX, and comparing the two: some seconds")
    with working("exporting"):
        exported = export_onnx(model, out)
    facts = {key.removeprefix("softclt."): value for key, value in exported.facts.items()}
    note(
        f"{facts['model']} in {out}: {exported.n_bytes / 1e6:.1f} MB, ONNX opset {facts['opset']}, "
        f"at most {exported.largest_difference:.0e} from the model"
    )
    if as_json:
        sizes = {"bytes": exported.n_bytes, "largest_difference": exported.largest_difference}
        print_json({"out": str(out), **sizes, **facts})


def open_onnx(model: Path, level: str = "instance", causal: bool = False) -> "OnnxModel | None":
    """The model in an ONNX file, without torch; None for one that is not in such a file."""
    if model.suffix != SUFFIX:
        return None
    if level != "instance" or causal:
        raise ValueError(
            f"{model} gives one embedding for each series; for steps and windows use the model "
            "that it was exported from"
        )
    from softclt.export import OnnxModel

    return OnnxModel(model, progress=True)
