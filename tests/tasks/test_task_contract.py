"""What every registered task promises; a new one adds its smallest data set here."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from softclt import SeriesClassifier, TS2Vec, evaluate
from softclt.data import AnomalyData, AnomalySeries, Dataset, simulated_states, waves
from softclt.tasks import tasks

MODEL = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=1, tau_instance=None)
OTHER_MODELS = {"supervised": SeriesClassifier(features=("base",))}


def peaks():
    values = np.sin(np.arange(300) / 4) + 0.1 * np.random.default_rng(0).normal(size=300)
    labels = np.arange(300) == 220
    return AnomalyData.of(
        [AnomalySeries("s", values + 5 * labels, np.arange(300) * 60, labels)], name="peak", delay=3
    )


def hourly():
    X = np.random.default_rng(0).normal(size=(1, 1, 400)).cumsum(axis=-1)
    times = pd.date_range("2020-01-01", periods=400, freq="h").to_numpy()
    return Dataset(X, meta={"name": "hourly", "times_train": times[None]})


CASES = {
    "alarms": (peaks, {"part": "all"}),
    "anomaly": (peaks, {"context": 20, "vus": False}),
    "classification": (lambda: waves(n_per_class=8, length=24, random_state=1), {}),
    "forecasting": (hourly, {"context": 20, "horizons": [2]}),
    "semi_supervised": (lambda: waves(n_per_class=8, length=24, random_state=1), {"shares": [25]}),
    "supervised": (lambda: waves(n_per_class=8, length=24, random_state=1), {"labels": 4}),
    "transfer": (
        lambda: waves(n_per_class=8, length=24, random_state=1),
        {"source": "synthetic/waves", "mode": "probe"},
    ),
    "windows": (lambda: simulated_states(6, 200, segment=20), {"window": 20}),
}


def own_tasks():
    return [name for name in tasks.names() if tasks[name].__module__.startswith("softclt.")]


def test_every_task_is_here():
    assert sorted(CASES) == own_tasks()


@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_gives_the_same_scores(name):
    if name == "anomaly":
        pytest.importorskip("statsmodels", reason="the protocol needs the `data` extra")
    if name == "alarms":
        pytest.importorskip("aeon", reason="the area under the curve needs the `data` extra")
    make, options = CASES[name]
    model = OTHER_MODELS.get(name, MODEL)
    first, second = (evaluate(name, clone(model), make(), seed=3, **options) for _ in range(2))
    timed = {name for name in first.metrics if name.startswith("seconds")}
    np.testing.assert_equal(
        {k: v for k, v in first.metrics.items() if k not in timed},
        {k: v for k, v in second.metrics.items() if k not in timed},
    )
    assert first.metrics
