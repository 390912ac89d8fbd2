"""From series and a few labels to a classifier, and to what can be said about the labels."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from softclt.data.dataset import fingerprint
from softclt.data.partial_labels import PartialLabels
from softclt.few_labels import SemiSupervisedClassifier
from softclt.few_labels.advice import to_label_next
from softclt.few_labels.classifier import FIRST_PHASE
from softclt.few_labels.predictions import Predictions
from softclt.few_labels.study import LabelStudy, n_folds, n_repeats, study_labels
from softclt.methods import RepresentationLearner
from softclt.methods.labelled import LabelLearner
from softclt.probes.classifiers import probes
from softclt.probes.probabilities import PROBES
from softclt.progress import progress_bar
from softclt.training.phases import phase_folder
from softclt.validation import Floats, Ints


@dataclass(frozen=True, eq=False)
class Learned:
    """A classifier, and the same method as it was before it saw a label.

    Attributes:
        model: Fitted.
        first: After the self-supervised phase.
        embedded: What ``first`` makes of the series, ``(N, M)``: no label has touched it.
        given: The labels of these series.
    """

    model: SemiSupervisedClassifier
    first: RepresentationLearner
    embedded: Floats
    given: PartialLabels

    @property
    def saw_labels(self) -> bool:
        """Whether the network that predicts was trained with labels."""
        return self.model.network_ is not None or isinstance(self.model.encoder_, LabelLearner)

    @property
    def reader(self) -> str:
        """The probe that stands for the classifier where labels are held out."""
        own = self.model.classifier
        return own if own in PROBES else "svm"

    def study(self, seed: int = 0, progress: bool = False) -> LabelStudy | None:
        """See `study_labels`; on the embedding that no label has touched."""
        y = self.given.codes[self.given.rows]
        n = n_folds(y) * n_repeats(y)
        with progress_bar("holding labels out", n, progress) as advance:
            return study_labels(
                self.embedded[self.given.rows], y, probes[self.reader], seed=seed, on_fold=advance
            )

    def next_rows(self, predictions: Predictions, n: int, new: Any = None) -> Ints:
        """Rows to label next, of the series learned from or of ``new`` ones: see `to_label_next`.

        Args:
            predictions: For the series to choose from.
            n: How many.
            new: Series that were not learned from.
        """
        known, p = self.given.rows, predictions.probabilities
        if new is None:
            return to_label_next(self.embedded, p, known, n)
        R = np.concatenate([self.embedded[known], self.first.transform(new)])
        p = np.concatenate([np.full((len(known), p.shape[1]), 1 / p.shape[1]), p])
        return to_label_next(R, p, np.arange(len(known)), n) - len(known)


def learn(
    learner: RepresentationLearner,
    X: Floats,
    given: PartialLabels,
    *,
    classifier: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Learned:
    """Learn from all series without labels, then from the labels.

    Args:
        learner: Unfitted, with its random_state.
        X: Series.
        given: Labels of some.
        classifier: See `SemiSupervisedClassifier`.
        checkpoint: Folder from which a call that was stopped goes on. The first phase is kept for
            all labels, those that learn from labels for each set of labels.
        progress: Show a bar for each phase.
    """
    first, folder, later = clone(learner), None, None
    if checkpoint is not None:
        root = Path(checkpoint)
        later = root / f"labels-{fingerprint(given.codes)}"
        own_folder = isinstance(first, LabelLearner)  # it names the folders of its phases itself
        folder = root if own_folder else phase_folder(root, 1, FIRST_PHASE)
    first.fit(X, checkpoint=folder)
    model = SemiSupervisedClassifier(
        learner, classifier=classifier, pretrained=first, progress=progress
    )
    model.fit(X, given.codes, checkpoint=later)
    return Learned(model, first, first.transform(X), given)
