"""An encoder with what helps to train it, and the small networks that do."""

from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders import Encoder, Piece, TCCEncoder
from softclt.encoders.stacked import Linear
from softclt.encoders.tcc import BatchNorm, Features
from softclt.inference import pool
from softclt.training import StepDraws

Main = TypeVar("Main", bound=Encoder)
Helper = TypeVar("Helper", bound=nn.Module)


class Helped(Encoder, Generic[Main, Helper]):
    """A network with a second one that only training needs; it encodes as the first does.

    Args:
        encoder: Taken over, not copied.
        helper: A head for a task of its own, or a teacher.
    """

    def __init__(self, encoder: Main, helper: Helper) -> None:
        super().__init__()
        self.mask_padding, self.n_layers = encoder.mask_padding, encoder.n_layers
        self.encoder: Main = encoder
        self.helper: Helper = helper

    def forward(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        dropout: Tensor | None = None,
        layer: int | None = None,
        complete: bool = False,
        pieces: Sequence[Piece] | None = None,
    ) -> Tensor:
        """What the encoder alone gives."""
        return cast(Tensor, self.encoder(x, keep, dropout, layer, complete, pieces))

    def all_layers(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """What the encoder alone gives."""
        return self.encoder.all_layers(x, keep)


def last_block(
    encoder: TCCEncoder, x: Tensor, draws: StepDraws, complete: bool, site: int = 0
) -> Features:
    """Features of series ``(R, B, D, T)`` in training, with dropout."""
    dropout = partial(draws.dropout, view=0, site=site)
    return encoder.blocks(x, dropout=dropout, complete=complete)[-1]


def pooled(features: Features, pooling: str) -> Tensor:
    """One vector a series, ``(R, B, C)``; 0 where a series has no real step."""
    values, mask = features
    real = torch.ones_like(values[..., 0], dtype=torch.bool) if mask is None else mask
    return pool(values, real, pooling).masked_fill(~real.any(dim=-1, keepdim=True), 0.0)


class Projection(nn.Module):
    """Two linear maps with batch normalisation and ReLU between them."""

    def __init__(self, n_in: int, n_inner: int, n_out: int) -> None:
        super().__init__()
        self.first, self.second = Linear(n_in, n_inner), Linear(n_inner, n_out)
        self.norm = BatchNorm(n_inner)

    def forward(self, z: Tensor) -> Tensor:
        """From ``(R, B, n_in)`` to ``(R, B, n_out)``."""
        inner = self.first(z[:, None])[:, 0]  # (R, B, n_inner)
        inner = self.norm(inner.transpose(0, 1)[..., None])[..., 0].transpose(0, 1)
        return cast(Tensor, self.second(F.relu(inner)[:, None])[:, 0])
