"""Reports: what is compared, what is marked, and the same numbers in every format."""

import csv
import io
import itertools
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softclt
from fake_results import DATASETS, fake_results, result
from softclt.reports import paper
from softclt.reports.comparison import critical_difference
from softclt.reports.report import build_report, read_folder, write_report

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def report():
    return build_report(fake_results(), command="softclt report results/", drawn=False)


def sections(report):
    return {section.title: section for section in report.document.sections}


def grid(report, section, number=0):
    found = sections(report)[section].grids[number]
    names = [column.name for column in found.columns]
    return {line.cells[0].text: dict(zip(names, line.cells, strict=True)) for line in found.lines}


def test_the_summary_sets_every_soft_row_against_its_control(report):
    table = grid(report, "Summary")
    assert list(table) == ["soft", "soft train", "soft oracle †"]
    (analysis,) = report.analyses
    soft = {r.dataset: [] for r in fake_results() if r.dataset != "ucr/SetL"}
    for r in fake_results():
        if r.configuration == "soft" and not r.error:
            (hard,) = [
                h for h in fake_results()
                if (h.configuration, h.dataset, h.seed) == ("hard", r.dataset, r.seed)
            ]  # fmt: skip
            soft[r.dataset].append(r.metrics["accuracy"] - hard.metrics["accuracy"])
    expected = np.mean([np.mean(values) for values in soft.values()])
    one = analysis.differences[0]
    assert one.mean == pytest.approx(expected)
    assert one.low < expected < one.high
    assert table["soft"]["difference"].text == f"{100 * expected:+.2f}"
    assert table["soft"]["sets"].text == "11"
    assert table["soft"]["verdict"].text == "better"
    assert table["soft"]["won / tied / lost"].text == "11 / 0 / 0"


def test_the_summary_speaks_of_taus_and_uncertainty(report):
    text = " ".join([*sections(report)["Summary"].text, *sections(report)["Summary"].points])
    for words in ("12 data sets", "3 seeds", "default", "never a score to claim", "95 % interval"):
        assert words in text


def test_the_summary_counts_one_thing_as_one():
    results = [result("ucr/Only", "hard", 0, 0.8)]
    text = sections(build_report(results, drawn=False))["Summary"].text[0]
    assert "1 configuration of ts2vec on 1 data set with 1 seed each" in text


def test_a_difference_of_nothing_is_called_so():
    rng = np.random.default_rng(1)
    pairs = [(dataset, row) for dataset in DATASETS for row in ("hard", "soft")]
    results = [result(*pair, 0, 0.8 + float(rng.normal(0, 0.02))) for pair in pairs]
    summary = sections(build_report(results, drawn=False))["Summary"]
    assert "the interval holds 0, so no difference is shown" in summary.points[0]


def test_of_many_rows_the_summary_tells_those_that_differ_and_counts_the_others():
    grid_rows = [f"soft({tau}, 1)" for tau in range(20)]
    gains = {row: 0.0005 * (k - 10) for k, row in enumerate(grid_rows)} | {grid_rows[7]: 0.1}
    results = [result(dataset, "hard", 0, 0.8) for dataset in DATASETS]
    for (i, dataset), row in itertools.product(enumerate(DATASETS), grid_rows):
        accuracy = 0.8 + gains[row] + 0.02 * (-1) ** i
        results.append(result(dataset, row, 0, accuracy, control="hard", tau_choice="fixed"))
    for dataset in DATASETS:
        results.append(result(dataset, "best", 0, 0.95, control="hard", tau_choice="oracle"))
    for dataset in DATASETS:  # a row that has the name of the grid
        results.append(result(dataset, "soft", 0, 0.9, tau_choice="fixed"))
    report = build_report(results, drawn=False)
    summary = sections(report)["Summary"]
    assert len(grid(report, "Summary")) == 22
    assert [point.split(":")[0] for point in summary.points[:2]] == [grid_rows[7], "soft"]
    assert "softness helps" in summary.points[0]
    assert summary.points[2].startswith("19 soft rows lie −0.50 to +0.45 points")
    assert "an upper bound" in summary.points[3]
    assert "20 rows of soft and soft: given beforehand" in " ".join(summary.text)


