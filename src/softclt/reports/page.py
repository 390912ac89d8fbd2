"""A report as one HTML file that opens from disk and asks nobody for anything."""

import math
import re
from importlib.resources import files
from typing import Any

from softclt.optional import needed
from softclt.plaintext import visible
from softclt.reports.document import Cell, Document, Picture
from softclt.reports.pictures import inline_svg

_SMALL = 5.0  # inches of figures that a narrow screen shows as a whole


def html(document: Document) -> str:
    """The text of the page."""
    with needed("a page needs jinja2: pip install 'softclt[report]', or write .md"):
        import jinja2
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"slug": _slug, "sort_value": _sort_value, "heat": _heat}
    template = files("softclt.reports").joinpath("page.html.j2").read_text(encoding="utf-8")
    keys = iter(range(10_000))
    page = environment.from_string(template).render(
        document=document,
        drawing=lambda picture: _drawing(picture, f"f{next(keys)}"),
        nan=math.isnan,
    )
    return visible(page)


def _drawing(picture: Picture, key: str) -> dict[str, Any]:
    """The SVG of a picture; whether it stands on white paper in a dark page, too, and is small."""
    from markupsafe import Markup

    _, _, content = picture
    themed = not isinstance(content, str) or "currentColor" in content
    # Markup: the SVG comes from matplotlib, or from a caller who may put anything into his page.
    svg = Markup(inline_svg(content, key, themed=themed))
    small = not isinstance(content, str) and content.get_figwidth() < _SMALL
    return {"svg": svg, "paper": not themed, "small": small}


def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def _sort_value(cell: Cell) -> str:
    return "" if math.isnan(cell.value) else f"{cell.value:.9g}"


def _heat(cell: Cell) -> str:
    """Class and strength of the tint, as attributes."""
    from markupsafe import Markup

    if math.isnan(cell.heat) or cell.heat == 0:
        return ""
    kind = "for" if cell.heat > 0 else "against"
    return Markup(f' class="{kind}" style="--heat:{abs(cell.heat):.2f}"')
