"""The data sets of a suite: which there are, what kind each is, and rules that choose some."""

import fnmatch
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from softclt.data import Dataset, available
from softclt.data.errors import DataError, UnknownDataError
from softclt.data.seasonality import ADF_LEVEL, SOME, STRONG, adf_p_value, seasonality_strength
from softclt.registry import Registry
from softclt.schema import SIZE, TEXT, TEXTS, check_entries, either
from softclt.tasks.kept import load_once
from softclt.validation import check_known, series_lengths

log = logging.getLogger(__name__)

SHORT = 200  # steps on average: the paper's border between short and long

#: Functions ``data set -> name of its group``, by the training series alone.
groups: Registry[Callable[[Dataset], str]] = Registry("group")

#: Functions ``(sets, **settings) -> names``, without a look at any score.
rules: Registry[Callable[..., list[str]]] = Registry("rule")


@dataclass(frozen=True)
class SetFacts:
    """What a plan needs to know of a data set.

    Attributes:
        asked: The name or path that `softclt.load` finds it by.
        name: What results call it.
        length: Steps of its longest training series.
        varying: Whether its training series differ in length.
    """

    asked: str
    name: str
    fingerprint: str
    n_train: int
    n_test: int
    n_channels: int
    length: int
    varying: bool
    groups: Mapping[str, str]


def facts_of(
    asked: str,
    data: Dataset,
    wanted: Iterable[str] = (),
    known: Mapping[str, Mapping[str, str]] | None = None,
) -> SetFacts:
    """Facts of a loaded data set, with the groups that are wanted.

    A group that needs a package which is not installed is left out, and a warning says so.

    Args:
        asked: The name or path that it was loaded by.
        data: The data set.
        wanted: Groups.
        known: Groups by fingerprint that need not be found again.
    """
    digest = data.fingerprint
    there = (known or {}).get(digest, {})
    found = {}
    for group in wanted:
        try:
            found[group] = there[group] if group in there else groups[group](data)
        except ImportError as error:
            _tell_once(f"the group {group!r} is left out: {error}")
    lengths = series_lengths(data.X_train)
    return SetFacts(
        asked=asked,
        name=str(data.meta["name"]),
        fingerprint=digest,
        n_train=len(data.X_train),
        n_test=0 if data.X_test is None else len(data.X_test),
        n_channels=data.X_train.shape[1],
        length=int(lengths.max()),
        varying=bool(lengths.min() != lengths.max()),
        groups=found,
    )


@cache
def _tell_once(message: str) -> None:
    log.warning(message)


@groups.register("length")
def by_length(data: Dataset) -> str:
    """``short``: at most 200 steps on average; else ``long``."""
    return "short" if series_lengths(data.X_train).mean() <= SHORT else "long"


@groups.register("varying")
def by_varying_length(data: Dataset) -> str:
    """``varying`` where training series differ in length; else ``equal``."""
    lengths = series_lengths(data.X_train)
    return "varying" if lengths.min() != lengths.max() else "equal"


@groups.register("adf")
def by_adf(data: Dataset) -> str:
    """The paper's seasonality: ``low`` if the median ADF test rejects a unit root at 5 per cent.

    Else ``high``. The paper does not state its rule; see `softclt.data.seasonality` for ours, and
    for why the test is no measure of seasons.
    """
    return "low" if adf_p_value(data.X_train) < ADF_LEVEL else "high"


@groups.register("seasonality")
def by_strength(data: Dataset) -> str:
    """``strong`` where a repeated shape explains 64 per cent of a series, ``some`` from 30 on."""
    strength = seasonality_strength(data.X_train)
    return "strong" if strength >= STRONG else "some" if strength >= SOME else "weak"


@rules.register("smallest")
def smallest(sets: Sequence[SetFacts], *, n: int, max_length: int | None = None) -> list[str]:
    """The n sets with the fewest training values (series x channels x steps), equal ones by name.

    ``max_length`` leaves out sets of longer series.
    """
    short = _short(sets, max_length)
    short.sort(key=lambda one: (one.n_train * one.n_channels * one.length, one.name))
    return [one.asked for one in short[:n]]


