"""What inference expects of an encoder."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn


class Piece(NamedTuple):
    """A run of steps that is a series of its own, and those of its steps that are wanted."""

    steps: range
    wanted: range


class Encoder(nn.Module):
    """Networks from series ``(B, D, T)``, NaN where missing, to representations ``(B, T, M)``.

    A stack of R networks has parameters with a leading axis of R and takes ``(R, B, D, T)``.

    Attributes:
        mask_padding: Whether padding is kept out; pooling then sees observed steps only.
        n_layers: Blocks that can be read out.
    """

    mask_padding: bool
    n_layers: int

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
    def all_layers(self, x: Tensor) -> Tensor:
        """Outputs of all blocks side by side."""
