"""Encoders as parts of a graph: the same layers with the same weights, for any number of steps."""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt.encoders import (
    CoSTEncoder,
    DilatedEncoder,
    Encoder,
    ForeignEncoder,
    TCCEncoder,
    WindowEncoder,
)
from softclt.encoders.cost import FourierLayer
from softclt.encoders.encoder import EncoderWithHeads
from softclt.encoders.recurrent import Recurrent
from softclt.encoders.tcc import EPS
from softclt.export.foreign import written_by_torch
from softclt.export.graph import ExportError, Graph, Value
from softclt.validation import Floats32


@dataclass(frozen=True)
class Seen:
    """What a network is given.

    Attributes:
        x: ``(N, D, T)`` in float32, 0 where missing.
        observed: Steps at which all channels have a value, ``(N, 1, T)``.
        n_channels: D.
    """

    x: Value
    observed: Value
    n_channels: int

    @property
    def graph(self) -> Graph:
        """Where they are."""
        return self.x.graph


def alone(encoder: Encoder) -> Encoder:
    """An encoder without what it learns by."""
    while isinstance(encoder, EncoderWithHeads):
        encoder = encoder.encoder
    return encoder


@singledispatch
def blocks(encoder: Encoder, seen: Seen, every: bool) -> list[Value]:
    """Outputs ``(N, M_k, T)`` of all blocks, or of the last alone."""
    raise ExportError(
        f"the encoder {type(encoder).__name__} has no ONNX form: softclt exports its own encoders "
        "and modules given as `encoder`"
    )


@blocks.register
def _(encoder: DilatedEncoder, seen: Seen, every: bool) -> list[Value]:
    inside = inside_of(seen.observed).cast(np.float32) if encoder.mask_padding else None

    def activate(h: Value) -> Value:
        h = h.graph.op("Gelu", h)
        return h if inside is None else h * inside

    h = _dense(seen.x, encoder.input) * seen.observed.cast(np.float32)
    outputs = []
    for block in encoder.blocks:
        between = _convolved(activate(h), block.conv1)
        out = _convolved(activate(between), block.conv2)
        h = out + (_dense(h, block.project) if hasattr(block.project, "weight") else h)
        outputs.append(h)
    return outputs if every else outputs[-1:]


@blocks.register
def _(encoder: CoSTEncoder, seen: Seen, every: bool) -> list[Value]:
    query = encoder.query
    outputs = blocks(query.trunk, seen, every)
    z = outputs[-1]
    if encoder.mask_padding:
        z = z * inside_of(seen.observed).cast(np.float32)
    with torch.no_grad():
        taps = query.heads.kernel()[0].permute(2, 1, 0)  # (n_out, n_in, taps)
        bias = torch.stack(list(query.heads.biases)).mean(dim=0)[0]
    trend = conv(z, array(taps), array(bias), pads=[query.heads.reach, 0])
    own = seen.graph.side_by_side([trend, _season(z, encoder.season)], axis=1)
    return [*outputs, own] if every else [own]


