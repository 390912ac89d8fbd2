"""Fine-tuning of a model on another data set, as long as a validation part says."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from softclt.data.labels import Ints
from softclt.methods.base import RepresentationLearner
from softclt.methods.head import ClassifierNetwork
from softclt.methods.labels import read_labels
from softclt.methods.supervised import Lesson, class_probabilities, fit_classifier
from softclt.tasks.few_labels import Predict
from softclt.validation import Floats

STEPS = (200, 600, 1800)


@dataclass(frozen=True)
class Target:
    """Labelled series to learn from, and others to choose by.

    Attributes:
        X: ``(N, D, T)``.
        X_val: May be empty: then there is nothing to choose by.
    """

    X: Floats
    y: Ints
    X_val: Floats
    y_val: Ints


def fine_tune(
    model: RepresentationLearner, target: Target, steps: Sequence[int] = STEPS
) -> tuple[Predict, float]:
    """What predicts labels after all weights went on learning, and the number of epochs chosen.

    Each number of steps is a training of its own from the same start. The most accurate on the
    validation part is taken, the shortest of equals; the first where there is no such part.

    Args:
        model: Fitted; it stays as it is.
        target: Labelled series.
        steps: To choose from.
    """
    labels = read_labels(target.y, len(target.X))
    n_series = len(target.X)
    steps_a_pass = n_series // min(model.batch_size, n_series)
    best: tuple[float, Predict, float] | None = None
    for n_steps in sorted(set(steps)):
        lesson = Lesson("fine-tune", from_scratch=model.n_iter_ == 0, n_steps=n_steps)
        network, _ = fit_classifier(model, target.X, labels, lesson)
        predict = partial(_predict, model, network, labels.classes)
        if not len(target.X_val):
            return predict, n_steps / steps_a_pass
        accuracy = float(np.mean(predict(target.X_val) == target.y_val))
        if best is None or accuracy > best[0]:
            best = accuracy, predict, n_steps / steps_a_pass
    assert best is not None
    return best[1:]


def _predict(
    model: RepresentationLearner, network: ClassifierNetwork, classes: Ints, X: Floats
) -> Ints:
    return np.asarray(classes[class_probabilities(model, network, X).argmax(axis=1)])
