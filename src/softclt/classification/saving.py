"""A fitted classifier as a folder: what the ridge has learned, and each encoder as a model."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softclt import persistence
from softclt.classification.blocks import Block, blocks
from softclt.classification.calibration import Calibration
from softclt.classification.design import Scaling
from softclt.methods import Pretrained, RepresentationLearner, load_model
from softclt.persistence import check_entries
from softclt.schema import FLAG, LIST, NUMBER, SIZE, TABLE, TEXT, TEXTS, either

if TYPE_CHECKING:
    from softclt.classification.classifier import SeriesClassifier

KIND = "series classifier"
ENCODER = "encoder"
_TRIED = 32  # steps of a series that features are counted of
_SPARE = 4096  # bytes of a text that classes may be shorter than


def save_classifier(model: "SeriesClassifier", folder: str | os.PathLike[str]) -> None:
    """See `SeriesClassifier.save`."""
    folder = Path(folder)
    for name in model.features_:
        if not blocks.tags(name)["keeps"]:
            raise ValueError(
                f"the features {name!r} come from another package and cannot be saved; fit with "
                "features of softclt alone, such as features='auto'"
            )
    inner: dict[str, RepresentationLearner] = {ENCODER: model.encoder_}
    for block in model._blocks.values():
        inner |= block.models()
    for sub, own in inner.items():
        own.save(folder / sub)
    tensors = {"offset": model._offset, "shifts": model._calibration.shifts}
    for name in model.features_:
        tensors[f"{name}.coefficients"] = model._coefficients[name]
        tensors[f"{name}.mean"] = model._scalings[name].mean
        tensors[f"{name}.factor"] = model._scalings[name].factor
    params = model.get_params(deep=False)
    if isinstance(params["class_weight"], Mapping):  # names of classes may be numbers
        params["class_weight"] = list(params["class_weight"].items())
    accuracy = persistence.json_safe(model.loo_accuracy_)
    config = {
        "method": KIND,
        "params": persistence.json_safe(params),
        "fitted": {
            "classes": model.classes_.tolist(),
            "dtype": model.classes_.dtype.str,
            "n_channels": model.n_features_in_,
            "features": list(model.features_),
            "alpha": model.alpha_,
            "tuned": model.tuned_,
            "factor": model._calibration.factor,
            "loo_accuracy": "none" if accuracy is None else accuracy,
            "models": {sub: _digest_of(folder / sub) for sub in inner},
        },
        "versions": persistence.versions(),
    }
    kept = {name: torch.from_numpy(np.ascontiguousarray(own)) for name, own in tensors.items()}
    persistence.write_model(folder, config, kept, [])


def load_classifier(
    model_type: "type[SeriesClassifier]", folder: str | os.PathLike[str]
) -> "SeriesClassifier":
    """See `SeriesClassifier.load`."""
    config, tensors = persistence.read_model(folder, KIND)
    fitted = config["fitted"]
    with persistence.one_error(folder, KIND):
        check_entries(fitted, _FITTED)
        inner = {
            str(sub): _inner(Path(folder), str(sub), own) for sub, own in fitted["models"].items()
        }
        model = model_type(**config["params"])
        if isinstance(model.class_weight, list):
            model.class_weight = {name: weight for name, weight in model.class_weight}
        _restore(model, fitted, tensors, inner)
    return model


_FITTED = {
    "classes": LIST,
    "dtype": TEXT,
    "n_channels": SIZE,
    "features": TEXTS,
    "alpha": NUMBER,
    "tuned": FLAG,
    "factor": NUMBER,
    "loo_accuracy": either(NUMBER, TEXT),
    "models": TABLE,
}


def _inner(folder: Path, sub: str, digest: str) -> RepresentationLearner:
    """One of the models beside; its name is one that a block gives."""
    if not sub.replace("-", "").isalnum():
        raise ValueError(f"a model in it is called {sub[:40]!r}")
    if _digest_of(folder / sub) != digest:
        raise ValueError(f"its {sub} is another one, of a save that was broken off")
    return load_model(folder / sub)


def _restore(
    model: "SeriesClassifier",
    fitted: dict[str, Any],
    tensors: dict[str, Tensor],
    inner: dict[str, RepresentationLearner],
) -> None:
    """Become the classifier that was saved; what does not hang together is refused."""
    kind, classes = np.dtype(fitted["dtype"]), fitted["classes"]
    longest = max((len(str(label)) for label in classes), default=0)
    if kind.kind not in "biufUO" or kind.itemsize > max(16, 4 * longest + _SPARE):
        raise ValueError(f"classes of the type {fitted['dtype'][:20]}")
    if len(set(classes)) < len(classes):
        raise ValueError("a class of it is there twice")
    names: list[str] = fitted["features"]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"its features are {names}; expected one block or more, each once")
    arrays = {name: own.numpy().astype(np.float64) for name, own in tensors.items()}
    model.classes_ = np.array(classes, dtype=kind)
    model.n_features_in_, model.features_ = fitted["n_channels"], tuple(names)
    model.alpha_, model.tuned_ = float(fitted["alpha"]), fitted["tuned"]
    model.loo_probabilities_, model.left_out_ = None, None
    accuracy = fitted["loo_accuracy"]
    model.loo_accuracy_ = float("nan") if isinstance(accuracy, str) else float(accuracy)
    model._offset = arrays["offset"]
    model._calibration = Calibration(float(fitted["factor"]), arrays["shifts"])
    model._blocks, model._scalings, model._coefficients = {}, {}, {}
    encoder = inner[ENCODER]
    if not isinstance(encoder, Pretrained) or encoder.readout != "rich":
        raise ValueError(f"its encoder is a {type(encoder).__name__}, which it cannot read")
    model.encoder_ = encoder
    n_classes = len(classes)
    if arrays["offset"].shape != (n_classes,) or arrays["shifts"].shape != (n_classes,):
        raise ValueError("its offsets are not those of its classes")
    for name in model.features_:
        block = blocks[name](encoder, 0)
        block.restore(inner)
        mean, factor = arrays[f"{name}.mean"], arrays[f"{name}.factor"]
        coefficients = arrays[f"{name}.coefficients"]
        if (
            mean.ndim != 1
            or mean.shape != factor.shape
            or (len(mean), n_classes) != coefficients.shape
        ):
            raise ValueError(f"the numbers of its features {name} do not fit each other")
        if not blocks.tags(name)["keeps"]:
            raise ValueError(f"its features {name} are none that a file can keep")
        n_channels = model.n_features_in_
        if n_channels > len(mean) or _n_features(block, n_channels) != len(mean):
            raise ValueError(f"{len(mean)} features {name} are not those of {n_channels} channels")
        model._blocks[name] = block
        model._scalings[name] = Scaling(mean, factor)
        model._coefficients[name] = coefficients


def _n_features(block: Block, n_channels: int) -> int:
    """How many there are of each series."""
    steps = np.arange(_TRIED, dtype=np.float64)
    return int(block.transform(np.tile(steps, (1, n_channels, 1))).shape[1])


def _digest_of(folder: Path) -> str:
    """Of the weights of a model."""
    digest: str = persistence.read_config(folder)["sha256"]
    return digest
