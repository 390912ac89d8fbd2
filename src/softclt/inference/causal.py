"""Representations of every step from what came before it: for alarms, forecasts and streams."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.validation import Floats, Floats32, Ints, check_range, series_lengths

# Windows in a pass. Fewer stay in the processor's cache, more keep a GPU busy.
_WINDOWS_AT_ONCE = {"cpu": 1 << 10, "cuda": 1 << 14}


class Lookback(NamedTuple):
    """What is read of a network, and with how much context.

    Attributes:
        context: Steps that a step sees before itself.
        layers: ``last`` block, or ``all`` of them side by side.
        layer: This block alone.
    """

    context: int = 200
    layers: str = "last"
    layer: int | None = None


class Part(NamedTuple):
    """Some steps of some series.

    Attributes:
        rows: Of the series.
        steps: Of each of them.
        z: Their representations ``(V, B, K, M)``: as seen, and for V = 2 with the step itself
            hidden.
    """

    rows: slice
    steps: slice
    z: Tensor


def encode(module: Encoder, X: Floats, reading: Lookback) -> Floats32:
    """Every step ``(N, T, M)``, NaN where a series has ended."""
    return np.asarray(_collect(module, X, reading, hide=False)[0])


def encode_masked(module: Encoder, X: Floats, reading: Lookback) -> tuple[Floats32, Floats32]:
    """Every step as seen, and with its own values hidden, each ``(N, T, M)``."""
    seen, hidden = _collect(module, X, reading, hide=True)
    return seen, hidden


def last_step_change(module: Encoder, X: Floats, reading: Lookback, norm: float = 1) -> Floats32:
    """How far each step's representation moves when its own values are hidden, ``(N, T)``."""
    check_range(norm, "norm", 1)
    moved = _collect(module, X, reading, hide=True, made=lambda z: change(z, norm)[None])
    return np.asarray(moved[0])


def change(z: Tensor, norm: float) -> Tensor:
    """Distance between seen and hidden, from ``(2, ..., M)`` to ``(...)``."""
    moved: Tensor = torch.linalg.vector_norm(z[0] - z[1], ord=norm, dim=-1)
    return moved


@torch.no_grad()
def parts(
    module: Encoder,
    X: Tensor,
    reading: Lookback,
    *,
    hide: bool = False,
    first: int = 0,
    lengths: Ints | None = None,
) -> Iterator[Part]:
    """The steps of series ``(N, D, T)``, a part at a time, in memory that T does not change.

    Args:
        module: In evaluation mode meanwhile.
        X: Series, NaN where missing.
        reading: What of the network.
        hide: Also with the step's own values hidden.
        first: The steps before this one are context only.
        lengths: Steps behind the longest series of a part are left out.
    """
    check_range(reading.context, "context", 0)
    n, _, t = X.shape
    parameter = next(module.parameters())
    at_once = _WINDOWS_AT_ONCE.get(parameter.device.type, _WINDOWS_AT_ONCE["cpu"])
    batch = max(1, at_once // t)
    every = reading.layers == "all" and reading.layer is None
    was_training = module.training
    if was_training:  # going through all layers for nothing would slow a stream down
        module.eval()
    try:
        for row in range(0, n, batch):
            rows = slice(row, row + batch)
            stop = t if lengths is None else max(1, int(lengths[rows].max()))
            for start in range(first, stop, at_once):
                steps = slice(start, min(start + at_once, stop))
                x = _with_context(X[rows], steps, reading.context).to(parameter)
                z = module.last_steps(x, reading.context, reading.layer, every, hide)
                yield Part(rows, steps, z if hide else z[None])
    finally:
        if was_training:
            module.train()


def _collect(
    module: Encoder,
    X: Floats,
    reading: Lookback,
    *,
    hide: bool,
    made: Callable[[Tensor], Tensor] = lambda z: z,
) -> Floats32:
    """What is made of the parts, ``(V, B, K, ...)``, in their places: ``(V, N, T, ...)``."""
    n, _, t = X.shape
    # With padding let in, as the original has it, every step counts.
    lengths = series_lengths(X) if module.mask_padding else np.full(n, t)
    out = np.empty(0, np.float32)
    for part in parts(module, torch.as_tensor(X), reading, hide=hide, lengths=lengths):
        rows = np.arange(n)[part.rows]
        real = torch.as_tensor(np.arange(t)[part.steps] < lengths[rows, None], device=part.z.device)
        refuse_overflow(part.z.transpose(0, 1), real[:, None], rows)
        values = made(part.z).float().cpu().numpy()
        if out.size == 0:
            out = np.full((len(values), n, t, *values.shape[3:]), np.nan, np.float32)
        out[:, part.rows, part.steps] = values
    for row, length in enumerate(lengths):
        out[:, row, length:] = np.nan
    return out


def refuse_overflow(z: Tensor, real: Tensor, rows: Ints) -> None:
    """Refuse representations ``(B, ..., M)`` that are no numbers.

    Args:
        z: Representations.
        real: Those that count, ``(B, ...)``.
        rows: Number of each of the B series.
    """
    wrong = (~z.isfinite().all(dim=-1) & real).reshape(len(rows), -1).any(dim=1)
    if bool(wrong.any()):
        raise ValueError(
            f"series {rows[int(wrong.int().argmax())]} of X has values so large that the network's "
            "numbers overflow; use NaN for what is missing, or a model with scale='channel'"
        )


def _with_context(X: Tensor, steps: slice, context: int) -> Tensor:
    """The steps and those before them; NaN before the beginning."""
    own = X[..., max(0, steps.start - context) : steps.stop]
    missing = context + steps.stop - steps.start - own.shape[-1]
    return torch.nn.functional.pad(own, (missing, 0), value=float("nan"))
