"""The estimator: what it forecasts, how wide its intervals are, what it refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import softclt
from softclt import Forecaster, TS2Vec
from softclt.forecasting import CALENDAR, calendar_features

TINY = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "tau_instance": None}


def tiny(**params):
    return TS2Vec(**TINY | params)


def forecaster(**params):
    return Forecaster(tiny(), **{"horizon": 12, "context": 40, "random_state": 0} | params)


def daily(n_series=1, n_channels=1, days=30, noise=0.1, seed=0):
    """Hourly series ``(N, D, T)`` with a day's wave, and their times."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    level = rng.uniform(5, 50, size=(n_series, n_channels, 1))
    phase = rng.uniform(0, 6, size=(n_series, n_channels, 1))
    X = level * (1 + 0.3 * np.sin(2 * np.pi * hours / 24 + phase))
    times = np.datetime64("2024-01-01", "ns") + hours * np.timedelta64(1, "h")
    return X + noise * level * 0.3 * rng.normal(size=X.shape), times


def test_a_wave_goes_on_beyond_its_end():
    X, times = daily(3, 2, noise=0.0)
    known, ahead = X[..., :-12], X[..., -12:]
    forecast = forecaster().fit(known, times=times[:-12]).predict()
    assert forecast.shape == (3, 2, 12)
    scale = known.std(axis=-1, keepdims=True)
    assert np.abs((forecast - ahead) / scale).max() < 0.1


def test_a_shorter_horizon_is_the_beginning_of_the_longer():
    X, times = daily()
    fitted = forecaster().fit(X, times=times)
    np.testing.assert_array_equal(fitted.predict(5), fitted.predict()[..., :5])
    with pytest.raises(ValueError, match=r"fit with Forecaster\(horizon=13\)"):
        fitted.predict(13)


def test_series_of_other_units_have_forecasts_in_their_own():
    X, times = daily(2)
    X[1] = X[0] * 1000 + 5000
    forecast = forecaster(lags=24).fit(X, times=times).predict()
    # The encoder sees the levels, so the second is not the first to the last digit.
    np.testing.assert_allclose(forecast[1], forecast[0] * 1000 + 5000, rtol=0.1)


@pytest.mark.slow
def test_intervals_hold_about_their_share_of_new_values():
    inside = []
    for seed in range(6):
        X, times = daily(4, days=40, noise=0.5, seed=seed)
        fitted = forecaster(coverage=0.8).fit(X[..., :-12], times=times[:-12])
        low, high = fitted.predict_interval()
        assert (low < fitted.predict()).all()
        assert (fitted.predict() < high).all()
        inside.append(((low <= X[..., -12:]) & (X[..., -12:] <= high)).mean())
    assert 0.7 < np.mean(inside) < 0.9  # 288 values


def test_wider_coverage_is_wider():
    X, times = daily(2, noise=0.5)
    fitted = forecaster().fit(X, times=times)
    half, most = (np.subtract(*fitted.predict_interval(coverage=c)[::-1]) for c in (0.5, 0.95))
    assert (half < most).all()
    with pytest.raises(ValueError, match="held-out errors"):
        fitted.predict_interval(coverage=1.0)


def test_missing_values_change_a_forecast_little():
    X, times = daily(2, noise=0.0)
    whole = forecaster().fit(X, times=times).predict()
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    holes = forecaster().fit(X, times=times).predict()
    assert np.isfinite(holes).all()
    assert np.abs(holes - whole).max() < 0.5 * np.nanstd(X, axis=-1).min()


def test_series_of_different_lengths_end_where_they_end():
    X, times = daily(2, noise=0.0)
    short = [X[0], X[1][:, :-100]]
    fitted = forecaster().fit(short, times=times)
    truth = X[1][:, -100:-88]
    assert np.abs(fitted.predict()[1] - truth).max() < 0.2 * X[1].std()
    ends = fitted.future_times()
    assert ends[0, 0] - times[-1] == np.timedelta64(1, "h")
    assert ends[1, 0] == times[-100]


def test_the_model_sees_the_calendar_as_far_as_it_recurs():
    X, times = daily(n_channels=2)  # 30 days, of which four fifths are fitted on
    fitted = forecaster().fit(X, times=times)
    assert fitted.calendar_ == ["minute", "hour", "weekday"]
    assert fitted.model_.n_features_in_ == 5
    years = np.datetime64("2000-01-01", "ns") + np.arange(X.shape[-1]) * np.timedelta64(7, "D")
    assert forecaster().fit(X, times=years).calendar_ == list(CALENDAR)


def test_without_dates_or_wish_there_is_no_calendar():
    X, times = daily(n_channels=2)
    assert forecaster(calendar=False).fit(X, times=times).model_.n_features_in_ == 2
    assert forecaster().fit(X, times=np.arange(X.shape[-1])).model_.n_features_in_ == 2
    assert forecaster().fit(X).model_.n_features_in_ == 2


def test_a_fitted_model_with_all_of_the_calendar_gets_it():
    X, times = daily()
    x = np.concatenate([X, calendar_features(times)[None]], axis=1)
    model = tiny(random_state=3).fit(x)
    assert Forecaster(model, horizon=12).fit(X, times=times).calendar_ == list(CALENDAR)


