"""The convolutional encoder of TS-TCC: blocks that each halve the steps."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders.encoder import Encoder, Piece
from softclt.encoders.stacked import one_precision, uniform_parameter

Dropout = Callable[[tuple[int, ...], float], Tensor]  # shape, probability -> factors (R, *shape)

LATER_KERNEL = 8  # of all blocks but the first
MOMENTUM, EPS = 0.1, 1e-5  # torch's, of batch statistics


class Features(NamedTuple):
    """What a block gives.

    Attributes:
        values: ``(R, B, T_k, C_k)``; 0 where masked.
        mask: ``(R, B, T_k)``, True at steps that see anything of their series; None: all do.
    """

    values: Tensor
    mask: Tensor | None


class BatchNorm(nn.Module):
    """Batch normalisation of a stack of R networks, over real steps only.

    In evaluation mode, and when its weights are frozen (``requires_grad`` is False), it takes the
    running statistics and leaves them as they are.

    Attributes:
        rests_when_frozen: Whether the latter holds; if not, it has statistics of each batch in
            training mode, whoever moves its weights.
    """

    running_mean: Tensor  # (R, C)
    running_var: Tensor  # (R, C)
    rests_when_frozen = True

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, n_channels))
        self.bias = nn.Parameter(torch.zeros(1, n_channels))
        self.register_buffer("running_mean", torch.zeros(1, n_channels))
        self.register_buffer("running_var", torch.ones(1, n_channels))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Of ``(B, R, C, T)``; ``real`` is ``(B, R, 1, T)``, 1 at real steps and 0 at others."""
        x = x.to(self.weight.dtype)
        rests = self.rests_when_frozen and not self.weight.requires_grad
        learns = self.training and not rests
        if not learns or (real is None and x.shape[0] * x.shape[-1] > 1):
            flat = F.batch_norm(
                x.flatten(1, 2),  # (B, R * C, T)
                self.running_mean.flatten(),
                self.running_var.flatten(),
                self.weight.flatten(),
                self.bias.flatten(),
                learns,
                MOMENTUM,
                EPS,
            )
            return flat.view_as(x)
        return self._by_real_steps(x, torch.ones_like(x[:, :, :1]) if real is None else real)

    def _by_real_steps(self, x: Tensor, real: Tensor) -> Tensor:
        count = real.sum(dim=(0, 3)).clamp_min(1)  # (R, 1)
        mean = (x * real).sum(dim=(0, 3)) / count  # (R, C)
        apart = x - mean[..., None]
        var = (apart.square() * real).sum(dim=(0, 3)) / count
        with torch.no_grad():
            self.running_mean.lerp_(mean, MOMENTUM)
            unbiased = var * (count / (count - 1).clamp_min(1))
            self.running_var.lerp_(unbiased, MOMENTUM)
        scale = (self.weight * (var + EPS).rsqrt())[..., None]
        return apart * scale + self.bias[..., None]


