"""The lanes themselves, and `align` where the property tests do not look."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import naive
from softclt.distances import Ragged, pairwise_distance
from softclt.distances.lanes import WIDTH, add_square, if_less, load, smaller, spread, store
from softclt.distances.prepare import without_missing_steps
from softclt.distances.warping import align, common_precision, half_widths

precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])
channels = pytest.mark.parametrize("d", [1, 3])
windows = pytest.mark.parametrize("window", [None, 0.0, 0.15])


def packed(series):
    starts = np.concatenate([[0], np.cumsum([x.shape[1] for x in series])])
    return Ragged(np.concatenate(series, axis=1), starts)


def random_series(rng, n, d, lengths, dtype=np.float64):
    return packed([rng.normal(size=(d, rng.choice(lengths))).astype(dtype) for _ in range(n)])


def diagonal_steps(path):
    return int(np.diff(path, axis=0).reshape(-1, 2).all(axis=1).sum())


def all_pairs(x, y):
    rows, cols = np.indices((len(x), len(y)))
    return rows.ravel(), cols.ravel()


# ------------------------------------------------------------------------------------------- lanes


@numba.njit
def every_operation(a, b, out):
    lanes = len(a)
    x, y, two = load(a, 0), load(b, 0), spread(a.dtype.type(2))
    store(out, 0 * lanes, x + y)
    store(out, 1 * lanes, x - y)
    store(out, 2 * lanes, x * y)
    store(out, 3 * lanes, smaller(x, y))
    store(out, 4 * lanes, if_less(x, y, two, x))
    store(out, 5 * lanes, add_square(x, y))


@numba.njit
def copy_to(a, source, out, target):
    store(out, target, load(a, source))


@precisions
def test_operations_are_those_of_numbers_lane_by_lane(dtype, rng):
    lanes = WIDTH // np.dtype(dtype).itemsize
    a, b = rng.normal(size=(2, lanes)).astype(dtype)
    a[0], b[1], a[2] = np.inf, np.inf, b[2]
    out = np.zeros((6, lanes), dtype)
    every_operation(a, b, out.reshape(-1))
    expected = [a + b, a - b, a * b, np.minimum(a, b), np.where(a < b, 2, a)]
    np.testing.assert_array_equal(out[:5], np.array(expected, dtype))
    exact = a.astype(np.longdouble) + b.astype(np.longdouble) ** 2
    np.testing.assert_allclose(out[5], exact, rtol=2 * np.finfo(dtype).eps)


@precisions
def test_a_vector_is_loaded_and_stored_at_any_place_and_touches_no_other(dtype):
    lanes = WIDTH // np.dtype(dtype).itemsize
    a, out = np.arange(3 * lanes, dtype=dtype), np.zeros(3 * lanes, dtype)
    copy_to(a, 3, out, 5)
    expected = np.zeros(3 * lanes)
    expected[5 : 5 + lanes] = a[3 : 3 + lanes]
    np.testing.assert_array_equal(out, expected)


def test_lanes_of_different_precision_do_not_mix():
    with pytest.raises(numba.TypingError):
        every_operation(np.zeros(16, np.float32), np.zeros(8), np.zeros(96, np.float32))


# ----------------------------------------------------------------------------- precision and bands


def test_half_width_is_a_share_of_the_longer_series_and_reaches_the_end():
    n, m = np.array([10, 10, 16, 3, 1]), np.array([10, 7, 15, 100, 1])
    assert half_widths(n, m, 0.25).tolist() == [2, 3, 4, 97, 0]
    assert half_widths(n, m, 0.0).tolist() == [0, 3, 1, 97, 0]


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(1.0, np.float32), (0.0, np.float32), (1e15, np.float64), (1e-20, np.float64)],
)
def test_float32_is_kept_where_its_range_suffices(scale, expected, rng):
    X = rng.normal(size=(4, 1, 6)).astype(np.float32)
    X[2] *= np.float32(scale)
    x = without_missing_steps(X, "X")
    assert x.values.dtype == expected
    wide = x.astype(np.float64)
    assert {z.values.dtype for z in common_precision(x, wide)} == {np.dtype(np.float64)}


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e-6, 1e6, 1e12, 1e15, 1e30])
def test_float32_series_of_any_size_have_their_distance(scale, rng):
    shape = rng.normal(size=(5, 2, 30))
    X = (scale * shape).astype(np.float32)
    expected = [[naive.dtw(x, y) for y in X] for x in X]
    np.testing.assert_allclose(pairwise_distance(X), expected, rtol=1e-5)


@precisions
def test_small_differences_on_a_high_level_are_not_lost(dtype, rng):
    X = (1e6 + rng.integers(-8, 9, size=(6, 1, 40)) / 8).astype(dtype)
    expected = pairwise_distance(X.astype(np.float64) - 1e6)  # exact: float32 has sixteenths there
    np.testing.assert_allclose(pairwise_distance(X), expected, rtol=1e-5)


# ------------------------------------------------------------------------------------------- align


@channels
@precisions
@windows
@pytest.mark.slow
def test_sums_and_diagonals_of_pairs_equal_the_loops(d, dtype, window, rng):
    x = random_series(rng, 7, d, [1, 2, 5, 8, 13], dtype)
    y = random_series(rng, 5, d, [1, 4, 9, 16], dtype)
    rows, cols = all_pairs(x, y)
    totals, diagonals = align(x, y, rows, cols, window, count_diagonals=True)
    alone, none_counted = align(x, y, rows, cols, window)
    sums = [naive.dtw_squared(x[i], y[j], window) for i, j in zip(rows, cols, strict=True)]
    np.testing.assert_allclose(totals, sums, rtol=1e-5 if dtype is np.float32 else 1e-12)
    np.testing.assert_allclose(alone, sums, rtol=1e-5 if dtype is np.float32 else 1e-12)
    assert not none_counted.any()
    if dtype is np.float64:
        paths = [naive.dtw_path(x[i], y[j], window) for i, j in zip(rows, cols, strict=True)]
        assert diagonals.tolist() == [diagonal_steps(path) for path in paths]


@pytest.mark.parametrize("window", [None, 0.0])
def test_a_long_series_meets_a_short_one(window, rng):
    x, y = random_series(rng, 3, 2, [190]), random_series(rng, 3, 2, [1, 2, 3])
    rows, cols = all_pairs(x, y)
    there, _ = align(x, y, rows, cols, window)
    back, _ = align(y, x, cols, rows, window)
    expected = [naive.dtw_squared(x[i], y[j], window) for i, j in zip(rows, cols, strict=True)]
    np.testing.assert_allclose(there, expected, rtol=1e-12)
    np.testing.assert_allclose(back, expected, rtol=1e-12)


@precisions
def test_series_of_one_step_are_apart_by_their_difference(dtype):
    x = Ragged(np.array([[1.0, 3.0, 3.0]], dtype), np.arange(4))
    totals, diagonals = align(x, x, *all_pairs(x, x), None, count_diagonals=True)
    assert totals.tolist() == [0, 4, 4, 4, 0, 0, 4, 0, 0]
    assert diagonals.tolist() == [0] * 9


def test_no_pairs_give_no_distances(rng):
    x, none = random_series(rng, 2, 1, [4]), np.zeros(0, np.int64)
    totals, diagonals = align(x, x, none, none, None)
    assert totals.shape == diagonals.shape == (0,)


@precisions
@channels
@windows
@pytest.mark.parametrize("counted", [False, True])
def test_a_pair_is_the_same_alone_and_among_any_others(dtype, d, window, counted, rng):
    x = random_series(rng, 9, d, [3, 8, 8, 21], dtype)
    rows, cols = all_pairs(x, x)  # 81: the last group of lanes is partly filled
    together = align(x, x, rows, cols, window, count_diagonals=counted)
    order = rng.permutation(len(rows))
    shuffled = align(x, x, rows[order], cols[order], window, count_diagonals=counted)
    for own, other in zip(together, shuffled, strict=True):
        np.testing.assert_array_equal(own[order], other)
    for k in range(0, len(rows), 7):
        one = slice(k, k + 1)
        alone = align(x, x, rows[one], cols[one], window, count_diagonals=counted)
        assert [values[0] for values in alone] == [values[k] for values in together]


@precisions
@windows
@pytest.mark.parametrize("lengths", [[24], [5, 24]])
@pytest.mark.slow
def test_tiles_and_threads_change_no_bit(dtype, window, lengths, rng, monkeypatch):
    X = [rng.normal(size=(2, rng.choice(lengths))).astype(dtype) for _ in range(37)]
    expected = pairwise_distance(X, window=window, n_jobs=1)
    for size, jobs in ((4, 1), (5, 3), (16, 2), (37, 2)):
        monkeypatch.setattr("softclt.distances.engine.tile_size", lambda cells, own=size: own)
        got = pairwise_distance(X, window=window, n_jobs=jobs)
        np.testing.assert_array_equal(got, expected)


@precisions
@channels
def test_a_group_of_lanes_is_given_up_once_none_of_them_can_stay_within_the_bound(dtype, d):
    lanes, steps = WIDTH // np.dtype(dtype).itemsize, 64
    starts = steps * np.arange(lanes + 1)
    x = Ragged(np.zeros((d, steps * lanes), dtype), starts)
    y = x.values + 5
    pairs = np.arange(lanes)
    far, _ = align(x, Ragged(y, starts), pairs, pairs, None, bound=100.0)
    np.testing.assert_array_equal(far, np.inf)  # and not 25 D a step: it was not computed
    y[:, :steps] = 1  # one lane ends at D a step and keeps its neighbours at work
    kept, _ = align(x, Ragged(y, starts), pairs, pairs, None, bound=100.0 * d)
    np.testing.assert_array_equal(kept[0], steps * d)
    np.testing.assert_array_equal(kept[1:], 25 * steps * d)


@precisions
@pytest.mark.slow
def test_two_threads_at_once_do_not_disturb_each_other(dtype, rng):
    jobs = [random_series(rng, 20, d, [9, 30], dtype) for d in (1, 3, 2, 1)]

    def work(x):
        return align(x, x, *all_pairs(x, x), None, count_diagonals=True)[0]

    expected = [work(x) for x in jobs]
    with ThreadPoolExecutor(2) as pool:
        for got, own in zip(pool.map(work, 5 * jobs), 5 * expected, strict=True):
            np.testing.assert_array_equal(got, own)


def test_a_group_that_is_not_full_gives_up_early_too():
    x = Ragged(np.zeros((1, 40), np.float32), np.array([0, 40]))
    y = Ragged(np.full((1, 40), 5.0, np.float32), np.array([0, 40]))
    for n_pairs in (1, 15, 16):
        pairs = np.zeros(n_pairs, np.int64)
        totals, _ = align(x, y, pairs, pairs, None, bound=1.0)
        assert np.isinf(totals).all()
