"""Classifiers of aeon as they are published, for rows beside ours; only where aeon is installed.

They want complete series of one length. One rule makes them so: if a value is missing or lengths
differ, each channel is brought from its first to its last value onto as many steps as the longest
training series has, along straight lines, with its level and scale. Series of fewer than ten steps
are stretched to ten, for kernels of nine. Complete series of one length go in as they are.
"""

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from softclt.classification.registration import classifiers
from softclt.data.preparation import stretched
from softclt.optional import needed
from softclt.validation import Floats, Floats64, check_random_state_seed, check_series

_LEAST = 10  # steps
_NEEDED = "this classifier comes from aeon, which is not installed: pip install 'softclt[data]'"


class Peer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of aeon, on one core, with its own defaults.

    Args:
        random_state: Seed.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    _inner: Any
    _steps: int

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    @abstractmethod
    def _new(self, seed: int) -> Any:
        """The classifier, unfitted."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from series ``(N, D, T)`` and a label for each."""
        seed = check_random_state_seed(self.random_state)
        X = check_series(X, min_length=2)
        self.n_features_in_, self._steps = X.shape[1], max(_LEAST, X.shape[-1])
        with needed(_NEEDED), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages that are deprecated, while it is imported
            inner = self._new(seed)
        self._inner = inner.fit(self._complete(X), np.asarray(y))
        self.classes_ = self._inner.classes_
        return self

    def predict_proba(self, X: Any) -> Floats64:
        """How likely each class is, ``(N, L)``."""
        check_is_fitted(self, "classes_")
        X = check_series(X, n_channels=self.n_features_in_, min_length=2)
        return np.asarray(self._inner.predict_proba(self._complete(X)), np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each series."""
        likely = self.predict_proba(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[likely]
        return predicted

    def _complete(self, X: Floats) -> Floats:
        """Series as the rule of this module has them."""
        if X.shape[-1] != self._steps or np.isnan(X).any():
            X = stretched(X, self._steps)
        return X.astype(np.float64)  # catch22 is compiled for it

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


@classifiers.register("minirocket", unlabelled=False)
class MiniRocketClassifier(Peer):
    """Ridge on 10,000 features of fixed kernels; of aeon."""

    def _new(self, seed: int) -> Any:
        from aeon.classification.convolution_based import MiniRocketClassifier as Of

        return Of(random_state=seed)


@classifiers.register("multirocket-hydra", unlabelled=False)
class MultiRocketHydraClassifier(Peer):
    """Ridge on features of fixed kernels and of competing random ones; of aeon."""

    def _new(self, seed: int) -> Any:
        from aeon.classification.convolution_based import MultiRocketHydraClassifier as Of

        return Of(random_state=seed)


@classifiers.register("quant", unlabelled=False)
class QuantClassifier(Peer):
    """Extremely random trees on quantiles of intervals; of aeon."""

    def _new(self, seed: int) -> Any:
        from aeon.classification.interval_based import QUANTClassifier as Of

        return Of(random_state=seed)


@classifiers.register("rdst", unlabelled=False)
class RdstClassifier(Peer):
    """Ridge on distances to random dilated shapelets; of aeon."""

    def _new(self, seed: int) -> Any:
        from aeon.classification.shapelet_based import RDSTClassifier as Of

        return Of(random_state=seed)


@classifiers.register("catch22", unlabelled=False)
class Catch22Classifier(Peer):
    """Random forest on 24 summary statistics; of aeon."""

    def _new(self, seed: int) -> Any:
        from aeon.classification.feature_based import Catch22Classifier as Of

        return Of(random_state=seed)
