"""TS2Vec with soft assignments."""

from typing import Any

import torch
from torch import Tensor, nn

from softclt.assignments import weights_by_time
from softclt.encoders import DilatedEncoder, Encoder, ForeignEncoder, Piece
from softclt.encoders.dilated import MOST_BLOCKS
from softclt.encoders.stacked import can_stack
from softclt.encoders.tcc import Features
from softclt.losses import functional
from softclt.losses.by_time import hierarchical_loss_by_time
from softclt.methods.learner import methods
from softclt.methods.providers import TargetLearner
from softclt.methods.rivals.networks import pooled
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftAtAllLevels
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment
from softclt.validation import check_range

KEEP_PROBABILITY = 0.5  # of a step in a view
DROPOUT = 0.1  # on the representation, in training


@methods.register("ts2vec", paper="Yue et al., AAAI 2022")
class TS2Vec(TargetLearner, SoftAtAllLevels):
    """Representations of time series by hierarchical contrast of two crops, soft by default.

    ``tau_instance=None, tau_temporal=None`` is the original TS2Vec.

    Args:
        output_dims: Size M of the embedding.
        hidden_dims: Channels inside the encoder.
        depth: Residual blocks before the last.
        encoder: A torch module from ``(B, D, T)`` to ``(B, T, M)``, for any T, in place of the
            dilated convolutions; the three sizes above then have no effect. Training starts from
            a copy of it. It sees 0 where a value is missing; the random numbers of its own layers,
            such as dropout, are torch's and not those of random_state. With such layers, or ones
            that torch's `vmap` cannot do, models are not stacked but trained one by one.
        lr: Learning rate of AdamW.

    Attributes:
        module_: The encoder with averaged weights.
        history_: ``loss`` by step; ``distance_mode``: dense, lazy, or None for hard. Its
            ``distances`` has ``engine`` (cpu or cuda; None if given), ``pairs_before`` training and
            ``pairs_in_batches``, ``low`` and ``high`` that became 0 and 1, ``seconds_in_training``
            (None on a GPU). ``trained_together``: how many models took their steps at once;
            ``seconds`` by phase: of all of them.
        n_features_in_: Channels D.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = TS2Vec(output_dims=16, hidden_dims=8, depth=3, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        16
    """

    _by_time = True
    _stacks = True
    _differing = frozenset(["lr", "lr_schedule"])

    @with_parameters_of(SoftAtAllLevels, TargetLearner)
    def __init__(
        self,
        *,
        output_dims: int = 320,
        hidden_dims: int = 64,
        depth: int = 10,
        encoder: nn.Module | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.output_dims = output_dims
        self.hidden_dims = hidden_dims
        self.depth = depth
        self.encoder = encoder

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("output_dims", "hidden_dims"):
            check_range(getattr(self, name), name, 1)
        check_range(self.depth, "depth", 0, MOST_BLOCKS)
        if not isinstance(self.encoder, nn.Module | None):
            raise ValueError(f"encoder is {self.encoder!r}; expected a torch module, or None")
        if self.encoder is not None and next(self.encoder.parameters(), None) is None:
            name = type(self.encoder).__name__
            raise ValueError(f"encoder {name} has no parameters, so there is nothing to train")

    def _build(self, n_channels: int) -> Encoder:
        if self.encoder is not None:
            foreign = ForeignEncoder(self.encoder, n_channels, self.mask_padding)
            return self._with_queue(foreign, foreign.output_dims)
        own = DilatedEncoder(
            n_channels, self.output_dims, self.hidden_dims, self.depth, self.mask_padding
        )
        return self._with_queue(own, self.output_dims)

    def _stack_size(self, x: Tensor) -> int:
        size = super()._stack_size(x)
        if size == 1 or self.encoder is None:
            return size
        if not self._has_queue() and can_stack(self.encoder, x.shape[1], x.device):
            return size
        return 1

    def _weights_by_time(self, times: Tensor, level: int) -> Tensor | None:
        kernel, growth = self.temporal_assignment, self.tau_growth
        return weights_by_time(times, self.tau_temporal, kernel, level, growth, self.weight_cut)

    def _layout(self, length: int, step: int) -> augment.Crop:
        return augment.step_crop(length, step)

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        _, b, _, t = batch.x.shape
        crop = self._layout(t, draws.step)
        room = t - (crop.last - crop.first)  # for shifts that keep both windows inside
        offsets = draws.integers(Stream.OFFSETS, room + 1, (b,)) - crop.first
        views = augment.overlapping_crops(batch.x, crop, offsets)
        x, end = torch.cat(views, dim=-1), views[0].shape[-1]  # one pass for both
        z = module(
            x,
            keep=draws.keep((b, x.shape[-1]), KEEP_PROBABILITY, 0),
            dropout=draws.dropout((b, 2 * crop.overlap, module.output_dims), DROPOUT, 0),
            complete=batch.mask is None,
            pieces=[
                Piece(range(end), wanted=range(end - crop.overlap, end)),
                Piece(range(end, x.shape[-1]), wanted=range(end, end + crop.overlap)),
            ],
        )
        left, right = z.chunk(2, dim=-2)  # (R, B, overlap, M) each
        mask = None
        if batch.mask is not None and self.mask_padding:
            mask = ~views[1][..., : crop.overlap].isnan().any(dim=-2)
        targets = batch.weights
        if self.targets != "distances":
            whole = (pooled(Features(view, mask), "max") for view in (left, right))  # (R, B, M)
            targets = self._targets(module, batch, *whole)
        if batch.times is not None:
            times = augment.overlapping_crops(batch.times[..., None, :], crop, offsets)[1]
            return hierarchical_loss_by_time(
                left,
                right,
                times[..., 0, : crop.overlap],
                self._weights_by_time,
                targets,
                batch.lam,
                mask,
                self.normalize_weights,
            )
        return functional.hierarchical_loss(
            left,
            right,
            targets,
            batch.temporal,
            batch.lam,
            mask,
            self.normalize_weights,
            group=batch.group,
        )
