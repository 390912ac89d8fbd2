"""Classification of UCR and UEA kind: fit without labels, then let a probe read the embedding."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from softclt.data import Dataset
from softclt.metrics import Labels, classification_metrics
from softclt.tasks.base import Outcome, tasks
from softclt.tasks.probes import class_scores, probes
from softclt.tasks.scaling import protocol_scaling


@tasks.register("classification")
def run(model: Any, data: Dataset, *, probe: str | Sequence[str] = "svm") -> Outcome:
    """Fit ``model`` on the training series, a probe on their labels; score on the test series.

    The labels of the test set are used for the scores and for nothing else.

    Args:
        model: An unfitted estimator whose ``transform`` gives ``(N, M)``.
        data: A data set with labels in both parts.
        probe: ``"svm"``, ``"linear"`` or ``"knn"``; several share one fit of the model.
    """
    names = [probe] if isinstance(probe, str) else list(probe)
    if not names:
        raise ValueError(f"probe is empty; expected one or more of {', '.join(probes.names())}")
    fits = {name: probes[name] for name in names}
    y_train, y_test = _labels(data)
    X_train, X_test = protocol_scaling(data)

    clock = _Clock()
    model.fit(X_train)
    clock.stop("fit")
    R_train, R_test = model.transform(X_train), model.transform(X_test)  # (N, M) each
    clock.stop("encode")
    classes = np.unique(np.concatenate([y_train, y_test]))
    metrics: dict[str, float] = {}
    for name, fit in fits.items():
        fitted = fit(R_train, y_train)
        scores = class_scores(fitted, R_test, classes)
        found = classification_metrics(y_test, fitted.predict(R_test), scores, classes)
        prefix = f"{name}." if len(names) > 1 else ""
        metrics |= {prefix + metric: value for metric, value in found.items()}
    clock.stop("probe")
    return Outcome(metrics, clock.seconds, probe="+".join(names))


def _labels(data: Dataset) -> tuple[Labels, Labels]:
    name = data.meta["name"] or "the data set"
    if data.y_train is None or data.y_test is None:
        raise ValueError(f"{name}: classification needs labels in a training and a test part")
    if len(np.unique(data.y_train)) < 2:
        raise ValueError(f"{name}: all training labels are the same; there is nothing to classify")
    return data.y_train, data.y_test


class _Clock:
    """Wall time from phase to phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def stop(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now
