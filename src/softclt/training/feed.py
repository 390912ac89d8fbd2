"""Batches of series that are not in memory, each read while the step before it is taken."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softclt.data.preparation import centre
from softclt.data.sources.sections import StreamedSeries
from softclt.training.distributed import Group
from softclt.training.order import rows_of_batch, set_of_step
from softclt.validation import Floats32, Ints

_BUNDLE = 2**28  # bytes of series that are read together and permuted
_MOST_BUNDLED = 2**18  # series of a bundle, whose order each model keeps


class FedBatch(NamedTuple):
    """What a step needs of the series; global rows, and the values of this process' part."""

    rows: Tensor  # (R, B)
    x: Tensor  # (R, B / processes, D, T)
    mask: Tensor | None  # (R, B / processes, T)


class Feed:
    """One or several sets of series; the batch of a step comes from one of them.

    Rows are counted through all sets.
    """

    def __init__(self, sets: Sequence[StreamedSeries]) -> None:
        self.sets = sets
        self.starts = np.cumsum([0, *map(len, sets)])
        self._shards = [None if own.shards is None else tuple(own.shards.tolist()) for own in sets]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def stand_in(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor of the shape of all series that holds one number only."""
        t = max(own.shape[-1] for own in self.sets)
        return torch.zeros((), dtype=dtype, device=device).expand(
            len(self), self.sets[0].shape[1], t
        )

    def n_in_batches(self, batch_size: int) -> int:
        """Series that whole batches of this size have in an epoch; smaller sets count as one."""
        return batch_size * sum(self._counts(batch_size))

    def rows(self, seed: int, step: int, batch_size: int) -> Ints:
        """Of the batch of a step."""
        k, number = 0, step
        if len(self.sets) > 1:
            k, number = set_of_step(step, self._counts(batch_size))
        own = self.sets[k]
        _, d, t = own.shape
        at_once = min(_MOST_BUNDLED, _BUNDLE // (d * t * own.source.dtype.itemsize))
        b = min(batch_size, len(own))
        rows = rows_of_batch(seed, number, len(own), b, self._shards[k], at_once)
        return rows + int(self.starts[k])

    def take(self, rows: Ints) -> tuple[Floats32, bool]:
        """Values of rows of one set ``(B, D, T)``, and whether the set misses nothing."""
        k = int(np.searchsorted(self.starts, rows[0], side="right")) - 1
        x = self.sets[k].take(rows - self.starts[k])
        return (x if self.sets[k].complete else centre(x)), self.sets[k].complete

    def _counts(self, batch_size: int) -> list[int]:
        return [len(own) // min(batch_size, len(own)) for own in self.sets]


class Fetcher:
    """The batches of a stack of models, one after the other; the next one is read ahead.

    Args:
        feed: The series.
        seeds: Of the models.
        batch_size: Series in a batch of each.
        group: Processes that share a batch.
    """

    def __init__(self, feed: Feed, seeds: Sequence[int], batch_size: int, group: Group) -> None:
        self.feed, self.seeds, self.batch_size, self.group = feed, seeds, batch_size, group
        self._reader = ThreadPoolExecutor(1)
        self._ahead: tuple[int, Future[FedBatch]] | None = None

    def __call__(self, step: int) -> FedBatch:
        """The batch of a step."""
        if self._ahead is not None and self._ahead[0] == step:
            batch = self._ahead[1].result()
        else:
            batch = self._read(step)
        self._ahead = step + 1, self._reader.submit(self._read, step + 1)
        return batch

    def _read(self, step: int) -> FedBatch:
        rows = np.stack([self.feed.rows(seed, step, self.batch_size) for seed in self.seeds])
        part = self.group.part(rows.shape[1])
        taken = [self.feed.take(own) for own in rows[:, part]]
        x = torch.from_numpy(np.stack([values for values, _ in taken]))
        mask = None if taken[0][1] else ~x.isnan().any(dim=-2)
        return FedBatch(torch.from_numpy(rows), x, mask)