@blocks.register
def _(encoder: TCCEncoder, seen: Seen, every: bool) -> list[Value]:
    graph, h, observed = seen.graph, seen.x, seen.observed
    steps = graph.count_up(h.size(2)).expand(h.size(0), 1, 1)  # (N, 1, T)
    real = lengths = None
    if encoder.mask_padding:
        first = graph.op("ArgMax", observed.cast(np.int32), dtype=np.int64, axis=2)
        moved = (steps + first) % h.size(2)
        h = h.pick(moved.expand(1, h.size(1), 1), 2)
        real = observed.cast(np.float32).pick(moved, 2)
        lengths = ((real > 0).cast(np.int64) * (steps + 1)).max(2)
        steps = (steps - first).at_least(0)
    outputs = []
    layer: Any
    for layer in encoder.layers:
        pad = layer.kernel_size // 2
        h = conv(h, array(layer.weight[0]), None, pads=[pad, pad], strides=[layer.stride])
        if real is not None and lengths is not None:
            lengths = (lengths + (2 * pad - layer.kernel_size)) // layer.stride + 1
            reached = _largest(real, layer.kernel_size, layer.stride, pad)
            real = reached * (graph.count_up(h.size(2)) < lengths).cast(np.float32)
        h = graph.op("Relu", _normed(h, layer.norm))
        if real is not None and lengths is not None:
            h, real = h * real, _largest(real, 2, 2, 1)
            lengths = lengths // 2 + 1
        h = _largest(h, 2, 2, 1)
        steps = (steps // layer.stride + 1) // 2
        outputs.append(h.pick(steps.expand(1, h.size(1), 1), 2))
    return outputs if every else outputs[-1:]


@blocks.register
def _(encoder: WindowEncoder, seen: Seen, every: bool) -> list[Value]:
    graph, x, n, t = seen.graph, seen.x, seen.x.size(0), seen.x.size(2)
    size = t.at_most(encoder.window)
    steps = graph.count_up(t).expand(n, 1, 1)  # (N, 1, T)
    lengths = t.expand(n, 1, 1)
    if encoder.mask_padding:
        lengths = (seen.observed.cast(np.int64) * (steps + 1)).max(2)
    n_windows = (t + size - 1) // size
    starts = graph.count_up(n_windows) * size  # (K,)
    starts = starts.at_most((lengths - size).at_least(0)).reshape(n, n_windows, 1)  # (N, K, 1)
    places = (starts + graph.count_up(size)).reshape(n, 1, -1)  # (N, 1, K W)
    windows = x.pick(places.expand(1, seen.n_channels, 1), 2)
    windows = windows.reshape(n, seen.n_channels, n_windows, size).swap(3, 0, 2, 1)
    windows = windows.reshape(size, -1, seen.n_channels)  # (W, N K, D)
    own = (lengths - starts).at_most(size).at_least(1).reshape(-1).cast(np.int32)
    held = _held_at_the_ends(windows, own, [encoder.forwards, encoder.backwards])
    z = held.reshape(n, n_windows, -1).swap(0, 2, 1)  # (N, 2H, K)
    return [_dense(z, encoder.out).pick((steps // size).expand(1, encoder.output_dims, 1), 2)]


@blocks.register
def _(encoder: ForeignEncoder, seen: Seen, every: bool) -> list[Value]:
    return [written_by_torch(encoder.module, seen.x, seen.n_channels).swap(0, 2, 1)]


def inside_of(observed: Value) -> Value:
    """True from the first observed step to the last, ``(N, 1, T)``."""
    so_far = observed.cast(np.int32).cumsum(2)
    before_last = so_far < observed.cast(np.int32).sum(2)
    return (so_far > 0) & observed.graph.op("Or", before_last, observed)


def array(weights: Tensor) -> Floats32:
    """Weights as a constant of a graph."""
    return weights.detach().cpu().float().numpy()


def conv(x: Value, weight: Floats32, bias: Floats32 | None, **attributes: Any) -> Value:
    """A convolution of ``(N, n_in, T)`` with weights ``(n_out, n_in, taps)``."""
    values = [w for w in (weight, bias) if w is not None]
    constants = [x.graph.constant(w, np.float32) for w in values]
    return x.graph.op("Conv", x, *constants, kernel_shape=weight.shape[2:], **attributes)


def _dense(x: Value, linear: Any) -> Value:
    """A linear map of the channels of ``(N, n_in, T)``."""
    return conv(x, array(linear.weight[0].T[..., None]), array(linear.bias[0]))


def _convolved(x: Value, layer: Any) -> Value:
    weight = array(layer.weight[0].permute(2, 1, 0))  # (n_out, n_in, taps)
    d = layer.dilation
    return conv(x, weight, array(layer.bias[0]), dilations=[d], pads=[d, d])


def _held_at_the_ends(x: Value, lengths: Value, units: list[Recurrent]) -> Value:
    """What recurrent units hold of ``(W, S, D)`` after reading it forwards and backwards.

    ``(S, 2H)``. ONNX has the gates in another order than torch: update before reset.
    """

    def gates(weight: Tensor) -> Tensor:
        reset, update, new = weight.chunk(3)
        return torch.cat([update, reset, new])

    with torch.no_grad():
        parts = [
            torch.stack([gates(one.seen[0]) for one in units]),
            torch.stack([gates(one.kept[0]) for one in units]),
            torch.stack(
                [torch.cat([gates(one.seen_bias[0]), gates(one.kept_bias[0])]) for one in units]
            ),
        ]
    size = units[0].kept.shape[-1]
    constants = [x.graph.constant(array(part), np.float32) for part in parts]
    held = x.graph.second(
        "GRU",
        x,
        *constants,
        lengths,
        hidden_size=size,
        direction="bidirectional",
        linear_before_reset=1,
    )  # (2, S, H)
    return held.swap(1, 0, 2).reshape(-1, 2 * size)


def _normed(x: Value, norm: Any) -> Value:
    parts = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    constants = [x.graph.constant(array(part[0]), np.float32) for part in parts]
    return x.graph.op("BatchNormalization", x, *constants, epsilon=EPS)


def _largest(x: Value, kernel_size: int, stride: int, pad: int) -> Value:
    shape = {"kernel_shape": [kernel_size], "strides": [stride], "pads": [pad, pad]}
    return x.graph.op("MaxPool", x, **shape)


def _season(z: Value, layer: FourierLayer) -> Value:
    """What a `FourierLayer` makes of ``(N, n_in, T)``; both transforms are products."""
    graph, length = z.graph, layer.length
    n_in, n_out = layer.weight.shape[2:4]
    n_frequencies = length // 2 + 1
    angles = 2 * np.pi / length * (np.outer(np.arange(length), np.arange(n_frequencies)) % length)
    to = [graph.constant(part, np.float32) for part in (np.cos(angles), -np.sin(angles))]
    share = np.full((n_frequencies, 1), 2 / length)  # all but these stand for two
    share[[0, -1] if length % 2 == 0 else [0]] = 1 / length
    back = [
        graph.constant(share * part, np.float32) for part in (np.cos(angles.T), -np.sin(angles.T))
    ]
    weight = [graph.constant(array(layer.weight[0, ..., i]), np.float32) for i in range(2)]
    bias = [graph.constant(array(layer.bias[0, :, None, :, i]), np.float32) for i in range(2)]

    n_windows = (z.size(2) + (length - 1)) // length
    missing = n_windows * length - z.size(2)
    padded = graph.side_by_side([z, graph.zeros(np.float32, z.size(0), n_in, missing)], axis=2)
    windows = padded.reshape(z.size(0), n_in, n_windows, length).swap(0, 2, 1, 3)
    windows = windows.reshape(-1, n_in, length)  # (N W, n_in, L)
    real, imaginary = ((windows @ part).swap(2, 0, 1) for part in to)  # (F, N W, n_in)
    spectrum = (
        real @ weight[0] - imaginary @ weight[1] + bias[0],
        real @ weight[1] + imaginary @ weight[0] + bias[1],
    )  # (F, N W, n_out)
    parts = [own.swap(1, 2, 0) @ by for own, by in zip(spectrum, back, strict=True)]
    out = (parts[0] + parts[1]).reshape(z.size(0), n_windows, n_out, length).swap(0, 2, 1, 3)
    out = out.reshape(z.size(0), n_out, n_windows * length)
    zero, axis = (graph.constant([number], np.int64) for number in (0, 2))
    return graph.op("Slice", out, zero, z.size(2), axis)
