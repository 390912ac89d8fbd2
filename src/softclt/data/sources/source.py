"""Series that stay where they are and are read when they are needed."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.data.dataset import add_values
from softclt.data.errors import DataError
from softclt.data.preparation import Moments, blocks_of
from softclt.progress import progress_bar
from softclt.validation import (
    Flags,
    Floats,
    Ints,
    observed_steps,
    series_lengths,
    unusable_value,
)


@dataclass(frozen=True)
class Survey:
    """What one look at all series tells.

    Attributes:
        moments: Of each channel.
        some: Whether a series has any step at which all its channels have a value, ``(N,)``.
        shortest, longest: Steps of series up to their last value; of those that have one.
        complete: Whether no value is missing.
        fingerprint: What :func:`softclt.data.fingerprint` has for the array, unless one series
            alone has more than 4 million values.
    """

    moments: Moments
    some: Flags
    shortest: int
    longest: int
    complete: bool
    fingerprint: str


class SeriesSource(ABC):
    """Series ``(N, D, T)`` that are read when they are needed.

    A source adds ``take``. It is read through once before training, and assumed not to change.

    Attributes:
        name: What messages call it.
        shape: ``(N, D, T)``, T of the longest.
        dtype: float32 or float64, as ``take`` gives values.
        shards: Rows at which a run of series begins that are cheap to read one after the other, and
            N; None where every series is read by itself.
    """

    name: str
    shape: tuple[int, int, int]
    dtype: np.dtype[np.floating]
    shards: Ints | None = None
    _survey: Survey | None = None

    @abstractmethod
    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats:
        """Steps ``start`` to ``stop`` of some series, ``(B, D, stop - start)``, NaN if missing."""

    def ids(self) -> list[Any]:
        """One id a series, in their order; their numbers where the source has none."""
        return self.ids_of(0, len(self))

    def ids_of(self, start: int, stop: int) -> list[Any]:
        """Those of some series."""
        return [str(i) for i in range(start, min(stop, len(self)))]

    def by_channel(self) -> "SeriesSource":
        """Every channel of every series as a series of its own, ``(N * D, 1, T)``."""
        return self if self.shape[1] == 1 else _Channels(self)

    def blocks(self) -> Iterator[tuple[int, int, Floats]]:
        """All series in their order, some million values at a time.

        Yields the first row and the first step of each block with its values. A series alone that
        has more values than that comes in pieces.
        """
        n, d, t = self.shape
        for rows in blocks_of(self.shape):
            for steps in blocks_of((t, d)):
                values = self.take(np.arange(*rows.indices(n)), steps.start, min(t, steps.stop))
                yield rows.start, steps.start, values

    @property
    def survey(self) -> Survey:
        """What is known of all series; the first to ask reads them."""
        return self.look()

    def look(self, progress: bool = False) -> Survey:
        """Read everything once, unless that was done before; ``progress`` shows a bar."""
        if self._survey is None:
            with progress_bar("reading", len(self), progress) as advance:
                self._survey = self._look(advance)
        return self._survey

    def _look(self, advance: Callable[[int], object]) -> Survey:
        digest = hashlib.sha256(f"{self.shape};".encode())
        moments, some, t = Moments(self.shape[1]), [], self.shape[-1]
        shortest, longest, complete = t, 0, True
        for first, start, block in self.blocks():
            self._refuse_unusable(block, first, start)
            add_values(digest, block)
            moments.add(block)
            if start == 0:
                ends, seen = np.zeros(len(block), np.int64), np.zeros(len(block), dtype=bool)
            whole = not np.isnan(block).any()
            complete = complete and whole
            own = np.full(len(block), block.shape[-1]) if whole else series_lengths(block)
            ends = np.where(own > 0, start + own, ends)
            seen |= True if whole else observed_steps(block).any(axis=1)
            if start + block.shape[-1] == t:
                some.append(seen)
                shortest = min(shortest, int(ends.min(initial=shortest, where=ends > 0)))
                longest = max(longest, int(ends.max()))
                advance(len(block))
        return Survey(
            moments, np.concatenate(some), shortest, longest, complete, digest.hexdigest()[:16]
        )

    @property
    def lengths(self) -> tuple[int, int]:
        """Steps of the shortest and of the longest series."""
        return self.survey.shortest, self.survey.longest

    @property
    def size(self) -> int:
        """Number of values."""
        n, d, t = self.shape
        return n * d * t

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d, t = self.shape
        return f"{type(self).__name__}({self.name}: {n} series, {d} channel(s), {t} steps)"

    def _refuse_unusable(self, block: Floats, first: int, start: int) -> None:
        if (words := unusable_value(block, first, start)) is not None:
            raise DataError(words, self.name)


class _Channels(SeriesSource):
    """The channels of a source that cannot read them one by one."""

    def __init__(self, source: SeriesSource) -> None:
        n, d, t = source.shape
        self.source, self.name, self.dtype = source, source.name, source.dtype
        self.shape = n * d, 1, t
        self.shards = None if source.shards is None else d * source.shards

    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats:
        series, channels = np.divmod(rows, self.source.shape[1])
        whole, positions = np.unique(series, return_inverse=True)
        return self.source.take(whole, start, stop)[positions, channels, None]
