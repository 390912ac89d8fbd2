"""``.arff`` files: the UCR form, a row of numbers and a label, and the relational form of UEA."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.text import Fail, numbered_lines, parse_label, parse_numbers
from softclt.validation import Floats64, check_series

_NUMERIC = ("numeric", "real", "integer")


def read_arff(path: str | Path) -> SeriesTable:
    r"""Series of an ``.arff`` file whose last attribute, if nominal, is the label.

    One channel: a numeric attribute for each step. Several: one relational attribute with the
    steps inside, its value quoted, with the two characters ``\n`` between channels. ``?`` is
    missing.
    """
    lines = numbered_lines(path, comments="%")
    header = _ArffHeader.read(path, lines)
    series: list[Floats64] = []
    labels: list[str] = []
    for line, text in lines:
        fail = partial(DataError, path=path, at=line)
        body, label = _split_row(text, header, fail)
        if header.classes is not None:
            labels.append(parse_label(label, header.classes, fail))
        rows = [parse_numbers(channel.split(","), fail) for channel in body]
        for number, row in enumerate(rows, 1):
            if len(row) != header.length:
                of = f"channel {number} has " if header.relational else ""
                raise fail(
                    f"{of}{len(row)} values, but the header has {header.length} numeric "
                    "attributes; expected as many: write ? for missing values"
                )
        if series and len(rows) != len(series[0]):
            raise fail(
                f"{len(rows)} channels, but the first series has {len(series[0])}; "
                "expected as many in each, with \\n between them"
            )
        series.append(np.stack(rows))  # (D, T)
    if not series:
        raise DataError("no line follows @data; expected one line a series", path, header.end)
    y: Any = labels if header.classes is not None else None
    return SeriesTable(check_series(series), y, source=str(path))


@dataclass
class _ArffHeader:
    """What the attributes of an ``.arff`` header add up to."""

    length: int = 0
    relational: bool = False
    classes: set[str] | None = None
    end: int = 1

    @classmethod
    def read(cls, path: str | Path, lines: Iterator[tuple[int, str]]) -> "_ArffHeader":
        """Take the header's lines, up to ``@data``, off ``lines``."""
        header = cls()
        line = 1
        for line, text in lines:
            fail = partial(DataError, path=path, at=line)
            key = text.split()[0].lower()
            if key == "@data":
                header.end = line
                if header.length == 0:
                    raise fail("no numeric attribute before @data; expected one for each step")
                return header
            if key == "@attribute":
                header._add(text, fail)
            elif key not in ("@relation", "@end"):
                raise fail(
                    f"{shorten(text)} stands before @data; "
                    "expected @relation, @attribute or @data lines"
                )
        raise DataError("the file ends without @data; expected it behind the header", path, line)

    def _add(self, text: str, fail: Fail) -> None:
        kind = text.split()[-1].lower()
        if self.classes is not None:
            raise fail("an attribute follows the nominal one; expected the label to be the last")
        if text.endswith("}") and "{" in text:
            names = text[text.index("{") + 1 : -1].split(",")
            self.classes = {name.strip().strip("'\"") for name in names}
        elif kind == "relational" and self.length == 0:
            self.relational = True
        elif kind in _NUMERIC:
            self.length += 1
        else:
            raise fail(
                f"attribute of type {shorten(kind)}; expected numeric ones for the steps, "
                "then a nominal one such as {1,2} for the label"
            )


def _split_row(text: str, header: _ArffHeader, fail: Fail) -> tuple[list[str], str]:
    """Text of each channel and of the label."""
    if not header.relational:
        if header.classes is None:
            return [text], ""
        body, _, label = text.rpartition(",")
        return [body], label
    quote = text[0]
    end = text.find(quote, 1)
    if quote not in "'\"" or end < 0:
        raise fail("expected the relational value in quotes, then a comma and the label")
    return text[1:end].replace("\\r", "").split("\\n"), text[end + 1 :].lstrip(", ")
