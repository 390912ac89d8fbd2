"""What an entry of a file may be: for files that anybody may have written."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """What an entry may be.

    Attributes:
        words: For messages.
        fits: Whether a value of JSON or TOML is one.
    """

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and -sys.float_info.max <= value <= sys.float_info.max


def whole_number(low: int = 0, high: int = 2**63 - 1) -> Kind:
    """A whole number in these bounds."""
    words = f"a whole number from {low}" + (f" to {high}" if high < 2**63 - 1 else " on")
    return Kind(
        words,
        lambda value: (
            isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        ),
    )


def optional(kind: Kind) -> Kind:
    """The same, or null."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.fits(value))


def either(one: Kind, other: Kind) -> Kind:
    """One kind or the other."""
    return Kind(f"{one.words} or {other.words}", lambda value: one.fits(value) or other.fits(value))


def list_of(kind: Kind, words: str) -> Kind:
    """A list of things of a kind, in plural words."""
    return Kind(
        f"a list of {words}", lambda value: isinstance(value, list) and all(map(kind.fits, value))
    )


def table_of(kind: Kind, words: str) -> Kind:
    """A table from names to things of a kind, in plural words."""
    return Kind(
        f"a table of {words}",
        lambda value: isinstance(value, dict) and all(map(kind.fits, value.values())),
    )


TEXT = Kind("a text", lambda value: isinstance(value, str))
TABLE = Kind("a table", lambda value: isinstance(value, dict))
LIST = Kind("a list", lambda value: isinstance(value, list))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", _is_number)
NUMBERS = list_of(NUMBER, "numbers")
TEXTS = list_of(TEXT, "texts")
COUNT = whole_number()
COUNTS = list_of(COUNT, "whole numbers from 0 on")
SIZE = whole_number(1)
DIGEST = Kind("a SHA-256", lambda value: isinstance(value, str) and len(value) == 64)


def check_entries(table: Mapping[str, Any], kinds: Mapping[str, Kind], where: str = "") -> None:
    """Refuse a table whose entries are missing, or of another kind.

    Example:
        >>> check_entries({"seeds": 3.5}, {"seeds": COUNT}, "the suite 'mine': ")
        Traceback (most recent call last):
        ...
        ValueError: the suite 'mine': seeds is 3.5; expected a whole number from 0 on
    """
    for name, kind in kinds.items():
        if name not in table:
            raise ValueError(f"{where}{name} is missing")
        check_kind(table[name], kind, f"{where}{name}")


def check_kind(value: Any, kind: Kind, name: str) -> None:
    """Refuse a value of another kind."""
    if not kind.fits(value):
        try:
            shown = repr(value)
        except (ValueError, RecursionError):  # a number of too many digits, a list too deep
            shown = "something else"
        shown = shown if len(shown) <= 40 else shown[:40] + "..."
        raise ValueError(f"{name} is {shown}; expected {kind.words}")
