"""Detectors and forecasters on short and odd series: a whole answer, or a refusal in words."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from softclt import AnomalyDetector, Forecaster, TS2Vec
from softclt.anomaly.scorers import scorers
from softclt.anomaly.thresholds import thresholds

FEW = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
KINDS = ("walk", "noise", "constant", "steps", "spike", "large", "small", "offset")


def model():
    small = {"output_dims": 4, "hidden_dims": 4, "depth": 1, "max_iter": 1}
    return TS2Vec(**small, tau_instance=None, device="cpu", random_state=0)


@st.composite
def series(draw, shortest=1, longest=90):
    """Series ``(N, D, T)`` of a kind, some values of which may be missing."""
    n, d, t = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(shortest, longest))
    kind, share = draw(st.sampled_from(KINDS)), draw(st.sampled_from([0.0, 0.0, 0.1, 0.6]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    X = rng.normal(size=(n, d, t))
    if kind == "walk":
        X = X.cumsum(axis=-1)
    elif kind in ("constant", "spike"):
        X[:] = 3.0
        if kind == "spike":
            X[..., t // 2] = 1e6
    elif kind == "steps":
        X = np.floor(np.arange(t) / 7) + 0 * X
    elif kind != "noise":
        X = X * {"large": 1e100, "small": 1e-100, "offset": 1.0}[kind] + 1e9 * (kind == "offset")
    if share:
        X[rng.random(size=X.shape) < share] = np.nan
    return X


def tried(work, *args, **options):
    """What comes of it, and the words of a refusal."""
    try:
        return work(*args, **options), ""
    except ValueError as error:
        return None, str(error)


@FEW
@given(
    X=st.one_of(series(longest=30), series(60, 120)),
    new=st.one_of(series(longest=30), series(40, 60)),
    scorer=st.sampled_from(scorers.names()),
    threshold=st.sampled_from(thresholds.names()),
)
@example(X=np.ones((1, 1, 12)), new=np.ones((1, 1, 3)), scorer="masked", threshold="running")
@example(X=np.eye(60)[None, :1], new=np.eye(9)[None, :1], scorer="luminol", threshold="running")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_detector_scores_some_step_of_each_series_or_says_why_not(X, new, scorer, threshold):
    params = {"donut": {"window": 12, "epochs": 1}}.get(scorer)
    detector = AnomalyDetector(
        model(), scorer=scorer, threshold=threshold, context=10, scorer_params=params
    ).set_params(random_state=0)
    fitted, words = tried(detector.fit, X)
    assert fitted or len(words) > 30
    for one in (X, new) if fitted else ():
        if one.shape[1] != X.shape[1]:
            continue
        scores, words = tried(detector.anomaly_scores, one)
        if scores is None:
            assert "series" in words
            continue
        assert scores.shape == one.shape[::2]
        assert not np.isinf(scores).any()
        assert np.isfinite(scores).any(axis=1).all()
        assert set(np.unique(detector.predict(one))) <= {-1, 1}
        for alarms in detector.alarms(one):
            assert all(0 <= a.start <= a.end < one.shape[-1] for a in alarms)
            assert all(np.isfinite(a.severity) for a in alarms)


@FEW
@given(
    X=st.one_of(series(longest=40), series(70, 160), series(70, 160)),
    horizon=st.integers(1, 6),
    context=st.integers(1, 20),
    lags=st.integers(0, 12),
    dated=st.booleans(),
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_forecast_is_finite_and_inside_its_interval_or_refused(X, horizon, context, lags, dated):
    forecaster = Forecaster(model(), horizon=horizon, context=context, lags=lags)
    start = np.datetime64("2024-01-01", "h")
    times = start + np.arange(X.shape[-1]) * np.timedelta64(1, "h") if dated else None
    fitted, words = tried(forecaster.fit, X, times=times)
    if fitted is None:
        assert len(words) > 30
        return
    ahead = forecaster.predict()
    assert ahead.shape == (*X.shape[:2], horizon)
    assert np.isfinite(ahead).all()
    assert np.isfinite(forecaster.validation_["mae"])
    interval, words = tried(forecaster.predict_interval)
    if interval is None:
        assert "held-out errors" in words
        return
    low, high = interval
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (low <= ahead).all()
    assert (ahead <= high).all()
