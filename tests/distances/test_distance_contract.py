"""What every registered distance promises; a new one is tested by being registered."""

import numpy as np
import pytest

from softclt.distances import distances, pairwise_distance

pytestmark = pytest.mark.parametrize("metric", distances.names())
channels = pytest.mark.parametrize("d", [1, 3])


def series(d, n=6, t=14, seed=3):
    return np.random.default_rng(seed).normal(size=(n, d, t))


def test_tags_are_complete(metric):
    tags = distances.tags(metric)
    assert all(type(tags[name]) is bool for name in ("elastic", "symmetric", "window"))


@channels
@pytest.mark.slow
def test_square_matrix_is_non_negative_with_an_exact_zero_diagonal(metric, d):
    D = pairwise_distance(series(d), metric=metric)
    assert D.shape == (6, 6)
    assert D.dtype == np.float64
    assert (D >= 0).all()
    assert (D[~np.eye(6, dtype=bool)] > 0).all()
    np.testing.assert_array_equal(np.diag(D), 0.0)


@channels
def test_distance_of_a_series_and_its_copy_is_exactly_zero(metric, d):
    X = series(d)
    np.testing.assert_array_equal(np.diag(pairwise_distance(X, X.copy(), metric=metric)), 0.0)


@channels
def test_symmetric_distances_do_not_depend_on_the_order_of_two_series(metric, d):
    if distances.tags(metric)["symmetric"]:
        X, Y = series(d), series(d, n=4, seed=4)
        there, back = pairwise_distance(X, Y, metric=metric), pairwise_distance(Y, X, metric=metric)
        np.testing.assert_allclose(there, back.T, rtol=1e-12)
        square = pairwise_distance(X, metric=metric)
        np.testing.assert_array_equal(square, square.T)


@channels
def test_distances_to_Y_are_a_block_of_the_full_matrix(metric, d):
    X = series(d)
    full = pairwise_distance(X, metric=metric)
    np.testing.assert_array_equal(pairwise_distance(X[:2], X[2:], metric=metric), full[:2, 2:])


@pytest.mark.slow
def test_order_of_the_series_is_the_order_of_rows_and_columns(metric):
    X, order = series(2), [3, 0, 5, 1, 4, 2]
    full = pairwise_distance(X, metric=metric)
    permuted = pairwise_distance(X[order], metric=metric)
    np.testing.assert_allclose(permuted, full[np.ix_(order, order)], rtol=1e-12)


@channels
def test_number_of_threads_changes_nothing(metric, d):
    X = series(d, n=15)
    one, two, all_cores = (pairwise_distance(X, metric=metric, n_jobs=n) for n in (1, 2, -1))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, all_cores)


@channels
def test_padding_behind_a_series_is_a_shorter_series(metric, d):
    X = series(d)
    padded = np.concatenate([X, np.full((6, d, 5), np.nan)], axis=2)
    expected = pairwise_distance(X, metric=metric)
    np.testing.assert_array_equal(pairwise_distance(padded, metric=metric), expected)
    lengths = [14, 9, 1, 14, 5, 2]
    for x, length in zip(padded, lengths, strict=True):
        x[:, length:] = np.nan
    cut = [x[:, :length] for x, length in zip(X, lengths, strict=True)]
    np.testing.assert_array_equal(
        pairwise_distance(padded, metric=metric, unequal="resample"),
        pairwise_distance(cut, metric=metric, unequal="resample"),
    )


@channels
def test_missing_steps_count_for_elastic_distances_as_if_they_were_cut_out(metric, d):
    if distances.tags(metric)["elastic"]:
        X = series(d)
        gapped = X.copy()
        gapped[0, 0, 0] = gapped[1, -1, 4:7] = np.nan
        cut = [np.delete(X[0], 0, axis=1), np.delete(X[1], [4, 5, 6], axis=1), *X[2:]]
        np.testing.assert_array_equal(
            pairwise_distance(gapped, metric=metric), pairwise_distance(cut, metric=metric)
        )


def test_elastic_distances_take_different_lengths_and_the_others_refuse(metric):
    X = [x[:, : 5 + i] for i, x in enumerate(series(2))]
    if distances.tags(metric)["elastic"]:
        assert pairwise_distance(X, metric=metric).shape == (6, 6)
    else:
        with pytest.raises(ValueError, match="elastic"):
            pairwise_distance(X, metric=metric)


@pytest.mark.parametrize("normalize", [None, "minmax", "max", "column"])
def test_one_series_gives_a_single_zero(metric, normalize):
    D = pairwise_distance(series(2, n=1), metric=metric, normalize=normalize)
    np.testing.assert_array_equal(D, [[0.0]])


def test_series_of_one_step_work(metric):
    D = pairwise_distance([[1.0], [3.0], [3.0]], metric=metric)
    assert np.isfinite(D).all()
    assert D[1, 2] == 0.0


def test_equal_constant_series_are_at_distance_zero(metric):
    D = pairwise_distance(np.full((3, 2, 8), 5.0), metric=metric)
    np.testing.assert_array_equal(D, 0.0)
    np.testing.assert_array_equal(pairwise_distance(np.zeros((3, 2, 8)), metric=metric), 0.0)


@pytest.mark.slow
def test_window_is_taken_where_the_tag_says_so(metric):
    X = series(1)
    if distances.tags(metric)["window"]:
        assert np.isfinite(pairwise_distance(X, metric=metric, window=0.2)).all()
    else:
        with pytest.raises(ValueError, match="no window"):
            pairwise_distance(X, metric=metric, window=0.2)
