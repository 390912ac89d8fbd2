"""Soft assignments between the series of a batch, as the training loop asks for them."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softclt.distances import BatchDistances


class BatchWeights:
    """Weights ``(B, B)`` of the rows of a batch.

    From a dense matrix all weights are made once and picked; else each batch has its own made.

    Args:
        distances: Normalised, of any batch.
        assign: The method's assignment, from distances ``(B, B)`` to weights; not hard.
        dtype: Of the weights.
    """

    def __init__(
        self,
        distances: BatchDistances,
        assign: Callable[[Tensor], Tensor | None],
        dtype: torch.dtype,
    ) -> None:
        self.distances, self.seconds = distances, 0.0
        self._assign, self._dtype, self._all = assign, dtype, None
        if distances.matrix is not None:
            self._all = assign(distances.matrix.to(dtype))

    def __call__(self, index: Tensor) -> Tensor:
        """Weights of the rows ``index`` ``(B,)``."""
        start = time.perf_counter()
        if self._all is not None:
            weights: Tensor | None = self._all[index[:, None], index]
        else:
            weights = self._assign(self.distances(index).to(self._dtype))
        assert weights is not None
        self.seconds += time.perf_counter() - start
        return weights

    @property
    def facts(self) -> dict[str, Any]:
        """Of the distances, with the seconds spent here; None on a GPU, which is not waited for."""
        measured = self.distances.device.type == "cpu"
        return self.distances.facts | {"seconds_in_training": self.seconds if measured else None}
