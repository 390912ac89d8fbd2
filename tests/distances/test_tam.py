import numpy as np
import pytest

import naive
from softclt.distances import pairwise_distance, tam_from_path

GOLDEN = [
    ([(0, 0), (1, 1), (2, 2), (3, 3)], 0.0),
    ([(0, 0), (1, 0), (2, 1), (3, 2), (3, 3)], 1.0),
    ([(0, 0), (0, 1), (0, 2), (1, 2), (2, 2)], 3.0),
]


@pytest.mark.parametrize(("path", "expected"), GOLDEN)
def test_tam_of_a_path_equals_the_golden_values(path, expected):
    assert tam_from_path(path) == pytest.approx(expected, abs=1e-12)
    assert tam_from_path(np.array(path)) == pytest.approx(naive.tam_from_path(path), abs=1e-12)


def test_advance_counts_by_the_first_series_and_delay_by_the_second():
    path = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1)]  # 3 advances of 4, 1 in phase of 1
    assert tam_from_path(path) == pytest.approx(3 / 4 + 0 + 1 - 1)
    assert tam_from_path([(j, i) for i, j in path]) == pytest.approx(3 / 4)


@pytest.mark.parametrize("window", [None, 0.0, 0.2, 1.0])
@pytest.mark.parametrize("d", [1, 2])
def test_tam_equals_the_loops_over_the_stored_path(rng, d, window):
    X = [rng.normal(size=(d, t)) for t in (1, 2, 7, 12, 12, 15)]
    X[3][0, 4] = np.nan
    got = pairwise_distance(X, X, metric="tam", window=window)
    expected = [[naive.tam(x, y, window) for y in X] for x in X]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [None, 0.3])
@pytest.mark.parametrize("levels", [2, 3, 5])
def test_carried_counts_equal_the_stored_path_where_costs_tie(rng, levels, window):
    X = [rng.integers(0, levels, size=(1, t)).astype(float) for t in rng.integers(2, 14, 12)]
    got = pairwise_distance(X, X, metric="tam", window=window)
    expected = [[naive.tam(x, y, window) for y in X] for x in X]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_square_matrix_holds_the_value_of_the_earlier_series_first(rng):
    X = [rng.integers(0, 3, size=(1, t)).astype(float) for t in rng.integers(8, 14, 20)]
    both = pairwise_distance(X, X, metric="tam")
    assert (both != both.T).any()  # ties: otherwise this test shows nothing
    square = pairwise_distance(X, metric="tam")
    upper = np.triu_indices(20, 1)
    np.testing.assert_array_equal(square[upper], both[upper])
    np.testing.assert_array_equal(square, square.T)


def test_tam_is_zero_when_a_series_has_one_step():
    np.testing.assert_array_equal(
        pairwise_distance([[1.0], [5.0, 2.0, 7.0], [3.0]], metric="tam")[[0, 2]], 0.0
    )
    assert tam_from_path([(0, 0), (0, 1)]) == 0.0
    assert tam_from_path([(0, 0)]) == 0.0


def test_shift_in_time_costs_more_tam_than_a_change_of_level(rng):
    wave = np.sin(np.linspace(0, 6, 40))
    X = [wave, wave + 0.01, np.roll(wave, 8)]
    tam = pairwise_distance(X, metric="tam")
    assert tam[0, 1] < tam[0, 2]


@pytest.mark.parametrize(
    "path",
    [
        [],
        [0, 1, 2],
        [(0, 0, 0)],
        [(1, 1), (2, 2)],
        [(0, 0), (2, 1)],
        [(0, 0), (0, 0)],
        [(0, 0), (1, 1), (0, 2)],
    ],
)
def test_what_is_no_warping_path_is_refused(path):
    with pytest.raises(ValueError, match="no warping path"):
        tam_from_path(path)
