"""Figures as SVG inside a page, or as files beside a document."""

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Union

from softclt.files import whole_file
from softclt.plaintext import visible
from softclt.reports.document import Document, pictures_folder
from softclt.reports.figures.style import save_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of our figures that follow the page from light to dark; the page defines the names.
_THEME = {"#000000": "currentColor", "#0072b2": "var(--for)", "#d55e00": "var(--against)"}

# What is not text to be read: comments, style sheets and tags.
_MARKUP = re.compile(r"<!--.*?-->|<style[^>]*>.*?</style>|<[^>]*>", flags=re.DOTALL)


def inline_svg(figure: Union["Figure", str], key: str, *, themed: bool) -> str:
    """A figure as an ``svg`` element with text as text.

    Args:
        figure: Or the text of an SVG.
        key: Put before all its ids, so that two figures in a page do not mix theirs up.
        themed: Without background and in the colours of the page.
    """
    text = figure if isinstance(figure, str) else _svg(figure, transparent=themed)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)  # follows from the width
    text = _MARKUP.sub(lambda found: _adapted(found[0], key, themed), text)
    if themed:
        text = text.replace("<svg", '<svg fill="currentColor"', 1)
    return text.strip()


def _adapted(markup: str, key: str, themed: bool) -> str:
    """A tag or a style sheet with ids and colours of the page."""
    markup = re.sub(r'\bid="', f'id="{key}-', markup)
    markup = re.sub(r'((?:xlink:)?href="#)', rf"\g<1>{key}-", markup)
    markup = re.sub(r"url\(#", f"url(#{key}-", markup)
    if themed:
        for colour, name in _THEME.items():
            markup = re.sub(colour, name, markup, flags=re.IGNORECASE)
    return markup


def save_pictures(document: Document, path: str | os.PathLike[str], suffix: str) -> dict[int, str]:
    """Write a document's figures into ``<name>-figures`` beside it.

    Returns:
        Number of a picture, counted through the document, -> its path from the document's folder.
    """
    path, links = Path(path), {}
    pictures = [picture for section in document.sections for picture in section.pictures]
    for i, (title, _, content) in enumerate(pictures):
        name = re.sub(r"\W+", "-", title.lower()).strip("-")
        link = f"{pictures_folder(path).name}/{i + 1}-{name}{suffix}"
        if isinstance(content, str):
            link = link.removesuffix(suffix) + ".svg"
            with whole_file(path.parent / link) as temporary:
                temporary.write_text(content, encoding="utf-8")
        else:
            save_figure(content, path.parent / link)
        links[i] = link
    return links


def _svg(figure: "Figure", transparent: bool) -> str:
    import matplotlib

    buffer = io.StringIO()
    with style(), matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=transparent, metadata={"Date": None})
    return visible(buffer.getvalue())
