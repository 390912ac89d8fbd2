"""A contract for every block of features that is registered."""

import numpy as np
import pytest

from softclt import load_pretrained
from softclt.classification import blocks
from softclt.classification.design import Landmarks, Scaling, product

quick = [n for n in blocks if blocks.tags(n)["keeps"] and not blocks.tags(n)["trains"]]
others = [pytest.param(name, marks=pytest.mark.slow) for name in blocks if name not in quick]
every_block = pytest.mark.parametrize("name", [*quick, *others])


@pytest.fixture(scope="module")
def encoder():
    return load_pretrained("base", readout="rich", device="cpu")


@pytest.fixture
def X(rng):
    """Two channels, lengths that differ, gaps, a constant channel, another level."""
    X = rng.normal(size=(8, 2, 40)).cumsum(axis=-1)
    X[0, :, 31:] = np.nan
    X[1, 0, 5:9] = np.nan
    X[2, 1] = 7.0
    X[3] += 100.0
    X[4, 0] = np.nan
    return X


def fitted(name, encoder, X):
    if name in ("multirocket", "hydra"):
        pytest.importorskip("aeon")
    return blocks[name](encoder, 0).fit(X)


@every_block
def test_a_block_gives_each_series_finite_features_whatever_stands_beside_it(name, encoder, X):
    if name == "ts2vec":
        X = X[[0, 1, 2, 3, 5, 6, 7]]  # it refuses series of which it sees no step
    block = fitted(name, encoder, X)
    R = block.transform(X)
    assert len(R) == len(X)
    assert R.shape[1] > 1
    assert np.isfinite(R).all()
    alone = np.concatenate([block.transform(X[i : i + 1]) for i in range(3)])
    np.testing.assert_allclose(alone, R[:3], rtol=2e-4, atol=2e-4)


@every_block
def test_a_block_comes_back_from_its_models(name, encoder, X):
    X = X[5:]
    block = fitted(name, encoder, X)
    if not blocks.tags(name)["keeps"]:
        return
    again = blocks[name](encoder, 0)
    again.restore(block.models())
    np.testing.assert_array_equal(again.transform(X), block.transform(X))


@pytest.mark.parametrize("name", quick)
def test_two_steps_are_enough(name, encoder):
    X = np.array([[[1.0, 2.0]], [[3.0, 1.0]]])
    assert np.isfinite(fitted(name, encoder, X).transform(X)).all()


def test_only_statistics_and_rich_read_outs_see_the_level(encoder, X):
    X = X[5:]
    for name in ("base", "statistics"):
        block = fitted(name, encoder, X)
        assert not np.allclose(block.transform(X), block.transform(X + 50))
    block = fitted("differences", encoder, X)
    np.testing.assert_allclose(block.transform(X), block.transform(X + 50), atol=1e-3)


def test_scaled_features_have_rows_of_mean_squared_length_one(rng):
    R = rng.normal(size=(50, 9)) * 10.0 ** np.arange(-4, 5) + 3.0
    R[:, 2] = 5.0  # the same for all
    scaled = Scaling.of(R)(R)
    assert np.mean(np.sum(scaled.astype(float) ** 2, axis=1)) == pytest.approx(1, rel=1e-5)
    assert not scaled[:, 2].any()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)


def test_features_whose_squares_overflow_are_scaled(rng):
    R = rng.normal(size=(50, 3)) * 1e140
    assert np.mean(np.sum(Scaling.of(R)(R) ** 2, axis=1)) == pytest.approx(1, rel=1e-5)


def test_products_are_summed_in_parts_to_the_whole(rng, monkeypatch):
    A, B = rng.normal(size=(7, 23)).astype(np.float32), rng.normal(size=(23, 4))
    monkeypatch.setattr("softclt.classification.design._VALUES_AT_ONCE", 40)
    np.testing.assert_allclose(product(A, B), A.astype(float) @ B)


def test_products_of_new_series_are_those_of_their_features(encoder, X):
    part = Landmarks.of(fitted("base", encoder, X[5:]), X[5:])
    np.testing.assert_allclose(part.products(X[5:]), part.products(), atol=1e-4)
