import numpy as np
import pytest

import naive
from softclt.distances import distances, pairwise_distance

METRICS = {"euclidean": naive.euclidean, "cosine": naive.cosine}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(4, 1, 1), (5, 1, 12), (4, 3, 7)], ids=str)
def test_pointwise_distances_equal_the_loops_with_and_without_gaps(rng, metric, shape):
    X = rng.normal(size=shape)
    gapped = X.copy()
    gapped[:, :, 1:-1][rng.random(gapped[:, :, 1:-1].shape) < 0.2] = np.nan
    for series in (X, gapped):
        expected = [[METRICS[metric](x, y) for y in series] for x in series]
        np.testing.assert_allclose(
            pairwise_distance(series, series, metric=metric), expected, rtol=0, atol=1e-12
        )


def test_euclidean_uses_the_common_steps_and_does_not_rescale():
    X = np.array([[1.0, np.nan, 3.0, 0.0], [2.0, 5.0, 1.0, 0.0]])
    assert pairwise_distance(X, metric="euclidean")[0, 1] == pytest.approx(np.sqrt(1 + 4))


def test_a_step_with_one_missing_channel_does_not_count():
    X = np.array([[[1.0, 2.0], [np.nan, 2.0]], [[9.0, 3.0], [9.0, 3.0]]])
    assert pairwise_distance(X, metric="euclidean")[0, 1] == pytest.approx(np.sqrt(2))


def test_a_partly_missing_last_step_does_not_make_a_series_shorter(rng):
    X = rng.normal(size=(3, 2, 6))
    X[0, 0, -1] = np.nan
    distance = pairwise_distance(X, metric="euclidean")[0, 1]
    assert distance == pytest.approx(naive.euclidean(X[0], X[1]))


def test_cosine_of_zero_series():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [-1.0, -2.0]])
    expected = [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]]
    np.testing.assert_allclose(pairwise_distance(X, X, metric="cosine"), expected, atol=1e-12)


def test_cosine_of_a_series_and_itself_is_exactly_zero(rng):
    X = rng.normal(size=(50, 2, 31)) * 10.0 ** rng.integers(-100, 100, size=(50, 1, 1))
    np.testing.assert_array_equal(np.diag(pairwise_distance(X, X, metric="cosine")), 0.0)


def test_cosine_never_falls_below_zero_for_parallel_series(rng):
    direction = rng.normal(size=(1, 33))
    X = direction * rng.uniform(0.1, 9, size=(20, 1))
    assert pairwise_distance(X, X, metric="cosine").min() >= 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_different_lengths_are_an_error_that_names_the_elastic_ones(metric):
    with pytest.raises(ValueError, match=f"{metric} .*2 to 3 steps.*dtw, fastdtw, tam.*resample"):
        pairwise_distance([[1.0, 2.0, 3.0], [1.0, 2.0]], metric=metric)


def test_different_lengths_between_X_and_Y_are_seen():
    with pytest.raises(ValueError, match="2 to 3 steps"):
        pairwise_distance([[1.0, 2.0, 3.0]], [[1.0, 2.0]], metric="euclidean")


def test_padding_behind_all_series_is_no_difference_in_length():
    X = np.array([[1.0, 2.0, np.nan], [4.0, 6.0, np.nan]])
    assert pairwise_distance(X, metric="euclidean")[0, 1] == 5.0


def test_resampling_stretches_the_short_series_to_the_longest():
    X = [[0.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0], [7.0], [0.0, 2.0, 4.0]]
    distance = pairwise_distance(X, metric="euclidean", unequal="resample")
    np.testing.assert_allclose(distance[0, [1, 3]], 0.0, atol=1e-15)
    line = np.arange(5.0)
    assert distance[1, 2] == pytest.approx(np.linalg.norm(line - 7))


def test_resampling_agrees_with_numpy_interp(rng):
    short, long = rng.normal(size=(2, 7)), rng.normal(size=(2, 19))
    grid = np.linspace(0, 6, 19)
    stretched = np.stack([np.interp(grid, np.arange(7), channel) for channel in short])
    got = pairwise_distance([short, long], metric="euclidean", unequal="resample")[0, 1]
    assert got == pytest.approx(np.linalg.norm(stretched - long))


def test_resampling_leaves_a_gap_a_gap():
    X = [[0.0, np.nan, 2.0], [1.0, 9.0, 9.0, 9.0, 1.0]]  # the gap takes three of five steps
    distance = pairwise_distance(X, metric="euclidean", unequal="resample")[0, 1]
    assert distance == pytest.approx(np.sqrt(1 + 1))


def test_resampling_changes_nothing_at_equal_length(rng):
    X = rng.normal(size=(4, 2, 9))
    for metric in distances.names():
        np.testing.assert_array_equal(
            pairwise_distance(X, metric=metric, unequal="resample"),
            pairwise_distance(X, metric=metric),
        )


@pytest.mark.parametrize("metric", METRICS)
def test_a_pair_without_a_common_step_is_named(metric, rng):
    X = rng.normal(size=(3, 2, 4))
    X[1, 0, :2] = X[2, 0, 2:] = np.nan
    message = r"X\[1\] and X\[2\] have no observed step in common"
    with pytest.raises(ValueError, match=message):
        pairwise_distance(X, metric=metric)
    with pytest.raises(ValueError, match=message.replace("X", "Y").replace("Y", "X", 1)):
        pairwise_distance(X, X, metric=metric)
