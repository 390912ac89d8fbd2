"""CSV files, plain or gzipped: cells become numbers, and errors know their line."""

import csv
import io
import logging
import re
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Unpack

import numpy as np

from softclt.data.columns import Columns, find_roles
from softclt.data.errors import DataError, shorten
from softclt.data.rows import Rows
from softclt.data.text import read_text
from softclt.validation import Floats64

_MISSING = frozenset({"", "?", "nan", "na", "n/a", "null", "none"})
NO_LABEL = frozenset({"", "?", "nan", "NaN"})
_BLOCK = 200_000  # cells that are text at the same time

_log = logging.getLogger(__name__)


def read_csv(path: Path, **columns: Unpack[Columns]) -> Rows:
    """Rows of a CSV file; see :func:`softclt.data.read_table` for the rules."""
    lines = _cells(path)
    line, first = next(lines)
    header, is_data = _header(first)
    roles = find_roles(header, fail=partial(DataError, path=path, at=line), **columns)
    names = [header[j] for j in roles.values]
    if is_data:
        _log.warning("%s: the first line is all numbers, so it is read as data, not names", path)
        lines = chain([(line, first)], lines)
    numbers: list[Floats64] = []
    texts: dict[int, list[str]] = {
        j: [] for j in (roles.id, roles.time, roles.label) if j is not None
    }
    line_of = array("q")
    while block := list(islice(lines, 1 + _BLOCK // len(first))):
        line_numbers, rows = zip(*block, strict=True)
        by_column = list(zip(*rows, strict=True))
        line_of.extend(line_numbers)
        for j, column in texts.items():
            column.extend(map(str.strip, by_column[j]))
        picked = [by_column[j] for j in roles.values]
        numbers.append(_to_numbers(picked, names, path, line_numbers))
    if not numbers:
        raise DataError("the header is all there is; expected rows of series below it", path, 1)
    ids = None if roles.id is None else [text or None for text in texts[roles.id]]
    labels = None
    if roles.label is not None:
        labels = [None if text in NO_LABEL else text for text in texts[roles.label]]
    return Rows(
        values=np.concatenate(numbers),
        names=names,
        ids=ids,
        times=None if roles.time is None else texts[roles.time],
        labels=labels,
        long=roles.long,
        place=line_of.__getitem__,
        source=str(path),
    )


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Cells of each line that has any, with its number; all lines have as many."""
    text = read_text(path)
    first_line = text.lstrip("\n").split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first_line.count))
    width = 0
    try:
        for cells in reader:
            if not cells:
                continue
            width = width or len(cells)
            if len(cells) != width:
                raise DataError(
                    f"{len(cells)} cells, but the first line has {width}; "
                    "expected as many in each: leave a cell empty if its value is missing",
                    path,
                    reader.line_num,
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"is no CSV ({error}); check the quotes", path, reader.line_num) from None


def _header(first: list[str]) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line holds data instead of them."""
    cells = [cell.strip() for cell in first]
    positions = [str(i) for i in range(len(cells))]
    counts = cells == positions or cells == ["", *positions[:-1]]  # what pandas writes unasked
    if counts or not all(_is_value(cell) for cell in cells):
        return cells, False
    return positions, True


def _is_value(cell: str) -> bool:
    if cell.lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _to_numbers(
    columns: list[tuple[str, ...]], names: list[str], path: Path, lines: Sequence[int]
) -> Floats64:
    """Numbers ``(rows, C)`` of the C value columns of a block of lines."""
    try:
        return np.array(columns, dtype=np.float64).T
    except ValueError:
        by_row = zip(lines, zip(*columns, strict=True), strict=True)
        return np.array(
            [
                [_to_number(cell, name, path, line) for cell, name in zip(row, names, strict=True)]
                for line, row in by_row
            ]
        )


def _to_number(cell: str, name: str, path: Path, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        if cell.strip().lower() in _MISSING:
            return np.nan
    advice = "if the column is an id, a time or a label, say so with id=, time= or label="
    if re.fullmatch(r"\s*-?\d+,\d+\s*", cell):
        advice = "write decimal points, not commas"
    raise DataError(f"{shorten(cell)} in column {shorten(name)} is no number; {advice}", path, line)
