"""Classes for all series from labels of a few: a scikit-learn classifier."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from softclt.data.labels import UNLABELLED
from softclt.data.partial_labels import PartialLabels, read_labels
from softclt.few_labels.saving import load_classifier, restored_network, save_classifier
from softclt.methods import RepresentationLearner, fit_many, methods
from softclt.methods.head import ClassifierNetwork
from softclt.methods.labelled import LabelLearner, adopt
from softclt.methods.supervised import Lesson, class_probabilities, fit_classifiers_together
from softclt.probes.classifiers import probes
from softclt.probes.probabilities import PROBES, probe_probabilities
from softclt.training.phases import phase_folder
from softclt.validation import Floats, check_choice, check_range, check_series

TRAINED = {"fine-tune": False, "linear-probe": True}  # whether the encoder is frozen
CLASSIFIERS = ("auto", *PROBES, *TRAINED)
OWN = "own"  # of a method that learns from labels itself
SUPERVISED, SUPERVISED_NETWORK = "supervised", "tstcc"  # from scratch, and whose network that is
FIRST_PHASE = "self-supervised"


class SemiSupervisedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from all series without labels, then from the labels that some of them have.

    One label a class is enough to begin with. What is a good classifier depends on the method, and
    ``classifier="auto"`` takes what its paper found best for few labels. That is an SVM on the
    embeddings of TS2Vec (and of any method not named here), fine-tuning of all weights for TS-TCC,
    and the last phase of CA-TCC, a linear layer on the class-aware encoder. Methods that learn from
    labels themselves (CA-TCC and others) have a classifier of their own, which auto takes.

    Args:
        method: ``"ts2vec"``, ``"tstcc"``, ``"catcc"``, any other registered method, or an unfitted
            method. ``"supervised"`` is the network of TS-TCC from scratch on the labels alone, to
            compare with.
        method_params: Of a method given by name.
        classifier: ``"auto"``, or on the method's embedding: ``"svm"``, ``"ridge"``, ``"linear"``
            (logistic regression); or by gradient descent on the method's network: ``"fine-tune"``
            (all weights), ``"linear-probe"`` (the head alone).
        unlabelled: What stands in y where there is no label; choose another value if -1 is a class.
            None, NaN and empty texts mean the same, always.
        classes: All classes that there are, if known. One without any label gets a warning and is
            never predicted; its column in `predict_proba` is 0.
        pretrained: A fitted method that was trained without labels: the self-supervised phase is
            left out. So one pre-training serves several sets of labels. It stays as it is.
        label_iter: Steps of each training of a network on labels; None takes 40 passes over the
            labelled series, at least 200 steps.
        random_state: Seed; of the method, too. None leaves a method that is given as it is.
        device: auto, cpu or cuda; auto leaves a method that is given as it is.
        progress: Show a bar for each phase.

    Attributes:
        classes_: Sorted.
        encoder_: The fitted method. After fine-tuning, with the tuned weights.
        network_: What classifies, if it is a network: a `ClassifierNetwork`; else None.
        probe_: What classifies, if it reads the embedding: of scikit-learn; else None.
        labelled_: Which series had a label, ``(N,)``.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=8, length=30, random_state=0)
        >>> y = np.where(np.arange(len(data.y_train)) % 4 == 0, data.y_train, -1)  # the rest hidden
        >>> tiny = {"output_dims": 8, "hidden_dims": 8, "depth": 3, "max_iter": 10}
        >>> model = SemiSupervisedClassifier("ts2vec", method_params=tiny, random_state=0)
        >>> model.fit(data.X_train, y).predict_proba(data.X_test).shape[1]
        3
    """

    encoder_: RepresentationLearner
    network_: ClassifierNetwork | None
    probe_: Any
    probe_kind_: str | None
    shown_: tuple[NDArray[np.float32], NDArray[np.int64]] | None  # what a probe has learned from

    def __init__(
        self,
        method: Any = "ts2vec",
        *,
        method_params: Mapping[str, Any] | None = None,
        classifier: str = "auto",
        unlabelled: Any = UNLABELLED,
        classes: Any = None,
        pretrained: RepresentationLearner | None = None,
        label_iter: int | None = None,
        random_state: Any = None,
        device: str = "auto",
        progress: bool = False,
    ) -> None:
        self.method = method
        self.method_params = method_params
        self.classifier = classifier
        self.unlabelled = unlabelled
        self.classes = classes
        self.pretrained = pretrained
        self.label_iter = label_iter
        self.random_state = random_state
        self.device = device
        self.progress = progress

    def fit(self, X: Any, y: Any, checkpoint: str | os.PathLike[str] | None = None) -> Self:
        """Learn from series of which some have a label.

        Args:
            X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
            y: A label, or the marker, for each series ``(N,)``.
            checkpoint: Folder in which each phase keeps where it stands, in a folder of its own. A
                call that was killed goes on from there; phases that have ended are not run again.
        """
        fit_classifiers([self], X, [y], checkpoint)
        return self

    def _begin(self, labels: PartialLabels) -> RepresentationLearner:
        """Check what is asked for; the learner, unfitted."""
        check_choice(self.classifier, CLASSIFIERS, "classifier")
        if self.label_iter is not None:
            check_range(self.label_iter, "label_iter", 0)
        self._check_classes(labels)
        learner = self._new_learner()
        if self.label_iter is not None and isinstance(learner, LabelLearner):
            if "label_iter" not in learner.get_params():
                raise ValueError(
                    f"{type(learner).__name__} sees labelled and other series in the same "
                    "steps; leave label_iter out, and set its max_iter or max_epochs"
                )
            learner.set_params(label_iter=self.label_iter)
        return learner

    def _lesson(self, learner: RepresentationLearner, folder: Path | None) -> Lesson | None:
        """What a classifier that is a network has to learn yet; None for others."""
        kind = self._kind(learner)
        if kind not in TRAINED:
            return None
        return Lesson(
            kind,
            getattr(learner, "n_phases", 1) + 1,
            frozen=TRAINED[kind],
            from_scratch=learner.n_iter_ == 0,  # no batch statistics that are worth keeping
            n_steps=self.label_iter,
            folder=folder,
        )

    def _end(
        self,
        learner: RepresentationLearner,
        network: ClassifierNetwork | None,
        X: Floats,
        labels: PartialLabels,
    ) -> None:
        """Keep a learner that has learned, with the network that classifies; or make a probe."""
        probe, kind, shown = None, None, None
        if network is not None:
            learner._encode_by(network.encoder)
        elif isinstance(learner, LabelLearner) and self._kind(learner) == OWN:
            network = learner.network_
        else:
            kind = self._kind(learner)
            shown = learner.transform(X[labels.known]), labels.codes[labels.known]
            probe = probes[kind](*shown)
        named = labels.classes if self.classes is None else np.unique(np.asarray(self.classes))
        self.classes_, self.labelled_ = named, labels.known
        self._columns = np.searchsorted(named, labels.classes)
        self.network_, self.encoder_ = network, learner
        self.probe_, self.probe_kind_, self.shown_ = probe, kind, shown
        self.n_features_in_ = learner.n_features_in_

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each series."""
        probabilities = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return predicted

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How likely each class is, ``(N, L)``, rows summing to 1.

        Those of a network and of ``"linear"`` are its probabilities. Those of ``"svm"`` and
        ``"ridge"`` are a softmax of the classes' margins: they rank series by certainty, but are
        not calibrated. With few labels none of them is a promise.
        """
        check_is_fitted(self, "encoder_")
        if self.network_ is not None:
            known = class_probabilities(self.encoder_, self.network_, X)
        else:
            known = probe_probabilities(self.probe_, self.encoder_.transform(X))
        probabilities = np.zeros((len(known), len(self.classes_)))
        probabilities[:, self._columns] = known
        return probabilities

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted classifier as a folder, without pickle.

        ``encoder/`` in it is a model of its own, for `softclt.load_model`. For a classifier on the
        embedding, the embeddings of the labelled series are kept, from which it is made again.
        """
        check_is_fitted(self, "encoder_")
        save_classifier(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """A classifier that :meth:`save` wrote."""
        return cast(Self, load_classifier(cls, folder))

    def _restore(
        self, fitted: dict[str, Any], encoder: RepresentationLearner, tensors: dict[str, Tensor]
    ) -> None:
        """Become the fitted classifier that ``save`` described."""
        self.encoder_, self.n_features_in_ = encoder, encoder.n_features_in_
        self.classes_ = np.array(fitted["classes"], dtype=fitted["dtype"])
        self._columns = np.array(fitted["columns"], dtype=np.int64)
        self.labelled_ = np.zeros(fitted["n_series"], dtype=bool)
        self.labelled_[fitted["labelled"]] = True
        self.network_, self.probe_, self.shown_ = None, None, None
        self.probe_kind_ = fitted["probe"]
        if self.probe_kind_ is None:
            self.network_ = restored_network(encoder, fitted, tensors)
        else:
            self.shown_ = tensors["embeddings"].numpy(), tensors["labels"].numpy()
            self.probe_ = probes[self.probe_kind_](*self.shown_)  # the same from the same

    def _new_learner(self) -> RepresentationLearner:
        """Unfitted, with what this classifier was told."""
        if isinstance(self.method, str):
            name, params = self.method, dict(self.method_params or {})
            if name == SUPERVISED:
                if self.pretrained is not None:
                    raise ValueError(
                        "method='supervised' starts from scratch; leave pretrained out"
                    )
                untrained = {"max_iter": 0, "lambda_aux": 0.0}  # without distances, which take long
                name, params = SUPERVISED_NETWORK, params | untrained
            learner: RepresentationLearner = methods[name]()
            if self.pretrained is not None:
                known, given = learner.get_params(), self.pretrained.get_params(deep=False)
                learner.set_params(**{k: v for k, v in given.items() if k in known})
            own = {"random_state": self.random_state, "device": self.device}
            learner.set_params(**own | {"progress": self.progress} | params)
            return learner
        if not isinstance(self.method, RepresentationLearner):
            raise ValueError(
                f"method is {self.method!r}; expected a name, one of {', '.join(methods)} or "
                f"{SUPERVISED}, or an unfitted method"
            )
        if self.method_params:
            raise ValueError("method_params belong to a method given by name; set the method's own")
        learner = clone(self.method)
        if self.random_state is not None:
            learner.set_params(random_state=self.random_state)
        if self.device != "auto":
            learner.set_params(device=self.device)
        if self.progress:
            learner.set_params(progress=True)
        return learner

    def _kind(self, learner: RepresentationLearner) -> str:
        """The classifier that auto stands for."""
        if self.classifier != "auto":
            return self.classifier
        if isinstance(learner, LabelLearner):
            return OWN
        own: str = methods.tags(methods.name_of(type(learner))).get("classifier", "svm")
        return own

    def _check_classes(self, labels: PartialLabels) -> None:
        """Refuse labels of no class; a warning for classes without a label."""
        if self.classes is None:
            return
        named = np.unique(np.asarray(self.classes))
        strange = np.setdiff1d(labels.classes, named)
        if len(strange):
            raise ValueError(
                f"y has labels that are not among the classes: {strange.tolist()}; "
                f"the classes are {named.tolist()}"
            )
        missing = np.setdiff1d(named, labels.classes)
        if len(missing):
            warnings.warn(
                f"no series has a label of {missing.tolist()}: such series will be taken for one "
                "of the other classes; label at least one of each",
                UserWarning,
                stacklevel=5,  # whoever called fit
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


def fit_classifiers(
    classifiers: Sequence[SemiSupervisedClassifier],
    X: Any,
    labels: Sequence[Any],
    checkpoint: str | os.PathLike[str] | None = None,
) -> None:
    """Fit classifiers on the same series, each with labels of its own.

    On a GPU, what can be trained side by side is.

    Args:
        classifiers: Fitted in place.
        X: See `SemiSupervisedClassifier.fit`.
        labels: For each of them, what ``fit`` takes for y.
        checkpoint: See there; for a single classifier.
    """
    if checkpoint is not None and len(classifiers) > 1:
        raise ValueError("checkpoint is for a single classifier; fit them one after the other")
    folder = None if checkpoint is None else Path(checkpoint)
    X = check_series(X, min_length=2)
    read: list[PartialLabels] = []
    learners: list[Any] = []
    for classifier, y in zip(classifiers, labels, strict=True):
        read.append(read_labels(y, len(X), classifier.unlabelled))
        learners.append(classifier._begin(read[-1]))
    from_labels: dict[Any, list[int]] = {}
    alone: list[RepresentationLearner] = []
    for i, (classifier, learner) in enumerate(zip(classifiers, learners, strict=True)):
        if isinstance(learner, LabelLearner):
            key = type(learner), classifier._kind(learner) == OWN
            from_labels.setdefault(key, []).append(i)
        elif classifier.pretrained is not None:
            adopt(learner, classifier.pretrained)
        else:
            alone.append(learner)
    if alone:
        first = folder and phase_folder(folder, 1, FIRST_PHASE)
        fit_many(alone, X, checkpoint=first, title=FIRST_PHASE)
    for (kind, own_classifier), places in from_labels.items():
        kind.fit_labelled_many(
            [learners[i] for i in places],
            X,
            [read[i] for i in places],
            pretrained=[classifiers[i].pretrained for i in places],
            checkpoint=folder,
            with_classifier=own_classifier,
        )
    lessons: dict[Lesson, list[int]] = {}
    for i, (classifier, learner) in enumerate(zip(classifiers, learners, strict=True)):
        if (lesson := classifier._lesson(learner, folder)) is not None:
            lessons.setdefault(lesson, []).append(i)
    networks: dict[int, ClassifierNetwork] = {}
    for lesson, places in lessons.items():
        own, shown = [learners[i] for i in places], [read[i] for i in places]
        fitted = fit_classifiers_together(own, [X] * len(own), shown, lesson)
        networks |= {i: network for i, (network, _) in zip(places, fitted, strict=True)}
    for i, (classifier, learner) in enumerate(zip(classifiers, learners, strict=True)):
        classifier._end(learner, networks.get(i), X, read[i])
