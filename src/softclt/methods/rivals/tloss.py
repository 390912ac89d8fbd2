"""A part of a series told from parts of others, as in T-Loss."""

from collections.abc import Hashable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from softclt.encoders import DilatedEncoder, Encoder
from softclt.encoders.dilated import MOST_BLOCKS
from softclt.encoders.tcc import Features
from softclt.methods.learner import methods
from softclt.methods.rivals.losses import triplet_loss
from softclt.methods.rivals.networks import pooled
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftLearner
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment
from softclt.validation import check_choice, check_range

_CHANCES = 1 << 20  # values of a draw that stands for a number in [0, 1)


@methods.register("tloss", paper="Franceschi et al., NeurIPS 2019")
class TLoss(SoftLearner):
    """A part of a series that belongs to a longer part of it, and not to others (T-Loss).

    Franceschi, Dieuleveut and Jaggi (NeurIPS 2019): of each series an anchor, a random part of it,
    and a positive, a part of the anchor; negatives are parts of other series, as long as the
    positive. Logistic losses of scalar products pull and push. With ``tau_instance`` the target of
    a negative is the weight between the two series instead of 0.

    As published: the loss, Adam, batches of 10, 1500 steps. It differs in this: the encoder is that
    of TS2Vec, not a causal one, so that rows of a table differ in what they learn from alone;
    negatives are parts of all other series of the batch instead of ten of any; lengths are those of
    TS2Vec's crops, sixteen pairs for each length of series.

    Args:
        output_dims: Size M of the embedding.
        hidden_dims: Channels inside the encoder.
        depth: Residual blocks before the last.
        tau_instance: Sharpness of the soft assignment between series; None, the original, is hard.
        lr: Learning rate of Adam.

    Attributes:
        history_: As that of `TS2Vec`.
        n_features_in_: Channels D.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = TLoss(output_dims=8, hidden_dims=4, depth=2, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        8
    """

    _stacks = True
    _averages = False

    @with_parameters_of(SoftLearner, tau_instance=None, batch_size=10, max_iter=1500)
    def __init__(
        self,
        *,
        output_dims: int = 320,
        hidden_dims: int = 64,
        depth: int = 10,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.output_dims = output_dims
        self.hidden_dims = hidden_dims
        self.depth = depth

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("output_dims", "hidden_dims"):
            check_range(getattr(self, name), name, 1)
        check_range(self.depth, "depth", 0, MOST_BLOCKS)
        for kind in self.pooling.split("+"):  # it learns through them
            check_choice(kind, ("max", "mean"), "pooling")

    def _build(self, n_channels: int) -> Encoder:
        return DilatedEncoder(
            n_channels, self.output_dims, self.hidden_dims, self.depth, self.mask_padding
        )

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        own = list(parameters)
        return torch.optim.Adam(own, lr=self.lr, fused=True, capturable=own[0].is_cuda)

    def _layout(self, length: int, step: int) -> Hashable:
        crop = augment.step_crop(length, step)
        return crop.overlap_end - crop.first, crop.overlap

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        _, b, _, t = batch.x.shape
        crop = augment.step_crop(t, draws.step)
        long, short = crop.overlap_end - crop.first, crop.overlap
        lengths = batch.x.new_full(batch.x.shape[:2], t).long()
        if batch.mask is not None:
            numbers = torch.arange(1, t + 1, device=batch.x.device)
            lengths = (batch.mask * numbers).amax(dim=-1)

        def below(stream: Stream, n: Tensor) -> Tensor:
            return draws.integers(stream, _CHANCES, (b,)) * n // _CHANCES

        anchor = below(Stream.ANCHOR, (lengths - long).clamp_min(0) + 1)
        own = (torch.minimum(lengths - anchor, torch.full_like(lengths, long)) - short).clamp_min(0)
        positive = anchor + below(Stream.PLACES, own + 1)
        negative = below(Stream.SHIFT, (lengths - short).clamp_min(0) + 1)
        starts = torch.cat([positive, negative], dim=1)
        twice = torch.cat([batch.x, batch.x], dim=1)
        z = self._embedded(module, augment.take_steps(batch.x, anchor, long), batch)
        others = self._embedded(module, augment.take_steps(twice, starts, short), batch)
        near, far = others.chunk(2, dim=1)  # (R, B, M) each
        return triplet_loss(z, near, far, batch.weights)

    def _embedded(self, module: Encoder, x: Tensor, batch: Batch) -> Tensor:
        """Vectors ``(R, S, M)`` of parts ``(R, S, D, L)``; 0 of those without a value."""
        mask = None
        if batch.mask is not None and self.mask_padding:
            mask = ~x.isnan().any(dim=2)
        features = Features(module(x, complete=batch.mask is None), mask)
        return pooled(features, self.pooling)
