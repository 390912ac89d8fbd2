"""Patches and their bank: distances, mapping to steps, streams, channels, encoders."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import naive
from softclt import AnomalyDetector
from softclt.anomaly.bank import PatchBank
from softclt.anomaly.patches import PatchScorer
from softclt.anomaly.patching import by_overlap, complete_enough, held
from softclt.data import plant_anomalies

PLANTED = slice(620, 630)


def wave(rng, steps=900, n_channels=1):
    t = np.arange(steps) + 7 * np.arange(n_channels)[:, None]
    return np.sin(t / 4) + 0.1 * rng.normal(size=t.shape)  # (D, T)


def scorer(**params):
    return PatchScorer(**{"windows": (4, 16), "bank": 200, "random_state": 0} | params)


class Standardised(BaseEstimator):
    """The encoder that changes nothing: a patch's own shape."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        own = X - X.mean(axis=-1, keepdims=True)
        return (own / own.std(axis=-1, keepdims=True).clip(1e-9))[:, 0]


def test_distances_and_their_means_over_patches_equal_the_plain_loops(rng):
    train, x = wave(rng, 60), wave(rng, 40)
    bank = PatchBank(5, 1, k=2).fit([train], [np.array([0, 7, 30, 41])])
    patches = [train[0, s : s + 5].tolist() for s in (0, 7, 30, 41)]
    expected = naive.patch_distances(x[0].tolist(), patches, 2)
    found = bank.distances(x)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(by_overlap(found, 5), naive.mean_of_patches(expected, 5), atol=1e-7)
    assert bank.distance(x[:, 3:8]) == pytest.approx(expected[3], abs=1e-7)
    gappy = np.where(np.arange(36) % 3 == 0, np.nan, expected)
    np.testing.assert_allclose(by_overlap(gappy, 2), naive.mean_of_patches(gappy, 2), atol=1e-7)


def test_a_score_is_the_mean_over_lengths_in_units_of_the_training_spread(rng):
    train, x = wave(rng, 300), wave(rng, 200)
    both = scorer().fit([train]).score(x)
    alone = [scorer(windows=(w,)).fit([train]).score(x) for w in (4, 16)]
    np.testing.assert_allclose(both, np.mean(alone, axis=0))
    moved = scorer().fit([1000 * train + 5e6]).score(1000 * x + 5e6)
    np.testing.assert_allclose(moved, both, rtol=1e-4, atol=1e-6)


def test_training_scores_are_those_of_banks_without_what_overlaps_a_patch(rng):
    train = wave(rng, 80)
    found = scorer(windows=(6,), bank=1000, k=1).fit([train])
    x = ((train - found.mean_) / found.std_)[0]
    far = []
    for s in range(75):
        others = [x[o : o + 6].tolist() for o in range(75) if abs(o - s) >= 6]
        far += naive.patch_distances(x[s : s + 6].tolist(), others, 1)
    np.testing.assert_allclose(found.training_scores_[0], by_overlap(np.array(far), 6), atol=1e-7)
    assert found.score(train).max() < 1e-6  # it remembers all of it


@pytest.mark.parametrize("channels", ["apart", "together"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("stride", [None, 3])
def test_a_stream_gives_the_scores_of_the_whole_series(channels, n_channels, stride, rng):
    found = scorer(channels=channels, stride=stride).fit([wave(rng, 400, n_channels)])
    x = wave(rng, 101, n_channels)
    x[0, 40:48] = np.nan
    x[:, 60] = np.nan
    stream = found.stream()
    pushed = [stream(step) for step in x.T]
    delay = stream.delay
    assert delay == (15 if stride is None else 16)
    assert np.isnan(pushed[:delay]).all()
    scores = found.score(x)
    assert np.isnan(scores[60])
    np.testing.assert_allclose(pushed[delay:] + stream.finish(), scores, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 3, 4, 9, 16])
def test_a_short_series_is_scored_by_the_patches_that_fit_or_not_at_all(steps, rng):
    found = scorer().fit([wave(rng, 400)])
    x = wave(rng, steps)
    scores, stream = found.score(x), found.stream()
    assert np.isfinite(scores).all() == (steps >= 4)
    pushed = [stream(step) for step in x.T]
    np.testing.assert_allclose(pushed[15:] + stream.finish(), scores, atol=1e-6)


def test_missing_steps_have_no_score_and_little_else_changes(rng):
    found = scorer().fit([wave(rng, 400)])
    x = wave(rng, 200)
    gappy = x.copy()
    gappy[0, [20, 70]] = np.nan
    gappy[0, 100:160] = np.nan
    scores = found.score(gappy)
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(gappy[0]))
    np.testing.assert_allclose(scores[176:], found.score(x)[176:], rtol=1e-9)
    assert complete_enough(np.array([True, False, True, True, False]), 4).tolist() == [True, False]
    np.testing.assert_array_equal(held(np.array([np.nan, 2, np.nan])), [0, 2, 2])


