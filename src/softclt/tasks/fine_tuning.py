"""Fine-tuning of a model on another data set, as long as a validation part says."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from softclt.data.partial_labels import read_labels
from softclt.methods.head import ClassifierNetwork
from softclt.methods.learner import RepresentationLearner
from softclt.methods.supervised import Lesson, class_probabilities, fit_classifiers_together
from softclt.tasks.few_labels import Predict
from softclt.validation import Floats, Ints

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
    models: Sequence[RepresentationLearner],
    targets: Sequence[Target],
    steps: Sequence[int] = STEPS,
) -> list[tuple[Predict, float]]:
    """For each model, what predicts labels after all its weights went on learning, and how long.

    Each number of steps is a training of its own from the same start. The most accurate on the
    validation part is taken, the shortest of equals; the first where there is no such part. On a
    GPU, models take their steps side by side.

    Args:
        models: Fitted; they stay as they are.
        targets: Labelled series of each.
        steps: To choose from.

    Returns:
        Of each, what predicts, and passes over the labelled series.
    """
    best: dict[int, tuple[float, Predict, float]] = {}
    for n_steps in sorted(set(steps)):
        lessons: dict[Lesson, list[int]] = {}
        for i, (model, target) in enumerate(zip(models, targets, strict=True)):
            if i not in best or len(target.X_val):
                lesson = Lesson("fine-tune", from_scratch=model.n_iter_ == 0, n_steps=n_steps)
                lessons.setdefault(lesson, []).append(i)
        for lesson, places in lessons.items():
            labels = [read_labels(targets[i].y, len(targets[i].X)) for i in places]
            fitted = fit_classifiers_together(
                [models[i] for i in places], [targets[i].X for i in places], labels, lesson
            )
            for i, own, (network, _) in zip(places, labels, fitted, strict=True):
                model, target = models[i], targets[i]
                predict = partial(_predict, model, network, own.classes)
                accuracy = 0.0
                if len(target.X_val):
                    accuracy = float(np.mean(predict(target.X_val) == target.y_val))
                steps_a_pass = len(target.X) // min(model.batch_size, len(target.X))
                if i not in best or accuracy > best[i][0]:
                    best[i] = accuracy, predict, n_steps / steps_a_pass
    return [best[i][1:] for i in range(len(models))]


def _predict(
    model: RepresentationLearner, network: ClassifierNetwork, classes: Ints, X: Floats
) -> Ints:
    return np.asarray(classes[class_probabilities(model, network, X).argmax(axis=1)])
