"""Soft contrastive learning for time series."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> the module that has it. Loaded on first use, so that `import softclt` stays quick.
_HOMES = {
    "AnomalyDetector": "softclt.anomaly",
    "BatchDistances": "softclt.distances",
    "CATCC": "softclt.methods",
    "CoST": "softclt.methods",
    "EmbeddingEnsemble": "softclt.methods",
    "Forecaster": "softclt.forecasting",
    "OnnxModel": "softclt.export",
    "SemiSupervisedClassifier": "softclt.few_labels",
    "SeriesClassifier": "softclt.classification",
    "SeriesIndex": "softclt.search",
    "SoftContrastiveLoss": "softclt.losses",
    "SoftInstanceLoss": "softclt.losses",
    "SoftTemporalLoss": "softclt.losses",
    "TNC": "softclt.methods",
    "TS2Vec": "softclt.methods",
    "TSTCC": "softclt.methods",
    "export_onnx": "softclt.export",
    "fit_many": "softclt.methods",
    "load_model": "softclt.methods",
    "load_pretrained": "softclt.methods",
    "pairwise_distance": "softclt.distances",
    "select": "softclt.selection",
    "load": "softclt.data",
    "evaluate": "softclt.tasks",
}
_MODULES = (
    "anomaly",
    "assignments",
    "data",
    "distances",
    "functional",
    "losses",
    "methods",
    "tasks",
)

if TYPE_CHECKING:
    from softclt import anomaly as anomaly
    from softclt import assignments as assignments
    from softclt import data as data
    from softclt import distances as distances
    from softclt import functional as functional
    from softclt import losses as losses
    from softclt import methods as methods
    from softclt import tasks as tasks
    from softclt.anomaly import AnomalyDetector as AnomalyDetector
    from softclt.classification import SeriesClassifier as SeriesClassifier
    from softclt.data import load as load
    from softclt.distances import BatchDistances as BatchDistances
    from softclt.distances import pairwise_distance as pairwise_distance
    from softclt.export import OnnxModel as OnnxModel
    from softclt.export import export_onnx as export_onnx
    from softclt.few_labels import SemiSupervisedClassifier as SemiSupervisedClassifier
    from softclt.forecasting import Forecaster as Forecaster
    from softclt.losses import SoftContrastiveLoss as SoftContrastiveLoss
    from softclt.losses import SoftInstanceLoss as SoftInstanceLoss
    from softclt.losses import SoftTemporalLoss as SoftTemporalLoss
    from softclt.methods import CATCC as CATCC
    from softclt.methods import TNC as TNC
    from softclt.methods import TSTCC as TSTCC
    from softclt.methods import CoST as CoST
    from softclt.methods import EmbeddingEnsemble as EmbeddingEnsemble
    from softclt.methods import TS2Vec as TS2Vec
    from softclt.methods import fit_many as fit_many
    from softclt.methods import load_model as load_model
    from softclt.methods import load_pretrained as load_pretrained
    from softclt.search import SeriesIndex as SeriesIndex
    from softclt.selection import select as select
    from softclt.tasks import evaluate as evaluate

__all__ = ["__version__", "functional", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"softclt.{name}")
    raise AttributeError(f"module 'softclt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
