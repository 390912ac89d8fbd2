"""From a trained encoder to representations: any length, memory bounded by the batch."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.inference.causal import Lookback, parts, refuse_overflow
from softclt.inference.causal import encode as encode_causal
from softclt.validation import (
    Floats32,
    Ints,
    check_choice,
    check_range,
    observed_steps,
    series_lengths,
)

LEVELS = ("instance", "timestamp", "window")
POOLINGS = ("max", "mean", "positive")
LAYERS = ("last", "all")

# Steps of all series in a forward pass; at M = 320 a layer's output is then 84 MB.
_STEPS_AT_ONCE = 1 << 16


@torch.no_grad()
def encode(
    module: Encoder,
    X: Floats32,
    *,
    level: str = "instance",
    window: int | None = None,
    stride: int | None = None,
    causal: bool = False,
    context: int = 200,
    pooling: str = "max",
    layers: str = "last",
    layer: int | None = None,
) -> Floats32:
    """Representations of series ``(N, D, T)`` at the asked level.

    Args:
        module: The encoder.
        X: Series, NaN where missing.
        level: ``instance``: one vector a series ``(N, M)``. ``timestamp``: one a step
            ``(N, T, M)``, NaN where a series has ended. ``window``: one for each window
            ``(N, W, M)``, NaN where a window has no value.
        window: Steps of a window.
        stride: Steps from one window to the next; ``window`` if None.
        causal: A step sees itself and ``context`` steps before it, nothing later.
        context: How far back a causal step sees.
        pooling: How the steps of a series or window become one vector: see `pool`.
        layers: Read out the last block or all of them, side by side.
        layer: Read out this block alone.
    """
    check_choice(level, LEVELS, "level")
    check_pooling(pooling)
    check_choice(layers, LAYERS, "layers")
    if layer is not None and not 0 <= layer < module.n_layers:
        raise ValueError(f"layer is {layer}; the encoder has the layers 0 to {module.n_layers - 1}")
    t = X.shape[-1]
    if level == "window":
        if window is None:
            raise ValueError('level="window" needs `window`, the number of steps of a window')
        check_range(window, "window", 1, t)
        check_range(stride or window, "stride", 1)
    elif window is not None or stride is not None:
        raise ValueError(f'window and stride belong to level="window"; level is {level!r}')
    reading = Lookback(context, layers, layer)
    if causal and level == "timestamp":
        return encode_causal(module, X, reading)

    def forward(x: Tensor) -> Tensor:
        if layers == "all" and layer is None:
            return module.all_layers(x)
        return module.forward(x, layer=layer)

    results: list[tuple[Ints, Floats32]] = []
    for rows, x, r, lengths in _batches(module, X):
        longest = x.shape[-1]
        z = _causal(module, x, reading) if causal else forward(x)  # (B, longest, M)
        if level == "timestamp":
            past_end = torch.arange(longest, device=x.device) >= lengths.unsqueeze(1)
            refuse_overflow(z, r, rows)
            out = z.masked_fill(past_end[..., None], float("nan"))
            out = _fill_end(out, t, dim=1)
        elif level == "window":
            assert window is not None
            step = stride or window
            if longest < t:  # windows behind the end of these series exist for the others
                z, r = _fill_end(z, t, dim=1), _fill_end(r, t, dim=1)
            z, r = z.unfold(1, window, step).mT, r.unfold(1, window, step)  # (B, W, window, ...)
            out = pool(z, r, pooling)
            refuse_overflow(out, r.any(dim=-1), rows)
        else:
            out = pool(z, r, pooling)
            refuse_overflow(out, r.any(dim=-1), rows)
        results.append((rows, out.float().cpu().numpy()))
    return _in_order(results)


@torch.no_grad()
def read_outs(
    module: Encoder, X: Floats32, wanted: Collection[tuple[str, str]]
) -> dict[tuple[str, str], Floats32]:
    """What `encode` gives for several ``(pooling, layers)``, from one pass of the encoder."""
    results: dict[tuple[str, str], list[Any]] = {one: [] for one in wanted}
    for pooling, layers in results:
        check_pooling(pooling)
        check_choice(layers, LAYERS, "layers")
    every = any(layers == "all" for _, layers in results)
    for rows, x, r, _ in _batches(module, X):
        z = last = module.all_layers(x) if every else module.forward(x)  # (B, T, M)
        if every:
            last = z[..., -module.forward(x[:1, :, :1]).shape[-1] :]  # the last block stands last
        for (pooling, layers), vectors in results.items():
            pooled = pool(z if layers == "all" else last, r, pooling)
            refuse_overflow(pooled, r.any(dim=-1), rows)
            vectors.append((rows, pooled.float().cpu().numpy()))
    return {one: _in_order(vectors) for one, vectors in results.items()}


def _batches(module: Encoder, X: Floats32) -> Iterator[tuple[Ints, Tensor, Tensor, Tensor]]:
    """Rows, series as the encoder takes them, their real steps and lengths, a part at a time.

    The encoder is in evaluation mode meanwhile. One that sees padding gets series of one length at
    a time.
    """
    n, _, t = X.shape
    parameter = next(module.parameters())
    # With padding let in, as the original has it, every step counts; else only observed ones do.
    real = observed_steps(X) if module.mask_padding else np.ones((n, t), dtype=bool)
    lengths = series_lengths(X) if module.mask_padding else np.full(n, t)
    order, ends = np.arange(n), [n]
    if module.needs_one_length:
        order = np.argsort(lengths, kind="stable")
        ends = [*(np.flatnonzero(np.diff(lengths[order])) + 1).tolist(), n]
    batch = max(1, _STEPS_AT_ONCE // t)
    was_training = module.training
    module.eval()
    for first, end in zip([0, *ends], ends, strict=False):
        for start in range(first, end, batch):
            rows = order[start : min(start + batch, end)]
            longest = max(1, int(lengths[rows].max()))
            x, r = X[rows, :, :longest], real[rows, :longest]
            yield (
                rows,
                torch.as_tensor(x, device=parameter.device, dtype=parameter.dtype),
                torch.as_tensor(r, device=parameter.device),
                torch.as_tensor(lengths[rows], device=parameter.device),
            )
    module.train(was_training)


def _in_order(
    parts: Sequence[tuple[Ints, Floats32]],
) -> Floats32:
    """Parts of the result, each with its rows, as one array."""
    if len(parts) == 1:
        return parts[0][1]
    out = np.empty((sum(len(rows) for rows, _ in parts), *parts[0][1].shape[1:]), np.float32)
    for rows, values in parts:
        out[rows] = values
    return out


def check_pooling(pooling: str) -> None:
    """Refuse what `pool` does not know."""
    kinds = str(pooling).split("+")
    if not set(kinds) <= set(POOLINGS) or len(set(kinds)) < len(kinds):
        raise ValueError(
            f"pooling is {pooling!r}; expected one of {', '.join(map(repr, POOLINGS))}, or several "
            "of them, each once, as in 'max+mean'"
        )


def pool(z: Tensor, real: Tensor, pooling: str) -> Tensor:
    """Pool ``(..., T, M)`` over the real steps; NaN where there is none.

    Args:
        z: Features of every step.
        real: Steps that count, ``(..., T)``.
        pooling: ``max``, ``mean``, ``positive`` (the share of steps above 0), or several side by
            side: ``max+mean+positive`` gives ``(..., 3 * M)``.
    """
    hidden, n_real = ~real[..., None], real.sum(dim=-1, keepdim=True)
    pooled = []
    for kind in pooling.split("+"):
        if kind == "max":
            pooled.append(z.masked_fill(hidden, float("-inf")).amax(dim=-2))
        elif kind == "mean":
            pooled.append(z.masked_fill(hidden, 0.0).sum(dim=-2) / n_real)
        else:
            pooled.append(((z > 0) & ~hidden).sum(dim=-2).to(z.dtype) / n_real)
    return torch.cat(pooled, dim=-1).masked_fill(n_real == 0, float("nan"))


def _fill_end(x: Tensor, length: int, dim: int) -> Tensor:
    """Extend an axis to ``length`` with NaN (False for masks)."""
    shape = list(x.shape)
    shape[dim] = length - shape[dim]
    fill = x.new_zeros(shape) if x.dtype == torch.bool else x.new_full(shape, float("nan"))
    return torch.cat([x, fill], dim=dim)


def _causal(module: Encoder, x: Tensor, reading: Lookback) -> Tensor:
    """Every step of ``(B, D, T)`` from itself and those before it, ``(B, T, M)``."""
    b, _, t = x.shape
    z = x.new_empty(0)
    for part in parts(module, x, reading):
        if z.numel() == 0:
            z = part.z.new_empty(b, t, part.z.shape[-1])
        z[part.rows, part.steps] = part.z[0]
    return z
