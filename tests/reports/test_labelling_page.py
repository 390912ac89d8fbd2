"""The page about labels: what it says, and that it opens quietly, wide and narrow."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pages need the `report` extra")
pytest.importorskip("jinja2", reason="pages need the `report` extra")

from softclt.data import SeriesTable
from softclt.data.label_tables import labels_of
from softclt.few_labels import LabelStudy, Predictions
from softclt.reports.labelling import (
    Labelling,
    accuracy_words,
    gain_words,
    labelling_report,
    summary,
)
from softclt.reports.labelling_figures import MOST_CLASSES, certain_figure
from softclt.reports.page import html

NONE = np.array([], dtype=int)


def a_study(errors, n=60, n_labels=60):
    """Of n series, the first are wrong: as many as each size's error says."""
    sizes = np.array([6, 12, 24, 48])
    right = np.arange(n) >= np.round(np.array(errors) * n)[:, None]
    right = np.repeat(right[:, None].astype(float), 3, axis=1)
    return LabelStudy(sizes, right, np.arange(n), 5, n_labels, NONE)


@pytest.fixture
def found(rng):
    series = SeriesTable(rng.normal(size=(80, 6, 30)), ids=[f"s{i}" for i in range(80)], source="x")
    labels = [None] * 20 + ["idle", "<run>", "walk"] * 20
    return Labelling(
        series=series,
        predictions=Predictions(rng.dirichlet(np.ones(3), size=80)),
        given=labels_of(labels, "few.csv"),
        trained_on=series,
        study=a_study([0.4, 0.3, 0.2, 0.1]),
        next_rows=np.array([4, 2]),
        learned="ts2vec with svm",
        command="softclt classify x --labels few.csv --out p.csv",
    )


def section(document, title):
    (one,) = [s for s in document.sections if s.title == title]
    return one


def test_the_summary_answers_how_good_how_much_more_and_which(found):
    first, second, third = summary(found)
    assert "about 90 %, by cross-validation on 60 labelled series (95 % interval" in first
    assert second.startswith(
        "10 more labels, of series drawn at random, would add about 0.9 points"
    )
    assert third == "Worth labelling next, the first first: s4 and s2."


def test_too_few_labels_are_said_to_be_too_few():
    few = a_study([0.4, 0.3, 0.2, 0.1], n=6, n_labels=6)
    assert accuracy_words(few).startswith("Accuracy: too few labels to tell. Of 6 labelled series")
    assert "too few labels to tell; no class has two" in accuracy_words(None)
    assert "too few labels to tell" in gain_words(few)
    assert "too few labels to tell" in gain_words(None)


def test_labels_that_were_never_found_again_are_named(found):
    (grid,) = section(labelling_report(found), "Labels to look at again").grids
    assert [line.cells[0].text for line in grid.lines] == [f"s{20 + i}" for i in range(6)]
    assert grid.lines[0].cells[1].text == "idle"


def test_counts_of_predictions_add_up(found):
    (grid,) = section(labelling_report(found), "What came out").grids
    assert sum(line.cells[2].value for line in grid.lines) == 80
    assert [line.cells[0].text for line in grid.lines] == ["<run>", "idle", "walk"]


def test_many_classes_draw_the_largest_and_no_series_twice(rng):
    n = MOST_CLASSES + 3
    p = np.eye(n)[np.arange(4 * n) % n] * 0.9 + 0.1 / n
    series = SeriesTable(rng.normal(size=(4 * n, 1, 9)))
    figure = certain_figure(series, Predictions(p), [str(i) for i in range(n)])
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]
    assert len(titles) == len(set(titles)) == 4 * MOST_CLASSES
    assert "3 more are in the table" in figure.get_suptitle()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_opens_quietly(found, browser, tmp_path, width, dark):
    page = tmp_path / "report.html"
    page.write_text(html(labelling_report(found)), encoding="utf-8")
    with browser.open(page, width=width, dark=dark) as tab:
        tab.assert_quiet()
        assert not tab.scrolls_sideways()
        assert "<run>" in tab.text("main")
        assert tab.evaluate("document.querySelectorAll('figure.picture svg').length") == 3
