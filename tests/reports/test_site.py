"""The site is built strictly, asks nobody for anything, and works from disk."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.main import get_command

import softclt
from softclt.cli import app

ROOT = Path(__file__).parents[2]
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
REMOTE = re.compile(r"^(https?:)?//")


class Addresses(HTMLParser):
    """What a page fetches when it is opened, and its anchors."""

    def __init__(self):
        super().__init__()
        self.fetched, self.ids, self.links = [], set(), []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") != "canonical":
            self.fetched.append(given["href"])
        if tag in FETCHED and given.get(FETCHED[tag]):
            self.fetched.append(given[FETCHED[tag]])


def read(page):
    found = Addresses()
    found.feed(page.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="the site is built with the `docs` extra")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
def test_no_page_fetches_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    remote = {
        (page.name, address)
        for page in pages
        for address in read(page).fetched
        if REMOTE.match(address)
    }
    assert remote == set()
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text("utf-8"))


@pytest.mark.slow
def test_links_within_the_site_lead_to_a_page_and_a_place_on_it(site):
    pages = {page: read(page) for page in site.rglob("*.html") if page.name != "404.html"}
    broken = []
    for page, found in pages.items():
        for link in found.links:
            if re.match(r"[a-z]+:", link):
                continue
            address, _, anchor = link.partition("#")
            target = (page.parent / address).resolve() if address else page
            if not target.exists() or (
                anchor and target in pages and anchor not in pages[target].ids | {"__top"}
            ):
                broken.append((page.name, link))
    assert broken == []


@pytest.mark.slow
def test_the_reference_has_every_public_name_and_every_command(site):
    names = read(site / "reference" / "python.html").ids
    assert [name for name in softclt.__all__ if f"softclt.{name}" not in names] == ["__version__"]
    assert {"softclt.methods.RepresentationLearner.encode", "softclt.Forecaster.predict"} <= names
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for command in get_command(app).commands:
        assert f">softclt {command}<" in text, command
    assert "--install-completion" not in text


@pytest.mark.slow
def test_equations_need_no_script(site):
    text = (site / "method.html").read_text(encoding="utf-8")
    assert text.count("<math") >= 9
    assert "arithmatex" not in text


@pytest.mark.slow
def test_the_search_works_on_pages_opened_from_disk(site, browser):
    with browser.open(site / "index.html") as tab:
        tab.evaluate("document.querySelector('[data-md-toggle=search]').click()")
        tab.click(".md-search__input")
        tab.write("sakoe")
        assert tab.wait_for("document.querySelectorAll('.md-search-result__item').length > 0")
        tab.assert_quiet()


def test_every_page_in_docs_has_a_place_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", text.partition("\nnav:")[2].partition("\n\n")[0]))
    pages = {page.name for page in ROOT.glob("docs/*.md")}
    assert pages - listed == set()
    assert {page for page in listed if "/" not in page} - pages == {
        "contributing.md",
        "changelog.md",
        "security.md",
    }
