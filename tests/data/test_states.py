"""The simulation of TNC moves between its states as it should, and windows know theirs."""

import numpy as np
import pytest

import softclt
from softclt.data import DataError, StateData, simulated_states
from softclt.data.states import windows_of


@pytest.fixture(scope="module")
def data():
    return simulated_states(n_series=40, length=1000)


def test_states_last_a_segment_and_stay_as_often_as_they_should(data):
    of_segment = data.states_train.reshape(32, 20, 50)
    assert (of_segment == of_segment[..., :1]).all()
    chain = of_segment[..., 0]
    assert (chain[:, 1:] == chain[:, :-1]).mean() == pytest.approx(0.85, abs=0.05)
    moved = (chain[:, 1:] - chain[:, :-1])[chain[:, 1:] != chain[:, :-1]] % 4
    assert np.bincount(moved)[1:].min() > 15  # each other state alike
    assert np.bincount(chain[:, 0], minlength=4).min() >= 2


def test_signals_are_what_the_source_says(data):
    W, y = windows_of(data.X_train, data.states_train, 50)
    first, second, third = (W[:, d] for d in range(3))
    np.testing.assert_allclose(
        np.cov(first.ravel(), second.ravel())[0, 1] / first.var(), 0.9, rtol=0.05
    )
    for state in range(4):  # the third signal is of the state two further on
        own, other = first[y == state], third[y == (state + 2) % 4]
        assert own.mean() == pytest.approx(other.mean(), abs=0.03)
        assert own.std() == pytest.approx(other.std(), abs=0.04)
    periodic = first[y == 0]
    by_lag = [(periodic[:, lag:] * periodic[:, : 50 - lag]).mean() for lag in (1, 5)]
    assert by_lag[1] == pytest.approx(0.1, abs=0.02)  # all of the process comes back
    assert by_lag[0] < 0.06
    square = first[y == 2]
    assert (square[:, 1:] * square[:, :-1]).mean() == pytest.approx(0.1 * np.exp(-0.5), abs=0.02)


def test_the_same_seed_gives_the_same_data():
    first, second, other = (simulated_states(4, 200, random_state=seed) for seed in (1, 1, 2))
    assert first.fingerprint == second.fingerprint != other.fingerprint
    assert (len(first.X_train), len(first.X_test)) == (3, 1)


def test_a_window_has_the_state_of_most_of_its_steps():
    X = np.arange(22.0).reshape(1, 2, 11)
    W, y = windows_of(X, np.array([[0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 0]]), 5)
    assert y.tolist() == [1, 2]
    np.testing.assert_array_equal(W, [X[0, :, :5], X[0, :, 5:10]])


def test_states_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match=r"states_train has the shape \(2, 3\).*\(2, 4\)"):
        StateData(np.zeros((2, 1, 4)), states_train=np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="multiple of segment"):
        simulated_states(length=120)


def test_the_training_part_alone_has_no_test_states():
    data = softclt.load("synthetic/states", split="train")
    assert data.X_test is None
    assert data.states_test is None
    assert data.X_train.shape == (400, 3, 2000)
