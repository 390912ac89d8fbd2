"""The encoder of whole series as a part of a graph: rows of different lengths side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.encoders.residual import ResidualEncoder
from softclt.export.graph import Value
from softclt.export.networks import array, conv

_LEAST_SPREAD, _LEAST_STEP = 1e-6, 1e-4  # of a row, and of its differences


@dataclass(frozen=True)
class Rows:
    """Series of one channel, each with its own number of steps.

    Attributes:
        h: ``(B, C, S)``, 0 behind the end of each.
        steps: Of each, ``(B, 1, 1)``.
    """

    h: Value
    steps: Value

    @property
    def real(self) -> Value:
        """True up to the end of each, ``(B, 1, S)``."""
        return self.h.graph.count_up(self.h.size(2)) < self.steps

    def ended(self, h: Value) -> "Rows":
        """Other values of the same steps."""
        return Rows(h * self.real.cast(np.float32), self.steps)

    def convolved(self, layer: Any) -> "Rows":
        """By a convolution that sees as much to either side."""
        (d,), (k,), (stride,) = layer.dilation, layer.kernel_size, layer.stride
        pad = d * (k - 1) // 2
        weight, bias = array(layer.weight), array(layer.bias)
        strides = {"dilations": [d], "pads": [pad, pad], "strides": [stride]}
        out = Rows(conv(self.h, weight, bias, **strides), (self.steps - 1) // stride + 1)
        return out.ended(out.h)

    def normed(self, norm: Any) -> "Rows":
        """By mean and spread of all its numbers, and then by channel."""
        count = self.steps.cast(np.float32) * float(norm.num_channels)
        apart = self.ended(self.h - self.h.sum(1, 2) / count).h
        variance = (apart * apart).sum(1, 2) / count
        h = apart / self.h.graph.op("Sqrt", variance + norm.eps)
        weight, bias = (
            self.h.graph.constant(array(part)[:, None], np.float32)
            for part in (norm.weight, norm.bias)
        )
        return Rows(h * weight + bias, self.steps)

    def pooled(self, kind: str) -> Value:
        """One number a channel, ``(B, C)``."""
        if kind == "max":
            out = self.real.where(self.h, float("-inf")).max(2)
        else:
            values = self.h if kind == "mean" else (self.h > 0).cast(np.float32)
            out = values.sum(2) / self.steps.cast(np.float32)
        return out.reshape(0, -1)


def blocks(encoder: ResidualEncoder, rows: Rows) -> list[Rows]:
    """Output of each block at its own steps."""
    own = _standardised(rows)
    rows = _both(own).convolved(encoder.stem)
    outputs = []
    stage: Any
    for i, stage in enumerate(encoder.stages):
        if i > 0:
            rows = rows.convolved(encoder.narrowing[i - 1])
        for block in stage:
            inner = rows
            for norm, convolution in zip(block.norms, block.convolutions, strict=True):
                h = inner.h.graph.op("Gelu", inner.normed(norm).h)
                inner = inner.ended(h).convolved(convolution)
            rows = Rows(rows.h + inner.h, rows.steps)
            outputs.append(rows)
    return outputs


def _standardised(rows: Rows) -> Rows:
    count = rows.steps.cast(np.float32)
    apart = rows.ended(rows.h - rows.h.sum(2) / count)
    spread = rows.h.graph.op("Sqrt", (apart.h * apart.h).sum(2) / count)
    return Rows(apart.h / spread.at_least(_LEAST_SPREAD), rows.steps)


def _both(own: Rows) -> Rows:
    """Values and their differences, which have a spread of their own."""
    graph, x = own.h.graph, own.h
    nothing = graph.zeros(np.float32, x.size(0), 1, 1)
    before = graph.side_by_side([nothing, x.part(0, -1, 2)], axis=2)
    first = graph.count_up(x.size(2)) > 0
    steps = own.ended(first.where(x - before, 0.0))
    count = own.steps.cast(np.float32)
    apart = own.ended(steps.h - steps.h.sum(2) / count).h
    spread = graph.op("Sqrt", (apart * apart).sum(2) / count).at_least(_LEAST_STEP)
    return Rows(graph.side_by_side([x, steps.h / spread], axis=1), own.steps)


def read_out(outputs: Sequence[Rows], kinds: Sequence[str]) -> Value:
    """What is read of blocks, side by side: ``(B, M)``."""
    parts = [rows.pooled(kind) for rows in outputs for kind in kinds]
    return parts[0].graph.side_by_side(parts, axis=1)
