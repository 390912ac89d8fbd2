"""Scores of a classifier, on top of scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    precision_score,
    recall_score,
)
from sklearn.preprocessing import label_binarize

Labels = NDArray[np.integer[Any]]
Scores = NDArray[np.floating[Any]]


def auprc(y: Labels, scores: Scores, classes: Labels | None = None) -> float:
    """Area under the precision-recall curve: average precision of each class, and their mean.

    A class without a single example in ``y`` has no recall, so it does not count.

    Args:
        y: True labels, ``(N,)``.
        scores: Higher means more likely: ``(N, L)``, a column for each class, or with two classes
            ``(N,)`` for the second of them.
        classes: The labels that the columns stand for; sorted labels of ``y`` when not given.

    Example:
        >>> auprc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
        0.8333333333333333
    """
    classes = np.unique(y) if classes is None else np.asarray(classes)
    scores = np.asarray(scores)
    if scores.ndim == 1:
        if len(classes) != 2:
            raise ValueError(
                f"scores has shape {scores.shape} for {len(classes)} classes; "
                "expected a column for each class, (N, L)"
            )
        return float(average_precision_score(y == classes[1], scores))
    if scores.shape != (len(y), len(classes)):
        raise ValueError(
            f"scores has shape {scores.shape}; expected {(len(y), len(classes))}, "
            "a row for each label and a column for each class"
        )
    if len(classes) == 2:
        return float(average_precision_score(y == classes[1], scores[:, 1]))
    one_hot = label_binarize(y, classes=classes)  # (N, L)
    occurs = one_hot.any(axis=0)
    return float(average_precision_score(one_hot[:, occurs], scores[:, occurs], average="macro"))


def classification_metrics(
    y: Labels, predicted: Labels, scores: Scores, classes: Labels
) -> dict[str, float]:
    """Accuracy, macro F1 and AUPRC of predictions and their scores; arguments as in `auprc`."""
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "f1_macro": float(f1_score(y, predicted, average="macro", zero_division=0.0)),
        "auprc": auprc(y, scores, classes),
    }


def label_metrics(y: Labels, predicted: Labels) -> dict[str, float]:
    """Scores of predicted labels: accuracy, and means over the classes that are there or predicted.

    ``f1_weighted`` weighs classes by their size; the others count each class once. A class that is
    never predicted has precision 0, one without an example recall 0.
    """
    macro: dict[str, Any] = {"average": "macro", "zero_division": 0.0}
    return {
        "accuracy": float(accuracy_score(y, predicted)),
        "precision": float(precision_score(y, predicted, **macro)),
        "recall": float(recall_score(y, predicted, **macro)),
        "f1_macro": float(f1_score(y, predicted, **macro)),
        "f1_weighted": float(f1_score(y, predicted, average="weighted", zero_division=0.0)),
    }
