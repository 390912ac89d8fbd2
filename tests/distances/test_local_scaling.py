"""Distances in units of the neighbourhoods of both series."""

import numpy as np
import pytest

import naive
from softclt import pairwise_distance
from softclt.distances import BatchDistances, normalize_distances


@pytest.mark.parametrize("n", [2, 5, 11, 30])
def test_local_scaling_is_the_plain_loop(n, rng):
    D = pairwise_distance(rng.normal(size=(n, 1, 12)), metric="euclidean")
    np.testing.assert_allclose(normalize_distances(D, "local"), naive.local_distances(D))


def test_the_tenth_neighbour_of_two_equal_neighbourhoods_is_half_way(rng):
    angles = 2 * np.pi * np.arange(40) / 40
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    D = np.linalg.norm(circle[:, None] - circle, axis=-1)
    near = np.sort(normalize_distances(D, "local"), axis=1)
    np.testing.assert_allclose(near[:, 10], 0.5)
    assert near.max() == 1


def test_scale_and_density_do_not_matter(rng):
    D = pairwise_distance(rng.normal(size=(20, 1, 8)), metric="euclidean")
    np.testing.assert_allclose(normalize_distances(7 * D, "local"), normalize_distances(D, "local"))


@pytest.mark.parametrize("n", [1, 4])
def test_equal_series_are_at_zero(n):
    assert (normalize_distances(np.zeros((n, n)), "local") == 0).all()


def test_many_copies_of_a_series_are_at_zero_and_all_others_far(rng):
    D = np.ones((15, 15))
    D[:12, :12] = 0
    np.fill_diagonal(D, 0)
    local = normalize_distances(D, "local")
    assert (local[:12, :12] == 0).all()
    assert (local[:12, 12:] == 1).all()


def test_it_needs_the_whole_matrix(rng):
    X = rng.normal(size=(6, 1, 10))
    with pytest.raises(ValueError, match="needs the whole matrix"):
        BatchDistances(X, "euclidean", mode="lazy", normalize="local")
    assert BatchDistances(X, "euclidean", mode="auto", normalize="local").mode == "dense"
