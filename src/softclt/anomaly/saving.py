"""A fitted detector as a folder: scorer and threshold as numbers, the model as a model."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from torch import Tensor

from softclt import persistence
from softclt.anomaly.extreme import Spot
from softclt.anomaly.scorers import new_scorer, scorers
from softclt.anomaly.thresholds import new_threshold
from softclt.methods import RepresentationLearner, load_model
from softclt.persistence import check_entries
from softclt.schema import DIGEST, SIZE, optional

if TYPE_CHECKING:
    from softclt.anomaly.detector import AnomalyDetector

KIND = "anomaly detector"
MODEL = "model"


def save_detector(detector: "AnomalyDetector", folder: str | os.PathLike[str]) -> None:
    """See `AnomalyDetector.save`."""
    folder = Path(folder)
    parts = {"scorer": detector.scorer_, "threshold": detector.threshold_}
    numbers = {
        f"{part}.{name}": own
        for part, fitted in parts.items()
        for name, own in _numbers_of(fitted, getattr(detector, part)).items()
    }
    digest = None
    if (model := _model_of(detector.scorer_)) is not None:
        model = model.estimator if isinstance(model, FrozenEstimator) else model
        if not isinstance(model, RepresentationLearner):
            raise ValueError(
                f"the detector reads a {type(model).__name__}, which softclt cannot save; save it "
                "yourself, and make the detector anew"
            )
        model.save(folder / MODEL)
        digest = _digest_of(folder / MODEL)
    params = {name: own for name, own in detector.get_params(deep=False).items() if name != "model"}
    config = {
        "method": KIND,
        "params": persistence.json_safe(params),
        "fitted": {"n_channels": detector.n_features_in_, "model": digest},
        "versions": persistence.versions(),
    }
    tensors = {name: torch.from_numpy(np.ascontiguousarray(own)) for name, own in numbers.items()}
    persistence.write_model(folder, config, tensors, [])


def load_detector(
    kind: "type[AnomalyDetector]", folder: str | os.PathLike[str]
) -> "AnomalyDetector":
    """See `AnomalyDetector.load`."""
    config, tensors = persistence.read_model(folder, KIND)
    fitted = config["fitted"]
    with persistence.one_error(folder, KIND):
        check_entries(fitted, {"n_channels": SIZE, "model": optional(DIGEST)})
        model = None
        if fitted["model"] is not None:
            if _digest_of(Path(folder) / MODEL) != fitted["model"]:
                raise ValueError("its model is another one, of a save that was broken off")
            model = load_model(Path(folder) / MODEL)
        detector = kind(None if model is None else FrozenEstimator(model), **config["params"])
        n_channels = detector.n_features_in_ = fitted["n_channels"]
        _restore(detector, model, tensors, n_channels)
        if (taken := getattr(detector.scorer_, "n_channels_", n_channels)) != n_channels:
            raise ValueError(f"its scorer takes {taken} channels")
    return detector


def _restore(
    detector: "AnomalyDetector", model: Any, tensors: Mapping[str, Tensor], n_channels: int
) -> None:
    fallbacks = {"context": detector.context, "random_state": detector.random_state}
    fallbacks["encoder"] = model
    scorer: Any = new_scorer(detector.scorer, detector.scorer_params, model=model, **fallbacks)
    threshold: Any = new_threshold(detector.threshold, detector.threshold_params)
    rebuilt = hasattr(scorer, "restore")
    if rebuilt:
        learned = {n.removeprefix(_SCORER): t.numpy() for n, t in tensors.items() if _SCORER in n}
        scorer.restore(learned, model)
    for name, tensor in tensors.items():
        part, attribute, *inner = name.split(".")
        if rebuilt and part == "scorer":
            continue
        if part not in ("scorer", "threshold") or not _is_learned(attribute) or len(inner) > 1:
            raise ValueError(f"it has numbers called {name[:40]!r}")
        if not inner:
            own = tensor.numpy() if tensor.ndim else tensor.item()
            setattr(scorer if part == "scorer" else threshold, attribute, own)
    if spots := {n: t.numpy() for n, t in tensors.items() if n.startswith(_WATCHER)}:
        state = {name.removeprefix(_WATCHER): own for name, own in spots.items()}
        threshold.watcher_ = threshold._watcher().restore(state)
    if scorers.tags(detector.scorer)["model"]:
        if model is None:
            raise ValueError("it has no model")
        if model.n_features_in_ not in (None, n_channels):
            raise ValueError(f"its model takes {model.n_features_in_} channels")
        scorer.model_ = model
    if hasattr(scorer, "ready"):
        scorer.ready()
    threshold.levels(np.zeros(2))  # or an error, if it has not what it needs
    detector.scorer_, detector.threshold_ = scorer, threshold


_SCORER, _WATCHER = "scorer.", "threshold.watcher_."


def _model_of(scorer: Any) -> Any:
    """The trained network that a scorer reads; None if there is none."""
    return getattr(scorer, "model_", getattr(scorer, "encoder_", None))


def _is_learned(attribute: str) -> bool:
    return attribute.endswith("_") and not attribute.startswith("_") and attribute != "model_"


def _numbers_of(fitted: Any, name: str) -> dict[str, NDArray[Any]]:
    """What a scorer or threshold has learned, by attribute."""
    if not isinstance(fitted, Spot) and hasattr(fitted, "state"):
        return dict(fitted.state())
    numbers: dict[str, NDArray[Any]] = {}
    for attribute, own in vars(fitted).items():
        if not _is_learned(attribute):
            continue
        if isinstance(own, Spot):
            numbers |= {f"{attribute}.{part}": state for part, state in own.state().items()}
        elif isinstance(own, (int, float, np.ndarray)):
            numbers[attribute] = np.asarray(own)
        else:
            raise ValueError(
                f"a detector with {name!r} cannot be saved, since it learns more than numbers; "
                "keep what it was fitted on, and fit it again"
            )
    return numbers


def _digest_of(folder: Path) -> str:
    digest: str = persistence.read_config(folder)["sha256"]
    return digest
