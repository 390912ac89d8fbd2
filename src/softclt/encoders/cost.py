"""The encoder of CoST: trend by causal convolutions, season in the frequency domain."""

import copy
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders.dilated import DilatedEncoder, inside_of
from softclt.encoders.encoder import Encoder, Piece
from softclt.encoders.stacked import Linear, one_precision, uniform_parameter


class TrendHeads(nn.Module):
    """Mean of causal convolutions of several lengths.

    A mean of convolutions is one convolution with the mean of their kernels, each with zeros for
    the steps that it does not see: that is what is computed.
    """

    def __init__(self, n_in: int, n_out: int, kernel_sizes: Sequence[int]) -> None:
        super().__init__()
        self.reach = max(kernel_sizes) - 1
        self.weights = nn.ParameterList(
            uniform_parameter((1, k, n_in, n_out), k * n_in) for k in kernel_sizes
        )
        self.biases = nn.ParameterList(
            uniform_parameter((1, n_out), k * n_in) for k in kernel_sizes
        )

    def forward(self, z: Tensor) -> Tensor:
        """The last S steps of ``(R, reach + S, B, n_in)``, as ``(R, S, B, n_out)``."""
        n_steps, b = z.shape[1] - self.reach, z.shape[2]
        bias = torch.stack(list(self.biases)).mean(dim=0)
        z, weight, bias = one_precision(z, self.kernel(), bias)
        out = []
        for own, taps, start in zip(z, weight, bias, strict=True):
            seen = own.unfold(0, n_steps, 1)  # (taps, B, n_in, S), nothing is copied
            seen = seen.permute(0, 3, 1, 2).reshape(len(taps), n_steps * b, -1)
            products = torch.addbmm(start.expand(n_steps * b, -1), seen, taps)
            out.append(products.view(n_steps, b, -1))
        return torch.stack(out)

    def everywhere(self, z: Tensor, steps: range) -> Tensor:
        """Some steps of series ``(R, T, B, n_in)``, before which there is nothing."""
        first = steps.start - self.reach
        seen = z[:, max(0, first) : steps.stop]
        return cast(Tensor, self(F.pad(seen, (0, 0, 0, 0, max(0, -first), 0))))

    def kernel(self) -> Tensor:
        """``(R, reach + 1, n_in, n_out)``; the last tap is the step itself."""
        n = self.reach + 1
        padded = [F.pad(w, (0, 0, 0, 0, n - w.shape[1], 0)) for w in self.weights]
        return torch.stack(padded).mean(dim=0)


