"""Residual convolutions over single channels at ever coarser steps, read at every block."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders.encoder import Encoder, EncoderWithHeads, Piece

_STEM = 7  # steps that the first convolution sees
_BLOCKS = ((1, 2), (1, 2, 4), (1, 2, 4))  # dilations of the blocks of each stage
PROJECTED = 128  # numbers of the head's output
_STRIDE = 2  # by which each stage has fewer steps than what comes in


class ResidualEncoder(Encoder):
    """Each channel by itself, from its values and their differences.

    Three stages of residual blocks have 1/2, 1/4 and 1/8 of the steps, and ``width``, twice and
    three times as many numbers for each. Each channel of each series is standardised first; what
    is missing then counts as its mean. Channels stand side by side in the representation.

    Args:
        width: Numbers of the first stage.

    Example:
        >>> ResidualEncoder(width=8)(torch.randn(5, 2, 40)).shape
        torch.Size([5, 40, 48])
    """

    mask_padding, needs_one_length = True, True

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.widths = [width * (i + 1) for i, stage in enumerate(_BLOCKS) for _ in stage]
        self.n_layers, self.output_dims = len(self.widths), self.widths[-1]
        self.stem = nn.Conv1d(2, width, _STEM, stride=_STRIDE, padding=_STEM // 2)
        self.narrowing = nn.ModuleList(
            nn.Conv1d(width * i, width * (i + 1), 3, stride=_STRIDE, padding=1)
            for i in range(1, len(_BLOCKS))
        )
        self.stages = nn.ModuleList(
            nn.ModuleList(_Block(width * (i + 1), dilation) for dilation in dilations)
            for i, dilations in enumerate(_BLOCKS)
        )

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """See `Encoder`; what ``keep`` hides is missing."""
        if keep is not None:
            x = x.masked_fill(~keep[..., None, :], float("nan"))
        if pieces is not None:
            parts = [x[..., piece.steps.start : piece.steps.stop] for piece in pieces]
            own = [self(part, layer=layer) for part in parts]
            wanted = [
                z[..., p.wanted.start - p.steps.start : p.wanted.stop - p.steps.start, :]
                for z, p in zip(own, pieces, strict=True)
            ]
            return torch.cat(wanted, dim=-2)
        number = self.n_layers - 1 if layer is None else layer
        z = self._at_steps(self.blocks_of(x)[number], number, x)
        return z if dropout is None else z * dropout

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Outputs of all blocks side by side, the last one last; channels within each."""
        if keep is not None:
            x = x.masked_fill(~keep[..., None, :], float("nan"))
        outputs = enumerate(self.blocks_of(x))
        return torch.cat([self._at_steps(h, number, x) for number, h in outputs], dim=-1)

    def blocks_of(self, x: Tensor) -> list[Tensor]:
        """Output of each block at its own steps, ``(B * D, M_k, T_k)``, for ``(..., D, T)``."""
        own = _standardised(x.reshape(-1, 1, x.shape[-1]))
        steps = F.pad(own.diff(dim=-1), (1, 0))
        steps = steps / steps.std(dim=-1, correction=0, keepdim=True).clamp_min(1e-4)
        h = self.stem(torch.cat([own, steps], dim=1))
        outputs = []
        for i, stage in enumerate(self.stages):
            if i > 0:
                h = self.narrowing[i - 1](h)
            for block in stage:  # type: ignore[attr-defined]
                h = block(h)
                outputs.append(h)
        return outputs

    def pooled(self, x: Tensor, kinds: Sequence[str], every: bool) -> list[Tensor]:
        """For each block that is read, and each kind, ``(B * D, M_k)``: pooled at its own steps.

        Args:
            x: Complete series ``(B, D, T)``.
            kinds: Of max, mean and positive.
            every: All blocks, not the last alone.
        """
        how = {
            "max": lambda h: h.amax(dim=-1),
            "mean": lambda h: h.mean(dim=-1),
            "positive": lambda h: (h > 0).mean(dim=-1, dtype=h.dtype),
        }
        blocks = self.blocks_of(x)
        return [how[kind](h) for h in (blocks if every else blocks[-1:]) for kind in kinds]

    def _at_steps(self, h: Tensor, number: int, x: Tensor) -> Tensor:
        """A block's output at every step of x, along straight lines: ``(..., T, D * M)``."""
        stage = self.widths[number] // self.widths[0]
        places = torch.arange(x.shape[-1], device=x.device) / _STRIDE**stage
        last = h.shape[-1] - 1
        before = places.long().clamp(max=last)
        after = (before + 1).clamp(max=last)
        part = (places - before).clamp(max=1).to(h.dtype)
        z = h[..., before].lerp(h[..., after], part)  # (B D, M, T)
        return z.reshape(*x.shape[:-2], -1, x.shape[-1]).transpose(-1, -2)


def _standardised(x: Tensor) -> Tensor:
    """Series ``(..., T)`` with mean 0 and spread 1; a constant one, and what is missing, is 0."""
    seen = ~x.isnan()
    count = seen.sum(dim=-1, keepdim=True).clamp_min(1)
    x = x.nan_to_num()
    x = (x - x.sum(dim=-1, keepdim=True) / count) * seen
    spread = (x.square().sum(dim=-1, keepdim=True) / count).sqrt()
    return x / spread.clamp_min(1e-6)


class _Block(nn.Module):
    """Norm, GELU and convolution, twice, added to what came in."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for _ in range(2))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            h = convolution(F.gelu(_normed(norm, h)))
        return x + h


def _normed(norm: nn.Module, h: Tensor) -> Tensor:
    """The norm in the precision of what comes in: autocast would take float32, and twice as long.

    Sums are in float32 all the same.
    """
    assert isinstance(norm, nn.GroupNorm)
    with torch.autocast(h.device.type, enabled=False):
        weight, bias = norm.weight.to(h.dtype), norm.bias.to(h.dtype)
        return F.group_norm(h, norm.num_groups, weight, bias, norm.eps)


class ProjectedEncoder(EncoderWithHeads[ResidualEncoder]):
    """An encoder, and the head by whose output it learns: largest value and mean over time.

    Args:
        encoder: Taken over.
        hidden: Size inside the head.
        size: Of its output.
    """

    def __init__(self, encoder: ResidualEncoder, hidden: int = 256, size: int = PROJECTED) -> None:
        super().__init__(encoder)
        width = encoder.output_dims
        self.head = nn.Sequential(nn.Linear(2 * width, hidden), nn.GELU(), nn.Linear(hidden, size))

    def project(self, x: Tensor) -> Tensor:
        """One vector ``(B, size)`` for each of the series ``(B, D, T)``: the mean over channels."""
        h = self.encoder.blocks_of(x)[-1]  # (B D, M, T / 8)
        pooled = torch.cat([h.amax(dim=-1), h.mean(dim=-1)], dim=-1)
        projected: Tensor = self.head(pooled.view(len(x), x.shape[1], -1).mean(dim=1))
        return projected
