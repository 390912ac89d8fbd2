"""The page about a classifier of labelled series: what it says, and that it opens quietly."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pages need the `report` extra")
pytest.importorskip("jinja2", reason="pages need the `report` extra")

from softclt.classification import LeftOut
from softclt.data import SeriesTable
from softclt.data.label_tables import labels_of
from softclt.few_labels import Predictions
from softclt.reports.classifying import LISTED, Classifying, classifying_report, summary
from softclt.reports.page import html


@pytest.fixture
def found(rng):
    series = SeriesTable(rng.normal(size=(60, 6, 30)), ids=[f"s{i}" for i in range(60)], source="x")
    given = labels_of(["idle", "<run>", "walk"] * 20, "few.csv")
    said = np.eye(3)[given.codes] * 0.8 + 0.2 / 3
    said[:6] = np.roll(said[:6], 1, axis=1)
    return Classifying(
        series=series,
        predictions=Predictions(said),
        given=given,
        trained_on=series,
        left_out=LeftOut(given.classes, given.codes, said, np.arange(60)),
        learned="SeriesClassifier, features base of base",
        command="softclt classify x --label kind --out p.csv",
    )


def section(document, title):
    (one,) = [s for s in document.sections if s.title == title]
    return one


def test_the_summary_says_how_good_it_is_and_what_is_in_doubt(found):
    accuracy, confused, doubts = summary(found)
    assert accuracy.startswith("Accuracy: about 90.0 %, by leaving out each of 60 labelled series")
    assert "2 of 20 series" in confused
    assert doubts.endswith("s0, s1, s2, s3, s4 and 1 more.")


def test_rows_of_the_confusion_add_up_to_the_class(found):
    confusion, by_class = section(classifying_report(found), "How good is it?").grids
    assert [sum(cell.value for cell in line.cells[1:]) for line in confusion.lines] == [20] * 3
    assert [line.cells[2].text for line in by_class.lines] == ["90", "90", "90"]


def test_doubtful_labels_are_listed_up_to_a_number(found, rng):
    (grid,) = section(classifying_report(found), "Labels to look at again").grids
    assert [line.cells[0].text for line in grid.lines] == [f"s{i}" for i in range(6)]
    worse = np.roll(found.left_out.probabilities, 1, axis=1)
    left_out = LeftOut(found.given.classes, found.given.codes, worse, np.arange(60))
    document = classifying_report(Classifying(**vars(found) | {"left_out": left_out}))
    assert len(section(document, "Labels to look at again").grids[0].lines) == LISTED


def test_one_label_a_class_says_that_nothing_can_be_told(found):
    none = LeftOut(
        found.given.classes, found.given.codes, found.left_out.probabilities, np.array([], int)
    )
    document = classifying_report(Classifying(**vars(found) | {"left_out": none}))
    assert "too few labels to tell" in section(document, "Summary").points[0]
    assert "Labels to look at again" not in [s.title for s in document.sections]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_opens_quietly(found, browser, tmp_path, width, dark):
    page = tmp_path / "report.html"
    page.write_text(html(classifying_report(found)), encoding="utf-8")
    with browser.open(page, width=width, dark=dark) as tab:
        tab.assert_quiet()
        assert not tab.scrolls_sideways()
        assert "<run>" in tab.text("main")
        assert tab.evaluate("document.querySelectorAll('figure.picture svg').length") == 3