def test_a_fitted_model_is_used_as_it_is():
    X, times = daily()
    model = tiny(random_state=3).fit(X)
    fitted = Forecaster(model, horizon=12).fit(X, times=times)
    assert fitted.model_ is model
    with pytest.raises(ValueError, match="fitted with 1 channel"):
        Forecaster(model, horizon=12).fit(np.concatenate([X, X], axis=1))


def test_the_same_seed_gives_the_same_forecast():
    X, times = daily(noise=0.3)
    first, second = (forecaster().fit(X, times=times).predict() for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_the_future_has_no_effect_on_the_rows_before_it():
    """A forecast from the end of a series does not change when another series goes on."""
    X, times = daily(1, noise=0.3)
    fitted = forecaster().fit(X, times=times)
    x = fitted._with_calendar(X)
    whole = fitted.model_.encode(x, level="timestamp", causal=True, context=40)
    part = fitted.model_.encode(x[..., :300], level="timestamp", causal=True, context=40)
    np.testing.assert_allclose(whole[:, :300], part, atol=1e-5)


def test_uneven_times_reach_the_model_and_go_on_by_the_usual_gap():
    X, times = daily()
    uneven = times + np.where(
        np.arange(len(times)) % 5 == 0, np.timedelta64(20, "m"), np.timedelta64(0)
    )
    fitted, even = (forecaster().fit(X, times=t) for t in (uneven, times))
    assert fitted.future_times()[0, 0] - uneven[-1] == np.timedelta64(1, "h")
    hour = fitted._with_calendar(X)
    first, second = (f.model_.transform(hour) for f in (fitted, even))
    assert np.abs(first - second).max() > 1e-6


def test_months_go_on_from_month_to_month():
    months = pd.date_range("2000-01-01", periods=200, freq="MS").to_numpy()
    X = np.sin(np.arange(200) * 2 * np.pi / 12)[None]
    ends = forecaster().fit(X, times=months).future_times(3)
    assert ends[0].astype("datetime64[D]").astype(str).tolist() == [
        "2016-09-01",
        "2016-10-01",
        "2016-11-01",
    ]


def test_the_errors_of_the_simple_ways_are_those_of_plain_loops():
    X, times = daily(noise=0.5)
    fitted = forecaster().fit(X, times=times)
    t = X.shape[-1]
    n_train = t - max(int(np.ceil(0.2 * t)), 24)
    y = (X[0, 0] - X[0, 0, :n_train].mean()) / X[0, 0, :n_train].std()
    naive, seasonal = [], []
    for origin in range(n_train, t - 12):
        for h in range(1, 13):
            naive.append(abs(y[origin + h] - y[origin]))
            seasonal.append(abs(y[origin + h] - y[origin + h - 24]))
    assert fitted.validation_["naive"] == pytest.approx(np.mean(naive))
    assert fitted.validation_["seasonal"] == pytest.approx(np.mean(seasonal))
    assert fitted.validation_["mae"] < fitted.validation_["naive"]


X_FINE, TIMES = daily()


@pytest.mark.parametrize(
    ("X", "times", "message"),
    [
        (X_FINE[..., :60], None, "has 60 steps.*at least 68"),
        (np.full((1, 400), 7.0), None, "constant"),
        (np.full((1, 400), np.nan), None, "missing"),
        (X_FINE, TIMES[::-1], "earlier than"),
        (X_FINE, np.sort(np.r_[TIMES[:-1], TIMES[5]]), "has the time of"),
        (X_FINE, TIMES[:-1], "times has shape"),
        (X_FINE, np.array(["x"] * X_FINE.shape[-1]), "no dates"),
    ],
)
def test_what_cannot_be_forecast_is_refused_with_the_reason(X, times, message):
    with pytest.raises(ValueError, match=message):
        forecaster().fit(X, times=times)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"horizon": 0}, "horizon"),
        ({"coverage": 1.5}, "coverage"),
        ({"intervals": "normal"}, "intervals"),
        ({"alphas": ()}, "alphas"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        forecaster(**params).fit(X_FINE)


def test_it_is_a_scikit_learn_estimator_and_public():
    assert softclt.Forecaster is Forecaster
    copy = clone(forecaster(lags=3))
    assert copy.get_params()["lags"] == 3
    assert copy.get_params()["model__depth"] == 2
    with pytest.raises(Exception, match="not fitted"):
        copy.predict()


def test_a_series_that_begins_late_is_forecast_too():
    X, times = daily(2)
    X[1, :, :600] = np.nan
    forecast = forecaster().fit(X, times=times).predict()
    assert np.isfinite(forecast).all()


def test_a_channel_without_values_is_refused_in_words():
    X, _ = daily(2, 2)
    X[1, 0] = np.nan
    with pytest.raises(ValueError, match="series 1 of X has no step at which all its channels"):
        forecaster().fit(X)


def test_a_fit_that_fails_leaves_a_fitted_one_as_it_was(monkeypatch):
    X, times = daily()
    fitted = forecaster().fit(X, times=times)
    before = fitted.predict(), fitted.future_times()

    def fail(*args, **kwargs):
        raise RuntimeError("in the middle")

    monkeypatch.setattr("softclt.forecasting.forecaster.forecast_channel", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        fitted.fit(daily(days=40, n_series=2)[0])
    np.testing.assert_array_equal(fitted.predict(), before[0])
    np.testing.assert_array_equal(fitted.future_times(), before[1])
