"""The class of the nearest series by dynamic time warping: what others have to beat."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from softclt.classification.registration import classifiers
from softclt.distances import pairwise_distance
from softclt.validation import Floats, Floats64, check_series

_AT_ONCE = 1 << 24  # distances in memory


@classifiers.register("dtw-1nn", unlabelled=False)
class NearestByWarping(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Nearest neighbour by `pairwise_distance`; missing steps are dropped, lengths may differ.

    Args:
        window: See `pairwise_distance`.
        n_jobs: Threads.
        random_state: Is not used: nothing is drawn, and of equals the first is taken.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    _X: Floats
    _codes: NDArray[np.intp]

    def __init__(
        self, *, window: float | None = None, n_jobs: int = 1, random_state: Any = None
    ) -> None:
        self.window = window
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the series ``(N, D, T)`` and their labels."""
        self._X = check_series(X)
        self.n_features_in_ = self._X.shape[1]
        self.classes_, self._codes = np.unique(np.asarray(y), return_inverse=True)
        return self

    def predict_proba(self, X: Any) -> Floats64:
        """1 for the class of the nearest series and 0 for the others, ``(N, L)``."""
        check_is_fitted(self, "classes_")
        X = check_series(X, n_channels=self.n_features_in_)
        size = max(1, _AT_ONCE // len(self._X))
        nearest = [
            pairwise_distance(
                X[start : start + size], self._X, window=self.window, n_jobs=self.n_jobs
            ).argmin(axis=1)
            for start in range(0, len(X), size)
        ]
        said: Floats64 = np.eye(len(self.classes_))[self._codes[np.concatenate(nearest)]]
        return said

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the nearest series."""
        predicted: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags
