"""Thresholds against plain loops, and step by step against all at once."""

import numpy as np
import pytest

import naive
from softclt.anomaly.thresholds import new_threshold, thresholds

SETTINGS = {"running": {"warmup": 30}}


@pytest.fixture
def scores(rng):
    values = rng.normal(size=400)
    values[::17] = np.nan
    values[350] = 30.0
    return values


def test_sigma_is_mean_and_four_deviations_of_what_is_behind_the_first_22(scores):
    rule = new_threshold("sigma").fit([scores])
    known = [s for s in scores[22:].tolist() if not np.isnan(s)]
    mean = sum(known) / len(known)
    deviation = (sum((s - mean) ** 2 for s in known) / len(known)) ** 0.5
    assert rule.levels(scores[:3]) == pytest.approx([mean + 4 * deviation] * 3)


@pytest.mark.parametrize("warmup", [0, 40, None])
def test_running_levels_are_those_of_the_plain_loop(scores, warmup):
    levels = new_threshold("running", {"warmup": warmup}).levels(scores)
    expected = naive.running_levels(scores.tolist(), 4.0, 40 if warmup is None else warmup)
    np.testing.assert_allclose(levels, expected, rtol=1e-10)
    assert np.isnan(new_threshold("running").levels(np.full(5, np.nan))).all()


@pytest.mark.parametrize("name", thresholds.names())
def test_every_threshold_has_the_same_levels_step_by_step(name, scores, rng):
    rule = new_threshold(name, SETTINGS.get(name)).fit([rng.normal(size=300)])
    push = rule.stream()
    one_by_one = [push(float(score)) for score in scores]
    np.testing.assert_allclose(rule.levels(scores), one_by_one, rtol=1e-9)


@pytest.mark.parametrize("name", thresholds.names())
def test_every_threshold_is_exceeded_by_a_peak_and_by_few_others(name, scores, rng):
    rule = new_threshold(name).fit([rng.normal(size=2000)])
    above = scores > rule.levels(scores)
    assert above[350]
    assert above.sum() <= 3


def test_levels_know_nothing_of_the_last_call(scores, rng):
    rule = new_threshold("spot").fit([rng.normal(size=500)])
    np.testing.assert_array_equal(rule.levels(scores), rule.levels(scores))


def test_too_few_training_scores_are_refused():
    with pytest.raises(ValueError, match=r"0 scored training step.*train on longer series"):
        new_threshold("sigma").fit([np.zeros(22)])


def test_a_running_threshold_of_a_stream_needs_a_warmup():
    with pytest.raises(ValueError, match="no length to take a tenth of"):
        new_threshold("running").stream()


def test_an_unknown_setting_is_told_the_known_ones():
    with pytest.raises(ValueError, match="no setting 'sigma'; known: sigmas, skip"):
        new_threshold("sigma", {"sigma": 3})
