"""From results to rows: names, controls, probes, repeats, gaps."""

from dataclasses import replace

import pytest

from fake_results import fake_results, result
from softclt.reports.rows import tabulate


def plain(row, seed=0, dataset="A", accuracy=0.5, **more):
    return result(dataset, row, seed, accuracy, configuration="", control="", **more)


def test_a_suite_gives_rows_by_configuration_in_its_order():
    (table,) = tabulate(fake_results())
    assert [row.name for row in table.rows] == [
        *("untrained", "hard", "soft", "soft train", "soft oracle")
    ]
    assert [row.kind for row in table.rows] == ["untrained", "hard", "soft", "soft", "soft"]
    assert table.row("soft").control == "hard"
    assert [row.oracle for row in table.rows] == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("suite", "names"),
    [
        ("quick", ["untrained · svm", "soft · ridge", "mine", "another"]),
        ("mine", ["mine", "soft · ridge", "another", "untrained · svm"]),
    ],
)
def test_rows_of_a_shipped_suite_are_in_its_order_whoever_ended_first(suite, names):
    came = ["mine", "soft · ridge", "another", "untrained · svm"]
    (table,) = tabulate([result("A", name, 0, 0.5, suite=suite) for name in came])
    assert [row.name for row in table.rows] == names


def test_failed_runs_are_kept_apart():
    (table,) = tabulate(fake_results())
    assert {(r.dataset, r.configuration) for r in table.failed} == {("ucr/SetL", "soft")}
    assert "ucr/SetL" not in table.row("soft").scores
    assert "ucr/SetL" in table.datasets


def test_without_configuration_the_kind_is_the_name_and_the_control_is_found():
    (table,) = tabulate([plain("untrained"), plain("hard"), plain("soft")])
    assert [row.name for row in table.rows] == ["untrained", "hard", "soft"]
    assert table.row("soft").control == "hard"


def test_models_of_one_kind_are_told_apart_by_as_little_as_needed():
    def soft(tau, scale, kind="soft"):
        params = {"tau_instance": tau, "scale": scale, "max_iter": None, "device": "cpu"}
        return plain(kind, params=params)

    results = [soft(5.0, None), soft(20.0, None), soft(20.0, "channel")]
    results += [soft(None, None, "hard"), soft(None, "channel", "hard")]
    (table,) = tabulate(results)
    assert {row.name: row.control for row in table.rows} == {
        "soft (tau_instance 5)": "hard (scale null)",
        "soft (tau_instance 20, scale null)": "hard (scale null)",
        "soft (scale channel)": "hard (scale channel)",
        "hard (scale null)": "",
        "hard (scale channel)": "",
    }


def test_taus_chosen_for_each_set_are_one_row():
    results = [
        plain("soft train", dataset=d, params={"tau_instance": t, "max_iter": None})
        for d, t in (("A", 5.0), ("B", 20.0))
    ]
    (table,) = tabulate(results)
    assert [row.name for row in table.rows] == ["soft"]


def test_seeds_and_devices_do_not_make_rows():
    results = [plain("hard", seed, params={"random_state": seed, "device": d, "max_iter": None})
               for seed, d in enumerate(("cpu", "cuda"))]  # fmt: skip
    (table,) = tabulate(results)
    assert table.rows[0].scores == {"A": {0: 0.5, 1: 0.5}}


def test_every_probe_is_a_row_with_a_control_of_its_own_probe():
    scores = {"svm.accuracy": 0.8, "ridge.accuracy": 0.9, "ridge.f1_macro": 0.1}
    results = [
        result("A", row, 0, 0.0, metrics=scores, probe="svm+ridge") for row in ("hard", "soft")
    ]
    results.append(result("A", "soft train", 0, 0.7, probe="ridge"))  # its control has two probes
    (table,) = tabulate(results)
    assert {row.name: (row.probe, row.control) for row in table.rows} == {
        "hard · svm": ("svm", ""),
        "hard · ridge": ("ridge", ""),
        "soft · svm": ("svm", "hard · svm"),
        "soft · ridge": ("ridge", "hard · ridge"),
        "soft train": ("ridge", "hard · ridge"),
    }
    (single,) = tabulate(results[:2], "svm.accuracy")
    assert [row.name for row in single.rows] == ["hard", "soft"]


def test_points_of_a_grid_are_known_by_the_row_that_chose_among_them():
    names = ["soft grid(5, 0.5)", "soft grid(20, 1) · svm", "soft grid train", "lonely(3)"]
    (table,) = tabulate([result("A", name, 0, 0.5) for name in names])
    assert [row.point for row in table.rows] == [True, True, False, False]


def test_the_later_of_two_equal_runs_counts():
    early = result("A", "hard", 0, 0.1)
    late = replace(early, metrics={"accuracy": 0.9}, created="2027-01-01T00:00:00+00:00")
    for order in ([early, late], [late, early]):
        (table,) = tabulate(order)
        assert table.rows[0].scores == {"A": {0: 0.9}}
        assert table.replaced == 1


def test_a_score_that_is_no_number_is_a_failed_run():
    (table,) = tabulate([result("A", "hard", 0, float("nan")), result("A", "hard", 1, 0.5)])
    assert table.rows[0].scores == {"A": {1: 0.5}}
    assert [r.seed for r in table.failed] == [0]


def test_suites_and_tasks_have_tables_of_their_own():
    results = [result("A", "hard", 0, 0.5, suite=s, task=t) for s, t in (("x", "a"), ("y", "a"))]
    assert [(t.suite, t.task) for t in tabulate(results)] == [("x", "a"), ("y", "a")]


def test_an_unknown_metric_is_told_the_known_ones():
    with pytest.raises(ValueError, match="the metric 'mse'; there are accuracy"):
        tabulate(fake_results(), "mse")


def test_a_task_names_its_metric_and_what_stands_beside_its_models():
    errors = {"mse": 0.5, "24.mse": 0.4, "ridge.mse": 0.3, "naive.mse": 0.9}
    results = [
        replace(r, task="forecasting", metrics=errors) for r in fake_results() if not r.error
    ]
    (table,) = tabulate(results)
    assert table.metric == "mse"
    ridge = table.row("ridge on last values")
    assert ridge is not None
    assert set(ridge.scores) == {r.dataset for r in results}
    assert all(found == {0: 0.3} for found in ridge.scores.values())
    assert table.row("last day") is None  # no result has it


def test_results_of_a_task_that_is_not_installed_are_read_by_accuracy():
    (table,) = tabulate([replace(r, task="somebody's") for r in fake_results()])
    assert table.metric == "accuracy"
