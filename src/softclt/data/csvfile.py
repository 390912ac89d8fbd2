"""CSV files, plain or gzipped: cells become numbers, and errors know their line."""

import csv
import io
import logging
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Unpack

import numpy as np

from softclt.data.columns import Columns, find_roles, names_of, order_of
from softclt.data.errors import DataError, shorten
from softclt.data.rows import Rows
from softclt.data.text import read_text
from softclt.validation import Floats64

_MISSING = frozenset({"", "?", "nan", "na", "n/a", "null", "none"})
NO_LABEL = frozenset({"", "?", "nan", "NaN"})
_DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"
_BLOCK = 200_000  # cells that are text at the same time

_log = logging.getLogger(__name__)


def read_csv(path: Path, **columns: Unpack[Columns]) -> Rows:
    """Rows of a CSV file; see :func:`softclt.data.read_table` for the rules."""
    table = CsvTable(io.StringIO(read_text(path)), path, **columns)
    numbers: list[Floats64] = []
    texts: dict[int, list[str]] = {j: [] for j in table.text_columns}
    line_of = array("q")
    for block in table.blocks():
        line_of.extend(block.lines)
        numbers.append(block.numbers)
        for j, column in block.texts.items():
            texts[j].extend(column)
    roles, bad_lines = table.roles, table.bad_lines
    labels = None
    if roles.label is not None:
        labels = [None if text in NO_LABEL else text for text in texts[roles.label]]
    return Rows(
        values=np.concatenate(numbers),
        names=table.names,
        ids=None if roles.id is None else [text or None for text in texts[roles.id]],
        times=None if roles.time is None else texts[roles.time],
        labels=labels,
        long=roles.long,
        place=line_of.__getitem__,
        source=str(path),
        n_bad=len(bad_lines),
        first_bad=line_of.index(bad_lines[0]) if bad_lines else 0,
        **order_of(columns),
    )


@dataclass(frozen=True)
class Block:
    """Some lines of a CSV.

    Attributes:
        lines: Their numbers.
        numbers: Of the value columns, ``(R, C)``.
        texts: Cells of the columns of ids, times and labels, by their positions.
    """

    lines: tuple[int, ...]
    numbers: Floats64
    texts: dict[int, list[str]]


class CsvTable:
    """A CSV that is read block by block.

    Args:
        stream: The text, with newlines at the ends of lines.
        path: The file, for messages.
        **columns: See :func:`softclt.data.read_table`.

    Attributes:
        roles: What its columns are.
        names: Of the value columns.
        text_columns: Positions of ids, times and labels.
        bad_lines: Of cells that were no numbers so far, where they are forgiven.
    """

    def __init__(self, stream: Iterable[str], path: Path, **columns: Unpack[Columns]) -> None:
        names_only, self._decimal = names_of(columns), columns.get("decimal", ".")
        self._path, self._lines = path, _cells(stream, path, self._decimal)
        line, first = next(self._lines)
        header, is_data = _header(first, self._decimal)
        fail = partial(DataError, path=path, at=line)
        self.roles = roles = find_roles(header, fail=fail, **names_only)
        self.names = [header[j] for j in roles.values]
        self.text_columns = [j for j in (roles.id, roles.time, roles.label) if j is not None]
        forgive = columns.get("bad_values", "error") == "nan"
        self._cells = _Cells(self.names, path, self._decimal, forgive)
        if is_data:
            _log.warning(
                "%s: the first line is all numbers, so it is read as data, not names", path
            )
            self._lines = chain([(line, first)], self._lines)
        self._size = 1 + _BLOCK // len(first)

    @property
    def bad_lines(self) -> list[int]:
        """See above."""
        return self._cells.bad_lines

    def blocks(self) -> Iterator[Block]:
        """All lines, once."""
        empty = True
        while block := list(islice(self._lines, self._size)):
            empty = False
            lines, rows = zip(*block, strict=True)
            by_column = list(zip(*rows, strict=True))
            texts = {j: list(map(str.strip, by_column[j])) for j in self.text_columns}
            if self._decimal == "," and (time := self.roles.time) is not None:
                texts[time] = [re.sub(_DECIMAL_COMMA, r"\1.\2", text) for text in texts[time]]
            picked = [by_column[j] for j in self.roles.values]
            yield Block(lines, self._cells.numbers(picked, lines), texts)
        if empty:
            raise DataError(
                "the header is all there is; expected rows of series below it", self._path, 1
            )


