"""Representations of steps as they arrive."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.inference import causal
from softclt.validation import Floats, Floats32, check_range, check_series


class CausalStream:
    """A series that arrives step by step; made by :meth:`softclt.TS2Vec.stream`.

    It remembers the last ``context`` steps and nothing else. What comes out is what the causal
    encoding of all steps so far has in their places. Two streams of one model do not meet.

    Example:
        >>> from softclt import TS2Vec
        >>> from softclt.data import waves
        >>> X = waves(n_per_class=4, length=30, random_state=0).X_train
        >>> model = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=2, random_state=0).fit(X)
        >>> stream = model.stream(context=10)
        >>> stream.push(0.5).shape
        (8,)
        >>> stream.push(X[0]).shape
        (30, 8)
    """

    def __init__(
        self,
        module: Encoder,
        reading: causal.Lookback,
        n_channels: int,
        scaled: Callable[[Floats], Floats32],
    ) -> None:
        check_range(reading.context, "context", 0)
        self._module, self._reading, self._scaled = module, reading, scaled
        self._before = torch.full((1, n_channels, reading.context), float("nan"))

    def push(self, x: Any) -> Floats32:
        """The representation ``(M,)`` of the newest step.

        Args:
            x: Its values: a number, or one a channel ``(D,)``; NaN is missing. Several steps
                ``(D, k)`` give ``(k, M)``.
        """
        return np.asarray(self._arrived(x, hide=False)[0])

    def push_masked(self, x: Any) -> tuple[Floats32, Floats32]:
        """The same, and with the values of the newest step hidden; see ``encode_masked``."""
        seen, hidden = self._arrived(x, hide=True)
        return seen, hidden

    def push_change(self, x: Any, *, norm: float = 1) -> Floats32:
        """The distance between the two, ``()`` or ``(k,)``; see ``last_step_change``."""
        check_range(norm, "norm", 1)
        return np.asarray(
            self._arrived(x, hide=True, made=lambda z: causal.change(z, norm)[None])[0]
        )

    def _arrived(
        self, x: Any, *, hide: bool, made: Callable[[Tensor], Tensor] = lambda z: z
    ) -> Floats32:
        """What is made of ``(V, k, M)``; if x is one step, without the k."""
        values = np.asarray(x, dtype=np.float64)
        n_channels = self._before.shape[1]
        one_step = values.shape in ((), (n_channels,))
        if one_step:
            values = values.reshape(n_channels if values.ndim else 1, 1)
        if values.ndim != 2 or len(values) != n_channels or values.shape[1] == 0:
            raise ValueError(
                f"x has shape {np.shape(x)}; expected the {n_channels} channel(s) of one step "
                f"({n_channels},), or of k steps ({n_channels}, k)"
            )
        scaled = self._scaled(check_series(values[None], name="x"))
        steps = torch.cat([self._before, torch.as_tensor(scaled)], dim=-1)
        context = self._reading.context
        done = causal.parts(self._module, steps, self._reading, hide=hide, first=context)
        results = [made(part.z[:, 0]).float().cpu() for part in done]
        self._before = steps[..., steps.shape[-1] - context :].clone()
        out: Floats32 = torch.cat(results, dim=1).numpy()  # (V, k, ...)
        return out[:, 0] if one_step else out
