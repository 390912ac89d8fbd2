"""Classifiers on the embeddings of a few series, and how likely they say each class is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.validation import Floats

PROBES = ("svm", "ridge", "linear")


def fit_probe(kind: str, R: Floats, codes: NDArray[np.int64]) -> Any:
    """Of the embeddings ``(n, M)`` of series with labels."""
    from softclt.tasks.probes import probes  # tasks know this package

    return probes[kind](R, codes)


def probe_probabilities(probe: Any, R: Floats) -> NDArray[np.float64]:
    """``(N, L)``, rows summing to 1: its own, or a softmax of its margins."""
    from softclt.tasks.probes import class_scores

    scores = np.asarray(class_scores(probe, R), dtype=np.float64)
    if not hasattr(probe, "predict_proba"):
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))
