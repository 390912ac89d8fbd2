"""Distances between series that are read when a batch needs them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softclt.data.sources import SeriesSource
from softclt.distances.gpu import gpu_is_ready
from softclt.distances.measure import Measure
from softclt.distances.pair_engines import OnDevice
from softclt.distances.registration import Ints, Ragged

if TYPE_CHECKING:
    from softclt.distances.batches import BatchDistances

OF_SIBLINGS = 0.25  # distance of two series that were made in the same way
_AT_ONCE = 2**26  # values of a sample that are in memory at a time


def check_streamed(source: SeriesSource, measure: Measure, mode: str, distances: Any) -> None:
    """Refuse what needs all series or all pairs at once."""
    if mode == "dense" or distances is not None:
        what = "the mode is 'dense'" if distances is None else "distances are given"
        raise ValueError(
            f"{what}, but the {len(source)} series are not in memory, and no matrix of all pairs "
            "is made for them; use the mode 'lazy' or 'auto', or load the series"
        )
    if not measure.tags["elastic"]:  # all lengths decide, and a batch has some of them only
        shortest, longest = source.lengths
        both = np.zeros((2, source.shape[1], longest))
        both[1, :, shortest:] = np.nan
        measure.prepare(both)


class StreamedPairs:
    """An engine that reads the series of each batch: the GPU where it can, else the CPU."""

    def __init__(self, source: SeriesSource, measure: Measure, device: torch.device) -> None:
        self.source, self.measure = source, measure
        self.device = torch.device("cpu")  # where rows are looked up
        self._gpu = device if gpu_is_ready(measure, device) else None

    def pairs(self, series: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """See `PairEngine`; the result is where it was computed."""
        rows = series.numpy()
        few = ragged(self.source, rows, self.measure)
        if self._gpu is not None:
            here = torch.arange(len(rows), device=self._gpu)
            on_device = OnDevice(few, self.measure, self._gpu)
            return on_device.pairs(here, first.to(self._gpu), second.to(self._gpu))
        left, right = first.numpy(), second.numpy()
        values = self.measure(few, few, left, right)
        return torch.from_numpy(self.measure.check(values, rows[left], rows[right]))


def ragged(source: SeriesSource, rows: Ints, measure: Measure) -> Ragged:
    """Some series as kernels read them."""
    X = source.take(rows)
    if not measure.tags["elastic"]:  # stretched to the longest of all, not of these
        longest = np.zeros((1, *X.shape[1:]), X.dtype)
        longest[..., source.lengths[1] :] = np.nan
        X = np.concatenate([X, longest])
    return measure.prepare(X)[0]


def samples(
    source: SeriesSource, first: Ints, second: Ints, measure: Measure
) -> Iterator[tuple[Ragged, Ints, Ints]]:
    """The series of some pairs with where the pairs are in them, as many as memory should hold."""
    _, d, t = source.shape
    n_pairs = max(1, _AT_ONCE // (2 * d * t))
    for start in range(0, len(first), n_pairs):
        part = slice(start, start + n_pairs)
        rows, places = np.unique([first[part], second[part]], return_inverse=True)
        left, right = places.reshape(2, -1)
        yield ragged(source, rows, measure), left, right


class SetDistances:
    """Distances within several sets, each normalised by itself; rows are counted through all.

    Series of different sets are as far apart as can be, and so are those of a set that has none.
    It is asked as `BatchDistances` are. Matrices lie in one vector, so that a batch from many sets
    is looked up at once, where they are.

    Args:
        sets: Of each set; a number where so many series that follow one another are siblings and
            no others are alike; None where no two series are.
        starts: Rows at which sets begin.
        device: Where batches are looked up; None: where the distances of the first set are.
    """

    matrix = None

    def __init__(
        self,
        sets: Sequence["BatchDistances | int | None"],
        starts: Ints,
        device: torch.device | None = None,
    ) -> None:
        self.sets, self.starts = sets, np.asarray(starts)
        first = self._known[0] if self._known else None
        self.mode = "dense" if first is None else first.mode
        self.engine = None if first is None else first.engine
        self.device = device or (torch.device("cpu") if first is None else first.device)
        matrices = [None if one is None or isinstance(one, int) else one.matrix for one in sets]
        sizes = [0 if matrix is None else len(matrix) for matrix in matrices]
        families = [one if isinstance(one, int) else 1 for one in sets]
        places = np.cumsum([0, *(size**2 for size in sizes)])[:-1]
        self._begins, self._sizes, self._families, self._places = (
            torch.as_tensor(np.asarray(own), dtype=torch.int64, device=self.device)
            for own in (starts, sizes, families, places)
        )
        flat = [matrix.flatten() for matrix in matrices if matrix is not None]
        self._flat = (torch.cat(flat) if flat else torch.zeros(1)).to(self.device)
        self._apart = [
            (k, one)
            for k, one in enumerate(sets)
            if one is not None and not isinstance(one, int) and one.matrix is None
        ]

    def __call__(self, rows: Tensor) -> Tensor:
        """Distances of a batch, ``(B, B)``."""
        rows = rows.to(self._begins.device)
        number = torch.searchsorted(self._begins, rows, right=True) - 1  # of the set, (B,)
        own = rows - self._begins[number]
        same = number[:, None] == number
        size, family = self._sizes[number], own // self._families[number]
        place = self._places[number, None] + own[:, None] * size[:, None] + own
        known = same & (size > 0)
        block = torch.where(known, self._flat[place.where(known, 0)], 1.0)
        siblings = same & (family[:, None] == family) & (self._families[number] > 1)
        block.masked_fill_(siblings, OF_SIBLINGS)
        for k, between in self._apart:
            few = (number == k).nonzero()[:, 0]
            if len(few):
                block[few[:, None], few] = torch.as_tensor(between(own[few])).to(block)
        return block.fill_diagonal_(0.0)

    @property
    def facts(self) -> dict[str, Any]:
        """As one has them, with the extremes by set."""
        own = [distances.facts for distances in self._known]
        return {
            "engine": self.engine,
            **{k: sum(facts[k] for facts in own) for k in ("pairs_before", "pairs_in_batches")},
            **{k: [facts[k] for facts in own] for k in ("low", "high")},
        }

    @property
    def _known(self) -> list["BatchDistances"]:
        return [one for one in self.sets if one is not None and not isinstance(one, int)]
