"""TS2Vec with soft assignments."""

from typing import Any

import torch
from torch import Tensor

from softclt.assignments import instance_weights, weights_by_time
from softclt.encoders import DilatedEncoder, Encoder, Piece
from softclt.losses import SoftContrastiveLoss, functional
from softclt.losses.by_time import hierarchical_loss_by_time
from softclt.methods.learner import SOFTNESS_AND_SEED, RepresentationLearner, methods
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment
from softclt.validation import check_range

KEEP_PROBABILITY = 0.5  # of a step in a view
DROPOUT = 0.1  # on the representation, in training


@methods.register("ts2vec")
class TS2Vec(RepresentationLearner):
    """Representations of time series by hierarchical contrast of two crops, soft by default.

    ``tau_instance=None, tau_temporal=None`` is the original TS2Vec.

    Args:
        output_dims: Size M of the embedding.
        hidden_dims: Channels inside the encoder.
        depth: Residual blocks before the last.
        tau_instance: Sharpness of the soft assignment between series; None is hard.
        tau_temporal: Sharpness of the soft assignment between steps; None is hard.
        alpha: Upper bound of the weight between two different series.
        lam: Share of the instance term in the loss.
        instance_assignment: sigmoid, gaussian, laplacian, linear or hard.
        temporal_assignment: sigmoid, gaussian, laplacian, linear, neighbor or hard.
        tau_growth: Temporal sharpness grows by this factor a level of the hierarchy.
        normalize_weights: Divide the weights of each anchor by their sum.
        weight_cut: Temporal weights below it become 0.
        distance: Between series: dtw, fastdtw, tam, euclidean, cosine, or a function of two series.
        distance_params: Of the distance, e.g. ``{"window": 0.1}``.
        distance_scale: ``series`` scales each series to [0, 1] before distances are taken.
        distance_normalize: minmax (over all pairs), max, or column (the authors' code).
        distance_mode: dense: all distances once, before training. lazy: those of each batch when it
            comes, scaled by the extremes of a sample, for more series than a matrix can hold. auto:
            dense unless it would be much more to compute; see `softclt.BatchDistances`.
        scale: ``channel`` removes mean and standard deviation of each channel of the training data;
            None takes values as they are.
        mask_padding: Padded and missing steps take no part in losses, layers and pooling.
        pooling: Of steps to one vector: max, mean, positive (share of steps above 0), or several
            side by side, as in ``max+mean+positive``.
        layers: Read out the last block, or all of them side by side.
        batch_size: Series in a batch.
        lr: Learning rate of AdamW.
        lr_schedule: How it changes over the steps of a fit: constant, linear (falls to 0), cosine
            (likewise, slowly at both ends) or warmup-cosine (rises over a tenth of them before).
        max_iter: Steps of training; None takes 200 for up to 100,000 values and 600 above, unless
            max_epochs is given. 0 is the untrained encoder.
        max_epochs: Passes over the data.
        max_train_length: Longer series are cut into sections.
        warm_start: Go on from the last fit instead of starting again.
        device: auto, cpu or cuda.
        precision: auto (float32; on a GPU the network's products in TF32), float32, float64, or
            bfloat16 (arithmetic; losses stay float32).
        random_state: Seed; the same seed gives the same model on a CPU.
        progress: Show a bar.

    Attributes:
        module_: The encoder with averaged weights.
        history_: ``loss`` by step; ``distance_mode``: dense, lazy, or None for hard; ``distances``:
            ``engine`` (cpu or cuda; None if given), ``pairs_before`` training and
            ``pairs_in_batches``, ``low`` and ``high`` that became 0 and 1, ``seconds_in_training``
            (None on a GPU); ``trained_together``: models that took their steps with this one;
            ``seconds`` by phase, for all of them.
        n_features_in_: Channels D.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = TS2Vec(output_dims=16, hidden_dims=8, depth=3, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        16
    """

    _by_time = True
    _varies = SOFTNESS_AND_SEED | {"lr", "lr_schedule"}

    def __init__(
        self,
        *,
        output_dims: int = 320,
        hidden_dims: int = 64,
        depth: int = 10,
        tau_instance: float | None = 20.0,
        tau_temporal: float | None = 1.0,
        alpha: float = 0.5,
        lam: float = 0.5,
        instance_assignment: str = "sigmoid",
        temporal_assignment: str = "sigmoid",
        tau_growth: float = 2,
        normalize_weights: bool = False,
        weight_cut: float = 0.0,
        distance: Any = "dtw",
        distance_params: dict[str, Any] | None = None,
        distance_scale: str | None = None,
        distance_normalize: str = "minmax",
        distance_mode: str = "auto",
        scale: str | None = "channel",
        mask_padding: bool = True,
        pooling: str = "max",
        layers: str = "last",
        batch_size: int = 8,
        lr: float = 1e-3,
        lr_schedule: str = "constant",
        max_iter: int | None = None,
        max_epochs: int | None = None,
        max_train_length: int = 3000,
        warm_start: bool = False,
        device: str = "auto",
        precision: str = "auto",
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.output_dims = output_dims
        self.hidden_dims = hidden_dims
        self.depth = depth
        self.tau_instance = tau_instance
        self.tau_temporal = tau_temporal
        self.alpha = alpha
        self.lam = lam
        self.instance_assignment = instance_assignment
        self.temporal_assignment = temporal_assignment
        self.tau_growth = tau_growth
        self.normalize_weights = normalize_weights
        self.weight_cut = weight_cut
        self.distance = distance
        self.distance_params = distance_params
        self.distance_scale = distance_scale
        self.distance_normalize = distance_normalize
        self.distance_mode = distance_mode
        self.scale = scale
        self.mask_padding = mask_padding
        self.pooling = pooling
        self.layers = layers
        self.batch_size = batch_size
        self.lr = lr
        self.lr_schedule = lr_schedule
        self.max_iter = max_iter
        self.max_epochs = max_epochs
        self.max_train_length = max_train_length
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.progress = progress

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, low in (("output_dims", 1), ("hidden_dims", 1), ("depth", 0)):
            check_range(getattr(self, name), name, low)
        self._criterion = SoftContrastiveLoss(
            tau_instance=self.tau_instance,
            tau_temporal=self.tau_temporal,
            alpha=self.alpha,
            lam=self.lam,
            instance_assignment=self.instance_assignment,
            temporal_assignment=self.temporal_assignment,
            tau_growth=self.tau_growth,
            normalize_weights=self.normalize_weights,
            weight_cut=self.weight_cut,
        )

    def _build(self, n_channels: int) -> Encoder:
        return DilatedEncoder(
            n_channels, self.output_dims, self.hidden_dims, self.depth, self.mask_padding
        )

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        return instance_weights(distances, self.tau_instance, self.alpha, self.instance_assignment)

    def _temporal_weights(self, z: Tensor) -> functional.TemporalWeights | None:
        weights: functional.TemporalWeights | None = self._criterion.temporal(z)
        return weights

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
            dropout=draws.dropout((b, 2 * crop.overlap, self.output_dims), DROPOUT, 0),
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
        if batch.times is not None:
            times = augment.overlapping_crops(batch.times[..., None, :], crop, offsets)[1]
            return hierarchical_loss_by_time(
                left,
                right,
                times[..., 0, : crop.overlap],
                self._weights_by_time,
                batch.weights,
                batch.lam,
                mask,
                self.normalize_weights,
            )
        return functional.hierarchical_loss(
            left,
            right,
            batch.weights,
            batch.temporal,
            batch.lam,
            mask,
            self.normalize_weights,
            group=batch.group,
        )