def _cells(stream: Iterable[str], path: Path, decimal: str) -> Iterator[tuple[int, list[str]]]:
    """Cells of each line that has any, with its number; all lines have as many."""
    lines, skipped = iter(stream), 0
    first_line = next(lines, "")
    while first_line == "\n":
        first_line, skipped = next(lines, ""), skipped + 1
    separators = ",;\t" if decimal == "." else ";\t"
    reader = csv.reader(chain([first_line], lines), delimiter=max(separators, key=first_line.count))
    width = 0
    try:
        for cells in reader:
            if not cells:
                continue
            width = width or len(cells)
            line = skipped + reader.line_num
            if len(cells) != width:
                raise DataError(
                    f"{len(cells)} cells, but the first line has {width}; "
                    "expected as many in each: leave a cell empty if its value is missing",
                    path,
                    line,
                )
            yield line, cells
    except csv.Error as error:
        line = skipped + reader.line_num
        raise DataError(f"is no CSV ({error}); check the quotes", path, line) from None


def _header(first: list[str], decimal: str) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line holds data instead of them."""
    cells = [cell.strip() for cell in first]
    positions = [str(i) for i in range(len(cells))]
    counts = cells == positions or cells == ["", *positions[:-1]]  # what pandas writes unasked
    if counts or not all(_is_value(cell, decimal) for cell in cells):
        return cells, False
    return positions, True


def _is_value(cell: str, decimal: str) -> bool:
    if cell.lower() in _MISSING:
        return True
    try:
        _number(cell, decimal)
    except ValueError:
        return False
    return True


def _number(cell: str, decimal: str) -> float:
    if decimal == ",":
        if "." in cell:
            raise ValueError("a point among decimal commas may separate thousands")
        cell = cell.replace(",", ".")
    return float(cell)


class _Cells:
    """From cells of the value columns to numbers.

    Args:
        names: Of the columns.
        path: The file.
        decimal: ``"."`` or ``","``.
        forgive: Whether a cell that is no number is missing, not an error.
    """

    def __init__(self, names: list[str], path: Path, decimal: str, forgive: bool) -> None:
        self.names, self.path, self.decimal, self.forgive = names, path, decimal, forgive
        self.bad_lines: list[int] = []

    def numbers(self, columns: list[tuple[str, ...]], lines: Sequence[int]) -> Floats64:
        """Numbers ``(rows, C)`` of the C columns of a block of lines."""
        if self.decimal == ".":
            try:
                return np.array(columns, dtype=np.float64).T
            except ValueError:
                pass  # not all are numbers: cell by cell
        by_row = zip(lines, zip(*columns, strict=True), strict=True)
        return np.array(
            [
                [self._number(cell, name, line) for cell, name in zip(row, self.names, strict=True)]
                for line, row in by_row
            ]
        )

    def _number(self, cell: str, name: str, line: int) -> float:
        try:
            return _number(cell, self.decimal)
        except ValueError:
            if cell.strip().lower() in _MISSING:
                return np.nan
        if self.forgive:
            self.bad_lines.append(line)
            return np.nan
        advice = (
            "if the column is an id, a time or a label, say so with id=, time= or label=; if the "
            "value is missing, say so with --bad-values nan (bad_values=)"
        )
        if self.decimal == "." and re.fullmatch(_DECIMAL_COMMA, cell.strip()):
            advice = "if commas are decimal points here, say so with decimal=',' (--decimal ,)"
        raise DataError(
            f"{shorten(cell)} in column {shorten(name)} is no number; {advice}", self.path, line
        )
