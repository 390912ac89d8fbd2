import numpy as np
import pytest
import torch

import naive
from softclt.distances import normalize_distances, pairwise_distance

D = [[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]]
GOLDEN = {
    "minmax": [[0, 0, 1], [0, 0, 1 / 3], [1, 1 / 3, 0]],
    "max": [[0, 0.25, 1], [0.25, 0, 0.5], [1, 0.5, 0]],
    "column": [[0, 0, 1], [0, 0, 1 / 3], [1, 1, 0]],
}
TWINS = {
    "minmax": naive.minmax_distances,
    "max": naive.max_distances,
    "column": naive.column_distances,
}


@pytest.mark.parametrize("how", GOLDEN)
def test_three_conventions_equal_the_golden_matrices(how):
    np.testing.assert_allclose(normalize_distances(D, how), GOLDEN[how], atol=1e-15)


@pytest.mark.parametrize("how", TWINS)
def test_normalisation_equals_the_loops_also_for_asymmetric_matrices(rng, how):
    for matrix in (pairwise_distance(rng.normal(size=(6, 9))), rng.uniform(1, 5, size=(7, 7))):
        np.testing.assert_allclose(normalize_distances(matrix, how), TWINS[how](matrix), atol=1e-14)


@pytest.mark.parametrize("how", TWINS)
def test_normalised_distances_fill_the_unit_interval(rng, how):
    scaled = normalize_distances(rng.uniform(3, 5, size=(9, 9)), how)
    assert scaled.min() == 0.0
    assert scaled.max() == 1.0
    np.testing.assert_array_equal(np.diag(scaled), 0.0)


@pytest.mark.parametrize(("how", "expected"), [("minmax", 0.0), ("max", 1.0), ("column", 0.0)])
def test_two_series_only(how, expected):
    scaled = normalize_distances([[0.0, 3.0], [3.0, 0.0]], how)
    np.testing.assert_array_equal(scaled, [[0, expected], [expected, 0]])


@pytest.mark.parametrize("how", ["minmax", "column"])
def test_all_equal_distances_become_zero(how):
    np.testing.assert_array_equal(normalize_distances(np.full((4, 4), 2.5), how), 0.0)


@pytest.mark.parametrize("how", TWINS)
def test_all_zero_distances_stay_zero(how):
    np.testing.assert_array_equal(normalize_distances(np.zeros((3, 3)), how), 0.0)


@pytest.mark.parametrize("how", [None, *TWINS])
def test_one_series_gives_a_zero(how):
    np.testing.assert_array_equal(normalize_distances([[0.0]], how), [[0.0]])


@pytest.mark.parametrize("how", [None, *TWINS])
def test_the_given_matrix_is_left_alone(how):
    matrix = np.array(D)
    normalize_distances(matrix, how)
    np.testing.assert_array_equal(matrix, D)


def test_tensors_and_float32_become_float64():
    scaled = normalize_distances(torch.tensor(D), "max")
    assert scaled.dtype == np.float64
    np.testing.assert_allclose(scaled, GOLDEN["max"])


@pytest.mark.parametrize("wrong", [[[0.0, 1.0]], [1.0, 2.0], 3.0, np.zeros((0, 0))])
def test_what_is_no_square_matrix_is_refused(wrong):
    with pytest.raises(ValueError, match=r"shape .* expected \(N, N\)"):
        normalize_distances(wrong)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_impossible_distances_are_refused(bad):
    with pytest.raises(ValueError, match="finite and non-negative"):
        normalize_distances([[0.0, bad], [bad, 0.0]])


def test_unknown_normalisation_names_the_known_ones():
    with pytest.raises(ValueError, match=r"normalize is 'rows'.*'minmax', 'max', 'column'"):
        normalize_distances(D, "rows")
