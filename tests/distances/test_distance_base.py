import numba
import numpy as np
import pytest

from softclt import compilation as base
from softclt.distances import Ragged, compiled, distances, per_pair


def test_ragged_series_are_read_back_as_they_are():
    ragged = Ragged(np.arange(12.0).reshape(2, 6), np.array([0, 1, 4, 6]))
    assert len(ragged) == 3
    assert ragged.lengths.tolist() == [1, 3, 2]
    np.testing.assert_array_equal(ragged[1], [[1, 2, 3], [7, 8, 9]])


def test_compiled_functions_work_where_no_cache_folder_can_be_written(monkeypatch):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(base, "njit", njit)
    assert compiled(lambda a: a + 1)(2) == 3


def test_a_kernel_of_a_plain_function_takes_pairs_in_their_order():
    ragged = Ragged(np.array([[1.0, 2.0, 4.0]]), np.array([0, 1, 2, 3]))
    kernel = per_pair(lambda x, y: 10 * x.sum() + y.sum())
    rows, cols = np.array([2, 0]), np.array([1, 2])
    assert kernel(ragged, ragged, rows, cols).tolist() == [42.0, 14.0]


@pytest.mark.parametrize("name", ["cosine", "dtw", "euclidean", "fastdtw", "tam"])
def test_a_kernel_takes_any_list_of_pairs(name, rng):
    ragged = Ragged(rng.normal(size=(2, 30)), np.arange(0, 31, 6))
    rows, cols = np.array([4, 0, 0, 3]), np.array([1, 2, 2, 3])
    got = distances[name](ragged, ragged, rows, cols)
    one_by_one = [
        distances[name](ragged, ragged, rows[k : k + 1], cols[k : k + 1])[0] for k in range(4)
    ]
    assert got.tolist() == one_by_one
    assert got[3] == 0.0
