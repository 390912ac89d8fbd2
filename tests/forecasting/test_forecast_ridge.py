"""The ridge of all penalties against scikit-learn's, one penalty at a time."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from softclt.forecasting.ridge import ALPHAS, Errors, RidgeSums, check_alphas


def design(rng, rows=80, features=12, targets=6):
    X = rng.normal(size=(rows, features)) * 10.0 ** rng.integers(-2, 3, features) + 50.0
    X[:, 3] = X[:, 1] - X[:, 2]  # not of full rank
    X[:, 4] = 7.0  # constant
    return X, X @ rng.normal(size=(features, targets)) / 20 + rng.normal(size=(rows, targets))


def summed(X, Y, block=17):
    sums = RidgeSums(X.shape[1], Y.shape[1])
    for start in range(0, len(X), block):
        sums.add(X[start : start + block], Y[start : start + block])
    return sums


@pytest.mark.parametrize("rows", [80, 9])  # more and fewer rows than features
@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_penalty_equals_scikit_learns_ridge(rng, alpha, rows):
    X, Y = design(rng, rows)
    path = summed(X, Y).decompose()
    theirs = Ridge(alpha=alpha, solver="svd").fit(X, Y)
    new = rng.normal(size=(5, X.shape[1])) + 50.0
    np.testing.assert_allclose(path.predict(new, alpha), theirs.predict(new), rtol=1e-6)
    np.testing.assert_allclose(path.coefficients(alpha), theirs.coef_.T, rtol=1e-6, atol=1e-9)


def test_rows_in_blocks_are_the_rows_at_once(rng):
    X, Y = design(rng)
    whole, parts = summed(X, Y, block=80).decompose(), summed(X, Y, block=1).decompose()
    np.testing.assert_allclose(whole.predict(X, 1.0), parts.predict(X, 1.0), rtol=1e-7)


def test_the_first_targets_with_more_rows_are_a_fit_of_their_own(rng):
    X, Y = design(rng)
    long = summed(X[:60], Y[:60])
    short = long.first(2)
    short.add(X[60:], Y[60:, :2])
    expected = Ridge(alpha=5.0).fit(X, Y[:, :2]).predict(X)
    np.testing.assert_allclose(short.decompose().predict(X, 5.0), expected, rtol=1e-7)
    assert (long.n_rows, short.n_rows) == (60, 80)


def test_the_chosen_penalty_has_the_smallest_rmse_plus_mae(rng):
    X, Y = design(rng, rows=24)
    path = summed(X, Y).decompose()
    X_valid, Y_valid = design(rng, rows=31)
    Y_valid[rng.random(Y_valid.shape) < 0.2] = np.nan
    errors = Errors(ALPHAS, Y.shape[1])
    for rows in (slice(0, 10), slice(10, None)):
        errors.add(path, X_valid[rows], Y_valid[rows])
    scores = {}
    for alpha in ALPHAS:
        error = Ridge(alpha=alpha).fit(X, Y).predict(X_valid) - Y_valid
        scores[alpha] = np.sqrt(np.nanmean(error**2)) + np.nanmean(np.abs(error))
    assert errors.best() == min(scores, key=scores.get)


def test_no_rows_and_no_penalties_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        RidgeSums(2, 1).decompose()
    with pytest.raises(ValueError, match="alphas is empty"):
        check_alphas(())
    with pytest.raises(ValueError, match="> 0"):
        check_alphas((1.0, 0.0))
