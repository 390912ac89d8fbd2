"""Long series as windows, each a row of the index; and which of several hits in one place stays."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from softclt.data.preparation import blocks_of
from softclt.validation import Floats, Ints, observed_steps, series_lengths


class Pieces(NamedTuple):
    """Parts of series.

    Attributes:
        owner: Number of the series of each.
        start: Its first step in that series.
        end: The step behind its last one.
        values: ``(P, D, W)``.
    """

    owner: Ints
    start: Ints
    end: Ints
    values: Floats


def pieces_of(X: Floats, window: int | None, stride: int) -> Iterator[Pieces]:
    """All windows of series ``(N, D, T)``, some thousand at a time.

    The last window of a series ends with it, whatever the stride; a series that is shorter is a
    window itself. Windows in which no step has a value in all channels are left out.

    Args:
        X: Series, NaN-padded at the end.
        window: Steps; None for whole series.
        stride: Steps from one window to the next.
    """
    lengths = series_lengths(X)
    if window is None:
        for rows in blocks_of(X.shape):
            owner = np.arange(*rows.indices(len(X)))
            yield Pieces(owner, np.zeros(len(owner), np.int64), lengths[rows], X[rows])
        return
    starts = [_starts(int(length), window, stride) for length in lengths]
    owners = np.repeat(np.arange(len(X)), [len(own) for own in starts])
    start = np.concatenate(starts)
    d, width = X.shape[1], min(window, X.shape[-1])
    for rows in blocks_of((len(owners), d, width)):
        owner, first = owners[rows], start[rows]
        steps = first[:, None, None] + np.arange(width)  # (P, 1, W)
        values = X[owner[:, None, None], np.arange(d)[:, None], steps]  # (P, D, W)
        some = observed_steps(values).any(axis=1)
        end = np.minimum(first + window, lengths[owner])
        yield Pieces(owner[some], first[some], end[some], values[some])


def _starts(length: int, window: int, stride: int) -> Ints:
    last = max(0, length - window)
    return np.unique(np.append(np.arange(0, last + 1, stride), last))


def rows_in_one_place(window: int, stride: int) -> int:
    """Windows that overlap with one of them, at most, with itself and the last one."""
    return 2 * ((window - 1) // stride) + 2


def without_overlaps(hits: pd.DataFrame) -> pd.DataFrame:
    """Of hits of one query that overlap in a series, the nearest.

    Args:
        hits: By distance, with ``id``, ``start`` and ``end``.
    """
    taken: dict[object, list[tuple[int, int]]] = {}
    stays = []
    for one, start, end in zip(hits["id"], hits["start"], hits["end"], strict=True):
        places = taken.setdefault(one, [])
        free = all(end <= low or high <= start for low, high in places)
        stays.append(free)
        if free:
            places.append((start, end))
    return hits[stays]
