"""An encoder with what helps to train it, and the small networks that do."""

from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from softclt.encoders import Encoder, TCCEncoder
from softclt.encoders.encoder import EncoderWithHeads
from softclt.encoders.tcc import Features
from softclt.inference import pool
from softclt.training import StepDraws

Main = TypeVar("Main", bound=Encoder)
Helper = TypeVar("Helper", bound=nn.Module)


class Helped(EncoderWithHeads[Main], Generic[Main, Helper]):
    """A network with a second one that only training needs.

    Args:
        encoder: Taken over, not copied.
        helper: A head for a task of its own, or a teacher.
    """

    def __init__(self, encoder: Main, helper: Helper) -> None:
        super().__init__(encoder)
        self.helper: Helper = helper


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
