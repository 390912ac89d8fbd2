"""No sentence of the pages, or of what public names say of themselves, is over 35 words."""

import inspect
import re
from pathlib import Path

import pytest

import softclt

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/*.md")])
LONGEST = 35

BLOCKS = re.compile(r"^ *```.*?^ *```|^\$\$.*?\$\$$|<!--.*?-->", re.MULTILINE | re.DOTALL)
MARKS = ("|", "#", "<", "![", ">")  # rows of tables, headings, HTML, pictures, quotations
ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?])[\"'”)*_»]*\s+(?=[\"'“(*_«`\[]*[A-Z0-9`*]|\w+: )")


def paragraphs(markdown):
    """Running text, each paragraph and each item of a list as one line."""
    lines: list[str] = []
    begins = True
    for line in BLOCKS.sub("\n", markdown).splitlines():
        if not line.strip() or line.lstrip().startswith(MARKS):
            begins = True
            continue
        if begins or ITEM.match(line):
            lines.append("")
        begins = False
        lines[-1] += f" {ITEM.sub('', line).strip()}"
    return [line.strip() for line in lines]


def plain(text):
    """Text without its marks: code, an equation and a number with its unit are a word each."""
    text = re.sub(r"`+[^`]*`+|\$[^$]+\$", "CODE", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r":\w+:(?=CODE)", "", text)


def long_sentences(markdown):
    """Sentences of more than `LONGEST` words."""
    found = []
    for paragraph in map(plain, paragraphs(markdown)):
        for sentence in END.split(paragraph):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > LONGEST:
                found.append(f"{len(words)} words: {sentence}")
    return found


def prose_of(docstring):
    """A docstring without its examples; the entries of its sections as items of a list."""
    text = inspect.cleandoc(docstring).partition("\nExample:")[0]
    return re.sub(r"^ {4}(?=\S)", "\n", text, flags=re.MULTILINE)


def public_docstrings():
    """Names with their docstrings: what `softclt` has, and public methods of its classes."""
    for name in softclt.__all__:
        item = getattr(softclt, name)
        if inspect.isclass(item):
            members = inspect.getmembers(item, inspect.isroutine)
            yield from (
                (f"{name}.{own}", method.__doc__)
                for own, method in members
                if not own.startswith("_") and method.__module__.startswith("softclt")
            )
        if inspect.ismodule(item):
            yield from (
                (f"{name}.{own}", function.__doc__)
                for own, function in inspect.getmembers(item, inspect.isfunction)
                if not own.startswith("_")
            )
        if callable(item) or inspect.ismodule(item):
            yield name, item.__doc__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_of_a_page_is_long(page):
    assert long_sentences(page.read_text(encoding="utf-8")) == []


def test_no_sentence_in_help_on_public_names_is_long():
    found = {name: long_sentences(prose_of(text or "")) for name, text in public_docstrings()}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_long_sentences_are_found_where_they_stand():
    long = " ".join(["word"] * 36) + "."
    assert long_sentences(f"Short.\n\n- {long} Short.\n") == [f"36 words: {long}"]
    assert long_sentences(f"| {long} |\n\n```\n{long}\n```\n> {long}") == []
    assert long_sentences("word " * 20 + "ends. Then " + "word " * 20) == []
    assert long_sentences(prose_of(f"Short.\n\nArgs:\n    x: {long}\n    y: Short.")) != []
