"""The classifier to begin with: a pre-trained encoder read by a ridge, without training."""

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from softclt.classification.blocks import Block, Outputs, blocks
from softclt.classification.calibration import Calibration, calibrate
from softclt.classification.design import Landmarks, Scaling, mean_products, product
from softclt.classification.left_out import LeftOut
from softclt.classification.registration import classifiers
from softclt.classification.ridge import Readout, fit_on_landmarks, fit_ridge, targets
from softclt.classification.saving import load_classifier, save_classifier
from softclt.classification.tuning import tune
from softclt.data.errors import shorten
from softclt.data.partial_labels import PartialLabels, read_labels
from softclt.methods import Pretrained, load_pretrained
from softclt.progress import progress_bar
from softclt.validation import (
    Floats,
    Floats64,
    Ints,
    check_random_state_seed,
    check_range,
    check_series,
)

#: Sets of blocks among which ``features="auto"`` chooses; the first where labels are too few. They
#: won by left-out error on half of the families of data sets (benchmarks/blocks.py).
CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("base", "differences", "sums", "synthetic"),
    ("base", "sums"),
    ("base", "differences", "sums", "synthetic", "statistics"),
)
MOST_ROWS = 3000  # series that are compared with all others; of more, so many are drawn
MOST_CHANNELS, LEAST_ROWS = 12_000, 500  # of these series together, unless there are so few series
CHOOSING = 1000  # series that choose between sets of blocks
_AT_ONCE = 1000  # series whose features are held in memory


