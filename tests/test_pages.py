"""Pages of the documentation can be read in a terminal, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
CODE = re.compile(r"^ *```.*?^ *```|^\$\$.*?\$\$$", flags=re.MULTILINE | re.DOTALL)
UNBROKEN = ("|", "#", "<", "!")  # rows of tables, headings, HTML and pictures stay on one line


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_prose_is_wrapped_at_100_characters(page):
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    lines = [line for line in prose.splitlines() if not line.lstrip().startswith(UNBROKEN)]
    assert [line for line in lines if len(line) > 100 and " " in line.strip()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_link_within_the_project_leads_to_a_file(page):
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)
    inside = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in inside if not (page.parent / link).exists()] == []