@rules.register("at_most")
def at_most(
    sets: Sequence[SetFacts], *, max_train: int | None = None, max_length: int | None = None
) -> list[str]:
    """The sets of at most so many training series, of at most so many steps."""
    short = _short(sets, max_length)
    return [one.asked for one in short if max_train is None or one.n_train <= max_train]


@rules.register("varying")
def varying(sets: Sequence[SetFacts], *, max_length: int | None = None) -> list[str]:
    """The sets whose training series differ in length."""
    return [one.asked for one in _short(sets, max_length) if one.varying]


def _short(sets: Sequence[SetFacts], max_length: int | None) -> list[SetFacts]:
    return [one for one in sets if max_length is None or one.length <= max_length]


class Sets:
    """Data sets by the entries of a suite; each is loaded once, for its facts.

    Args:
        archives: Names that an archive has in full, e.g. ``{"ucr": ["GunPoint", ...]}``: what a
            pattern stands for, whether or not it is there.
        wanted: Groups that the facts have.
        known: Groups by fingerprint, to save finding them again.

    Attributes:
        missing: Names that were asked for and are not there.
        damaged: Sets that are there but cannot be read, and why.
    """

    def __init__(
        self,
        archives: Mapping[str, Sequence[str]] | None = None,
        wanted: Sequence[str] = (),
        known: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._archives = archives or {}
        self._wanted, self._known = tuple(wanted), known
        self._facts: dict[str, SetFacts] = {}
        self.missing: list[str] = []
        self.damaged: dict[str, str] = {}

    def find(self, entries: Sequence[Any], only: Sequence[str] = ()) -> list[SetFacts]:
        """Facts of all sets that the entries name and, if given, a pattern of ``only`` matches.

        Args:
            entries: Names, paths and patterns (``"ucr/*"``), or tables with a ``rule``, the entries
                it chooses ``from`` and its settings.
            only: Names or patterns, with or without the archive.
        """
        names: list[str] = []
        for entry in entries:
            names += self._chosen(dict(entry)) if isinstance(entry, Mapping) else self._named(entry)
        found = []
        for name in dict.fromkeys(names):
            if only and not any(_matches(name, pattern) for pattern in only):
                continue
            if (facts := self._load(name)) is not None:
                found.append(facts)
        return found

    def _named(self, entry: str) -> list[str]:
        if not any(sign in entry for sign in "*?["):
            return [entry]
        known = {f"{archive}/{name}" for archive, own in self._archives.items() for name in own}
        names = sorted(n for n in known.union(available()) if fnmatch.fnmatchcase(n, entry))
        if not names:
            self._miss(entry)
        return names

    def _chosen(self, entry: dict[str, Any]) -> list[str]:
        shown = f"the data {entry!r}: "
        check_entries(entry, {"rule": TEXT, "from": either(TEXT, TEXTS)}, shown)
        rule, of = entry.pop("rule"), entry.pop("from")
        settings = list(inspect.signature(rules[rule]).parameters)[1:]
        check_known(entry, settings, f"{shown}{rule}", "setting")
        check_entries(entry, dict.fromkeys(entry, SIZE), shown)
        names = [name for one in ([of] if isinstance(of, str) else of) for name in self._named(one)]
        there = [facts for name in names if (facts := self._load(name)) is not None]
        return rules[rule](there, **entry)

    def _load(self, name: str) -> SetFacts | None:
        if name not in self._facts and name not in (*self.missing, *self.damaged):
            try:
                self._facts[name] = facts_of(name, load_once(name), self._wanted, self._known)
            except UnknownDataError:
                self._miss(name)
            except DataError as error:
                self.damaged[name] = str(error)
        return self._facts.get(name)

    def _miss(self, name: str) -> None:
        if name not in self.missing:
            self.missing.append(name)


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(
        name.rpartition("/")[2], pattern
    )
