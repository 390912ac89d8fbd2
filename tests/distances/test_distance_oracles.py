"""Our distances against other packages, on random and on real series."""

import numpy as np
import pytest

import naive
from softclt.distances import pairwise_distance

pytestmark = pytest.mark.slow


def gun_point():
    aeon_data = pytest.importorskip("aeon.datasets")
    return aeon_data.load_gunpoint(split="train")[0][:8].astype(np.float64)


def basic_motions():
    aeon_data = pytest.importorskip("aeon.datasets")
    return aeon_data.load_basic_motions(split="train")[0][:5].astype(np.float64)


def japanese_vowels():
    aeon_data = pytest.importorskip("aeon.datasets")
    return [x.astype(np.float64) for x in aeon_data.load_japanese_vowels(split="train")[0][:6]]


def random_ragged():
    rng = np.random.default_rng(5)
    return [rng.normal(size=(1, t)).cumsum(axis=1) for t in (20, 33, 7, 1, 48)]


def random_equal():
    return np.random.default_rng(6).normal(size=(6, 1, 40))


ALL = [random_equal, random_ragged, gun_point, basic_motions, japanese_vowels]
EQUAL = [random_equal, gun_point, basic_motions]
ONE_CHANNEL = [random_equal, random_ragged, gun_point]
WINDOWS = [0.0, 0.1, 0.5]


def by_pairs(X, distance):
    return np.array([[distance(x, y) for y in X] for x in X])


@pytest.mark.parametrize("data", ALL)
def test_dtw_equals_tslearn(data):
    tslearn = pytest.importorskip("tslearn.metrics")
    X = data()
    expected = by_pairs(X, lambda x, y: tslearn.dtw(x.T, y.T))
    np.testing.assert_allclose(pairwise_distance(X), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("data", EQUAL)
def test_windowed_dtw_equals_tslearn_at_equal_length(data, window):
    tslearn = pytest.importorskip("tslearn.metrics")
    X = data()
    radius = int(window * X.shape[-1])
    expected = by_pairs(
        X,
        lambda x, y: tslearn.dtw(
            x.T, y.T, global_constraint="sakoe_chiba", sakoe_chiba_radius=radius
        ),
    )
    np.testing.assert_allclose(pairwise_distance(X, window=window), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("data", ONE_CHANNEL)
def test_dtw_equals_dtaidistance(data):
    dtai = pytest.importorskip("dtaidistance.dtw")
    X = data()
    expected = by_pairs(X, lambda x, y: dtai.distance(x[0], y[0]))
    np.testing.assert_allclose(pairwise_distance(X), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("data", [basic_motions, japanese_vowels])
def test_multivariate_dtw_equals_dtaidistance(data):
    dtai = pytest.importorskip("dtaidistance.dtw_ndim")
    X = data()
    expected = by_pairs(X, lambda x, y: dtai.distance(x.T.copy(), y.T.copy()))
    np.testing.assert_allclose(pairwise_distance(X), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("data", [random_equal, gun_point])
def test_windowed_dtw_equals_dtaidistance_at_equal_length(data, window):
    dtai = pytest.importorskip("dtaidistance.dtw")
    X = data()
    width = int(window * X.shape[-1]) + 1  # theirs counts the diagonal
    expected = by_pairs(X, lambda x, y: dtai.distance(x[0], y[0], window=width))
    np.testing.assert_allclose(pairwise_distance(X, window=window), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("data", ALL)
def test_dtw_is_the_root_of_aeons(data):
    aeon = pytest.importorskip("aeon.distances")
    X = data()
    expected = np.sqrt(by_pairs(X, aeon.dtw_distance))
    np.testing.assert_allclose(pairwise_distance(X), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("data", EQUAL)
def test_windowed_dtw_is_the_root_of_aeons_at_equal_length(data, window):
    aeon = pytest.importorskip("aeon.distances")
    X = data()
    expected = np.sqrt(aeon.dtw_pairwise_distance(X, window=window))
    np.testing.assert_allclose(pairwise_distance(X, window=window), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("data", ALL)
def test_tam_is_that_of_tslearns_path(data):
    tslearn = pytest.importorskip("tslearn.metrics")
    X = data()
    expected = by_pairs(X, lambda x, y: naive.tam_from_path(tslearn.dtw_path(x.T, y.T)[0]))
    np.testing.assert_allclose(pairwise_distance(X, X, metric="tam"), expected, atol=1e-12)


@pytest.mark.parametrize("data", EQUAL)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_pointwise_distances_equal_scipy(data, metric):
    spatial = pytest.importorskip("scipy.spatial.distance")
    X = data()
    flat = X.reshape(len(X), -1)
    expected = spatial.cdist(flat, flat, metric)
    np.testing.assert_allclose(pairwise_distance(X, metric=metric), expected, rtol=0, atol=1e-10)


def test_a_distance_of_aeon_works_as_a_function():
    aeon = pytest.importorskip("aeon.distances")
    X = japanese_vowels()
    np.testing.assert_allclose(
        pairwise_distance(X, metric=aeon.dtw_distance), pairwise_distance(X) ** 2, rtol=1e-10
    )