@classifiers.register("series-classifier", unlabelled=False)
class SeriesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classes of series from labelled ones, by a trained encoder and a ridge.

    Nothing is trained unless asked for.

    The ridge is fitted in closed form, and so is what it would say of each series had it been
    fitted on all the others. These left-out decisions choose the penalty and the features, make
    probabilities of decisions, and tell how good the classifier is.

    Channels and lengths may be any; a missing value is NaN.

    Args:
        encoder: A pre-trained model: a name that ``softclt list models`` shows, or a folder.
        features: ``"auto"`` chooses between a few sets of blocks of features by the left-out
            error. Or names of blocks to be read side by side, each with the same weight: ``base``,
            ``compact``, ``outputs``, ``differences``, ``sums``, ``synthetic``, ``statistics``. Two
            are trained on the series: ``ts2vec``, ``adapted``. Two are of aeon, if it is installed:
            ``multirocket``, ``hydra``.
        fine_tune: Let the encoder go on learning from the labels, too, for minutes: as long as a
            fifth of the series that is held out meanwhile gets likelier. It is taken only where
            these are likelier by it than by the ridge.
        class_weight: None: each series counts the same. ``"balanced"``: each class does, so that
            rare classes are found more often, at some cost of accuracy. Or a weight by class; those
            that are not named have 1.
        random_state: Seed; without blocks that are trained, and below 3,000 series, it draws
            nothing.
        device: Of the encoder: auto, cpu or cuda.
        progress: Show a bar.

    Attributes:
        classes_: Sorted.
        encoder_: The pre-trained encoder.
        features_: Names of the blocks that are read.
        alpha_: The penalty.
        tuned_: Whether the encoder is one that learned from the labels.
        loo_accuracy_: Share of the series that were classified right by a ridge fitted on all the
            others: what to expect on new series like these. NaN if no class has two series. Of an
            encoder that was tuned: of the held-out fifth, before it learned from that, too.
        loo_probabilities_: Probabilities of these left-out decisions, ``(N, L)``; None in a
            classifier that was loaded.
        left_out_: More of these decisions: accuracy with an interval, confusion, labels that may be
            slips (see `LeftOut`); None in a classifier that was loaded.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=8, length=64, random_state=0)
        >>> model = SeriesClassifier().fit(data.X_train, data.y_train)
        >>> model.predict_proba(data.X_test).shape, bool(model.loo_accuracy_ > 0.5)
        ((24, 3), True)
    """

    classes_: NDArray[Any]
    encoder_: Pretrained
    features_: tuple[str, ...]
    alpha_: float
    tuned_: bool = False
    loo_accuracy_: float
    loo_probabilities_: Floats64 | None
    left_out_: LeftOut | None
    n_features_in_: int
    _blocks: dict[str, Block]
    _scalings: dict[str, Scaling]
    _coefficients: dict[str, Floats64]  # (F, L) of each block
    _offset: Floats64
    _calibration: Calibration

    def __init__(
        self,
        *,
        encoder: str = "base",
        features: str | Sequence[str] = "auto",
        fine_tune: bool = False,
        class_weight: str | Mapping[Any, float] | None = None,
        random_state: Any = None,
        device: str = "auto",
        progress: bool = False,
    ) -> None:
        self.encoder = encoder
        self.features = features
        self.fine_tune = fine_tune
        self.class_weight = class_weight
        self.random_state = random_state
        self.device = device
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labelled series.

        Args:
            X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
            y: A label for each series ``(N,)``: numbers or texts.
        """
        fitted = copy.copy(self)  # after an error all is as it was
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        candidates = self._candidates()
        seed = check_random_state_seed(self.random_state)
        X = check_series(X, min_length=2)
        labels = _complete(read_labels(y, len(X), None))
        most = min(MOST_ROWS, max(LEAST_ROWS, MOST_CHANNELS // X.shape[1]))
        rows = _spread(labels.codes, most, seed)
        weights = self._weights(labels.codes[rows], labels.classes)
        encoder = self._encoder().fit(X)
        X = X[..., : _last_step(X)]
        self.classes_, self.n_features_in_, self.encoder_ = labels.classes, X.shape[1], encoder
        found = self._landmarks(candidates, encoder, X, rows, seed)
        names = _best(candidates, found, labels.codes[rows], weights)
        self._read(names, {name: found[name] for name in names}, X, labels.codes, rows)
        if self.fine_tune:
            self._tune(X, labels.codes, seed)

    def _landmarks(
        self,
        candidates: Sequence[Sequence[str]],
        encoder: Pretrained,
        X: Floats,
        rows: Ints,
        seed: int,
    ) -> dict[str, Landmarks]:
        """Of every block that may be read, what it says of some series."""
        names = list(dict.fromkeys(name for names in candidates for name in names))
        found = {}
        with progress_bar("features of the series", len(names), self.progress) as advance:
            for name in names:
                block = blocks[name](encoder, seed, self.progress).fit(X)
                found[name] = Landmarks.of(block, X if len(rows) == len(X) else X[rows])
                advance(1)
        return found

    def _read(
        self,
        names: tuple[str, ...],
        found: dict[str, Landmarks],
        X: Floats,
        codes: Ints,
        rows: Ints,
    ) -> None:
        """Fit the ridge on the chosen blocks, and what makes probabilities of what it says."""
        Y, weights = targets(codes, len(self.classes_)), self._weights(codes, self.classes_)
        counted = _testable(codes)
        K = np.mean([own.products() for own in found.values()], axis=0)
        if len(rows) == len(X):
            ridge = fit_ridge(K, Y, weights, counted)
        else:
            ridge = fit_on_landmarks(
                K, lambda some: mean_products(found, names, X[some]), Y, weights, counted
            )
        self._keep(names, found, ridge)
        said = ridge.left_out[counted]
        self._calibration = calibrate(said, codes[counted], weights[counted])
        self._tell(self._calibration(ridge.left_out), codes, counted)

    def _tune(self, X: Floats, codes: Ints, seed: int) -> None:
        """Take the tuned encoder, where held-out series are likelier by it than they were."""
        weights, before = self._weights(codes, self.classes_), self.loo_probabilities_
        assert before is not None
        found = tune(self.encoder_, X, codes, weights, before, seed, self.progress)
        if found is None:
            return
        self.tuned_, self.encoder_, self.alpha_ = True, found.encoder, found.alpha
        self.features_, self._blocks = ("outputs",), {"outputs": Outputs(found.encoder, seed)}
        self._scalings, self._offset = {"outputs": found.scaling}, found.offset
        self._coefficients, self._calibration = {"outputs": found.coefficients}, found.calibration
        odds = np.zeros((len(X), len(self.classes_)))
        odds[found.held] = self._calibration(found.decisions)
        self._tell(odds, codes, found.held)

    def _tell(self, odds: Floats64, codes: Ints, counted: Ints) -> None:
        """What is known of series that were left out."""
        self.loo_probabilities_ = softmax(odds, axis=1)
        self.left_out_ = LeftOut(self.classes_, codes, self.loo_probabilities_, counted)
        found_again = self.left_out_.accuracy
        self.loo_accuracy_ = float("nan") if found_again is None else found_again.value

    def _keep(self, names: tuple[str, ...], found: dict[str, Landmarks], ridge: Readout) -> None:
        self.features_, self.alpha_, self._offset = names, ridge.alpha, ridge.offset
        self.tuned_ = False
        self._blocks = {name: own.block for name, own in found.items()}
        self._scalings = {name: own.scaling for name, own in found.items()}
        self._coefficients = {
            name: product(own.features.T, ridge.dual) / len(names) for name, own in found.items()
        }

    def decision_function(self, X: Any) -> Floats64:
        """Log-odds of the classes up to a constant, ``(N, L)``; of two, of the second ``(N,)``."""
        odds = self._odds(X)
        return np.asarray(odds[:, 1] - odds[:, 0]) if odds.shape[1] == 2 else odds

    def predict_proba(self, X: Any) -> Floats64:
        """How likely each class is, ``(N, L)``: calibrated by the left-out decisions."""
        return np.asarray(softmax(self._odds(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each series."""
        check_is_fitted(self, "classes_")
        predicted: NDArray[Any] = self.classes_[self._odds(X).argmax(axis=1)]
        return predicted

    def _odds(self, X: Any) -> Floats64:
        check_is_fitted(self, "classes_")
        X = check_series(X, n_channels=self.n_features_in_, min_length=2)
        decisions = np.tile(self._offset, (len(X), 1))
        for start in range(0, len(X), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            part = X[some, :, : _last_step(X[some])]
            for name, block in self._blocks.items():
                R = self._scalings[name](block.transform(part))
                decisions[some] += product(R, self._coefficients[name])
        return self._calibration(decisions)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted classifier as a folder, without pickle, with its encoder in it."""
        check_is_fitted(self, "classes_")
        save_classifier(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """A classifier that :meth:`save` wrote."""
        return cast(Self, load_classifier(cls, folder))

    def _check_parameters(self) -> None:
        """What can be checked without series."""
        self._candidates()
        check_random_state_seed(self.random_state)

    def _candidates(self) -> tuple[tuple[str, ...], ...]:
        """Sets of blocks to choose from, their names checked."""
        if isinstance(self.features, str) and self.features == "auto":
            return CANDIDATES
        names = (self.features,) if isinstance(self.features, str) else tuple(self.features)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"features is {self.features!r}; expected 'auto', or names of blocks, each once: "
                f"{', '.join(blocks)}"
            )
        for name in names:
            blocks[name]
        return (names,)

    def _encoder(self) -> Pretrained:
        return load_pretrained(self.encoder, readout="rich", device=self.device)

    def _weights(self, codes: Ints, classes: NDArray[Any]) -> Floats64:
        """Of series, with mean 1."""
        if self.class_weight is None:
            return np.ones(len(codes))
        if self.class_weight == "balanced":
            by_class = 1 / np.maximum(np.bincount(codes, minlength=len(classes)), 1)
        else:
            by_class = _by_class(self.class_weight, classes)
        weights = by_class[codes]
        return np.asarray(weights / weights.mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


def _complete(labels: PartialLabels) -> PartialLabels:
    """Labels of all series; or an error that says what takes labels of some."""
    missing = int((~labels.known).sum())
    if missing:
        raise ValueError(
            f"{missing} of {len(labels.known)} series have no label; leave them out, or use "
            "SemiSupervisedClassifier, which learns from series without labels, too"
        )
    return labels


def _by_class(given: Any, classes: NDArray[Any]) -> Floats64:
    """Weights that were given by class, ``(L,)``."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"class_weight is {given!r}; expected None, 'balanced', or a weight by class"
        )
    known = classes.tolist()
    for name, weight in given.items():
        if name not in known:
            raise ValueError(f"class_weight names the class {name!r}; known: {shorten(known)}")
        check_range(weight, f"class_weight[{name!r}]", 0, open_low=True)
    return np.array([float(given.get(name, 1.0)) for name in known])


def _last_step(X: Floats) -> int:
    """Steps up to the last value of any series; what pads all of them is not there."""
    there = np.flatnonzero(~np.isnan(X).all(axis=(0, 1)))
    return max(2, int(there[-1]) + 1) if len(there) else X.shape[-1]


def _testable(codes: Ints) -> Ints:
    """Rows of classes that have others: only these can be found again when left out."""
    return np.flatnonzero(np.bincount(codes)[codes] > 1)


def _spread(codes: Ints, most: int, seed: int) -> Ints:
    """All rows; of too many, so many drawn with the shares of the classes, at least one of each."""
    if len(codes) <= most:
        return np.arange(len(codes))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(codes))
    rank, counts = np.empty(len(codes)), np.bincount(codes)
    for code in np.flatnonzero(counts):
        own = order[codes[order] == code]
        rank[own] = np.arange(len(own)) / len(own)
    drawn: Ints = np.sort(order[np.argsort(rank[order], kind="stable")][:most])
    return drawn


def _best(
    candidates: Sequence[tuple[str, ...]],
    found: dict[str, Landmarks],
    codes: Ints,
    weights: Floats64,
) -> tuple[str, ...]:
    """The set of blocks with the least left-out error; the first where nothing can be left out."""
    if len(candidates) == 1:
        return candidates[0]
    some = _spread(codes, CHOOSING, 0)
    counted = _testable(codes[some])
    if not len(counted):
        return candidates[0]
    own = {name: Landmarks(f.block, f.scaling, f.features[some]) for name, f in found.items()}
    K = {name: part.products() for name, part in own.items()}
    Y = targets(codes[some], int(codes.max()) + 1)
    errors = []
    for names in candidates:
        mean = np.mean([K[name] for name in names], axis=0)
        errors.append(fit_ridge(mean, Y, weights[some], counted).error)
    return candidates[int(np.argmin(errors))]
