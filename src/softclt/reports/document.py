"""A report before it is a file: sections of text, tables and figures that every format writes."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = tuple[str, str, Union["Figure", str]]
"""Title, caption, and a figure or the text of an SVG."""

DAGGER = "†"
FORMATS = (".html", ".md", ".tex", ".csv")


@dataclass(frozen=True)
class Column:
    """A column of a grid.

    Attributes:
        numeric: Set to the right, sorted by value.
        below: A second line of the heading.
        about: What the heading means, in a few words.
        kind: As that of a `Line`.
    """

    name: str
    numeric: bool = True
    below: str = ""
    about: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Cell:
    """What stands in a grid.

    Attributes:
        value: What it is sorted by; NaN for a gap.
        strong: The best of its kind.
        heat: From -1 (against) to 1 (for): a tint behind it, NaN for none.
        span: Lower end, middle and upper end of an interval, where -1 to 1 can be drawn.
    """

    text: str
    value: float = math.nan
    strong: bool = False
    heat: float = math.nan
    span: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Line:
    """A row of a grid; ``kind`` is ``""``, ``"oracle"``, ``"published"`` or ``"total"``."""

    cells: tuple[Cell, ...]
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table, the notes that it must not be read without, and what its lines are."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    folded: bool = False  # long and for few readers: the page opens it on request


@dataclass(frozen=True)
class Section:
    """A heading with what is under it: ``points`` are a list, ``code`` is text to copy."""

    title: str
    text: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report: the sections in the order in which a reader wants them."""

    title: str
    subtitle: str
    sections: tuple[Section, ...] = field(default_factory=tuple)


def pictures_folder(path: Path) -> Path:
    """Where the figures of a document lie; a name that needs no escape in Markdown or LaTeX."""
    name = re.sub(r"[^\w.-]+", "-", path.stem).strip("-") or "report"
    return path.with_name(f"{name}-figures")


def number(text: str, value: float, **more: object) -> Cell:
    """A cell with a number; without one it is an empty gap."""
    if math.isnan(value):
        return Cell("")
    return Cell(text, value, **more)  # type: ignore[arg-type]


def words(texts: Sequence[str], last: str = " and ") -> str:
    """A list as a sentence has it; in quotes, where commas would leave open what is one thing.

    Example:
        >>> words(["a", "b", "c"])
        'a, b and c'
        >>> print(words(["soft", "soft, probe"]))
        "soft" and "soft, probe"
    """
    if len(texts) > 1 and any("," in text for text in texts):
        texts = [f'"{text}"' for text in texts]
    return last.join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def counted(n: int, thing: str) -> str:
    """A number of things: ``1 data set``, ``12 data sets``."""
    return f"{n} {thing}{'' if n == 1 else 's'}"
