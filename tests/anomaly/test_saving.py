"""A detector in a folder judges as it did, and a folder that is none is one error."""

import json

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from softclt import AnomalyDetector, TS2Vec
from softclt.anomaly.extreme import DSpot, Spot
from softclt.anomaly.scorers import scorers
from softclt.anomaly.thresholds import thresholds
from softclt.persistence import ModelFileError

NOT_KEPT = {
    "donut",
    "spot",
    "dspot",
    "ensemble",
    "isolation-forest",
}  # which learn more than numbers
NOT_KEPT |= {"sub-pca", "sub-knn", "matrix-profile"}
TINY = TS2Vec(output_dims=4, hidden_dims=4, depth=2, tau_instance=None, max_iter=2)


def normal(n=2, steps=160):
    rng = np.random.default_rng(0)
    return np.sin(np.arange(steps) / 5) + 0.1 * rng.normal(size=(n, steps))


def strange():
    X = normal()
    X[0, 120] += 6
    return X


def fitted(scorer="masked", threshold="sigma", **params):
    params = {"context": 20, "random_state": 0} | params
    return AnomalyDetector(TINY, scorer=scorer, threshold=threshold, **params).fit(normal())


def same(one, other):
    X = strange()
    np.testing.assert_array_equal(one.anomaly_scores(X), other.anomaly_scores(X))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.alarms(X) == other.alarms(X)


@pytest.mark.parametrize("scorer", sorted(set(scorers) - NOT_KEPT))
def test_every_scorer_that_learns_numbers_comes_back(scorer, tmp_path):
    detector = fitted(scorer)
    detector.save(tmp_path)
    same(detector, AnomalyDetector.load(tmp_path))


@pytest.mark.parametrize("threshold", list(thresholds))
def test_every_threshold_comes_back_also_for_streams(threshold, tmp_path):
    params = {"warmup": 30} if threshold == "running" else None
    detector = fitted(threshold=threshold, threshold_params=params)
    detector.save(tmp_path)
    loaded = AnomalyDetector.load(tmp_path)
    same(detector, loaded)
    one, other = detector.stream(), loaded.stream()
    for x in strange()[0, :60]:
        np.testing.assert_array_equal(one.push(x), other.push(x))


@pytest.mark.parametrize("scorer", sorted(NOT_KEPT))
def test_a_scorer_that_learns_more_says_so_and_writes_nothing(scorer, tmp_path):
    params = {"epochs": 1, "window": 20, "n_samples": 2} if scorer == "donut" else {}
    detector = AnomalyDetector(scorer=scorer, scorer_params=params, random_state=0)
    detector.fit(normal(1, 300))
    with pytest.raises(ValueError, match="cannot be saved"):
        detector.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_was_trained_before_comes_back_frozen(tmp_path):
    model = TINY.fit(normal())
    detector = AnomalyDetector(FrozenEstimator(model), context=20).fit(normal())
    detector.save(tmp_path)
    loaded = AnomalyDetector.load(tmp_path)
    same(detector, loaded)
    same(detector, loaded.fit(normal()))  # nothing is trained again


@pytest.mark.parametrize("spot", [Spot(two_sided=True, max_excesses=5), DSpot(depth=4)])
def test_a_tail_that_has_seen_more_comes_back_as_it_is(spot):
    rng = np.random.default_rng(0)
    spot.calibrate(rng.normal(size=500))
    for value in rng.normal(size=200):
        spot.update(value)
    other = type(spot)(**{key: getattr(spot, key) for key in ("two_sided", "max_excesses")})
    if isinstance(spot, DSpot):
        other = DSpot(depth=4)
    other.restore(spot.state())
    for value in rng.normal(size=200):
        assert spot.threshold == other.threshold
        assert spot.update(value) == other.update(value)


@pytest.mark.parametrize(
    "change",
    [
        {"n_channels": 0},
        {"n_channels": "many"},
        {"model": "0" * 64},
        {"model": None},
        {"params": {"scorer": "nothing"}},
        {"params": {"threshold": "spot"}},
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_one_error_that_names_the_folder(change, tmp_path):
    fitted().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["params"] |= change.pop("params", {})
    config["fitted"] |= change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match=tmp_path.name):
        AnomalyDetector.load(tmp_path)


def test_a_model_is_no_detector(tmp_path):
    TINY.fit(normal()).save(tmp_path)
    with pytest.raises(ModelFileError, match="ts2vec"):
        AnomalyDetector.load(tmp_path)
