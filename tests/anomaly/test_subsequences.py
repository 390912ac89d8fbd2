"""The classics: each against another implementation, and what all of them promise."""

import numpy as np
import pytest
from sklearn.base import clone

from softclt.anomaly.ensemble import RankEnsemble, ranks
from softclt.anomaly.patching import by_overlap
from softclt.anomaly.scorers import new_scorer

NAMES = ["isolation-forest", "moving-z", "sub-knn", "sub-pca"]
QUICK = {"isolation-forest": {"trees": 30}, "moving-z": {"window": 100}}
QUICK |= {"sub-knn": {"window": 16}, "sub-pca": {"window": 16}}


def make(name):
    return new_scorer(name, QUICK.get(name))


@pytest.fixture
def normal(rng):
    return np.sin(np.arange(600) / 4) + 0.1 * rng.normal(size=600)


@pytest.mark.parametrize("name", [*NAMES, "ensemble"])
def test_a_planted_stretch_is_the_strangest_also_beside_a_dead_channel(name, normal):
    x = np.where((np.arange(600) >= 450) & (np.arange(600) < 460), normal + 4, normal)
    gappy = np.where(np.arange(600) % 97 == 0, np.nan, x)
    scorer = make(name).fit([normal[None, :300]])
    scores = scorer.score(gappy[None])
    assert np.isnan(scores[np.isnan(gappy)]).all()
    assert 435 <= np.nanargmax(scores) < 475
    np.testing.assert_array_equal(
        scores, clone(scorer).fit([normal[None, :300]]).score(gappy[None])
    )
    pair = np.stack([x, np.full(600, np.nan)])
    train = np.stack([normal[:300], normal[:300]])
    assert 435 <= np.nanargmax(make(name).fit([train]).score(pair)) < 475


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [1, 2, 3, 12, 17])
def test_short_and_constant_series_have_a_score_or_none(name, length, normal):
    scorer = make(name).fit([normal[None, :300]])
    assert not np.isinf(scorer.score(normal[None, :length])).any()
    flat = make(name).fit([np.full((1, 80), 5.0)])
    assert not np.isinf(flat.score(np.full((1, length), 5.0))).any()


@pytest.mark.parametrize("name", NAMES)
def test_units_do_not_matter(name, normal):
    x = np.where(np.arange(600) == 450, normal + 4, normal)[None]
    plain = make(name).fit([x[:, :300]]).score(x)
    moved = make(name).fit([64 * x[:, :300] + 32]).score(64 * x + 32)
    np.testing.assert_allclose(moved, plain, rtol=1e-6, atol=1e-6)


def test_sub_pca_is_what_projection_leaves(normal):
    found = make("sub-pca").fit([normal[None, :300]]).score(normal[None])
    x = (normal - normal[:300].mean()) / normal[:300].std()
    windows = np.lib.stride_tricks.sliding_window_view(x, 16)
    train = windows[:285]
    _, values, axes = np.linalg.svd(train - train.mean(axis=0))
    n = int(np.searchsorted(np.cumsum(values**2) / (values**2).sum(), 0.9)) + 1
    rest = windows - train.mean(axis=0)
    rest = rest - rest @ axes[:n].T @ axes[:n]
    np.testing.assert_allclose(found, by_overlap(np.sqrt((rest**2).mean(axis=1)), 16), atol=1e-9)


def test_moving_z_is_the_distance_from_the_last_values(normal):
    found = make("moving-z").fit([normal[None, :300]]).score(normal[None])
    before = normal[350:450]
    expected = abs(normal[450] - before.mean()) / before.std()
    assert found[450] == pytest.approx(expected)
    assert np.isnan(found[0])


def test_the_matrix_profile_is_that_of_plain_loops(normal):
    pytest.importorskip("stumpy", reason="the matrix profile needs the `anomaly` extra")
    train, x = normal[:60], normal[300:340]
    found = new_scorer("matrix-profile", {"window": 8}).fit([train[None]]).score(x[None])

    def shapes(values):
        windows = np.lib.stride_tricks.sliding_window_view(values, 8)
        own = windows - windows.mean(axis=1, keepdims=True)
        return own / own.std(axis=1, keepdims=True)

    far = np.linalg.norm(shapes(x)[:, None] - shapes(train)[None], axis=-1).min(axis=1)
    np.testing.assert_allclose(found, by_overlap(far, 8), atol=1e-6)


def test_an_ensemble_is_the_mean_of_ranks(normal):
    x = normal[None]
    members = "moving-z", "sub-pca"
    found = RankEnsemble(members=members).fit([x[:, :300]]).score(x)
    own = [ranks(new_scorer(name).fit([x[:, :300]]).score(x)) for name in members]
    np.testing.assert_allclose(found[5:], np.mean(own, axis=0)[5:])
    for wrong in ((), ("ensemble",), ("masked",)):
        with pytest.raises(ValueError, match="members"):
            RankEnsemble(members=wrong).fit([x])
