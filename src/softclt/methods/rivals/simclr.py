"""SimCLR on series."""

from typing import Any, cast

import torch
from torch import Tensor

from softclt.encoders import Encoder, TCCEncoder
from softclt.encoders.tcc_heads import Projection
from softclt.losses.contextual import nt_xent
from softclt.methods.learner import methods
from softclt.methods.rivals.networks import Helped, last_block, pooled
from softclt.methods.rivals.rival import SoftRival
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws
from softclt.validation import check_range


@methods.register("simclr", paper="Chen et al., ICML 2020", classifier="fine-tune")
class SimCLR(SoftRival):
    """Two views of each series against those of all others (Chen et al., ICML 2020).

    The contextual half of TS-TCC alone: the weak and the strong view of a series, their steps
    pooled to one vector and projected, by NT-Xent. With ``tau_instance`` the targets are soft.

    Args:
        temperature: Of the loss.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = SimCLR(widths=(4, 8), max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        8
    """

    @with_parameters_of(SoftRival)
    def __init__(self, *, temperature: float = 0.2, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.temperature = temperature

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.temperature, "temperature", 0, open_low=True)

    def _build(self, n_channels: int) -> Encoder:
        encoder = self._encoder(n_channels)
        size = encoder.output_dims
        return Helped(encoder, Projection(size, max(1, size // 2), max(1, size // 4)))

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network = cast(Helped[TCCEncoder, Projection], module.train())
        complete = batch.mask is None
        # Both views in one pass: batch statistics are then of all that is normalised by them.
        views = self._weak(batch.x, draws), self._strong(batch.x, draws, complete)
        features = last_block(network.encoder, torch.cat(views, dim=1), draws, complete)
        weak, strong = network.helper(pooled(features, self.pooling)).chunk(2, dim=1)
        return nt_xent(weak, strong, self.temperature, batch.weights)