class _Block(nn.Module):
    """Convolution, batch normalisation, ReLU, and the larger of each two steps."""

    def __init__(self, n_in: int, n_out: int, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.stride, self.kernel_size = stride, kernel_size
        self.weight = uniform_parameter((1, n_out, n_in, kernel_size), n_in * kernel_size)
        self.norm = BatchNorm(n_out)

    def forward(
        self, h: Tensor, real: Tensor | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """From ``(B, R, n_in, T)`` to about half of the steps.

        Args:
            h: 0 where not real.
            real: 1 at real steps, else 0, ``(B, R, 1, T)``; None: all are.
            lengths: Steps of each series, ``(B, R)``; None with ``real``.
        """
        n_models, padding = len(self.weight), self.kernel_size // 2
        h = self._convolved(h, padding)  # (B, R, n_out, T')
        if real is not None and lengths is not None:
            lengths = (lengths + 2 * padding - self.kernel_size) // self.stride + 1
            inside = torch.arange(h.shape[-1], device=h.device) < lengths[..., None]
            # What sees any observed step is real, as far as the convolution of the series alone
            # would reach; the rest is zero, as what pads that convolution.
            seen = F.max_pool1d(real[:, :, 0], self.kernel_size, self.stride, padding)
            real = (seen * inside)[:, :, None]
        h = F.relu(self.norm(h, real))
        if real is not None and lengths is not None:
            h = h * real  # nothing is below 0, so what is not real is never the larger
            real = F.max_pool1d(real[:, :, 0], 2, 2, 1)[:, :, None]
            lengths = lengths // 2 + 1
        pooled = F.max_pool1d(h.flatten(1, 2), 2, 2, 1)
        return pooled.view(len(h), n_models, -1, pooled.shape[-1]), real, lengths

    def _convolved(self, h: Tensor, padding: int) -> Tensor:
        if len(self.weight) == 1:
            return F.conv1d(h[:, 0], self.weight[0], None, self.stride, padding)[:, None]
        # As one product for all networks: convolutions in groups take far longer.
        seen = F.pad(h, (padding, padding)).unfold(-1, self.kernel_size, self.stride)
        b, r, _, t, _ = seen.shape  # (B, R, n_in, T', kernel)
        rows = seen.permute(1, 0, 3, 2, 4).reshape(r, b * t, -1)
        (rows, weight) = one_precision(rows, self.weight.flatten(2).mT)
        return (rows @ weight).view(r, b, t, -1).permute(1, 0, 3, 2)

    def covering(self, steps: Tensor) -> Tensor:
        """The step of the output in whose midst each step of the input lies."""
        return (steps // self.stride + 1) // 2


class TCCEncoder(Encoder):
    """Blocks of convolution, batch normalisation, ReLU and pooling of each two steps.

    A block gives (L + 1) // 2 + 1 steps for L at stride 1 and an even kernel. Representations of
    single steps are those of the pooled step that lies over each: up to 2^blocks steps share one.

    Steps before the first and behind the last value of a series are not part of it: the series is
    taken as if it began with its first value, and nothing of what follows its last one is seen. So
    in evaluation mode neither padding nor what else is in a batch changes a representation.

    Randomness is not drawn here: dropout comes in with the call.

    Args:
        n_channels: Channels D of the series.
        widths: Channels of each block; the last is the size M of the representation.
        kernel_size: Of the first block's convolution; the others have 8 steps.
        stride: Of the first block's convolution.
        dropout: Probability with which a value of the first block is dropped in training.
        mask_padding: See above; the original takes padding for values of 0 (False).

    Example:
        >>> encoder = TCCEncoder(n_channels=9).eval()
        >>> [features.shape[2] for features, _ in encoder.blocks(torch.zeros(1, 4, 9, 128))]
        [65, 34, 18]
        >>> encoder(torch.zeros(4, 9, 128)).shape
        torch.Size([4, 128, 128])
    """

    def __init__(
        self,
        n_channels: int,
        widths: Sequence[int] = (32, 64, 128),
        kernel_size: int = 8,
        stride: int = 1,
        dropout: float = 0.35,
        mask_padding: bool = True,
    ) -> None:
        super().__init__()
        self.mask_padding, self.dropout = mask_padding, dropout
        self.widths, self.n_layers, self.output_dims = widths, len(widths), widths[-1]
        self.layers = nn.ModuleList(
            _Block(
                widths[i - 1] if i else n_channels,
                width,
                LATER_KERNEL if i else kernel_size,
                1 if i else stride,
            )
            for i, width in enumerate(widths)
        )

    def blocks(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        dropout: Dropout | None = None,
        complete: bool = False,
    ) -> list[Features]:
        """Outputs of the blocks, each from the first observed step of every series on.

        Args:
            x: Series ``(R, B, D, T)``, NaN where missing; a step with any missing channel is.
            mask: ``(R, B, T)``, False at steps that are to count as missing too.
            dropout: Draws the factors of the first block's dropout; None: nothing is dropped.
            complete: Nothing is missing in x, and need not be looked for.
        """
        return self._run(x, self._observed(x, mask, complete), dropout, self.n_layers)

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """Representations ``(R, B, T, M)`` of every step; see `DilatedEncoder.forward`.

        A step that is hidden by ``keep`` has zeros for values. Where a series has ended, a step
        means nothing.
        """
        if x.ndim == 3:
            hidden = None if keep is None else keep[None]
            factors = None if dropout is None else dropout[None]
            return cast(Tensor, self(x[None], hidden, factors, layer, complete, pieces)[0])
        last = self.n_layers - 1 if layer is None else layer
        parts = []
        for steps, wanted in pieces or [Piece(range(x.shape[-1]), range(x.shape[-1]))]:
            own = slice(steps.start, steps.stop)
            hidden = None if keep is None else keep[..., own]
            z = self._at_steps(x[..., own], hidden, complete, last + 1)[last]
            parts.append(z[:, :, wanted.start - steps.start : wanted.stop - steps.start])
        out = torch.cat(parts, dim=2)
        return out if dropout is None else out * dropout

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Outputs of all blocks at every step, side by side, ``(..., T, sum of widths)``."""
        if x.ndim == 3:
            return self.all_layers(x[None], None if keep is None else keep[None])[0]
        return torch.cat(self._at_steps(x, keep, False, self.n_layers), dim=-1)

    def _at_steps(
        self, x: Tensor, keep: Tensor | None, complete: bool, n_blocks: int
    ) -> list[Tensor]:
        """Outputs of blocks ``(R, B, T, C_k)`` at the steps of x."""
        observed = self._observed(x, None, complete)
        if keep is not None:
            x = torch.where(keep[..., None, :] | x.isnan(), x, 0.0)
        features = self._run(x, observed, None, n_blocks)
        steps = torch.arange(x.shape[-1], device=x.device).expand(*x.shape[:2], -1)  # (R, B, T)
        if observed is not None and self.mask_padding:
            steps = (steps - _first(observed)).clamp_min(0)
        out = []
        for block, (values, _) in zip(self._layers(n_blocks), features, strict=True):
            steps = block.covering(steps)
            out.append(values.gather(2, steps[..., None].expand(-1, -1, -1, values.shape[-1])))
        return out

    def _layers(self, n: int) -> list[_Block]:
        return cast(list[_Block], list(self.layers)[:n])

    def _observed(self, x: Tensor, mask: Tensor | None, complete: bool) -> Tensor | None:
        """Observed steps ``(R, B, T)``; None: all are."""
        if complete and mask is None:
            return None
        observed = ~x.isnan().any(dim=-2)
        return observed if mask is None else observed & mask

    def _run(
        self, x: Tensor, observed: Tensor | None, dropout: Dropout | None, n_blocks: int
    ) -> list[Features]:
        real = lengths = None
        if observed is not None:
            x = x.masked_fill(~observed[..., None, :], 0.0)
            if self.mask_padding:
                x, observed = _from_first(x, observed)
                numbers = torch.arange(1, x.shape[-1] + 1, device=x.device)
                lengths = (observed * numbers).amax(dim=-1).T  # (B, R)
                real = observed.to(x.dtype).transpose(0, 1)[:, :, None]
        h = x.transpose(0, 1)  # (B, R, D, T)
        features = []
        for i, block in enumerate(self._layers(n_blocks)):
            h, real, lengths = block(h, real, lengths)
            if i == 0 and dropout is not None and self.dropout > 0:
                b, _, c, t = h.shape
                h = h * dropout((b, c, t), self.dropout).transpose(0, 1)
            mask = None if real is None else real[:, :, 0].transpose(0, 1) > 0
            features.append(Features(h.permute(1, 0, 3, 2), mask))
        return features


def _first(observed: Tensor) -> Tensor:
    """The first True of each row, ``(..., 1)``; 0 where there is none."""
    return observed.int().argmax(dim=-1, keepdim=True)


def _from_first(x: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """Series ``(R, B, D, T)`` moved to begin with their first observed step.

    What stood before, where nothing is observed, then stands behind the end.
    """
    t = x.shape[-1]
    steps = (torch.arange(t, device=x.device) + _first(observed)) % t  # (R, B, T)
    moved = x.gather(-1, steps[..., None, :].expand_as(x))
    return moved, observed.gather(-1, steps)
