"""The page in a browser: it opens from disk, sorts, and stays within its width."""

import pytest

from fake_results import DATASETS, fake_results
from softclt.reports.report import build_report, write_report

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

TABLE = "[aria-label^='Every data set'] table"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    peers = folder / "peers.csv"
    peers.write_text("d,A <b>bold</b> name\n" + "".join(f"{d},0.7\n" for d in DATASETS))
    extra = ("Drawn by hand", "Not ours.", '<svg viewBox="0 0 9 9"><rect id="r" width="9"/></svg>')
    report = build_report(fake_results(), baselines=[peers], figures=[extra])
    write_report(report, folder / "report.html")
    return folder / "report.html"


def column(tab, name):
    """Texts of a column of the table of all sets, from top to bottom."""
    return tab.evaluate(
        f'(() => {{ const t = document.querySelector("{TABLE}");'
        " const at = [...t.tHead.rows[0].cells].findIndex("
        f"c => c.querySelector('span').textContent === '{name}');"
        " return [...t.tBodies[0].rows].map(r => r.cells[at].textContent.trim()); })()"
    )


def press_heading(tab, name):
    tab.evaluate(
        f'(() => {{ const t = document.querySelector("{TABLE}");'
        " const head = [...t.tHead.rows[0].cells].find("
        f"c => c.querySelector('span').textContent === '{name}');"
        " document.querySelector('#pressed')?.removeAttribute('id');"
        " head.querySelector('button').id = 'pressed'; })()"
    )
    return "#pressed"


def number(text):
    return float(text.split("±")[0].replace("−", "-"))


def test_the_page_asks_nobody_for_anything_and_raises_nothing(browser, page):
    with browser.open(page) as tab:
        tab.assert_quiet()
        assert tab.text("h1") == "Report on ucr"
        assert "softness helps" in tab.text("section")
        assert tab.evaluate("document.querySelectorAll('figure.picture svg text').length") > 10
    text = page.read_text(encoding="utf-8")
    assert "@import" not in text
    assert 'src="' not in text


def test_a_click_on_a_heading_sorts_and_a_second_turns_it_round(browser, page):
    with browser.open(page) as tab:
        tab.click(press_heading(tab, "soft"))
        *values, gap, _ = column(tab, "soft")
        numbers = [number(text) for text in values]
        assert numbers == sorted(numbers, reverse=True)
        assert gap == "–"  # what is missing stays behind what is there
        assert column(tab, "data set")[-1].startswith("mean of")
        sort = "document.querySelector('#pressed').parentElement.getAttribute('aria-sort')"
        assert tab.evaluate(sort) == "descending"
        tab.click("#pressed")
        numbers = [number(text) for text in column(tab, "soft")[:-2]]
        assert numbers == sorted(numbers)
        assert tab.evaluate(sort) == "ascending"
        tab.assert_quiet()


def test_the_keyboard_sorts_too(browser, page):
    with browser.open(page) as tab:
        press_heading(tab, "data set")
        tab.evaluate("document.querySelector('#pressed').focus()")
        tab.press("Enter")
        tab.press("Enter")
        *names, _ = column(tab, "data set")
        assert names == sorted(names, reverse=True)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_never_scrolls_sideways(browser, page, width, dark):
    with browser.open(page, width=width, dark=dark) as tab:
        assert not tab.scrolls_sideways()
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert not tab.scrolls_sideways()
        ink = tab.evaluate("getComputedStyle(document.querySelector('.drawing')).color")
        assert ink == ("rgb(227, 230, 234)" if dark else "rgb(27, 31, 36)")
        paper = tab.evaluate("getComputedStyle(document.querySelector('.paper')).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
        tab.assert_quiet()


def test_names_are_text_and_ids_are_unique(browser, page):
    with browser.open(page) as tab:
        assert tab.evaluate("document.querySelectorAll('main b b, th b').length") == 0
        assert "A <b>bold</b> name" in tab.text("[aria-label^='All rows'] table")
        ids = tab.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
