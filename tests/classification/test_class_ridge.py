"""The ridge of classes: left-out decisions, penalties, weights, landmarks."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import naive
from softclt.classification.ridge import NEVER_HELD_OUT, fit_on_landmarks, fit_ridge, targets

N, F = 12, 30
some_weights = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, F)) + 3.0


@pytest.fixture
def Y(rng):
    return targets(np.arange(N) % 3, 3)


def weights_of(weighted, rng):
    weights = rng.uniform(0.5, 2.0, size=N) if weighted else np.ones(N)
    return weights / weights.mean()


def fitted(X, Y, weights, alphas=(0.3,)):
    return fit_ridge(X @ X.T, Y, weights, np.arange(len(X)), alphas)


@some_weights
def test_left_out_decisions_are_those_of_ridges_fitted_on_the_others(X, Y, rng, weighted):
    weights = weights_of(weighted, rng)
    expected = naive.left_out_by_ridge(X, Y, weights, 0.3)
    np.testing.assert_allclose(fitted(X, Y, weights).left_out, expected, rtol=1e-8, atol=1e-9)


@some_weights
def test_decisions_on_new_rows_are_scikit_learns(X, Y, rng, weighted):
    weights, new = weights_of(weighted, rng), rng.normal(size=(5, F))
    found = fitted(X, Y, weights)
    expected = Ridge(alpha=0.3).fit(X, Y, sample_weight=weights).predict(new)
    np.testing.assert_allclose(new @ X.T @ found.dual + found.offset, expected, atol=1e-9)


def test_the_penalty_has_the_least_left_out_error(X, Y, rng):
    alphas = (1e-3, 0.1, 10.0, 1e3)
    errors = [fitted(X, Y, np.ones(N), (alpha,)).error for alpha in alphas]
    found = fitted(X, Y, np.ones(N), alphas)
    assert found.alpha == alphas[int(np.argmin(errors))]
    assert found.error == min(errors)
    said = naive.left_out_by_ridge(X, Y, np.ones(N), found.alpha)
    assert found.error == pytest.approx(np.mean((said - Y) ** 2))


def test_rows_that_do_not_count_choose_nothing(X, Y):
    Y[5:] = np.random.default_rng(1).normal(size=(N - 5, 3)) * 100
    counted = np.arange(5)
    found = fit_ridge(X @ X.T, Y, np.ones(N), counted, (1e-3, 1e3))
    errors = {
        alpha: np.mean((naive.left_out_by_ridge(X, Y, np.ones(N), alpha) - Y)[counted] ** 2)
        for alpha in (1e-3, 1e3)
    }
    assert found.alpha == min(errors, key=errors.get)
    nothing = fit_ridge(X @ X.T, Y, np.ones(N), counted[:0])
    assert nothing.alpha == NEVER_HELD_OUT


@some_weights
def test_with_all_rows_as_landmarks_the_ridge_is_the_same(X, Y, rng, weighted):
    weights = weights_of(weighted, rng)
    exact = fitted(X, Y, weights)
    found = fit_on_landmarks(
        X @ X.T, lambda rows: X[rows] @ X.T, Y, weights, np.arange(N), (0.3,), size=5
    )
    new = rng.normal(size=(4, F)) @ X.T
    np.testing.assert_allclose(found.left_out, exact.left_out, atol=1e-4)
    expected = new @ exact.dual + exact.offset
    np.testing.assert_allclose(new @ found.dual + found.offset, expected, atol=1e-4)


def test_fewer_landmarks_than_rows_give_a_ridge_in_their_span(rng):
    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 50))  # six dimensions
    Y, landmarks = targets(np.arange(40) % 2, 2), X[:10]
    exact = fit_ridge(X @ X.T, Y, np.ones(40), np.arange(40), (0.3,))
    found = fit_on_landmarks(
        *(landmarks @ landmarks.T, lambda rows: X[rows] @ landmarks.T),
        *(Y, np.ones(40), np.arange(40), (0.3,)),
    )
    np.testing.assert_allclose(found.left_out, exact.left_out, atol=1e-4)


def test_features_that_say_nothing_give_the_mean(Y):
    found = fit_ridge(np.zeros((N, N)), Y, np.ones(N), np.arange(N), (0.3,))
    np.testing.assert_allclose(found.offset, Y.mean(axis=0))
    assert not found.dual.any()
    np.testing.assert_allclose(found.left_out, np.tile(Y.mean(axis=0), (N, 1)))