class FourierLayer(nn.Module):
    """A complex linear map for each frequency of windows of a length.

    It belongs to that length. A shorter series is followed by zeros, a longer one is cut into
    windows from its first step on, the last of them followed by zeros: so what pads a series
    changes nothing. Complex numbers are kept as pairs of real ones.
    """

    def __init__(self, n_in: int, n_out: int, length: int) -> None:
        super().__init__()
        self.length = length
        n_frequencies = length // 2 + 1
        # The bound of CoST's code, in which torch takes n_in * n_out for the fan-in.
        self.weight = uniform_parameter((1, n_frequencies, n_in, n_out, 2), n_in * n_out)
        self.bias = uniform_parameter((1, n_frequencies, n_out, 2), n_in * n_out)

    def forward(self, z: Tensor) -> Tensor:
        """From ``(R, T, B, n_in)`` to ``(R, T, B, n_out)``."""
        (r, t, b, n_in), length = z.shape, self.length
        n_windows = -(-t // length)
        z = z.to(self.weight.dtype)
        z = F.pad(z, (0, 0, 0, 0, 0, n_windows * length - t))
        z = z.view(r, n_windows, length, b, n_in).transpose(1, 2).flatten(2, 3)
        weight, bias = torch.view_as_complex(self.weight), torch.view_as_complex(self.bias)
        spectrum = torch.fft.rfft(z, dim=1) @ weight + bias[:, :, None]  # (R, F, W * B, n_out)
        out = torch.fft.irfft(spectrum, n=length, dim=1)
        out = out.unflatten(2, (n_windows, b)).transpose(1, 2).flatten(1, 2)
        return cast(Tensor, out[:, :t])


class TrendNetwork(nn.Module):
    """All that leads to a trend, and the head through which it is contrasted."""

    def __init__(self, trunk: DilatedEncoder, n_in: int, kernel_sizes: Sequence[int]) -> None:
        super().__init__()
        n_out = n_in // 2
        self.trunk = trunk
        self.heads = TrendHeads(n_in, n_out, kernel_sizes)
        self.first, self.second = Linear(n_out, n_out), Linear(n_out, n_out)

    def features(self, x: Tensor, keep: Tensor | None = None, complete: bool = False) -> Tensor:
        """What all is made of ``(R, T, B, M)``, of series ``(R, B, D, T)``; 0 in padding."""
        z = self.trunk(x, keep, complete=complete).transpose(1, 2)
        return z if complete else self.inside(x, z)

    def inside(self, x: Tensor, z: Tensor) -> Tensor:
        """Something ``(R, T, B, ...)`` with zeros in what pads the series x."""
        if not self.trunk.mask_padding:
            return z
        return z * inside_of(~x.isnan().any(dim=-2).mT[..., None])

    def projected(self, z: Tensor, centre: Tensor, reach: int) -> Tensor:
        """Unit vectors ``(R, 2 * reach + 1, B, C)`` of the trend around a step of each series.

        Args:
            z: Features.
            centre: That step, ``(R, B)``.
            reach: Steps to either side of it; beyond the ends of a series they mean nothing.
        """
        before, n = self.heads.reach + reach, self.heads.reach + 2 * reach + 1
        padded = F.pad(z, (0, 0, 0, 0, before, reach))
        steps = centre[:, None] + torch.arange(n, device=z.device)[:, None]  # (R, n, B)
        seen = padded.gather(1, steps[..., None].expand(-1, -1, -1, z.shape[-1]))
        head = self.second(F.relu(self.first(self.heads(seen))))
        return F.normalize(head, dim=-1)


class CoSTEncoder(Encoder):
    """Representations ``[trend, season]`` of every step, each half of M.

    With what its momentum contrast needs: a slow copy of the trend's network and a queue of keys,
    which both are part of the module and so of its files.

    Args:
        n_channels: Channels D of the series.
        output_dims: Size M of the representation, and of the features below it; even.
        hidden_dims: Channels inside the dilated convolutions.
        depth: Their blocks before the last one.
        kernel_sizes: Of the trend's convolutions, in steps.
        length: Steps of the windows that the season's frequencies are of.
        queue_size: Keys that are kept.
        mask_padding: Keep the steps before a series' first and behind its last value at zero.

    Example:
        >>> encoder = CoSTEncoder(2, output_dims=16, hidden_dims=4, depth=3, length=30)
        >>> encoder(torch.randn(4, 2, 50)).shape
        torch.Size([4, 50, 16])
    """

    queue: Tensor  # (R, queue_size, M / 2), the newest key first

    def __init__(
        self,
        n_channels: int,
        output_dims: int = 320,
        hidden_dims: int = 64,
        depth: int = 10,
        kernel_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
        length: int = 201,
        queue_size: int = 256,
        mask_padding: bool = True,
    ) -> None:
        super().__init__()
        self.mask_padding, self.output_dims = mask_padding, output_dims
        trunk = DilatedEncoder(n_channels, output_dims, hidden_dims, depth, mask_padding)
        self.widths, self.n_layers = [*trunk.widths, output_dims], trunk.n_layers + 1
        self.query = TrendNetwork(trunk, output_dims, kernel_sizes)
        self.season = FourierLayer(output_dims, output_dims // 2, length)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        queue = torch.randn(1, queue_size, output_dims // 2)
        self.register_buffer("queue", F.normalize(queue, dim=-1))

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """See `DilatedEncoder.forward`; the layers are those of its blocks, and [trend, season]."""
        if x.ndim == 3:
            hidden = None if keep is None else keep[None]
            factors = None if dropout is None else dropout[None]
            return self(x[None], hidden, factors, layer, complete, pieces)[0]  # type: ignore[no-any-return]
        if layer is not None and layer < self.n_layers - 1:
            return cast(Tensor, self.query.trunk(x, keep, dropout, layer, complete, pieces))
        parts = []
        for steps, wanted in pieces or [Piece(range(x.shape[-1]), range(x.shape[-1]))]:
            own = slice(steps.start, steps.stop)
            hidden = None if keep is None else keep[..., own]
            z = self.query.features(x[..., own], hidden, complete)
            first = wanted.start - steps.start
            parts.append(self._read(z, range(first, first + len(wanted))))
        out = torch.cat(parts, dim=1).transpose(1, 2)
        return out if dropout is None else out * dropout

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Outputs of all blocks side by side, the representation last."""
        if x.ndim == 3:
            return self.all_layers(x[None], None if keep is None else keep[None])[0]
        blocks = self.query.trunk.all_layers(x, keep)
        z = self.query.inside(x, blocks[..., -self.output_dims :].transpose(1, 2))
        own = self._read(z, range(z.shape[1])).transpose(1, 2)
        return torch.cat([blocks, own], dim=-1)

    def _read(self, z: Tensor, steps: range) -> Tensor:
        """``[trend, season]`` at some steps, from the features of all."""
        season = self.season(z)[:, steps.start : steps.stop]
        return torch.cat([self.query.heads.everywhere(z, steps).to(season), season], dim=-1)

    @torch.no_grad()
    def follow(self, momentum: float) -> None:
        """Let the slow copy take a step towards its original."""
        slow: list[Tensor] = list(self.key.parameters())
        quick: list[Tensor] = list(self.query.parameters())
        torch._foreach_mul_(slow, momentum)
        torch._foreach_add_(slow, quick, alpha=1 - momentum)

    @torch.no_grad()
    def enqueue(self, keys: Tensor, real: Tensor | None = None) -> None:
        """Put keys ``(R, B, C)`` into the queue, from which the oldest fall out.

        Args:
            keys: Unit vectors.
            real: ``(R, B)``, False for those that are left out; None: all are taken.
        """
        for r, (own, queue) in enumerate(zip(keys, self.queue, strict=True)):
            taken = own if real is None else own[real[r]]
            queue.copy_(torch.cat([taken.to(queue), queue])[: len(queue)])
