"""The published forecasting protocol, against plain loops and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from softclt import TS2Vec, evaluate
from softclt.bench.running import make_plan, run_plan
from softclt.bench.suites import read_suite
from softclt.data import Dataset
from softclt.forecasting.protocol import (
    Parts,
    embedding_features,
    horizons_of,
    lag_features,
    parts_of,
    prepare,
    read_horizons,
    repeat_last,
)
from softclt.forecasting.ridge import ALPHAS

TINY = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 1, "tau_instance": None}


def hourly(n_channels=2, length=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(1, n_channels, length)), axis=-1) / 5
    X += 3 * np.sin(np.arange(length) * 2 * np.pi / 24)
    times = pd.date_range("2020-01-01", periods=length, freq="h").to_numpy()
    return Dataset(X, meta={"name": "hourly", "times_train": times[None]})


def published_ridge(Z, y, parts, horizon, drop):
    """The protocol as written down: rows of each part, a ridge for each penalty."""

    def samples(part, drop=0):
        span = parts.span(part)
        steps = range(span.start + drop, span.stop - horizon)
        rows = [
            (Z[n, t], y[n, :, t + 1 : t + 1 + horizon].T.ravel())
            for n in range(len(y))
            for t in steps
        ]
        return tuple(np.array(side) for side in zip(*rows, strict=True))

    X, Y = samples("train", drop)
    X_valid, Y_valid = samples("valid")
    X_test, Y_test = samples("test")
    best = None
    for alpha in ALPHAS:
        ridge = Ridge(alpha=alpha).fit(X, Y)
        error = ridge.predict(X_valid) - Y_valid
        score = np.sqrt((error**2).mean()) + np.abs(error).mean()
        if best is None or score < best[0]:
            best = score, alpha, ridge
    error = best[2].predict(X_test) - Y_test
    return (error**2).mean(), np.abs(error).mean(), best[1]


@pytest.mark.parametrize("n_series", [1, 3])
def test_scores_equal_the_protocol_written_as_loops_for_every_horizon(rng, n_series):
    y = rng.normal(size=(n_series, 2, 200)).cumsum(axis=-1)
    Z = np.concatenate([y.swapaxes(1, 2), rng.normal(size=(n_series, 200, 3))], axis=-1)
    parts, horizons = Parts(120, 160, 200), (2, 5, 11)
    found = read_horizons(embedding_features(Z), y, parts, horizons, context=20)
    assert set(found) == set(horizons)
    for horizon, score in found.items():
        mse, mae, alpha = published_ridge(Z, y, parts, horizon, drop=20)
        assert score.alpha == alpha
        assert score.mse == pytest.approx(mse, rel=1e-8)
        assert score.mae == pytest.approx(mae, rel=1e-8)


def test_at_most_so_many_rows_are_drawn_and_always_the_same(rng):
    y = rng.normal(size=(4, 1, 300)).cumsum(axis=-1)
    features, parts = embedding_features(y.swapaxes(1, 2)), Parts(180, 240, 300)
    options = {"horizons": (3, 6), "context": 10}
    first, second, all_rows = (
        read_horizons(features, y, parts, max_rows=cap, **options) for cap in (50, 50, 10**6)
    )
    assert first == second
    assert first[3].mse != all_rows[3].mse
    assert first[3].mse == pytest.approx(all_rows[3].mse, rel=0.2)


def test_lag_features_are_the_last_values_of_a_step(rng):
    y = rng.normal(size=(2, 1, 30))
    rows = lag_features(y, 4)(np.array([1, 0]), np.array([3, 10]))
    np.testing.assert_array_equal(rows, [y[1, 0, :4], y[0, 0, 7:11]])


@pytest.mark.parametrize("period", [1, 4])
def test_naive_errors_equal_plain_loops(rng, period):
    y = rng.normal(size=(2, 3, 60))
    parts, horizon = Parts(30, 40, 60), 7
    errors = []
    for t in range(40, 60 - horizon):
        for h in range(1, horizon + 1):
            same_phase = next(s for s in range(t, -1, -1) if (t + h - s) % period == 0)
            errors.append(y[:, :, t + h] - y[:, :, same_phase])
    score = repeat_last(y, parts, horizon, period)
    assert score.mse == pytest.approx(np.square(errors).mean())
    assert score.mae == pytest.approx(np.abs(errors).mean())


def test_parts_and_horizons_are_the_published_ones():
    assert parts_of("forecasting/ETTm1-univariate", 69680) == (34560, 46080, 57600)
    assert parts_of("forecasting/WTH", 35064) == (21038, 28051, 35064)
    assert horizons_of("forecasting/ETTh2") == (24, 48, 168, 336, 720)
    assert horizons_of("forecasting/ETTm1") == (24, 48, 96, 288, 672)
    with pytest.raises(ValueError, match="needs 14400"):
        parts_of("forecasting/ETTh1", 1000)


def test_values_and_calendar_are_scaled_by_the_training_part():
    data = hourly()
    found = prepare(data)
    assert found.parts == (600, 800, 1000)
    assert found.x.shape == (1, 2 + 7, 1000)
    assert found.period == 24
    theirs = StandardScaler().fit(data.X_train[0, :, :600].T).transform(data.X_train[0].T).T
    np.testing.assert_allclose(found.y[0], theirs)
    np.testing.assert_array_equal(found.x[:, :2], found.y)
    hour = found.x[0, 3, :600]
    assert (hour.mean(), hour.std()) == pytest.approx((0, 1))
    assert (found.x[0, 2] == 0).all()  # always minute 0


def test_times_that_are_no_dates_give_no_calendar():
    data = hourly()
    data.meta["times_train"] = np.arange(1000.0)[None]
    assert prepare(data).x.shape == (1, 2, 1000)
    assert prepare(data).period is None


def test_evaluate_says_errors_of_each_horizon_and_of_what_does_not_learn():
    result = evaluate("forecasting", TS2Vec(**TINY), hourly(), horizons=[6, 12], context=30)
    metrics = result.metrics
    for kind in ("", "naive.", "seasonal.", "ridge."):
        for name in ("mse", "mae"):
            own = [metrics[f"{kind}{horizon}.{name}"] for horizon in (6, 12)]
            assert metrics[f"{kind}{name}"] == pytest.approx(np.mean(own))
    assert metrics["ridge.mse"] < metrics["naive.mse"]
    assert result.probe == "ridge"
    assert set(result.seconds) == {"baselines", "fit", "encode", "ridge"}


def test_a_model_is_fitted_on_the_training_part_alone():
    seen = []

    class Watched(TS2Vec):
        def fit(self, X, *args, **kwargs):
            seen.append(np.array(X))
            return super().fit(X, *args, **kwargs)

    data = hourly()
    evaluate("forecasting", Watched(**TINY), data, horizons=[6], context=30)
    np.testing.assert_array_equal(seen[0], prepare(data).x[..., :600])


def test_what_the_protocol_cannot_score_is_refused():
    model = TS2Vec(**TINY)
    with pytest.raises(ValueError, match="does not fit"):
        evaluate("forecasting", model, hourly(), horizons=[500], context=30)
    holes = hourly()
    holes.X_train[0, 0, 5] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        evaluate("forecasting", model, holes, horizons=[6], context=30)
    with pytest.raises(TypeError, match="no encode"):
        evaluate("forecasting", Ridge(), hourly())


@pytest.mark.parametrize("length", [40, 150, 330])
def test_series_shorter_than_the_context_are_refused_in_our_words(length, rng):
    data = Dataset(rng.normal(size=(2, 1, length)), meta={"name": "short"})
    with pytest.raises(ValueError, match="a horizon of 672 steps does not fit"):
        evaluate("forecasting", TS2Vec(**TINY), data)
    with pytest.raises(ValueError, match=r"does not fit.*a shorter context"):
        evaluate("forecasting", TS2Vec(**TINY), data, horizons=[6], context=200)


@pytest.mark.parametrize("horizons", [[], 24, "24", [2.5], [[3]], [None], [0]])
def test_horizons_are_whole_numbers_of_steps(horizons):
    with pytest.raises(ValueError, match="horizons is"):
        evaluate("forecasting", TS2Vec(**TINY), hourly(), horizons=horizons, context=30)


def test_a_suite_of_forecasts_runs_and_goes_on(tmp_path):
    data = hourly(n_channels=1, length=400)
    table = pd.DataFrame({"date": data.meta["times_train"][0], "OT": data.X_train[0, 0]})
    table.to_csv(tmp_path / "mine.csv", index=False)
    (tmp_path / "mine.toml").write_text("""
[mine]
task = "forecasting"
data = ["./mine.csv"]
seeds = 1
params = { output_dims = 4, hidden_dims = 4, depth = 1, max_iter = 1, tau_instance = "none" }
options = { horizons = [4, 8], context = 20 }
[mine.configurations]
hard = { params = { tau_temporal = "none" } }
soft = { control = "hard" }
""")
    suite, out = read_suite(str(tmp_path / "mine.toml")), tmp_path / "mine.jsonl"
    results = run_plan(make_plan(suite, out), out)
    assert [(r.configuration, r.error) for r in results] == [("hard", ""), ("soft", "")]
    assert results[0].metrics["ridge.4.mse"] == results[1].metrics["ridge.4.mse"]
    assert make_plan(suite, out).n_todo == 0


@pytest.mark.parametrize("name", ["ett", "weather"])
def test_the_shipped_suites_have_hard_and_soft_with_and_without_the_instance_loss(name):
    rows = {row.name: row.model for row in read_suite(name).rows}
    assert {(m.tau_temporal is None, m.lam) for m in rows.values()} == {
        (True, 0.5),
        (False, 0.5),
        (True, 0.0),
        (False, 0.0),
    }
