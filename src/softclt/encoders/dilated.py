"""The dilated convolutional encoder of TS2Vec: a representation for every step."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders.encoder import Encoder, Piece
from softclt.encoders.gelu import gelu
from softclt.encoders.stacked import DilatedConv, Linear, Runs, part
from softclt.encoders.streams import both
from softclt.encoders.windows import Layout, Step, observed_ends, plan

Activation = Callable[[Tensor, Runs], Tensor]

MOST_BLOCKS = 62  # the last then sees 2^62 steps back, the most that an index can say


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
        self.widths = [hidden_dims] * depth + [output_dims]
        self.n_layers, self.output_dims = depth + 1, output_dims
        self.input = Linear(n_channels, hidden_dims)
        widths = [hidden_dims, *self.widths]
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
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """Representations ``(R, B, T, M)`` of series ``(R, B, D, T)`` in which NaN is missing.

        Args:
            x: Series, for each network of the stack its own; a step with any missing channel is
                missing. ``(B, D, T)`` for a single network, which then gives ``(B, T, M)``.
            keep: ``(R, B, T)``, False where a step is hidden from the network.
            dropout: ``(R, B, T, M)`` factors on the output, 0 where an entry is dropped.
            layer: Stop after this block (0 is the first) instead of the last.
            complete: Nothing is missing in x, and need not be looked for.
            pieces: x is these series one behind the other, and what is wanted of each comes out in
                the same way. Inner blocks work out only what the wanted steps see, which saves much
                of the widest, last block. None: x is one series, all of it wanted.
        """
        if x.is_cuda and pieces is not None and len(pieces) == 2:
            z = torch.cat(
                both(lambda i: self._alone(pieces[i], x, keep, layer, complete), x), dim=-2
            )
            return z if dropout is None else z * dropout
        return self._run(x, keep, dropout, layer, complete=complete, pieces=pieces)[-1]

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Outputs of all blocks side by side, ``(..., T, depth * hidden_dims + ... + M)``."""
        return torch.cat(self._run(x, keep, None, None, every=True), dim=-1)

    def last_steps(
        self,
        x: Tensor,
        context: int,
        layer: int | None = None,
        every: bool = False,
        hide: bool = False,
    ) -> Tensor:
        """See `Encoder.last_steps`; here only what the last steps see is worked out."""
        blocks = cast(list[_Block], list(self.blocks)[: None if layer is None else layer + 1])
        layout = Layout(x.shape[0], x.shape[-1] - context, context)
        line = x.transpose(1, 2).flatten(0, 1)  # (B * (context + K), D)
        observed = ~line.isnan().any(dim=-1, keepdim=True)
        ends = observed_ends(observed[:, 0], layout) if self.mask_padding else None
        dilations = tuple(block.conv1.dilation for block in blocks for _ in range(2))
        steps = plan(layout, dilations, ends, hide, x.device)

        line = line.masked_fill(~observed, 0.0)[None, :, None]
        table = self.input(line)[0, :, 0] * observed
        table = torch.cat([table, table.new_zeros(1, table.shape[1])])
        outputs = []
        for block, first, second in zip(blocks, steps[::2], steps[1::2], strict=True):
            table = block.on_tables(table, first, second)
            if every or block is blocks[-1]:
                outputs.append(table[second.last])
        shape = (1 + hide, layout.n_series, layout.n_windows, -1)
        z = torch.cat(outputs, dim=-1).reshape(shape)
        return z if hide else z[0]

    def _alone(
        self, piece: Piece, x: Tensor, keep: Tensor | None, layer: int | None, complete: bool
    ) -> Tensor:
        steps, wanted = piece
        own = slice(steps.start, steps.stop)
        keep = None if keep is None else keep[..., own]
        wanted = range(wanted.start - steps.start, wanted.stop - steps.start)
        pieces = [Piece(range(len(steps)), wanted)]
        return self.forward(x[..., own], keep, None, layer, complete, pieces)

    def _run(
        self,
        x: Tensor,
        keep: Tensor | None,
        dropout: Tensor | None,
        layer: int | None,
        every: bool = False,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> list[Tensor]:
        if x.ndim == 3:
            hidden = None if keep is None else keep[None]
            outputs = self._run(x[None], hidden, None, layer, every, complete, pieces)
            outputs = [output[0] for output in outputs]
        else:
            hidden = None if keep is None else keep.mT
            x = x.permute(0, 3, 1, 2)
            pieces = pieces or [Piece(range(x.shape[1]), range(x.shape[1]))]
            outputs = self._run_stack(x, hidden, layer, every, complete, pieces)
            outputs = [output.transpose(1, 2) for output in outputs]
        if dropout is not None:
            outputs[-1] = outputs[-1] * dropout
        return outputs

    def _run_stack(
        self,
        x: Tensor,
        keep: Tensor | None,
        layer: int | None,
        every: bool,
        complete: bool,
        pieces: Sequence[Piece],
    ) -> list[Tensor]:
        visible, inside = None if keep is None else keep[..., None], None  # (R, T, B, 1)
        whole = [piece.steps for piece in pieces]
        if not complete:
            observed = ~x.isnan().any(dim=-1, keepdim=True)
            if self.mask_padding:
                each = [inside_of(observed[:, steps.start : steps.stop]) for steps in whole]
                inside = torch.cat(each, dim=1).to(x)
            x = x.masked_fill(~observed, 0.0)
            visible = observed if visible is None else observed & visible
        blocks = cast(list[_Block], list(self.blocks)[: None if layer is None else layer + 1])
        runs = [[piece.wanted for piece in pieces]]  # at each convolution on the way to these
        for block in reversed(blocks):
            for conv in (block.conv2, block.conv1):
                runs.insert(0, [conv.sees(*pair) for pair in zip(runs[0], whole, strict=True)])

        # The bias writes into padding; before a convolution reads it, it is zero again, as the
        # convolution's own padding behind an unpadded series would be.
        def activate(h: Tensor, steps: Runs) -> Tensor:
            h = gelu(h)
            return h if inside is None else h * part(inside, whole, steps)

        h = self.input(part(x, whole, runs[0]))  # (R, T, B, hidden_dims)
        if visible is not None:
            h = h * part(visible, whole, runs[0])  # what is hidden stays zero
        outputs = []
        for i, block in enumerate(blocks):
            h = block(h, *runs[2 * i : 2 * i + 3], activate)
            if every or i == len(blocks) - 1:
                outputs.append(h)
        return outputs


class _Block(nn.Module):
    """GELU, convolution, GELU, convolution, plus the input."""

    def __init__(self, n_in: int, n_out: int, dilation: int, project: bool) -> None:
        super().__init__()
        self.conv1 = DilatedConv(n_in, n_out, dilation)
        self.conv2 = DilatedConv(n_out, n_out, dilation)
        self.project = Linear(n_in, n_out) if project else nn.Identity()

    def forward(
        self, x: Tensor, have: Runs, between: Runs, give: Runs, activate: Activation
    ) -> Tensor:
        """From the steps ``have``, those of x, by way of ``between`` to ``give``."""
        h = self.conv1(activate(x, have), have, between)
        out: Tensor = self.conv2(
            activate(h, between), between, give, plus=self.project(part(x, have, give))
        )
        return out

    def on_tables(self, table: Tensor, first: Step, second: Step) -> Tensor:
        """The same on rows of a table, see `softclt.encoders.windows`."""
        h = self.conv1.on_tables(F.gelu(table), first)
        before = torch.cat([table[: second.n_shared], table[second.before]])
        plus = self.project(before[None, :, None])[0, :, 0]
        return self.conv2.on_tables(F.gelu(h), second, plus)


def inside_of(visible: Tensor) -> Tensor:
    """True from the first visible step to the last, ``(R, T, B, 1)``."""
    seen = visible.cumsum(dim=1) > 0
    ahead = visible.flip(1).cumsum(dim=1).flip(1) > 0
    return seen & ahead
