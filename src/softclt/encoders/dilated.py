"""The dilated convolutional encoder of TS2Vec: a representation for every step."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders.base import Encoder
from softclt.encoders.stacked import DilatedConv, Linear


class DilatedEncoder(Encoder):
    """Residual blocks of dilated convolutions, dilation 2^i in block i; same length out as in.

    Randomness is not drawn here: what is hidden or dropped comes in with the call.

    Args:
        n_channels: Channels D of the series.
        output_dims: Size M of the representation.
        hidden_dims: Channels of all blocks but the last.
        depth: Blocks before the last one.
        mask_padding: Keep the steps before a series' first and behind its last value at zero in
            every layer, so that padding changes nothing. The original lets it in (False).

    Example:
        >>> DilatedEncoder(n_channels=2, output_dims=16, depth=3)(torch.randn(4, 2, 50)).shape
        torch.Size([4, 50, 16])
    """

    def __init__(
        self,
        n_channels: int,
        output_dims: int = 320,
        hidden_dims: int = 64,
        depth: int = 10,
        mask_padding: bool = True,
    ) -> None:
        super().__init__()
        self.mask_padding = mask_padding
        self.n_layers = depth + 1
        self.input = Linear(n_channels, hidden_dims)
        widths = [hidden_dims] * (depth + 1) + [output_dims]
        self.blocks = nn.ModuleList(
            _Block(widths[i], widths[i + 1], 2**i, project=i == depth) for i in range(depth + 1)
        )

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
    ) -> Tensor:
        """Representations ``(R, B, T, M)`` of series ``(R, B, D, T)`` in which NaN is missing.

        Args:
            x: Series, for each network of the stack its own; a step with any missing channel is
                missing. ``(B, D, T)`` for a single network, which then gives ``(B, T, M)``.
            keep: ``(R, B, T)``, False where a step is hidden from the network.
            dropout: ``(R, B, T, M)`` factors on the output, 0 where an entry is dropped.
            layer: Stop after this block (0 is the first) instead of the last.
            complete: Nothing is missing in x, and need not be looked for.
        """
        return self._run(x, keep, dropout, layer, complete=complete)[-1]

    def all_layers(self, x: Tensor) -> Tensor:
        """Outputs of all blocks side by side, ``(..., T, depth * hidden_dims + ... + M)``."""
        return torch.cat(self._run(x, None, None, None, every=True), dim=-1)

    def _run(
        self,
        x: Tensor,
        keep: Tensor | None,
        dropout: Tensor | None,
        layer: int | None,
        every: bool = False,
        complete: bool = False,
    ) -> list[Tensor]:
        if x.ndim == 3:
            hidden = None if keep is None else keep[None]
            outputs = self._run(x[None], hidden, None, layer, every, complete)
            outputs = [output[0] for output in outputs]
        else:
            outputs = self._run_stack(x.mT, keep, layer, every, complete)
        if dropout is not None:
            outputs[-1] = outputs[-1] * dropout
        return outputs

    def _run_stack(
        self, x: Tensor, keep: Tensor | None, layer: int | None, every: bool, complete: bool
    ) -> list[Tensor]:
        visible, inside = None if keep is None else keep[..., None], None  # (R, B, T, 1)
        if not complete:
            observed = ~x.isnan().any(dim=-1, keepdim=True)
            inside = _inside(observed).to(x) if self.mask_padding else None
            x = x.masked_fill(~observed, 0.0)
            visible = observed if visible is None else observed & visible
        h = self.input(x)  # (R, B, T, hidden_dims)
        if visible is not None:
            h = h * visible  # what is hidden stays zero
        n_blocks = len(self.blocks) if layer is None else layer + 1
        outputs = []
        for i, block in enumerate(self.blocks[:n_blocks]):
            h = block(h, inside)
            if every or i == n_blocks - 1:
                outputs.append(h)
        return outputs


class _Block(nn.Module):
    """GELU, convolution, GELU, convolution, plus the input."""

    def __init__(self, n_in: int, n_out: int, dilation: int, project: bool) -> None:
        super().__init__()
        self.conv1 = DilatedConv(n_in, n_out, dilation)
        self.conv2 = DilatedConv(n_out, n_out, dilation)
        self.project = Linear(n_in, n_out) if project else nn.Identity()

    def forward(self, x: Tensor, inside: Tensor | None) -> Tensor:
        # The bias writes into padding; before a convolution reads it, it is zero again, as the
        # convolution's own padding behind an unpadded series would be.
        h = self.conv1(_activate(x, inside))
        out: Tensor = self.conv2(_activate(h, inside)) + self.project(x)
        return out


def _activate(x: Tensor, inside: Tensor | None) -> Tensor:
    x = F.gelu(x)
    return x if inside is None else x * inside


def _inside(visible: Tensor) -> Tensor:
    """True from the first visible step to the last, ``(R, B, T, 1)``."""
    seen = visible.cumsum(dim=-2) > 0
    ahead = visible.flip(-2).cumsum(dim=-2).flip(-2) > 0
    return seen & ahead
