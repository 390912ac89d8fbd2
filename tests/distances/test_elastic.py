import itertools

import numpy as np
import pytest

import naive
from softclt.distances import pairwise_distance

WINDOWS = [None, 0.0, 0.1, 0.35, 1.0]

# Worked by hand and written down beside the paper's losses.
GOLDEN = [
    ([0, 1, 2, 3], [0, 2, 3], 1.0),
    ([0.0, 0.5, 1.0, 0.2], [0.1, 0.4, 0.9, 0.9, 0.0], 0.282842712474619),
    ([1, 3, 2], [2, 2, 5], 3.3166247903554),
]


def ragged_series(rng, n, d, shortest, longest):
    return [rng.normal(size=(d, t)) for t in rng.integers(shortest, longest + 1, n)]


def with_gaps(rng, series, share=0.2):
    """A copy with single values missing; the first step stays."""
    gapped = [x.copy() for x in series]
    for x in gapped:
        x[:, 1:][rng.random(x[:, 1:].shape) < share] = np.nan
    return gapped


@pytest.mark.parametrize(("x", "y", "expected"), GOLDEN)
def test_dtw_equals_the_golden_values(x, y, expected):
    assert pairwise_distance([x, y])[0, 1] == pytest.approx(expected, abs=1e-12)


def test_multivariate_dtw_finds_one_path_for_all_channels():
    x = np.transpose([[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]])
    y = np.transpose([[0.0, 0.5], [2.0, 1.5], [2.0, 0.5], [3.0, 1.0]])
    assert pairwise_distance([x, y])[0, 1] == pytest.approx(1.6583123951777, abs=1e-12)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("d", [1, 3])
def test_dtw_equals_the_loops_for_any_length_gaps_and_window(rng, d, window):
    series = ragged_series(rng, 5, d, 1, 17)
    for X in (series, with_gaps(rng, series)):
        expected = [[naive.dtw(x, y, window) for y in X] for x in X]
        np.testing.assert_allclose(pairwise_distance(X, window=window), expected, atol=1e-12)


def test_window_zero_on_equal_lengths_is_the_euclidean_distance(rng):
    X = rng.normal(size=(4, 2, 9))
    euclidean = pairwise_distance(X, metric="euclidean")
    np.testing.assert_allclose(pairwise_distance(X, window=0), euclidean, rtol=1e-12)


def test_a_wider_window_never_makes_dtw_larger(rng):
    X = rng.normal(size=(6, 1, 30))
    matrices = [pairwise_distance(X, window=w) for w in (0.0, 0.1, 0.3, 1.0)]
    assert all((b <= a).all() for a, b in itertools.pairwise(matrices))
    np.testing.assert_array_equal(matrices[-1], pairwise_distance(X))


def test_window_reaches_the_end_of_a_much_longer_series():
    expected = naive.dtw([[0.0, 1.0]], [[0.0, 0, 0, 0, 0, 0, 1.0]], window=0)
    got = pairwise_distance([[0.0, 1.0], [0.0, 0, 0, 0, 0, 0, 1.0]], window=0)
    assert np.isfinite(expected)
    assert got[0, 1] == expected


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("radius", [0, 1, 3, 10])
def test_fastdtw_never_falls_below_dtw(rng, d, radius):
    X = ragged_series(rng, 8, d, 1, 40)
    exact = pairwise_distance(X)
    approximate = pairwise_distance(X, metric="fastdtw", radius=radius)
    assert (approximate >= exact * (1 - 1e-12)).all()


@pytest.mark.parametrize("d", [1, 3])
def test_fastdtw_with_a_radius_of_the_length_is_dtw(rng, d):
    X = ragged_series(rng, 8, d, 1, 40)
    np.testing.assert_allclose(
        pairwise_distance(X, metric="fastdtw", radius=40), pairwise_distance(X), rtol=1e-12
    )


def test_fastdtw_is_close_to_dtw_on_smooth_series(rng):
    phases = rng.uniform(0, 1, size=(10, 1))
    X = np.sin(np.linspace(0, 12, 200) + phases)
    exact = pairwise_distance(X)
    off_diagonal = ~np.eye(10, dtype=bool)
    error = (pairwise_distance(X, metric="fastdtw", radius=10) / np.where(exact, exact, 1) - 1)[
        off_diagonal
    ]
    assert error.mean() < 0.05


def test_fastdtw_gets_closer_with_the_radius(rng):
    X = rng.normal(size=(10, 64)).cumsum(axis=1)
    sums = [pairwise_distance(X, metric="fastdtw", radius=r).sum() for r in (0, 1, 4, 16, 64)]
    assert sums == sorted(sums, reverse=True)
    assert sums[0] > sums[-1]


@pytest.mark.parametrize("radius", [-1, 1.5, "wide", True])
def test_fastdtw_refuses_a_radius_that_is_no_number_of_cells(radius):
    with pytest.raises(ValueError, match="radius"):
        pairwise_distance([[0.0, 1.0], [2.0, 3.0]], metric="fastdtw", radius=radius)
