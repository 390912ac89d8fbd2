"""Seasonal series are told from others, and the ADF test is not what tells them."""

import builtins

import numpy as np
import pytest

from softclt.data import seasonality
from softclt.data.seasonality import adf_p_value, seasonality_strength


@pytest.fixture
def walk(rng):
    return rng.normal(size=(8, 1, 200)).cumsum(axis=-1)


def sines(rng, noise):
    phases = rng.uniform(0, 6, size=(8, 1, 1))
    return np.sin(2 * np.pi * np.arange(200) / 25 + phases) + noise * rng.normal(size=(8, 1, 200))


def test_a_season_is_strong_whatever_the_trend_and_level(rng):
    X = sines(rng, 0.1)
    trend = 0.05 * np.arange(200) + 100
    assert seasonality_strength(X) > 0.95
    assert seasonality_strength(X + trend) == pytest.approx(seasonality_strength(X), abs=0.03)


def test_strength_falls_with_noise_as_its_share_of_the_variance(rng):
    assert seasonality_strength(sines(rng, np.sqrt(0.5))) == pytest.approx(0.5, abs=0.12)


def test_noise_a_constant_and_a_single_bump_are_not_seasonal(rng):
    bump = np.exp(-((np.arange(200) - 100.0) ** 2) / 200)[None, None]
    assert seasonality_strength(rng.normal(size=(8, 1, 200))) < 0.3
    assert seasonality_strength(np.full((3, 1, 50), 7.0)) == 0.0
    assert seasonality_strength(bump) < 0.3


def test_periods_that_fit_in_fewer_than_three_times_do_not_count():
    slow = np.sin(2 * np.pi * np.arange(200) / 160)[None, None]
    assert seasonality_strength(slow) < 0.3
    assert seasonality_strength(np.ones((1, 1, 11))) == 0.0


def test_missing_values_are_left_out(rng):
    X = sines(rng, 0.1)
    X[:, :, 175:] = np.nan
    assert seasonality_strength(X) > 0.95


def test_the_adf_test_finds_a_walk_and_takes_a_pure_season_for_stationary(rng, walk):
    pytest.importorskip("statsmodels")
    assert adf_p_value(walk) > 0.05
    assert adf_p_value(rng.normal(size=(5, 1, 100))) < 0.01
    assert adf_p_value(sines(rng, 0.1)) < 0.05  # why it is no measure of seasons
    assert adf_p_value(np.ones((2, 1, 30))) == 0.0


def test_only_twenty_series_spread_over_the_set_are_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(seasonality, "_strength", lambda x: seen.append(x[0]) or 0.5)
    assert seasonality_strength(np.arange(160.0)[:, None, None]) == 0.5
    assert (len(seen), min(seen), max(seen)) == (20, 0, 159)


def test_without_statsmodels_the_adf_test_says_what_to_install(walk, monkeypatch):
    real = builtins.__import__

    def fake(name, *args, **kwargs):
        if name.startswith("statsmodels"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fake)
    with pytest.raises(ModuleNotFoundError, match=r"softclt\[data\]"):
        adf_p_value(walk)
