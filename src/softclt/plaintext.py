"""Text of users as text: what a terminal, a page or a sheet would obey is written out instead."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# Control characters but tab and newline, line separators, what turns the direction of writing, and
# halves of characters, which names of files may have and no file may.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def visible(text: object) -> str:
    r"""The text with control characters as escapes.

    Example:
        >>> print(visible("red \x1b[31m"))
        red \x1b[31m
    """
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], str(text))


def no_formula(cell: object) -> object:
    """A text that a spreadsheet would compute, with an apostrophe before it; else the cell itself.

    Example:
        >>> no_formula("=1+2"), no_formula("pump"), no_formula(-1.5)
        ("'=1+2", 'pump', -1.5)
    """
    if not isinstance(cell, str):
        return cell
    mark = "'" if cell.lstrip(" ").startswith(_FORMULA) else ""
    return mark + cell.replace("\r", "\n")  # a bare return would begin a row in some readers


def without_formulas(table: "pd.DataFrame") -> "pd.DataFrame":
    """A copy of a table whose texts and names a spreadsheet does not compute."""
    texts = [i for i, kind in enumerate(table.dtypes) if kind.kind not in "biufcmM"]
    table = table.copy()
    for i in texts:
        cells = [no_formula(cell) for cell in table.iloc[:, i]]
        table.isetitem(i, cells)
    table.columns = table.columns.map(no_formula)
    return table
