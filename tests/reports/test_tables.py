"""Mean, spread and differences, done by hand."""

import math

import pytest
from rich.console import Console

from softclt.reports.tables import (
    Summary,
    comparison_table,
    configuration,
    mean_and_spread,
    paired_difference,
)
from softclt.tasks import Result


def result(dataset, kind, seed, accuracy):
    return Result(
        task="classification",
        dataset=dataset,
        fingerprint="",
        method="ts2vec",
        params={"max_iter": 0 if kind == "untrained" else None},
        tau_choice="hard" if kind == "hard" else "default",
        seed=seed,
        metrics={"accuracy": accuracy},
    )


@pytest.fixture
def results():
    scores = {"untrained": (0.5, 0.5), "hard": (0.8, 0.9), "soft": (0.9, 0.98)}
    return [
        result(dataset, kind, seed, scores[kind][seed])
        for dataset in ("A", "B")
        for kind in scores
        for seed in (0, 1)
    ]


def test_configurations_are_told_apart(results):
    assert [configuration(r) for r in results[:6:2]] == ["untrained", "hard", "soft"]


def test_mean_and_spread_over_seeds(results):
    summary = mean_and_spread(results)["A", "hard"]
    assert summary.mean == pytest.approx(0.85)
    assert summary.spread == pytest.approx(math.sqrt(0.005))
    assert summary.text() == "85.0 ± 7.1"


def test_differences_are_paired_by_seed(results):
    difference = paired_difference(results, "soft", "hard")["A"]
    assert difference.mean == pytest.approx(0.09)
    assert difference.spread == pytest.approx(math.sqrt(0.0002))
    assert difference.text(sign=True) == "+9.0 ± 1.4"


def test_one_seed_has_no_spread():
    assert Summary.of([0.75]).text() == "75.0"


def test_a_seed_without_partner_is_left_out(results):
    lonely = [*results, result("A", "soft", 7, 0.0)]
    assert paired_difference(lonely, "soft", "hard")["A"].n == 2


def test_the_table_has_a_row_a_data_set_and_their_mean(results):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison_table(results))
    rows = [line for line in console.export_text().splitlines() if "│" in line]
    assert len(rows) == 3
    assert "94.0" in rows[2]
    assert "+9.0" in rows[2]


def test_an_unknown_metric_is_told_the_known_ones(results):
    with pytest.raises(ValueError, match="no metric 'mse'; it has accuracy"):
        mean_and_spread(results, "mse")
