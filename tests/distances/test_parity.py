"""The lane kernels against the plain loops, on series of every kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from softclt.distances import pairwise_distance

pytestmark = pytest.mark.slow

TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
LOOP_CELLS = 12_000  # of the plain loops in an example: they are slow
FEW = settings(deadline=None, derandomize=True, max_examples=40)

LENGTHS = st.one_of(st.integers(1, 12), st.integers(1, 50), st.integers(150, 200))
WINDOWS = st.one_of(st.none(), st.floats(0, 0.3), st.floats(0, 1), st.sampled_from([0.0, 0.1, 1.0]))
KINDS = {
    "noise": lambda rng, shape: rng.normal(size=shape),
    "walk": lambda rng, shape: rng.normal(size=shape).cumsum(axis=-1),
    "ties": lambda rng, shape: rng.integers(0, 3, size=shape).astype(float),
    "constant": lambda rng, shape: np.full(shape, float(rng.integers(-2, 3))),
    "plateaus": lambda rng, shape: np.repeat(rng.normal(size=shape), 5, axis=-1)[..., : shape[-1]],
    "large": lambda rng, shape: 1e5 * rng.normal(size=shape),
    "small": lambda rng, shape: 1e-5 * rng.normal(size=shape),
    "raised": lambda rng, shape: 1000 + rng.normal(size=shape),
}


@st.composite
def collections(draw, most=40, kinds=tuple(KINDS)):
    """Lists of ``(D, T_i)``, of one or of many lengths, with and without gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(1, most)), draw(st.integers(1, 4))
    own = draw(st.lists(LENGTHS, min_size=1, max_size=2))
    own += draw(st.sampled_from([[], [max(1, own[0] - 1), max(1, own[0] - 3)]]))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    series = [KINDS[rng.choice(chosen)](rng, (d, rng.choice(own))).astype(dtype) for _ in range(n)]
    if draw(st.booleans()):
        for x in series:
            x[:, 1:][rng.random(x[:, 1:].shape) < 0.2] = np.nan  # the first step stays
    return series


def some_pairs(X, Y, seed=0):
    """Pairs in random order, as many as the loops can do."""
    budget = LOOP_CELLS
    for k in np.random.default_rng(seed).permutation(len(X) * len(Y)):
        i, j = divmod(int(k), len(Y))
        budget -= X[i].shape[1] * Y[j].shape[1]
        yield i, j
        if budget <= 0:
            return


def assert_like_the_loops(got, X, Y, twin, tolerance, **params):
    assert got.shape == (len(X), len(Y))
    for i, j in some_pairs(X, Y):
        expected = twin(X[i], Y[j], **params)
        assert got[i, j] == pytest.approx(expected, rel=tolerance, abs=0), (i, j)


def tolerance_of(X):
    return TOLERANCE[X[0].dtype]


@FEW
@given(X=collections(), window=WINDOWS)
def test_dtw_equals_the_loops(X, window):
    got = pairwise_distance(X, X, window=window)
    assert_like_the_loops(got, X, X, naive.dtw, tolerance_of(X), window=window)


@FEW
@given(X=collections(), window=WINDOWS)
def test_dtw_of_X_alone_is_that_of_X_with_itself(X, window):
    both = pairwise_distance(X, X, window=window)
    alone = pairwise_distance(X, window=window)
    upper = np.triu_indices(len(X), 1)
    np.testing.assert_array_equal(alone[upper], both[upper])
    np.testing.assert_array_equal(alone, alone.T)
    np.testing.assert_array_equal(np.diag(both), 0.0)


@FEW
@given(data=st.data(), window=WINDOWS)
def test_dtw_between_two_collections_equals_the_loops(data, window):
    X = data.draw(collections(most=20))
    Y = [y[:1].repeat(len(X[0]), axis=0) for y in data.draw(collections(most=20))]
    tolerance = max(tolerance_of(X), tolerance_of(Y)) if X[0].dtype == Y[0].dtype else 1e-9
    got = pairwise_distance(X, Y, window=window)
    assert_like_the_loops(got, X, Y, naive.dtw, tolerance, window=window)


@FEW
@given(X=collections(), window=WINDOWS)
def test_tam_equals_the_loops_exactly(X, window):
    got = pairwise_distance(X, X, metric="tam", window=window)
    for i, j in some_pairs(X, X):
        expected = naive.tam(X[i], X[j], window)
        assert got[i, j] == pytest.approx(expected, rel=0, abs=1e-14), (i, j)


@FEW
@given(X=collections(kinds=("ties", "constant", "plateaus")), window=WINDOWS)
def test_tam_takes_the_same_path_as_the_loops_where_costs_tie(X, window):
    got = pairwise_distance(X, X, metric="tam", window=window)
    for i, j in some_pairs(X, X):
        expected = naive.tam(X[i], X[j], window)
        assert got[i, j] == pytest.approx(expected, rel=0, abs=1e-14), (i, j)


@FEW
@given(X=collections(), window=WINDOWS)
def test_the_mean_along_the_path_equals_the_loops(X, window):
    got = pairwise_distance(X, X, window=window, per_step=True)
    assert_like_the_loops(got, X, X, naive.dtw_per_step, 1e-9, window=window)


@FEW
@given(X=collections(), window=WINDOWS, per_step=st.booleans())
def test_squared_is_the_square_before_its_root(X, window, per_step):
    squared = pairwise_distance(X, X, window=window, squared=True, per_step=per_step)
    rooted = pairwise_distance(X, X, window=window, per_step=per_step)
    np.testing.assert_array_equal(np.sqrt(squared), rooted)


@FEW
@given(
    X=collections(),
    window=WINDOWS,
    at=st.floats(0, 1),
    squared=st.booleans(),
    per_step=st.booleans(),
)
def test_beyond_a_bound_distances_are_infinite_and_the_others_as_without(
    X, window, at, squared, per_step
):
    params = {"window": window, "squared": squared, "per_step": per_step}
    free = pairwise_distance(X, X, **params)
    bound = float(np.quantile(free, at))
    got = pairwise_distance(X, X, bound=bound, **params)
    np.testing.assert_array_equal(got, np.where(free > bound, np.inf, free))


@FEW
@given(X=collections(most=8), radius=st.integers(0, 20))
def test_fastdtw_is_never_below_dtw(X, radius):
    exact = pairwise_distance([x.astype(float) for x in X])
    approximate = pairwise_distance(X, metric="fastdtw", radius=radius)
    assert (approximate >= exact * (1 - 1e-9)).all()


@FEW
@given(X=collections(most=8))
def test_fastdtw_is_exact_when_the_radius_is_the_length(X):
    got = pairwise_distance(X, X, metric="fastdtw", radius=200)
    assert_like_the_loops(got, X, X, naive.dtw, 1e-9)