def test_a_constant_training_series_makes_another_value_strange(rng):
    x = np.full((1, 80), 5.0)
    scores = scorer().fit([x]).score(np.where(np.arange(80) == 60, 6.0, x))
    assert np.nanargmax(scores) == 60
    assert scores[:30].max() == 0
    assert np.isnan(scorer().fit([x]).score(np.full((1, 20), np.nan))).all()


@pytest.mark.parametrize("channels", ["apart", "together"])
def test_the_channel_that_explains_an_alarm_is_named(channels, rng):
    x = wave(rng, n_channels=3)
    found = scorer(channels=channels).fit([x[:, :500]])
    x[1, PLANTED] += 3
    scores, parts = found.score(x), found.channel_scores(x)
    assert PLANTED.start - 16 <= np.nanargmax(scores) < PLANTED.stop + 16
    assert parts.shape == x.shape
    assert parts[:, 625].argmax() == 1
    if channels == "apart":
        np.testing.assert_array_equal(parts.max(axis=0), scores)
    else:
        np.testing.assert_allclose(parts.sum(axis=0), scores)


def test_together_sees_a_broken_relation_that_no_channel_shows(rng):
    phase = np.cumsum(rng.uniform(0, 0.5, size=2000))
    x = np.sin(np.stack([phase, phase])) + 0.02 * rng.normal(size=(2, 2000))
    x[1, 1500:1540] *= -1
    together, apart = (
        scorer(channels=how, windows=(4,), bank=900).fit([x[:, :1000]]).score(x)[1000:]
        for how in ("together", "apart")
    )
    strange = slice(500, 540)
    assert np.median(together[strange]) > np.quantile(np.delete(together, strange), 0.99)
    assert np.median(apart[strange]) < np.quantile(np.delete(apart, strange), 0.99)


def test_with_a_patchs_own_shape_an_encoder_changes_no_distance(rng):
    p, q = rng.normal(size=(2, 6, 1, 20)) * rng.uniform(1, 3, size=(2, 6, 1, 1)) + 2
    plain, coded = PatchBank(20, 1, 1), PatchBank(20, 1, 1, Standardised())
    coded.centre_ = 0.0
    expected = np.linalg.norm(plain._vectors(p) - plain._vectors(q), axis=1)
    found = np.linalg.norm(coded._vectors(p) - coded._vectors(q), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_encoder_reads_long_patches_at_its_stride_and_a_name_is_one(rng):
    x = wave(rng, 300)
    found = scorer(encoder=Standardised(), windows=(4, 32)).fit([x[:, :200]])
    short, long = found.banks_[0]
    assert (short.encoder, short.stride, long.stride) == (None, 1, 4)
    assert np.isfinite(found.score(x)).all()
    assert clone(found).get_params()["windows"] == (4, 32)
    named = scorer(encoder="synthetic", windows=(32,)).fit([x[:, :200]])
    assert named.banks_[0][0].vectors_.shape[1] > 100


def test_the_detector_finds_a_planted_stretch_by_default_and_streams_it(rng):
    normal, x = wave(rng), wave(rng)
    x[0, PLANTED] += 3
    found = AnomalyDetector(random_state=0).fit(normal[None])
    (alarms,) = found.alarms(x[None])
    worst = max(alarms, key=lambda alarm: alarm.severity)
    assert worst.start <= PLANTED.start
    assert worst.end >= PLANTED.stop - 1
    stream = found.stream()
    pushed = [stream.push(step) for step in x.T][stream.delay :] + stream.finish()
    flags = np.array([alarm for _, alarm in pushed])
    np.testing.assert_array_equal(flags, found.predict(x[None])[0] == -1)
    lasting = clone(found).set_params(persist=(40, 40)).fit(normal[None]).alarms(x[None])[0]
    assert worst.start < lasting[0].start <= lasting[-1].end <= worst.end
    with pytest.raises(ValueError, match="persist is 3 of 2 steps"):
        AnomalyDetector(persist=(3, 2)).fit(normal[None])
    assert found.channel_scores(x[None]).shape == (1, 1, 900)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"windows": ()}, "windows is empty"),
        ({"windows": (0,)}, "windows"),
        ({"k": 0}, "k"),
        ({"channels": "all"}, "apart"),
        ({"stride": 0}, "stride"),
    ],
)
def test_wrong_settings_are_told(params, words, rng):
    with pytest.raises(ValueError, match=words):
        scorer(**params).fit([wave(rng, 100)])


def test_planted_anomalies_stand_where_the_labels_say(rng):
    X = wave(rng, 4000, 2)[None]
    data = plant_anomalies(X, n=10, random_state=1)
    (series,) = data.series
    changed = (series.values != X[0]).any(axis=0)
    assert not changed[~series.labels].any()
    assert changed[series.labels].mean() > 0.9
    assert not series.labels[:2000].any()
    edges = np.flatnonzero(np.diff(np.r_[0, series.labels, 0]))
    assert sorted(edges[1::2] - edges[::2]) == [1, 1, *[48] * 8]
    with pytest.raises(ValueError, match="no room for 50 anomalies"):
        plant_anomalies(X, n=50)
    with pytest.raises(ValueError, match="names"):
        plant_anomalies(X, names=["odd"])
