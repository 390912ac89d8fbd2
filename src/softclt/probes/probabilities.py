"""Classifiers on the embeddings of a few series, and how likely they say each class is."""

import copy
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.svm import SVC

from softclt.probes.classifiers import class_scores
from softclt.validation import Floats, Floats64

PROBES = ("svm", "ridge", "linear")


def probe_probabilities(probe: Any, R: Floats) -> Floats64:
    """``(N, L)``, rows summing to 1: its own, or a softmax of its margins.

    The likeliest class is always the one that the probe predicts.
    """
    if isinstance(probe, SVC) and len(probe.classes_) > 2:
        return _of_pairs(probe, R)
    scores = np.asarray(class_scores(probe, R), dtype=np.float64)
    if not hasattr(probe, "predict_proba"):
        return np.asarray(softmax(scores, axis=1))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))  # of one against the rest each


def _of_pairs(svm: SVC, R: Floats) -> Floats64:
    """Softmax of each class' margins against all others, summed up.

    scikit-learn's own scores of three and more classes count won pairs, so that all first places
    look equally sure; margins tell more. Where they would have another class first than the pairs
    won, which are right more often, the two change places.
    """
    of_pairs = copy.copy(svm)  # the same machine: the given one may be asked by other threads
    of_pairs.decision_function_shape = "ovo"
    margins = of_pairs.decision_function(R)  # (N, L (L - 1) / 2)
    n_classes = len(svm.classes_)
    sums = np.zeros((len(R), n_classes))
    for margin, (first, second) in zip(margins.T, combinations(range(n_classes), 2), strict=True):
        sums[:, first] += margin
        sums[:, second] -= margin
    rows, said = np.arange(len(R)), np.searchsorted(svm.classes_, svm.predict(R))
    top = sums.argmax(axis=1)
    sums[rows, said], sums[rows, top] = sums[rows, top].copy(), sums[rows, said].copy()
    return np.asarray(softmax(sums, axis=1))
