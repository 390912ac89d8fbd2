"""A fitted classifier as a folder: its encoder as a model of its own, and what reads it beside."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softclt import persistence
from softclt.files import too_large
from softclt.methods import RepresentationLearner, load_model, methods
from softclt.methods.head import ClassifierNetwork
from softclt.persistence import check_entries
from softclt.schema import COUNT, COUNTS, LIST, SIZE, TEXT, optional
from softclt.training.randomness import own_draws

if TYPE_CHECKING:
    from softclt.few_labels.classifier import SemiSupervisedClassifier

KIND = "semi-supervised classifier"
ENCODER = "encoder"

_SPARE = 4096  # bytes of a text that classes may be shorter than
_BYTES_A_STEP = 2**14  # that the encoder takes for a step of a series, about


def save_classifier(model: "SemiSupervisedClassifier", folder: str | os.PathLike[str]) -> None:
    """See `SemiSupervisedClassifier.save`."""
    encoder = model.encoder_
    encoder.save(Path(folder) / ENCODER)
    params = persistence.json_safe(model.get_params(deep=False)) | {
        "method": methods.name_of(type(encoder)),
        "method_params": persistence.json_safe(encoder.get_params(deep=False)),
        "pretrained": None,
        "random_state": encoder.seed_,
    }
    fitted: dict[str, Any] = {
        "classes": model.classes_.tolist(),
        "dtype": model.classes_.dtype.str,
        "columns": model._columns.tolist(),
        "labelled": np.flatnonzero(model.labelled_).tolist(),
        "n_series": len(model.labelled_),
        "probe": model.probe_kind_,
        "encoder": _digest_of(Path(folder) / ENCODER),
    }
    if model.network_ is not None:
        fitted["length"] = model.network_.length
        tensors = model.network_.head.state_dict()
    else:
        assert model.shown_ is not None
        R, codes = model.shown_
        tensors = {"embeddings": torch.from_numpy(R), "labels": torch.from_numpy(codes)}
    config = {
        "method": KIND,
        "params": params,
        "fitted": fitted,
        "versions": persistence.versions(),
    }
    persistence.write_model(folder, config, tensors, [])


def load_classifier(
    model_type: "type[SemiSupervisedClassifier]", folder: str | os.PathLike[str]
) -> "SemiSupervisedClassifier":
    """See `SemiSupervisedClassifier.load`."""
    config, tensors = persistence.read_model(folder, KIND)
    encoder_folder, fitted = Path(folder) / ENCODER, config["fitted"]
    encoder = load_model(encoder_folder)
    with persistence.one_error(folder, KIND):
        check_entries(fitted, _FITTED)
        if fitted.get("encoder", digest := _digest_of(encoder_folder)) != digest:
            raise ValueError("its encoder is another one, of a save that was broken off")
        _check_fitted(fitted, encoder, tensors)
        model = model_type(**config["params"])
        model._restore(fitted, encoder, tensors)
    return model


_FITTED = {
    "classes": LIST,
    "dtype": TEXT,
    "columns": COUNTS,
    "labelled": COUNTS,
    "n_series": COUNT,
    "probe": optional(TEXT),
}


def _digest_of(folder: Path) -> str:
    """Of the weights of an encoder."""
    digest: str = persistence.read_config(folder)["sha256"]
    return digest


def _check_fitted(
    fitted: dict[str, Any], encoder: RepresentationLearner, tensors: dict[str, Tensor]
) -> None:
    """Refuse what does not hang together, or would take memory that no such classifier takes."""
    if problem := too_large(fitted["n_series"]):
        raise ValueError(f"{fitted['n_series']} series: a mark for each {problem}")
    longest = max((len(str(label)) for label in fitted["classes"]), default=0)
    kind = np.dtype(fitted["dtype"])
    if kind.kind not in "biufUO" or kind.itemsize > max(16, 4 * longest + _SPARE):
        raise ValueError(f"classes of the type {fitted['dtype'][:20]}")
    if max(fitted["columns"], default=0) >= len(fitted["classes"]):
        raise ValueError("a column of its probabilities is of no class")
    if fitted["probe"] is None:
        return
    R, codes = tensors["embeddings"], tensors["labels"]
    if R.ndim != 2 or codes.shape != R.shape[:1] or codes.dtype != torch.int64:
        raise ValueError("the embeddings that it keeps do not have a class each")
    if int(codes.min()) < 0 or int(codes.max()) >= len(fitted["columns"]):
        raise ValueError("an embedding that it keeps is of no class")
    if R.shape[1] != len(encoder.get_feature_names_out()):
        raise ValueError("the embeddings that it keeps are not of its encoder's size")


def restored_network(
    encoder: RepresentationLearner, fitted: dict[str, Any], tensors: dict[str, Tensor]
) -> ClassifierNetwork:
    """The network of a saved classifier, on its encoder."""
    check_entries(fitted, {"length": optional(SIZE)})
    n_classes, length = len(fitted["columns"]), fitted["length"]
    # What is read side by side has a weight for each step, of which an encoder leaves a few.
    if length is not None and too_large(length * _BYTES_A_STEP):
        raise ValueError(f"a length of {length} steps")
    with own_draws(0):  # the new weights are replaced
        network = ClassifierNetwork(
            encoder.module_, encoder.n_features_in_, n_classes, length, encoder.read_out()[0]
        )
    network.head.load_state_dict(tensors)
    like = next(encoder.module_.parameters())
    return network.to(device=like.device, dtype=like.dtype).eval()
