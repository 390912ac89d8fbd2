"""What computes the distances of a few pairs, again and again: the CPU or a GPU."""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from softclt.distances.gpu import device_series, dtw_on_device, gpu_is_ready
from softclt.distances.measure import Measure
from softclt.distances.registration import Ragged


class PairEngine(Protocol):
    """Distances between some of the series that it holds.

    Attributes:
        device: Where it wants its indices and leaves its results.
    """

    device: torch.device

    def pairs(self, series: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Distances of ``series[first[k]]`` and ``series[second[k]]``, ``(P,)``.

        Args:
            series: Rows of the data set, ``(K,)``.
            first, second: Positions in ``series``, ``(P,)`` each, P at least 1.
        """
        ...


def pair_engine(x: Ragged, measure: Measure, device: torch.device) -> PairEngine:
    """The GPU where it has a kernel for the measure, else the CPU."""
    return OnDevice(x, measure, device) if gpu_is_ready(measure, device) else OnHost(x, measure)


class OnHost:
    """Any metric, in the calling thread."""

    def __init__(self, x: Ragged, measure: Measure) -> None:
        self.x, self.measure, self.device = x, measure, torch.device("cpu")

    def pairs(self, series: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """In float64; an impossible distance is an error that names the rows."""
        index, left, right = series.numpy(), first.numpy(), second.numpy()
        few = self.x.take(index)
        values = self.measure(few, few, left, right)
        return torch.from_numpy(self.measure.check(values, index[left], index[right]))


class OnDevice:
    """DTW of series that lie on a GPU; nothing waits for it."""

    def __init__(self, x: Ragged, measure: Measure, device: torch.device) -> None:
        self.device = device
        self.x = device_series(x, self.device, x.values.mean(axis=1, dtype=np.float64))
        self.window, self.squared = measure.window, bool(measure.params.get("squared", False))

    def pairs(self, series: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """In float32."""
        few = self.x.take(series)
        return dtw_on_device(few, few, first, second, window=self.window, squared=self.squared)