def test_of_many_rows_the_scatter_plot_shows_those_farthest_from_their_controls():
    rows = [f"soft({tau}, 1)" for tau in range(14)]
    gains = dict(zip(rows, [0.01, 0.02, 0.005, *([0.03] * 11)], strict=True))
    results = [result(dataset, "hard", 0, 0.8) for dataset in DATASETS]
    rng = np.random.default_rng(0)
    for dataset, row in itertools.product(DATASETS, rows):
        accuracy = 0.8 + gains[row] + float(rng.normal(0, 0.001))
        results.append(result(dataset, row, 0, accuracy, control="hard", tau_choice="fixed"))
    pictures = sections(build_report(results))["Figures"].pictures
    caption, figure = next(rest for title, *rest in pictures if title.endswith("set by set"))
    assert "Of 14 soft rows the 12 farthest from their controls are shown." in caption
    assert [ax.get_ylabel() for ax in figure.axes] == [rows[1], *rows[3:]]


@pytest.mark.parametrize(("n", "said"), [(1, "one data set shows"), (2, "two data sets show")])
def test_one_or_two_data_sets_show_nothing_however_alike_they_are(n, said):
    results = [
        result(dataset, row, 0, accuracy)
        for dataset in DATASETS[:n]
        for row, accuracy in (("hard", 0.8), ("soft", 0.7))
    ]
    summary = sections(build_report(results, drawn=False))["Summary"]
    assert not any("Wilcoxon" in note for note in summary.grids[0].notes)
    assert f"on {n} data set{'s' * (n > 1)}: {said} nothing." in summary.points[0]


def test_an_interval_of_two_sets_is_neither_drawn_nor_tested_and_costs_the_others_nothing():
    wide = [
        result(dataset, "soft train", 0, accuracy, suite="ucr")
        for dataset, accuracy in zip(DATASETS[:2], (0.1, 0.9), strict=True)
    ]
    results = [one for one in fake_results() if one.configuration in ("hard", "soft")]
    report = build_report(results + wide, drawn=False)
    table = grid(report, "Summary")
    interval = "95 % interval"
    assert (table["soft train"]["p"].text, table["soft"]["p"].text != "") == ("", True)
    assert "for 1 comparison." in " ".join(sections(report)["Summary"].grids[0].notes)
    assert table["soft train"]["verdict"].text == "two data sets show nothing"
    assert table["soft train"][interval].span is None
    assert max(np.abs(table["soft"][interval].span)) == pytest.approx(1.0)


def test_oracles_are_marked_in_every_table_and_neither_ranked_nor_tested(report):
    (analysis,) = report.analyses
    assert "soft oracle" not in analysis.ranks
    assert np.isnan([one.p for one in analysis.differences if one.row.oracle]).all()
    for section in report.document.sections:
        for one in section.grids:
            shown = [line for line in one.lines if line.cells[0].text.startswith("soft oracle")]
            shown += [column for column in one.columns if column.name.startswith("soft oracle")]
            for item in shown:
                assert item.kind == "oracle"
                assert any("never" in note or "not a score to claim" in note for note in one.notes)
    assert grid(report, "All rows")["soft oracle †"]["rank"].text == ""


def test_every_table_of_rows_says_how_taus_were_chosen(report):
    for section in report.document.sections:
        for one in section.grids:
            names = [column.name for column in one.columns]
            if names[0] == "row":
                assert "tau" in names
            if names[0] == "data set" and "fingerprint" not in names:
                assert all(c.below.startswith(("tau ", "− ")) for c in one.columns[1:])


def test_the_summary_names_the_criteria_that_chose_without_labels():
    results = [result(dataset, "hard", 0, 0.8) for dataset in DATASETS]
    for i, dataset in enumerate(DATASETS):
        how = {"criterion": "stability" if i else "neighbours"}
        results.append(result(dataset, "soft", 0, 0.8, tau_choice="unlabelled", options=how))
    text = " ".join(sections(build_report(results, drawn=False))["Summary"].text)
    assert "without labels, by neighbours and stability" in text


