"""The published preparation of series: halves, differencing, scaling; and grids for users."""

import numpy as np
import pytest

from softclt.anomaly.grid import in_words, on_grid
from softclt.anomaly.protocol import automatic_lag, is_stationary, prepare, prepare_all
from softclt.data import AnomalyData, AnomalySeries

stattools = pytest.importorskip("statsmodels.tsa.stattools", reason="needs the `data` extra")


def series(values, name="a"):
    values = np.atleast_2d(values)
    steps = values.shape[1]
    return AnomalySeries(name, values, np.arange(steps) * 60, np.arange(steps) == steps - 2)


@pytest.mark.filterwarnings("ignore:adfuller")
@pytest.mark.parametrize("seed", range(6))
def test_the_number_of_lags_is_statsmodels(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 400))
    x = np.convolve(rng.normal(size=n), np.ones(1 + seed), "same") + np.sin(np.arange(n) / 5)
    assert automatic_lag(x) == stattools.adfuller(x, autolag="AIC")[2]


def test_noise_is_stationary_and_a_random_walk_is_not(rng):
    assert is_stationary(rng.normal(size=300))
    assert not is_stationary(np.cumsum(rng.normal(size=300)))
    assert is_stationary(np.full(300, 5.0))
    assert is_stationary(np.full(5, np.nan))


def test_a_random_walk_is_differenced_and_the_cut_stays_at_its_time(rng):
    walk = np.cumsum(rng.normal(size=400))
    own = series(walk)
    prepared = prepare(own)
    assert prepared.n_differences == 1
    assert prepared.values.shape == (1, 399)
    assert prepared.times[prepared.n_train] == own.times[200]
    np.testing.assert_array_equal(prepared.labels, own.labels[1:])
    change = np.diff(walk)
    first = change[:199]
    np.testing.assert_allclose(prepared.values[0], (change - first.mean()) / first.std())


def test_what_is_stationary_is_scaled_by_its_first_half_alone(rng):
    noise = rng.normal(size=300)
    noise[200:] *= 100
    noise[10] = np.nan
    prepared = prepare(series(noise))
    assert prepared.n_differences == 0
    assert np.nanmean(prepared.training) == pytest.approx(0.0)
    assert np.nanstd(prepared.training) == pytest.approx(1.0)
    assert np.isnan(prepared.values[0, 10])
    assert np.nanstd(prepared.values[:, 200:]) > 50


def test_a_constant_series_is_left_as_zeros():
    np.testing.assert_array_equal(prepare(series(np.full(100, 7.0))).values, np.zeros((1, 100)))


def test_series_are_prepared_once_for_all_models(rng):
    data = AnomalyData.of([series(rng.normal(size=100))], name="made")
    assert prepare_all(data) is prepare_all(data)


def test_regular_times_are_left_alone_and_missing_ones_filled():
    values = np.arange(5.0)[None]
    times = np.array(
        ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"], "M8[ns]"
    )
    assert on_grid(values, times).words == ""
    with_gap = on_grid(values[:, [0, 1, 2, 4]], times[[0, 1, 2, 4]])
    np.testing.assert_array_equal(with_gap.values, [[0, 1, 2, np.nan, 4]])
    np.testing.assert_array_equal(with_gap.times, times)
    assert with_gap.words == "1 missing step was left empty"


def test_irregular_times_keep_their_own_name_and_rows_of_one_step_are_averaged():
    times = np.array([0.0, 10.0, 20.5, 30.0, 33.0, 50.0, 60.0, 70.0])
    gridded = on_grid(np.arange(8.0)[None], times)
    assert gridded.values[0, 3] == 3.5
    assert gridded.times[3] == 30.0
    assert gridded.words == (
        "the times are irregular: 8 rows were put on a grid of 10, 8 steps, 1 of them empty"
    )


def test_times_that_no_grid_fits_are_refused():
    times = np.concatenate([np.arange(100.0), [1e6]]) + np.linspace(0, 0.4, 101)
    with pytest.raises(ValueError, match=r"too uneven: steps of .* aggregate them"):
        on_grid(np.zeros((1, 101)), times)


def test_steps_are_named_as_a_person_would():
    dates = np.array(["2024-01-01"], "M8[ns]")
    words = [in_words(s * 1e9, dates) for s in (300, 7200, 86400, 1.5)]
    assert words == ["5 min", "2 h", "1 d", "1.5 s"]
