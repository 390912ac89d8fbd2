"""Curves over the share of labels."""

import pytest

from softclt.tasks import Result

pytest.importorskip("matplotlib", reason="figures need the `report` extra")

from softclt.reports.figures import label_curves, share_figure


def result(seed, dataset="ucr/Wafer", row="soft", **metrics):
    return Result(
        task="transfer", dataset=dataset, fingerprint="", method="ts2vec", params={},
        tau_choice="hard", seed=seed, configuration=row, metrics=metrics,
    )  # fmt: skip


def results():
    made = []
    for seed in (0, 1):
        for row, gain in (("hard", 0), ("soft", 9)):
            scores = {f"{share:g}.accuracy": (share + 2 * seed + gain) / 200 for share in (2.5, 50)}
            other = {"2.5.HAR-A.accuracy": 0.1, "50.f1": 0.2, "accuracy": 0.3}
            made.append(result(seed, row=row, **scores | other))
    return made


def test_scores_are_gathered_by_set_row_and_share():
    curves = label_curves(results())
    assert list(curves) == ["ucr/Wafer"]
    assert curves["ucr/Wafer"]["soft"] == {2.5: [0.0575, 0.0675], 50.0: [0.295, 0.305]}


def test_lines_are_means_over_seeds_in_per_cent():
    figure = share_figure(results())
    (ax,) = figure.axes
    lines = {c.get_label(): c.lines[0] for c in ax.containers}
    assert list(lines) == ["hard", "soft"]
    assert lines["soft"].get_xdata().tolist() == [2.5, 50.0]
    assert lines["soft"].get_ydata().tolist() == pytest.approx([6.25, 30.0])
    assert ax.get_ylabel() == "accuracy in per cent"


def test_every_data_set_has_a_panel():
    made = [*results(), result(0, "ucr/FordB", **{"10.accuracy": 0.5, "20.accuracy": 0.6})]
    assert [ax.get_title() for ax in share_figure(made).axes] == ["ucr/Wafer", "ucr/FordB"]


def test_no_name_is_cut_off_however_long_it_is():
    rows = [f"a row with quite a long name, number {n}" for n in range(5)]
    scores = {"10.accuracy": 0.5, "20.accuracy": 0.6}
    figure = share_figure([result(0, row=row, **scores) for row in rows])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == rows
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_results_without_several_shares_are_refused():
    with pytest.raises(ValueError, match=r"'accuracy' for several shares.*'10\.accuracy'"):
        share_figure([result(0, accuracy=0.5), result(0, **{"100.accuracy": 0.5})])
