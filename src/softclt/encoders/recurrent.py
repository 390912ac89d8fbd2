"""Recurrent networks, and an encoder that reads series window by window with them."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from softclt.encoders.encoder import Encoder, Piece
from softclt.encoders.stacked import Linear, uniform_parameter


class Recurrent(nn.Module):
    """A layer of gated recurrent units, in each of R networks."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.seen = uniform_parameter((1, 3 * n_out, n_in), n_out)
        self.kept = uniform_parameter((1, 3 * n_out, n_out), n_out)
        self.seen_bias = uniform_parameter((1, 3 * n_out), n_out)
        self.kept_bias = uniform_parameter((1, 3 * n_out), n_out)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(R, B, T, n_in)`` to what it holds after each step, ``(R, B, T, n_out)``."""
        r, b = x.shape[:2]
        before = self.kept.new_zeros(1, b, self.kept.shape[-1])
        parts = self.seen, self.kept, self.seen_bias, self.kept_bias
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self.kept.dtype)
            outputs = [
                torch.gru(x[i], before, [p[i] for p in parts], True, 1, 0.0, True, False, True)[0]
                for i in range(r)
            ]
        return torch.stack(outputs)


class WindowEncoder(Encoder):
    """A vector for each window of a series, by recurrent units that read it from both ends.

    A series is cut into windows one behind the other, the last of which ends where the series
    does; one that is shorter than a window is a window by itself. A window's vector is a linear
    map of what is held after its last step, reading forwards, and after its first, backwards.
    Every step has the vector of the window that it lies in.

    Missing steps inside a series count as 0. So do those behind its end where padding is not
    masked.

    Args:
        n_channels: Channels D of the series.
        window: Steps of a window.
        output_dims: Size M of the vectors.
        hidden_dims: Units in each direction.
        mask_padding: See `Encoder`.

    Example:
        >>> WindowEncoder(n_channels=3, window=10)(torch.zeros(4, 3, 25)).shape
        torch.Size([4, 25, 10])
    """

    n_layers = 1

    def __init__(
        self,
        n_channels: int,
        window: int = 50,
        output_dims: int = 10,
        hidden_dims: int = 100,
        mask_padding: bool = True,
    ) -> None:
        super().__init__()
        self.window, self.output_dims, self.mask_padding = window, output_dims, mask_padding
        self.widths = [output_dims]
        self.forwards = Recurrent(n_channels, hidden_dims)
        self.backwards = Recurrent(n_channels, hidden_dims)
        self.out = Linear(2 * hidden_dims, output_dims)

    def of_windows(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Vectors ``(R, S, M)`` of windows.

        Args:
            x: ``(R, S, D, W)``, nothing missing.
            lengths: Steps of each that count, from its first on, ``(R, S)``; None: all.
        """
        steps = x.mT  # (R, S, W, D)
        if lengths is None:
            ends = [self.forwards(steps)[:, :, -1], self.backwards(steps.flip(2))[:, :, -1]]
        else:
            last = (lengths - 1).clamp_min(0)[..., None, None]  # (R, S, 1, 1)
            numbers = torch.arange(steps.shape[2], device=x.device)[:, None]
            turned = steps.gather(2, (last - numbers).clamp_min(0).expand_as(steps))
            both = (self.forwards(steps), self.backwards(turned))
            ends = [
                held.gather(2, last.expand(-1, -1, 1, held.shape[-1]))[:, :, 0] for held in both
            ]
        return cast(Tensor, self.out(torch.cat(ends, dim=-1)[:, None])[:, 0])

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """See `Encoder`; of a single network x may have the leading axis or not."""
        if layer not in (None, 0):
            raise ValueError(f"layer is {layer}; this encoder has one, number 0")
        if x.ndim == 3:
            hidden = None if keep is None else keep[None]
            factors = None if dropout is None else dropout[None]
            return cast(Tensor, self(x[None], hidden, factors, layer, complete, pieces)[0])
        everything, parts = range(x.shape[-1]), []
        for steps, wanted in pieces or [Piece(everything, everything)]:
            own = slice(steps.start, steps.stop)
            hidden = None if keep is None else keep[..., own]
            z = self._at_steps(x[..., own], hidden, complete)
            parts.append(z[:, :, wanted.start - steps.start : wanted.stop - steps.start])
        out = torch.cat(parts, dim=2)
        return out if dropout is None else out * dropout

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """The only one."""
        return cast(Tensor, self(x, keep))

    def _at_steps(self, x: Tensor, keep: Tensor | None, complete: bool) -> Tensor:
        """Vectors ``(R, B, T, M)`` of series ``(R, B, D, T)``."""
        r, b, d, t = x.shape
        size = min(self.window, t)
        lengths = torch.full((r, b), t, device=x.device)
        if not complete:
            observed = ~x.isnan().any(dim=2)  # (R, B, T)
            if self.mask_padding:
                numbers = torch.arange(1, t + 1, device=x.device)
                lengths = (observed * numbers).amax(dim=-1)
            keep = observed if keep is None else keep & observed
        if keep is not None:
            x = torch.where(keep[:, :, None], x, x.new_zeros(()))
        n_windows = -(-t // size)
        starts = torch.arange(n_windows, device=x.device) * size  # (K,)
        starts = torch.minimum(starts, (lengths[..., None] - size).clamp_min(0))  # (R, B, K)
        places = starts[..., None] + torch.arange(size, device=x.device)  # (R, B, K, W)
        places = places.flatten(2)[:, :, None].expand(-1, -1, d, -1)
        windows = x.gather(-1, places).view(r, b, d, n_windows, size).transpose(2, 3)
        own = (lengths[..., None] - starts).clamp(max=size)
        whole = complete or not self.mask_padding
        z = self.of_windows(windows.flatten(1, 2), None if whole else own.flatten(1))
        of_step = torch.arange(t, device=x.device) // size
        return z.view(r, b, n_windows, -1)[:, :, of_step]
