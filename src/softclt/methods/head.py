"""An encoder that also tells classes apart."""

from functools import partial
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from softclt.encoders import Encoder, TCCEncoder
from softclt.encoders.encoder import EncoderWithHeads
from softclt.encoders.stacked import Linear
from softclt.encoders.tcc import BatchNorm, Features
from softclt.inference import pool
from softclt.training.randomness import StepDraws


class ClassifierNetwork(EncoderWithHeads[Encoder]):
    """A linear layer on the features of an encoder.

    What it reads: where the encoder has few steps left at its end (that of TS-TCC) and all series
    have one length, all these steps side by side, as TS-TCC does; so it can tell where in a series
    something happens. Else the steps pooled to one vector, which any length has. A series of
    another length that comes later has the steps that are read side by side stretched or squeezed
    to as many, by linear interpolation.

    Args:
        encoder: Taken over, not copied.
        n_channels: Channels D of the series.
        n_classes: Number of classes L.
        length: Steps of the series, if all have as many; None if they differ.
        pooling: Of steps to one vector: see `softclt.inference.pool`; max or mean is part of it,
            since nothing is learned through a share of steps.
        keep_statistics: Leave the batch statistics of the encoder as they are, also while its
            weights learn: for batches of a few series, which would spoil them.
    """

    def __init__(
        self,
        encoder: Encoder,
        n_channels: int,
        n_classes: int,
        length: int | None,
        pooling: str = "max",
        keep_statistics: bool = False,
    ) -> None:
        super().__init__(encoder.eval())
        self.n_classes, self.pooling = n_classes, pooling
        self.keep_statistics, self.length = keep_statistics, length
        self.n_steps: int | None = None  # that are read side by side
        like = next(encoder.parameters())
        with torch.no_grad():
            values = self._features(like.new_zeros(1, 1, n_channels, length or 2)).values
        if length is not None and _halving(encoder) is not None:
            self.n_steps = values.shape[2]
        elif pooling == "positive":
            raise ValueError(
                "pooling is 'positive', through which an encoder cannot learn; take 'max' or "
                "'mean', alone or beside it"
            )
        n_read = self.n_steps or len(pooling.split("+"))  # vectors side by side
        self.head = Linear(n_read * values.shape[-1], n_classes)

    def logits(self, x: Tensor, draws: StepDraws | None = None, complete: bool = False) -> Tensor:
        """From series ``(R, B, D, T)`` to ``(R, B, L)``; without draws nothing is dropped."""
        values, mask = self._features(x, draws, complete)  # (R, B, T_k, C)
        if self.n_steps is None:
            real = torch.ones_like(values[..., 0], dtype=torch.bool) if mask is None else mask
            read = pool(values, real, self.pooling)
        else:
            read = _stretched(values, self.n_steps).flatten(2)  # (R, B, n_steps * C)
        logits: Tensor = self.head(read[:, None])[:, 0]
        return logits

    def train(self, mode: bool = True) -> Self:
        """As usual, but for batch statistics that are to be kept."""
        super().train(mode)
        if self.keep_statistics:
            for part in self.encoder.modules():
                if isinstance(part, BatchNorm):
                    part.eval()
        return self

    def _features(
        self, x: Tensor, draws: StepDraws | None = None, complete: bool = False
    ) -> Features:
        halving = _halving(self.encoder)
        if halving is not None:
            dropout = partial(draws.dropout, view=0) if draws and halving.training else None
            return halving.blocks(x, dropout=dropout, complete=complete)[-1]
        mask = ~x.isnan().any(dim=-2) if self.mask_padding else None
        return Features(self.encoder(x, complete=complete), mask)


def _halving(encoder: Encoder) -> TCCEncoder | None:
    """What of a network has fewer steps at its end than at its beginning; None if nothing has."""
    inner = getattr(encoder, "encoder", encoder)
    return inner if isinstance(inner, TCCEncoder) else None


def _stretched(values: Tensor, n_steps: int) -> Tensor:
    """Features ``(R, B, T_k, C)`` at so many steps."""
    if values.shape[2] == n_steps:
        return values
    r, b = values.shape[:2]
    stretched = interpolate(values.flatten(0, 1).mT, size=n_steps, mode="linear")
    return stretched.mT.view(r, b, n_steps, -1)
