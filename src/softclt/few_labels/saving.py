"""A fitted classifier as a folder: its encoder as a model of its own, and what reads it beside."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softclt import persistence
from softclt.methods import RepresentationLearner, load_model, methods
from softclt.methods.head import ClassifierNetwork
from softclt.training.randomness import own_draws

if TYPE_CHECKING:
    from softclt.few_labels.classifier import SemiSupervisedClassifier

KIND = "semi-supervised classifier"
ENCODER = "encoder"


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
    config, tensors = persistence.read_model(folder)
    if config["method"] != KIND:
        raise persistence.ModelFileError(
            f"{folder} holds a model of the method {config['method']!r}, no classifier; use "
            "softclt.load_model"
        )
    model = model_type(**config["params"])
    model._restore(config["fitted"], load_model(Path(folder) / ENCODER), tensors)
    return model


def restored_network(
    encoder: RepresentationLearner, fitted: dict[str, Any], tensors: dict[str, Tensor]
) -> ClassifierNetwork:
    """The network of a saved classifier, on its encoder."""
    n_classes, length = len(fitted["columns"]), fitted["length"]
    with own_draws(0):  # the new weights are replaced
        network = ClassifierNetwork(
            encoder.module_, encoder.n_features_in_, n_classes, length, encoder.read_out()[0]
        )
    network.head.load_state_dict(tensors)
    like = next(encoder.module_.parameters())
    return network.to(device=like.device, dtype=like.dtype).eval()