def test_means_are_over_the_sets_that_all_compared_rows_have(report):
    (analysis,) = report.analyses
    assert len(analysis.common) == 11
    note = sections(report)["All rows"].grids[0].notes[0]
    assert "11 data sets that all 4 compared rows have" in note
    assert grid(report, "Every data set")["ucr/SetL"]["soft"].text == ""


def test_a_row_with_few_sets_is_shown_but_costs_the_others_none():
    few = [
        replace(r, configuration="late") for r in fake_results()[:6] if r.configuration == "hard"
    ]
    report = build_report([*fake_results(), *few], drawn=False)
    (analysis,) = report.analyses
    assert len(analysis.common) == 11
    assert "late" not in analysis.ranks
    assert any("late (has 1 of 12" in n for n in sections(report)["All rows"].grids[0].notes)


def test_failed_and_missing_runs_are_listed(report):
    section = sections(report)["Failed and missing runs"]
    assert "soft lacks ucr/SetL." in section.points
    assert len(section.grids[0].lines) == 3
    assert section.grids[0].lines[0].cells[-1].text == "ValueError: the loss is no number"


def test_other_data_under_the_same_name_is_a_warning():
    results = [replace(r, fingerprint="other") if r.seed == 1 else r for r in fake_results()]
    points = sections(build_report(results, drawn=False))["Failed and missing runs"].points
    assert any("SetA was not the same data" in point for point in points)


def test_groups_of_data_sets_have_tables(report):
    table = grid(report, "Kinds of data sets")
    assert table["soft"]["Δ short"].text.startswith("+")
    assert table["hard"]["Δ short"].text == ""


def test_how_to_run_it_again(report):
    section = sections(report)["How to run it again"]
    assert section.code == ("softclt report results/",)
    facts = {line.cells[0].text: line.cells[1].text for line in section.grids[0].lines}
    assert facts["seeds"] == "0, 1, 2"
    assert facts["devices"] == "cpu"
    assert len(section.grids[1].lines) == 12


def test_published_rows_are_ranked_and_named_with_their_source(tmp_path):
    path = tmp_path / "peers.csv"
    path.write_text("d,Best,hard\n" + "".join(f"{d[4:]},99,1.5\n" for d in DATASETS))
    report = build_report(fake_results(), baselines=[path], drawn=False)
    (analysis,) = report.analyses
    assert analysis.ranks["Best"] == 1.0
    assert analysis.ranks["hard (peers.csv)"] == 6.0
    row = grid(report, "All rows")["Best"]
    assert row["source"].text == "peers.csv"
    assert row["tau"].text == "not stated"


def test_the_papers_value_stands_beside_ours(report):
    table = grid(report, "All rows")
    assert table["hard"]["paper"].text == "83.0"
    lines = sections(report)["All rows"].grids[1].lines
    assert [c.text for c in lines[0].cells[:4]] == ["Table 2, UCR", "TS2Vec", "83.0", "125"]
    assert "looks chosen on the test sets" in lines[1].cells[4].text


def test_suites_and_rows_that_stand_beside_the_paper_exist():
    file = Path(softclt.__file__).parent / "bench" / "suites.toml"
    suites = tomllib.loads(file.read_text(encoding="utf-8"))
    for name in paper._tables():
        known = suites[name]["configurations"]
        for entry in paper.printed(name):
            bases = [o.removesuffix(" train").removesuffix(" oracle").removesuffix(" unlabelled")
                     for o in entry.ours]  # fmt: skip
            assert set(bases) <= set(known), (name, entry)


def test_suites_are_filtered_and_an_unknown_one_is_told_the_known():
    results = fake_results("a") + fake_results("b")
    assert len(build_report(results, drawn=False).analyses) == 2
    assert len(build_report(results, suites=["b"], drawn=False).analyses) == 1
    with pytest.raises(ValueError, match="the suite c; there are a, b"):
        build_report(results, suites=["c"], drawn=False)


def test_errors_can_be_ranked_too():
    results = [
        replace(r, metrics={"mse": 1 - r.metrics["accuracy"]})
        for r in fake_results()
        if not r.error
    ]
    report = build_report(results, metric="mse", drawn=False)
    (analysis,) = report.analyses
    assert min(analysis.ranks, key=analysis.ranks.get) == "soft train"
    assert grid(report, "Summary")["soft"]["verdict"].text == "better"
    assert grid(report, "Summary")["soft"]["difference"].text.startswith("−0.0")


