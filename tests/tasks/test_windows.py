"""Windows are classified by their embedding alone, and what cannot be is refused before a fit."""

import numpy as np
import pytest

from softclt import evaluate
from softclt.data import StateData, simulated_states, waves


class Means:
    """An estimator whose embedding is the mean of each channel."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y=None):
        self.fitted_on = X.shape
        return self

    def transform(self, X):
        self.last_shape = X.shape
        return X.mean(axis=-1)


def test_a_model_fits_whole_series_and_embeds_windows():
    data, model = simulated_states(10, 400), Means()
    result = evaluate("windows", model, data)
    assert model.fitted_on == (8, 3, 400)
    assert model.last_shape == (2 * 8, 3, 50)
    assert set(result.metrics) == {"accuracy", "f1_macro", "auprc"}


def test_states_that_the_embedding_tells_apart_are_all_found():
    states = np.repeat([[0, 1, 2, 1]], 6, axis=0).repeat(10, axis=1)
    X = states[:, None] * 10.0
    data = StateData(X[:4], X_test=X[4:], states_train=states[:4], states_test=states[4:])
    metrics = evaluate("windows", Means(), data, window=10).metrics
    assert metrics == {"accuracy": 1.0, "f1_macro": 1.0, "auprc": 1.0}


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (waves(n_per_class=2, length=24), {}, "no state at every step"),
        (simulated_states(4, 100), {"window": 101}, "window is 101"),
        (simulated_states(4, 100), {"probe": "tree"}, "unknown probe 'tree'"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_a_fit(data, options, words):
    model = Means()
    with pytest.raises(ValueError, match=words):
        evaluate("windows", model, data, **options)
    assert not hasattr(model, "fitted_on")


def test_windows_of_one_state_are_refused():
    X, states = np.zeros((2, 1, 40)), np.zeros((2, 40), int)
    data = StateData(X, X_test=X, states_train=states, states_test=states)
    with pytest.raises(ValueError, match="one state; nothing to classify"):
        evaluate("windows", Means(), data, window=10)
