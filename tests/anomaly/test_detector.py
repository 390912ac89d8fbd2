"""The detector on planted anomalies: scikit-learn's conventions, missing values, streams."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import naive
from softclt import AnomalyDetector, TS2Vec
from softclt.anomaly.scorers import BankScorer, adjusted, default_model

PLANTED = 420
CONTEXT = 20


def wave(rng, steps=600, n_channels=1):
    t = np.arange(steps) + 7 * np.arange(n_channels)[:, None]
    return np.sin(t / 4) + 0.1 * rng.normal(size=t.shape)  # (D, T)


def tiny(**params):
    settings = {"output_dims": 8, "hidden_dims": 8, "depth": 3, "max_iter": 5, "lam": 0.0}
    return TS2Vec(**settings | {"tau_instance": None, "random_state": 0} | params)


def detector(**params):
    settings = {"scorer": "masked", "context": CONTEXT, "random_state": 0}
    return AnomalyDetector(tiny(), **settings | params)


@pytest.fixture(params=[1, 2])
def channels(request):
    return request.param


@pytest.mark.parametrize("scorer", ["masked", "bank"])
def test_a_planted_peak_is_found_and_is_the_strangest_step(scorer, channels, rng):
    found = detector(scorer=scorer).fit(wave(rng, n_channels=channels)[None])
    series = wave(rng, n_channels=channels)
    series[:, PLANTED] += 4
    X = series[None]
    scores = found.anomaly_scores(X)
    assert scores.shape == (1, 600)
    assert np.nanargmax(scores[0]) == PLANTED
    np.testing.assert_array_equal(found.score_samples(X), -scores)
    predicted = found.predict(X)
    assert set(np.unique(predicted)) == {-1, 1}
    assert predicted[0, PLANTED] == -1
    assert (predicted == -1).mean() < 0.05
    np.testing.assert_array_equal(predicted == -1, found.decision_function(X) < 0)
    assert any(alarm.start <= PLANTED <= alarm.end for alarm in found.alarms(X)[0])


@pytest.mark.parametrize("scorer", ["masked", "bank"])
def test_a_stream_gives_what_all_steps_at_once_give(scorer, channels, rng):
    found = detector(scorer=scorer).fit(wave(rng, n_channels=channels)[None])
    series = wave(rng, steps=120, n_channels=channels)
    series[:, 70] += 4
    series[0, 50:53] = np.nan
    stream = found.stream()
    pushed = [stream.push(x) for x in series.T]
    scores = found.anomaly_scores(series[None])[0]
    np.testing.assert_allclose([score for score, _ in pushed], scores, rtol=1e-4, atol=1e-5)
    alarms = found.predict(series[None])[0] == -1
    assert [alarm for _, alarm in pushed] == alarms.tolist()
    assert alarms[70]


def test_missing_steps_have_no_score_and_raise_no_alarm(rng):
    found = detector().fit(wave(rng)[None])
    series = wave(rng)
    series[0, 100:130] = np.nan
    scores = found.anomaly_scores(series[None])[0]
    assert np.isnan(scores[:21]).all()
    assert np.isnan(scores[100:130]).all()
    assert np.isfinite(scores[21:100]).all()
    assert np.isfinite(scores[130:]).all()
    assert (found.predict(series[None])[0, 100:130] == 1).all()


def test_series_of_different_lengths_are_scored_up_to_their_ends(rng):
    series = [wave(rng, 300)[0], wave(rng, 200)[0]]
    found = detector().fit(series)
    scores = found.anomaly_scores(series)
    assert scores.shape == (2, 300)
    assert np.isnan(scores[1, 200:]).all()
    np.testing.assert_allclose(scores[1, :200], found.anomaly_scores([series[1]])[0], rtol=1e-4)


def test_scores_see_nothing_of_the_future(rng):
    found = detector().fit(wave(rng)[None])
    series = wave(rng, 200)[None]
    whole = found.anomaly_scores(series)[0, :120]
    np.testing.assert_allclose(found.anomaly_scores(series[..., :120])[0], whole, rtol=1e-4)


def test_the_same_seed_gives_the_same_scores_and_another_does_not(rng):
    X = wave(rng, 300)[None]
    first, again, other = (
        clone(detector(random_state=seed)).fit(X).anomaly_scores(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first[0, 30:], other[0, 30:])


def test_a_frozen_model_is_not_trained_again_and_the_default_is_the_papers(rng):
    X = wave(rng, 300)[None]
    model = tiny().fit(X)
    found = AnomalyDetector(FrozenEstimator(model), scorer="masked", context=CONTEXT).fit(X)
    np.testing.assert_array_equal(
        found.scorer_.model_.last_step_change(X, context=5), model.last_step_change(X, context=5)
    )
    assert found.scorer_.model_.estimator is model
    default = default_model(3)
    assert (default.lam, default.tau_instance, default.random_state) == (0.0, None, 3)
    assert default.tau_temporal is not None


def test_errors_are_adjusted_as_the_plain_loop_does(rng):
    errors = rng.uniform(1, 2, size=80)
    errors[[0, 30, 31]] = np.nan
    np.testing.assert_allclose(adjusted(errors, 21), naive.adjusted_errors(errors.tolist(), 21))
    np.testing.assert_array_equal(adjusted(errors, 0), errors)
    assert np.isnan(adjusted(errors[:10], 21)).all()


def test_a_bank_keeps_no_more_than_it_may_and_measures_to_the_nearest(rng):
    series = wave(rng, 200)
    bank = BankScorer(tiny(), context=CONTEXT, k=3, max_size=50, random_state=0).fit([series] * 2)
    assert bank.bank_.shape == (50, 8)
    Z = bank.model_.encode(series[None], level="timestamp", causal=True, context=CONTEXT)[0]
    distances = np.sort(np.linalg.norm(Z[:, None] - bank.bank_[None], axis=-1), axis=1)
    np.testing.assert_allclose(
        bank.score(series), distances[:, :3].mean(axis=1), rtol=1e-3, atol=1e-5
    )


def test_a_long_series_is_embedded_in_stretches_that_fit_together(rng, monkeypatch):
    series = wave(rng, 200)
    bank = BankScorer(tiny(), context=CONTEXT, random_state=0).fit([series])
    at_once = bank.score(series)
    monkeypatch.setattr("softclt.anomaly.scorers._STEPS_AT_ONCE", 64)
    np.testing.assert_allclose(bank.score(series), at_once, rtol=1e-4, atol=1e-5)


def test_the_bank_finds_the_nearest_neighbours(rng):
    from softclt.anomaly.scorers import _neighbours

    bank, vectors = rng.normal(size=(40, 5)), rng.normal(size=(7, 5))
    distances = np.sort(np.linalg.norm(vectors[:, None] - bank[None], axis=-1), axis=1)
    np.testing.assert_allclose(_neighbours(bank, 4)(vectors), distances[:, :4].mean(1), rtol=1e-4)


def test_bad_input_is_answered_clearly(rng):
    X = wave(rng, 300)[None]
    with pytest.raises(ValueError, match="unknown scorer 'mask'; known: bank"):
        detector(scorer="mask").fit(X)
    with pytest.raises(ValueError, match="unknown threshold 'four'; known: conformal, dspot"):
        detector(threshold="four").fit(X)
    with pytest.raises(ValueError, match="the scorer 'masked' has no setting 'k'"):
        detector(scorer_params={"k": 3}).fit(X)
    with pytest.raises(ValueError, match="series 1 has no step at which all its channels"):
        detector().fit(np.concatenate([X, np.full_like(X, np.nan)]))
    with pytest.raises(ValueError, match=r"context is 0"):
        detector(context=0).fit(X)
    found = detector(scorer="fft").fit(X)
    with pytest.raises(ValueError, match="'fft' needs the whole series"):
        found.stream()
    with pytest.raises(ValueError, match=r"x has shape \(2,\); expected \(1,\)"):
        detector().fit(X).stream().push([1.0, 2.0])
