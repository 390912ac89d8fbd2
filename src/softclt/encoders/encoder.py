"""What inference expects of an encoder."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

# Steps of all windows in a forward pass; at M = 320 a layer's output is then 21 MB.
_STEPS_AT_ONCE = 1 << 14


class Piece(NamedTuple):
    """A run of steps that is a series of its own, and those of its steps that are wanted."""

    steps: range
    wanted: range


class Encoder(nn.Module):
    """Networks from series ``(B, D, T)``, NaN where missing, to representations ``(B, T, M)``.

    A stack of R networks has parameters with a leading axis of R and takes ``(R, B, D, T)``.

    Attributes:
        mask_padding: Whether padding is kept out; pooling then sees observed steps only.
        widths: M of each block that can be read out, in their order.
        n_layers: How many there are.
        output_dims: M of the last of them.
        needs_one_length: Whether padding would change what it gives, so that series of different
            lengths are encoded apart.
    """

    needs_one_length = False
    mask_padding: bool
    widths: Sequence[int]
    n_layers: int
    output_dims: int

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """Representations of what is wanted of each of the pieces that x consists of; None: all.

        ``layer`` stops there, and ``complete`` says that nothing is missing.
        """

    @abstractmethod
    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Outputs of all blocks side by side."""

    def last_steps(
        self,
        x: Tensor,
        context: int,
        layer: int | None = None,
        every: bool = False,
        hide: bool = False,
    ) -> Tensor:
        """The last step of each window of ``context`` + 1 steps, as if the window were all.

        This way works for every network: it runs through all windows one by one. A network that
        knows what its last step sees does better.

        Args:
            x: ``(B, D, context + K)``: K windows a series, each a step later than the one before.
            context: Steps that a window has before its last one.
            layer: Read out this block instead of the last.
            every: Read out all blocks, side by side.
            hide: Also give the last steps as they are when their own input is hidden.

        Returns:
            ``(B, K, M)``; ``(2, B, K, M)`` with ``hide``: seen, and hidden.
        """
        windows = x.unfold(-1, context + 1, 1).transpose(1, 2)  # (B, K, D, context + 1)
        last_one = [Piece(range(context + 1), wanted=range(context, context + 1))]
        b, k = windows.shape[:2]
        variants = []
        for hidden in (False, True) if hide else (False,):
            last = []
            for part in torch.split(windows.flatten(0, 1), max(1, _STEPS_AT_ONCE // (context + 1))):
                keep = None
                if hidden:
                    keep = part.new_ones((len(part), context + 1), dtype=torch.bool)
                    keep[:, -1] = False
                if every:
                    z = self.all_layers(part, keep)
                else:
                    z = self(part, keep, layer=layer, pieces=last_one)
                last.append(z[:, -1])
            variants.append(torch.cat(last).view(b, k, -1))
        return torch.stack(variants) if hide else variants[0]


Inner = TypeVar("Inner", bound=Encoder)


class EncoderWithHeads(Encoder, Generic[Inner]):
    """An encoder with what it learns by or is read by; it encodes as the encoder alone does.

    Args:
        encoder: Taken over, not copied.
    """

    def __init__(self, encoder: Inner) -> None:
        super().__init__()
        self.mask_padding, self.n_layers = encoder.mask_padding, encoder.n_layers
        self.widths, self.output_dims = encoder.widths, encoder.output_dims
        self.needs_one_length = encoder.needs_one_length
        self.encoder: Inner = encoder

    def forward(self, x: Tensor, *args: Any, **options: Any) -> Tensor:
        """What the encoder alone gives."""
        return cast(Tensor, self.encoder(x, *args, **options))

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """What the encoder alone gives."""
        return self.encoder.all_layers(x, keep)

    def last_steps(self, x: Tensor, *args: Any, **options: Any) -> Tensor:
        """What the encoder alone gives."""
        return self.encoder.last_steps(x, *args, **options)
