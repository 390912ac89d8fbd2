"""The anomaly task on planted peaks, and its suites."""

import numpy as np
import pytest

from softclt import TS2Vec, evaluate
from softclt.bench.suites import read_suite
from softclt.data import AnomalyData, AnomalySeries, waves
from softclt.tasks.kept import keeping

pytest.importorskip("statsmodels", reason="the protocol needs the `data` extra")
pytest.importorskip("aeon", reason="VUS needs the `data` extra")

TINY = {"output_dims": 8, "hidden_dims": 8, "depth": 3, "max_iter": 5, "tau_instance": None}
PEAKS = (330, 460)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    series = []
    for k in range(2):
        values = np.sin(np.arange(500) / (4 + k)) + 0.1 * rng.normal(size=500)
        labels = np.zeros(500, dtype=bool)
        for peak in PEAKS:
            values[peak] += 5
            labels[peak : peak + 3] = True
        series.append(AnomalySeries(f"s{k}", values, np.arange(500) * 60, labels))
    return AnomalyData.of(series, name="made/peaks", delay=3)


def model(**params):
    return TS2Vec(**TINY | {"lam": 0.0} | params)


def run(data, **options):
    return evaluate("anomaly", model(), data, seed=0, context=20, **options)


def test_planted_peaks_are_found_in_the_second_half(data):
    result = run(data)
    assert set(result.metrics) == {"f1", "precision", "recall", "pr_auc", "vus_pr"}
    assert result.metrics["recall"] == 1.0
    assert result.metrics["f1"] > 0.6
    assert 0 < result.metrics["vus_pr"] <= 1
    assert set(result.seconds) == {"prepare", "fit", "score", "metrics"}
    assert result.probe == "masked"
    assert result.options["setting"] == "normal"


def test_a_cold_start_learns_from_other_data_and_judges_all_but_a_tenth(data, monkeypatch):
    asked = []

    def other(name, split):
        asked.append((name, split))
        return waves(n_per_class=4, length=60, random_state=0)

    monkeypatch.setattr("softclt.tasks.anomaly.load_once", other)
    result = run(data, setting="cold")
    assert asked == [("ucr/FordA", "train")]
    assert result.metrics["recall"] == 1.0


def test_a_later_alarm_counts_with_a_longer_delay_alone(data):
    late = [
        AnomalySeries(one.name, one.values, one.times, np.roll(one.labels, -2))
        for one in data.series
    ]
    late = AnomalyData.of(late, name="made/late", delay=1)
    assert run(late, vus=False).metrics["recall"] == 0.0
    assert run(late, vus=False, delay=2).metrics["recall"] == 1.0


@pytest.mark.parametrize("scorer", ["sr", "spot"])
def test_a_baseline_trains_no_model_and_is_run_once_for_all_seeds(scorer, data):
    with keeping():
        first, second = (
            evaluate("anomaly", model(), data, seed=seed, scorer=scorer, threshold="own")
            for seed in (0, 1)
        )
    assert "fit" not in first.seconds
    assert first.metrics["recall"] > 0
    assert first.metrics == second.metrics
    assert first.seconds == second.seconds


def test_a_bank_finds_peaks_too(data):
    assert run(data, scorer="bank", vus=False).metrics["recall"] == 1.0


def test_what_cannot_be_run_is_refused_before_training(data):
    with pytest.raises(ValueError, match="synthetic/waves has no label at every step"):
        evaluate("anomaly", model(), "synthetic/waves")
    with pytest.raises(ValueError, match="setting is 'warm'; expected one of 'normal', 'cold'"):
        run(data, setting="warm")
    with pytest.raises(ValueError, match="'masked' makes no decision of its own"):
        run(data, threshold="own")


@pytest.mark.parametrize("name", ["anomaly-kpi", "anomaly-nab"])
def test_the_suites_have_soft_rows_with_hard_controls_and_the_baselines(name):
    suite = read_suite(name)
    rows = {row.name: row for row in suite.rows}
    assert suite.task == "anomaly"
    for soft, hard in (("soft", "hard"), ("soft, cold", "hard, cold")):
        assert rows[soft].control == hard
        own, control = rows[soft].model.get_params(), rows[hard].model.get_params()
        assert {key for key in own if own[key] != control[key]} == {"tau_temporal"}
        assert own["lam"] == 0.0
    assert rows["soft, instance loss"].model.lam == 0.5
    used = {row.options.get("scorer") for row in suite.rows}
    assert {"sr", "fft", "twitter-ad", "luminol", "spot", "dspot", "donut", "bank"} <= used
