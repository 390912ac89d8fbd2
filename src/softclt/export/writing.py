"""Models as ONNX files: written, tried, and only then put in their place."""

import copy
import hashlib
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.torch import save
from sklearn.utils.validation import check_is_fitted

from softclt.encoders import ForeignEncoder
from softclt.export.checksum import EMPTY, KEY, sealed
from softclt.export.graph import OPSET, ExportError
from softclt.export.networks import alone
from softclt.export.reading import graph_of, n_numbers
from softclt.export.running import NEEDED, OnnxModel
from softclt.files import whole_file
from softclt.methods import RepresentationLearner, SeriesContrast, load_model, methods
from softclt.optional import needed
from softclt.persistence import versions
from softclt.validation import Floats64

TOLERANCE = 1e-5  # by which numbers may differ, as a part of the largest, or of 1 if that is more
_MOST_BYTES = 2**31 - 2**20  # of one file: what its format can hold
_TRIED = (2, 33, 150)  # steps of the series that a file is tried with
_FLIPPED = 0.01  # of shares of steps above 0: a step may be 0 but for rounding

_ABOUT = """\
series: float64 (n_series, n_channels, n_steps). NaN where a value is missing, and behind the end of
a series that is shorter than others. embeddings: float32 (n_series, n_numbers), a row for each
series; NaN for a series that has no value."""


class Exported(NamedTuple):
    """What was written.

    Attributes:
        facts: The metadata of the file.
        n_bytes: Its size.
        largest_difference: From ``transform``, over the series that the file was tried with.
    """

    facts: dict[str, str]
    n_bytes: int
    largest_difference: float


def export_onnx(
    model: RepresentationLearner | str | os.PathLike[str], path: str | os.PathLike[str]
) -> Exported:
    """Write what ``transform`` of a fitted model does as one ONNX file.

    The graph takes raw series: scaling, missing values, encoder and pooling are inside, for any
    number of series and steps. The file is compared with ``transform`` before it gets its name.

    Args:
        model: A fitted method, the folder of a saved one, or the name of a pre-trained one.
        path: Of the file; one that is there is replaced.

    Raises:
        ExportError: For a model that cannot be exported, with the reason.
    """
    with needed(NEEDED):
        import onnx
        import onnxruntime  # noqa: F401 - the file is going to be tried
    name = None
    if isinstance(model, (str, os.PathLike)):
        name, model = Path(model).resolve().name, load_model(model)
    if not isinstance(model, RepresentationLearner):
        raise ExportError(
            f"a {type(model).__name__} cannot be exported: expected a fitted method such as TS2Vec "
            "or Pretrained, a model folder, or the name of a pre-trained model"
        )
    check_is_fitted(model, "module_")
    model = _on_cpu(model)
    facts = _facts(model, name)
    file = graph_of(model)
    n_bytes = sum(len(constant.raw_data) for constant in file.graph.initializer)
    if n_bytes > _MOST_BYTES:
        raise ExportError(
            f"the weights take {n_bytes / 1e9:.1f} GB, and one ONNX file holds 2 GB; train a "
            "smaller model"
        )
    file.doc_string = _ABOUT
    onnx.helper.set_model_props(file, facts | {KEY: EMPTY})
    with whole_file(path) as temporary:
        temporary.write_bytes(sealed(file.SerializeToString()))
        difference = _tried(model, OnnxModel(temporary))
        return Exported(facts, temporary.stat().st_size, difference)


def trial(model: RepresentationLearner, n_steps: int, share: float = 0.1) -> Floats64:
    """Random series of a model's channels and scale, a share of their values missing."""
    rng = np.random.default_rng(n_steps)
    n_channels = model.n_features_in_ or 2
    X = rng.normal(size=(4, n_channels, n_steps))
    if isinstance(model.scale_, tuple):
        mean, spread = model.scale_
        X = mean[:, None] + spread[:, None] * X
    gone = rng.random(X.shape) < share / n_channels
    gone |= rng.random((4, 1, n_steps)) < share
    gone[..., -1] = gone[0] = False  # each has a step with a value
    if not isinstance(alone(model.module_), ForeignEncoder):  # which may see what pads it
        gone[1, :, n_steps // 2 + 1 :], gone[1, :, n_steps // 2] = True, False
    X[gone] = np.nan
    return X


def difference(one: Any, other: Any, share: float = 1.0) -> float:
    """Of embeddings: the largest, or what a share of all numbers stays below; see TOLERANCE."""
    largest = max(1.0, float(np.abs(one).max()))
    return float(np.quantile(np.abs(one.astype(np.float64) - other), share)) / largest


def _tried(model: RepresentationLearner, file: OnnxModel) -> float:
    """The largest difference between a file and its model, or an error if that is too large."""
    differences = []
    share = 1 - _FLIPPED if "positive" in model.read_out()[0] else 1.0
    for n_steps in _TRIED:
        X = trial(model, n_steps)
        wanted, found = np.asarray(model.transform(X)), file.transform(X)
        if wanted.shape != found.shape or not difference(wanted, found, share) < TOLERANCE:
            came = f"{found.shape} for {wanted.shape}"
            if wanted.shape == found.shape:
                came = f"a difference of {difference(wanted, found, share):.1g}"
            raise ExportError(
                f"the ONNX form of this {type(model).__name__} does not give what its transform "
                f"gives ({came} on series of {n_steps} steps), so nothing was written"
            )
        differences.append(difference(wanted, found, share))
    return max(differences)


def _on_cpu(model: RepresentationLearner) -> RepresentationLearner:
    """A copy in float32 there: what the graph is made of and compared with."""
    own = copy.copy(model)
    own.device, own.precision, own.device_ = "cpu", "float32", "cpu"
    own.module_ = copy.deepcopy(model.module_).cpu().float().eval()
    return own


def _facts(model: RepresentationLearner, name: str | None) -> dict[str, str]:
    """What the file says of itself."""
    weights = {f"averaged.{k}": v.contiguous() for k, v in model.module_.state_dict().items()}
    pooling, layers = model.read_out()
    encoder = alone(model.module_)
    padding = "ignored" if encoder.mask_padding else "kept"
    if encoder.mask_padding and isinstance(encoder, ForeignEncoder):
        padding = "trimmed"
    facts = {
        "model": getattr(model, "weights_", None) or name or methods.name_of(type(model)),
        "sha256": hashlib.sha256(save(weights)).hexdigest(),
        "method": methods.name_of(type(model)),
        "readout": getattr(model, "readout", None),
        "pooling": pooling,
        "layers": layers,
        "channels": getattr(model, "channels", None),
        "n_channels": model.n_features_in_ or "any",
        "n_numbers": n_numbers(model) or "by the channels",
        "missing": "values" if isinstance(model, SeriesContrast) else "steps",
        "padding": padding,
        "opset": OPSET,
    }
    tools = versions() | {"onnx": version("onnx")}
    facts |= {f"version.{package}": number for package, number in tools.items()}
    return {f"softclt.{key}": str(fact) for key, fact in facts.items() if fact is not None}
