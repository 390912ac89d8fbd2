"""Classification of UCR and UEA kind: fit without labels, then let a probe read the embedding."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from softclt.data import Dataset
from softclt.probes.classifiers import class_scores, probes
from softclt.probes.scores import Labels, classification_metrics
from softclt.tasks.evaluation import Outcome, Reading, tasks
from softclt.tasks.scaling import protocol_scaling
from softclt.validation import Floats

Probes = str | Sequence[str]


def check(data: Dataset, *, probe: Probes = "svm") -> None:
    """Refuse data without labels, and probes that there are not."""
    for name in _names(probe):
        probes[name]
    title = data.meta["name"] or "the data set"
    if data.y_train is None or data.y_test is None:
        raise ValueError(f"{title}: classification needs labels in a training and a test part")
    if len(np.unique(data.y_train)) < 2:
        raise ValueError(f"{title}: all training labels are the same; there is nothing to classify")


def score(
    R_train: Floats, R_test: Floats, y_train: Labels, y_test: Labels, *, probe: Probes = "svm"
) -> Outcome:
    """Fit probes on embedded training series ``(N, M)``, and score them on test series.

    The labels of the test set are used for the scores and for nothing else.
    """
    start = time.perf_counter()
    names = _names(probe)
    classes = np.unique(np.concatenate([y_train, y_test]))
    metrics: dict[str, float] = {}
    for name in names:
        fitted = probes[name](R_train, y_train)
        scores = class_scores(fitted, R_test, classes)
        found = classification_metrics(y_test, fitted.predict(R_test), scores, classes)
        prefix = f"{name}." if len(names) > 1 else ""
        metrics |= {prefix + metric: value for metric, value in found.items()}
    return Outcome(metrics, {"probe": time.perf_counter() - start}, probe="+".join(names))


READING = Reading(check, protocol_scaling, score)


@tasks.register("classification", reading=READING)
def run(model: Any, data: Dataset, *, probe: Probes = "svm") -> Outcome:
    """Fit ``model`` on the training series, a probe on their labels; score on the test series.

    Args:
        model: An unfitted estimator whose ``transform`` gives ``(N, M)``.
        data: A data set with labels in both parts.
        probe: ``"svm"``, ``"ridge"``, ``"linear"`` or ``"knn"``; several share one fit of the
            model.
    """
    return READING.run(model, data, probe=probe)


def _names(probe: Probes) -> list[str]:
    names = [probe] if isinstance(probe, str) else list(probe)
    if not names:
        raise ValueError(f"probe is empty; expected one or more of {', '.join(probes.names())}")
    return names
