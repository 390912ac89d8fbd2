"""The table on the terminal: mean, spread and differences, done by hand."""

import pytest
from rich.console import Console

from fake_results import result
from softclt.reports.tables import comparison_table


@pytest.fixture
def results():
    scores = {"untrained": (0.5, 0.5), "hard": (0.8, 0.9), "soft": (0.9, 0.98)}
    return [
        result(dataset, kind, seed, scores[kind][seed], configuration="", control="")
        for dataset in ("A", "B")
        for kind in scores
        for seed in (0, 1)
    ]


def lines(results):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison_table(results))
    return [line for line in console.export_text().splitlines() if "│" in line]


def test_the_table_has_a_row_a_data_set_and_their_mean(results):
    first, second, mean = lines(results)
    for cell in ("A", "50.0 ± 0.0", "85.0 ± 7.1", "94.0 ± 5.7", "+9.0 ± 1.4"):
        assert cell in first
    assert second.replace("B", "A") == first
    for cell in ("mean", "94.0", "+9.0"):
        assert cell in mean


def test_a_seed_without_partner_counts_for_its_mean_but_not_for_the_difference(results):
    lonely = [*results, result("A", "soft", 7, 0.0, configuration="", control="")]
    assert "+9.0 ± 1.4" in lines(lonely)[0]
    assert "62.7" in lines(lonely)[0]


def test_a_row_that_lacks_a_data_set_has_no_mean(results):
    rest = [r for r in results if (r.dataset, r.tau_choice) != ("B", "default")]
    mean = lines(rest)[2]
    assert "85.0" in mean
    assert "94.0" not in mean
    assert "+9.0" not in mean
