"""Classifiers that take series and labels themselves: no embedding, no probe."""

from typing import Any

import numpy as np

from softclt.classification import classifiers, reliability
from softclt.data import Dataset
from softclt.data.labels import UNLABELLED
from softclt.probes.scores import Labels, classification_metrics
from softclt.tasks.classification import check
from softclt.tasks.evaluation import Clock, Outcome, method_name, tasks
from softclt.tasks.few_labels import seed_of
from softclt.validation import Floats64, Ints, check_range

_LEAST = 1e-6  # probability of a true class that a logarithm is taken of


@tasks.register("supervised", models=classifiers, model="series-classifier")
def run(
    model: Any, data: Dataset, *, labels: int | None = None, draw: int | None = None
) -> Outcome:
    """Fit a classifier on the training series and their labels; score it on the test series.

    Series go in as they are in the file. Metrics: ``accuracy``, ``f1_macro``, ``auprc``,
    ``log_loss`` with probabilities of at least 1e-6, ``calibration_error`` (see `reliability`),
    and ``loo_accuracy``, where a classifier knows it.

    Args:
        model: A classifier with ``predict_proba``.
        data: A data set with labels in both parts.
        labels: So many of each class, or all that it has, are shown; all if None. A classifier that
            learns from series without labels sees the others too, without.
        draw: Seed of the draw; the model's random_state if None.
    """
    check(data)
    assert data.y_train is not None
    assert data.y_test is not None
    assert data.X_test is not None
    X, y = data.X_train, data.y_train
    if labels is not None:
        check_range(labels, "labels", 1)
        rows = some_of_each_class(y, labels, seed_of(model, draw))
        if learns_without_labels(model):
            y = np.where(np.isin(np.arange(len(y)), rows), y, UNLABELLED)
        else:
            X, y = X[rows], y[rows]
    clock = Clock()
    model.fit(X, y)
    clock.lap("fit")
    likely = np.asarray(model.predict_proba(data.X_test))
    clock.lap("predict")
    metrics = _scores(likely, model.classes_, data.y_test)
    if hasattr(model, "loo_accuracy_"):
        metrics["loo_accuracy"] = model.loo_accuracy_
    return Outcome(metrics, clock.seconds)


def some_of_each_class(y: Labels, n: int, seed: int) -> Ints:
    """Rows of n series of each class, ascending; those of a smaller n are among them."""
    rng = np.random.default_rng(seed)
    own = [rng.permutation(np.flatnonzero(y == label))[:n] for label in np.unique(y)]
    rows: Ints = np.sort(np.concatenate(own))
    return rows


def learns_without_labels(model: Any) -> bool:
    """Whether a classifier takes series without labels, too."""
    name = method_name(model)
    return name in classifiers and bool(classifiers.tags(name)["unlabelled"])


def _scores(likely: Floats64, known: Labels, y: Labels) -> dict[str, float]:
    """Of probabilities ``(N, L)`` for the classes that the classifier has seen."""
    classes = np.unique(np.concatenate([known, y]))
    everywhere = np.zeros((len(likely), len(classes)))
    everywhere[:, np.searchsorted(classes, known)] = likely
    codes = np.searchsorted(classes, y)
    right = everywhere[np.arange(len(y)), codes]
    found = classification_metrics(y, known[likely.argmax(axis=1)], everywhere, classes)
    return found | {
        "log_loss": float(-np.log(np.maximum(right, _LEAST)).mean()),
        "calibration_error": reliability(everywhere, codes).ece,
    }