def test_only_failed_runs_still_make_a_report():
    report = build_report([result("A", "hard", 0, 0.0, error="it broke")], drawn=False)
    assert "Every run failed" in sections(report)["Summary"].text[0]


def test_no_results_are_an_error():
    with pytest.raises(ValueError, match="there are no results"):
        build_report([])


def test_all_formats_hold_the_same_numbers(report, tmp_path):
    for suffix in (".html", ".md", ".tex", ".csv"):
        write_report(report, tmp_path / f"report{suffix}")
    texts = {p.suffix: p.read_text(encoding="utf-8") for p in tmp_path.iterdir() if p.is_file()}
    wanted = grid(report, "Every data set")["ucr/SetC"]["soft train"].text
    assert wanted in texts[".html"]
    assert f"**{wanted}**" in texts[".md"]
    assert wanted.replace("±", r"$\pm$") in texts[".tex"]
    assert r"\textcolor{gray}" in texts[".tex"]
    assert r"\toprule" in texts[".tex"]
    lines = list(csv.DictReader(io.StringIO(texts[".csv"])))
    (line,) = [x for x in lines if (x["method"], x["dataset"]) == ("soft train", "ucr/SetC")]
    assert wanted.startswith(f"{100 * float(line['value']):.1f}")
    (mean,) = [x for x in lines if (x["method"], x["dataset"]) == ("soft train", "")]
    assert (mean["sets"], mean["control"], mean["tau_choice"]) == ("11", "hard", "train")


def test_a_report_of_one_run_can_be_the_baselines_of_the_next(report, tmp_path):
    write_report(report, tmp_path / "before.csv")
    again = build_report(fake_results(), baselines=[tmp_path / "before.csv"], drawn=False)
    (analysis,) = again.analyses
    old, new = analysis.table.row("hard (softclt)"), analysis.table.row("hard")
    assert old.mean("ucr/SetA") == pytest.approx(new.mean("ucr/SetA"), abs=1e-5)


def test_markdown_and_latex_bring_their_figures(tmp_path):
    pytest.importorskip("aeon")
    report = build_report(fake_results(), figures=[("Mine", "By hand.", "<svg><g/></svg>")])
    write_report(report, tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((r-figures/[^)]+)\)", text)
    assert len(links) == 4
    assert all((tmp_path / link).stat().st_size for link in links)


def test_without_aeon_the_report_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "aeon", None)
    monkeypatch.setitem(sys.modules, "aeon.visualisation", None)
    figures = sections(build_report(fake_results()))["Figures"]
    assert "pip install 'softclt[data]'" in figures.text[0]
    assert len(figures.pictures) == 2


def test_other_files_in_a_folder_are_passed_over(tmp_path, caplog):
    for i, r in enumerate(fake_results()[:4]):
        r.append_to(tmp_path / "deep" / f"{i % 2}.jsonl")
    (tmp_path / "speed.jsonl").write_text('{"seconds": 1}\n')
    assert len(read_folder(tmp_path)) == 4
    assert "speed.jsonl holds no results" in caplog.text
    assert len(read_folder(tmp_path / "deep" / "0.jsonl")) == 2


def test_the_diagram_has_the_ranks_of_the_table_where_seeds_in_another_order_tie():
    pytest.importorskip("aeon")
    seeds = [0.966958211856171, 0.9689018464528668, 0.9659863945578231]
    orders = {"hard": seeds, "soft": [seeds[0], seeds[2], seeds[1]]}  # sums differ in the last bit
    orders["untrained"] = [value - 0.5 for value in seeds]
    results = [
        result(dataset, row, seed, value + 0.01 * (row == "soft") * (dataset == DATASETS[0]))
        for dataset in DATASETS[:4]
        for row, values in orders.items()
        for seed, value in enumerate(values)
    ]
    (analysis,) = build_report(results, drawn=False).analyses
    assert analysis.ranks == {"hard": 1.625, "soft": 1.375, "untrained": 3.0}
    drawn = {text.get_text() for text in critical_difference(analysis).axes[0].texts}
    assert {"1.6250", "1.3750"} <= drawn
