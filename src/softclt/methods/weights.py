"""Soft assignments for a stack of models, as the training loop asks for them."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softclt.distances import BatchDistances
from softclt.distances.of_sets import SetDistances
from softclt.losses.functional import LagWeights, TemporalWeights

Assignment = Callable[[Tensor], Tensor | None]

_KEPT = 2**27  # weights that are made once and kept, in numbers; beyond, each batch makes its own


class BatchWeights:
    """Instance weights ``(R, B, B)`` of the rows of a batch of each model.

    From a dense matrix all weights are made once and picked; else each batch has its own made.

    Args:
        distances: Normalised, of any batch.
        assign: Of each model, from distances to weights; None is hard.
        dtype: Of the weights.
    """

    def __init__(
        self,
        distances: BatchDistances | SetDistances,
        assign: Sequence[Assignment],
        dtype: torch.dtype,
    ) -> None:
        self.distances, self.seconds = distances, 0.0
        self._assign, self._dtype = assign, dtype
        self._all: Tensor | None = None
        matrix = distances.matrix
        if matrix is not None and len(assign) * matrix.numel() <= _KEPT:
            matrix = matrix.to(dtype)
            self._all = torch.stack([_weights(own, matrix) for own in assign])  # (R, N, N)

    def __call__(self, index: Tensor) -> Tensor:
        """Weights of the rows ``index`` ``(R, B)``."""
        start = time.perf_counter()
        if self._all is not None:
            models = torch.arange(len(index), device=index.device)[:, None, None]
            weights = self._all[models, index[:, :, None], index[:, None, :]]
        else:
            matrix = self.distances.matrix
            if matrix is None:
                blocks = [self.distances(rows).to(self._dtype) for rows in index]
            else:
                blocks = list(matrix[index[:, :, None], index[:, None, :]].to(self._dtype))
            weights = torch.stack(
                [_weights(own, block) for own, block in zip(self._assign, blocks, strict=True)]
            )
        self.seconds += time.perf_counter() - start
        return weights

    @property
    def facts(self) -> dict[str, Any]:
        """Of the distances, with the seconds spent here; None on a GPU, which is not waited for."""
        measured = self.distances.device.type == "cpu"
        return self.distances.facts | {"seconds_in_training": self.seconds if measured else None}


def stacked_temporal(policies: Sequence[TemporalWeights | None]) -> TemporalWeights | None:
    """The temporal weights of all models, ``(R, lags)``; None if all are hard."""
    if all(policy is None for policy in policies):
        return None
    if len(policies) == 1:
        return policies[0]

    def by_lag(length: int, level: int) -> Tensor:
        soft = [None if policy is None else policy(length, level) for policy in policies]
        like = next(row for row in soft if row is not None)
        rows = [like.new_ones(1) if row is None else row for row in soft]
        return pad_sequence(rows, batch_first=True)

    own = [policy for policy in policies if policy is not None]
    return LagWeights(by_lag, all(getattr(policy, "any_length", False) for policy in own))


def _weights(assign: Assignment, distances: Tensor) -> Tensor:
    weights = assign(distances)
    if weights is None:  # hard
        return torch.eye(len(distances), dtype=distances.dtype, device=distances.device)
    return weights
