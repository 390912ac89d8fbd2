"""Which column of a table is what: given by the caller, or known by its name."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, cast

from softclt.data.errors import DataError, shorten
from softclt.data.text import Fail
from softclt.validation import check_choice

Form = Literal["auto", "wide", "long"]
Duplicates = Literal["error", "first", "mean"]
BadValues = Literal["error", "nan"]

ID_NAMES = ("id", "series", "series_id", "unique_id", "item_id", "name")
TIME_NAMES = ("time", "timestamp", "date", "datetime", "ds", "t", "step")
LABEL_NAMES = ("label", "class")
# In long tables these are values by custom: (unique_id, ds, y), (item_id, timestamp, target).
WIDE_LABEL_NAMES = (*LABEL_NAMES, "y", "target")


class Names(TypedDict, total=False):
    """Which column of a table is what."""

    id: str | None
    time: str | None
    label: str | None
    values: str | Sequence[str] | None
    form: Form


class Columns(Names, total=False):
    """How to read a table; see :func:`softclt.data.read_table`."""

    decimal: Literal[".", ","]
    duplicates: Duplicates
    bad_values: BadValues
    resample: str | None


_CHOICES = {"decimal": (".", ","), "duplicates": ("error", "first", "mean")}
_CHOICES["bad_values"] = ("error", "nan")
_DEFAULTS = {"form": "auto", **{name: choices[0] for name, choices in _CHOICES.items()}}


def names_of(columns: Columns) -> Names:
    """The part of ``columns`` that names them; choices in the other part are checked."""
    for name, choices in _CHOICES.items():
        check_choice(columns.get(name, choices[0]), choices, name)
    return cast(Names, _part(columns, Names))


class Order(TypedDict, total=False):
    """How steps become series."""

    duplicates: Duplicates
    bad_values: BadValues
    resample: str | None


def order_of(columns: Columns) -> Order:
    """The part of ``columns`` that the rows of a table keep until they become series."""
    return cast(Order, _part(columns, Order))


def _part(columns: Columns, of: type) -> dict[str, object]:
    return {name: value for name, value in columns.items() if name in of.__annotations__}


def refuse_given(columns: Columns, words: str, path: Path | str, known: Sequence[str] = ()) -> None:
    """Refuse options that something other than a table has no use for, less the ``known``."""
    given = [
        f"{name}="
        for name, value in columns.items()
        if name not in known and value and value != _DEFAULTS.get(name)
    ]
    if given:
        raise DataError(f"{', '.join(given)} is for {words}; leave it out", path)


@dataclass(frozen=True)
class Roles:
    """Positions of a table's columns by what they hold."""

    id: int | None
    time: int | None
    label: int | None
    values: list[int]
    long: bool


def find_roles(
    names: Sequence[str],
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    values: str | Sequence[str] | None = None,
    form: Form = "auto",
    fail: Fail = DataError,
) -> Roles:
    """Roles of the columns ``names``, by the rules of :func:`softclt.data.read_table`.

    ``fail`` makes the error of the header from a message.
    """
    check_choice(form, ("auto", "wide", "long"), "form")
    names = [name.strip() for name in names]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise fail(f"the column {shorten(twice[0])} is there twice; rename one")
    if form == "wide" and time:
        raise fail(f"time={time!r} belongs to a long table, but form is 'wide'")

    def position(name: str) -> int:
        if name not in names:
            known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise fail(f"no column {shorten(name)}; the table has {known}")
        return names.index(name)

    wanted = [values] if isinstance(values, str) else list(values or ())
    given = {position(name) for name in (id, time, label, *wanted) if name}

    def find(name: str | None, usual: Sequence[str]) -> int | None:
        if name is not None:
            return position(name) if name else None
        free = {names[i].lower(): i for i in range(len(names)) if i not in given}
        return next((free[known] for known in usual if known in free), None)

    time_at = None if form == "wide" else find(time, TIME_NAMES)
    long = form == "long" or (form == "auto" and time_at is not None)
    id_at = find(id, ID_NAMES)
    unnamed_at = 0 if names[0] == "" else None  # what pandas writes for an index without a name
    if id is None and id_at is None and not long:
        id_at = unnamed_at
    label_at = find(label, LABEL_NAMES if long else WIDE_LABEL_NAMES)
    if wanted:
        return Roles(id_at, time_at, label_at, [position(name) for name in wanted], long)
    taken = {id_at, time_at} | ({unnamed_at} if long else set())
    rest = [i for i in range(len(names)) if i not in taken]
    if label is None and rest == [label_at]:
        label_at = None  # the only column left holds the values, whatever its name
    rest = [i for i in rest if i != label_at]
    if not rest:
        raise fail(
            f"no column of values beside {', '.join(map(repr, names))}; "
            "expected at least one, or name them with values="
        )
    return Roles(id_at, time_at, label_at, rest, long)
