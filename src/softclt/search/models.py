"""Which model an index belongs to: one of the package by its name, or its own copy."""

import hashlib
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from softclt import pretrained
from softclt.methods import Pretrained, RepresentationLearner, load_model
from softclt.persistence import read_config

# Parameters that say where and how a model works, not what it gives.
_ASIDE = {"device", "precision", "progress", "random_state", "weights"}


def as_model(model: Any) -> RepresentationLearner:
    """A fitted model from what a user passes: itself, its folder or its name."""
    if isinstance(model, (str, os.PathLike)):
        return load_model(model)
    if not isinstance(model, RepresentationLearner):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a fitted model of softclt, a folder of "
            "one, or a name that 'softclt list models' shows"
        )
    check_is_fitted(model, "module_")
    return model


def keep(model: RepresentationLearner, folder: Path) -> dict[str, Any]:
    """Keep a model in the folder of an index, unless the package has it; how it is found again.

    Returns:
        ``name`` and ``sha256`` of its weights if the package has it; else the ``folder`` in which
        it was saved, with ``sha256`` and ``settings_sha256`` of its parameters.
    """
    name = _name_in_package(model)
    if name is not None:
        return {"name": name, "sha256": pretrained.find_weights(name).digest}
    inside = f"model-{secrets.token_hex(6)}"
    model.save(folder / inside)
    return {"folder": inside, **_told_apart(folder / inside)}


def kept_model(kept: dict[str, Any], folder: Path) -> RepresentationLearner:
    """The model of an index; refused if it is not the one that the rows were made with."""
    if "name" not in kept:
        model = load_model(folder / kept["folder"])
        _refuse_if_other(kept, _told_apart(folder / kept["folder"]), f"the model kept in {folder}")
        return model
    model = load_model(kept["name"])
    digest = {"sha256": pretrained.find_weights(kept["name"]).digest}
    _refuse_if_other(kept, digest, f"{kept['name']} of this version of softclt")
    return model


def refuse_other(kept: dict[str, Any], model: RepresentationLearner) -> None:
    """Refuse a model that is not the one of an index."""
    with tempfile.TemporaryDirectory() as aside:
        own = keep(model, Path(aside))
    _refuse_if_other(kept, own, "this model" if "folder" in own else own["name"])


def _refuse_if_other(kept: dict[str, Any], own: dict[str, Any], name: str) -> None:
    if any(kept.get(key) != own.get(key) for key in ("sha256", "settings_sha256")):
        made_with = kept.get("name", "a model of its own")
        raise ValueError(
            f"the index was made with {made_with} (SHA-256 {kept['sha256'][:12]}...), {name} is "
            f"another model (SHA-256 {own['sha256'][:12]}...), whose embeddings cannot be compared "
            "with its own; use the first, or index the series again"
        )


def _name_in_package(model: RepresentationLearner) -> str | None:
    """Name of a model that the package has, unless its settings or weights have been changed."""
    if not isinstance(model, Pretrained) or model.weights_ not in pretrained.names():
        return None
    fresh = load_model(model.weights_).get_params(deep=False)
    own = model.get_params(deep=False)
    same = all(own[name] == fresh[name] for name in own if name not in _ASIDE)
    return model.weights_ if same and not model.adapted_ else None


def _told_apart(folder: Path) -> dict[str, str]:
    """What differs between saved models that give different embeddings."""
    config = read_config(folder)
    settings = {k: v for k, v in config["params"].items() if k not in _ASIDE}
    text = json.dumps([config["method"], settings], sort_keys=True)
    return {
        "sha256": config["sha256"],
        "settings_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
