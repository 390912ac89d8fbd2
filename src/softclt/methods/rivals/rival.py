"""What the rivals share: the encoder, the views, the optimiser and the budget of TS-TCC."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from softclt.assignments import instance_weights
from softclt.encoders import TCCEncoder
from softclt.methods.learner import SOFTNESS_AND_SEED, RepresentationLearner
from softclt.methods.signature import with_parameters_of
from softclt.methods.tstcc import adam, check_encoder_and_views
from softclt.training import StepDraws
from softclt.training import views as augment
from softclt.validation import check_choice, check_range


class Rival(RepresentationLearner):
    """A method to compare TS-TCC and CA-TCC with; nothing differs but what it learns from.

    The weak view has half of the numbers of TS-TCC's, whose factors lie around 2: a classifier is
    asked about series as they are, and must have learned from series of their size.

    Args:
        parameters: See `TSTCC`, which has the same with the same defaults.
    """

    _averages = False
    _numbers_a_step = 4_000
    _varies = SOFTNESS_AND_SEED

    # Hard between series, unless a method has these as parameters.
    tau_instance: float | None = None
    alpha = 0.5
    instance_assignment = "sigmoid"
    distance: Any = "dtw"
    distance_params: dict[str, Any] | None = None
    distance_scale: str | None = None
    distance_normalize = "minmax"
    distance_mode = "auto"

    def __init__(
        self,
        *,
        widths: Sequence[int] = (32, 64, 128),
        kernel_size: int = 8,
        stride: int = 1,
        dropout: float = 0.35,
        scale_sigma: float = 1.1,
        jitter_sigma: float = 0.8,
        max_segments: int = 8,
        scale: str | None = "channel",
        mask_padding: bool = True,
        pooling: str = "max",
        layers: str = "last",
        batch_size: int = 128,
        lr: float = 3e-4,
        lr_schedule: str = "constant",
        max_iter: int | None = None,
        max_epochs: int | None = 40,
        max_train_length: int = 3000,
        warm_start: bool = False,
        device: str = "auto",
        precision: str = "auto",
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.widths = widths
        self.kernel_size = kernel_size
        self.stride = stride
        self.dropout = dropout
        self.scale_sigma = scale_sigma
        self.jitter_sigma = jitter_sigma
        self.max_segments = max_segments
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
        check_choice(self.pooling, ("max", "mean"), "pooling")  # their networks learn through it
        check_encoder_and_views(self)

    def _encoder(self, n_channels: int) -> TCCEncoder:
        return TCCEncoder(
            n_channels,
            self.widths,
            self.kernel_size,
            self.stride,
            self.dropout,
            self.mask_padding,
        )

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return adam(parameters, self.lr)

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        return instance_weights(distances, self.tau_instance, self.alpha, self.instance_assignment)

    def _weak(self, x: Tensor, draws: StepDraws) -> Tensor:
        """Series ``(R, B, D, T)`` times numbers around 1."""
        return augment.jitter_and_scale(x, draws, self.scale_sigma) / 2

    def _strong(self, x: Tensor, draws: StepDraws, complete: bool) -> Tensor:
        """Segments of series ``(R, B, D, T)`` in another order, and noise."""
        return augment.permute_and_jitter(
            x, draws, self.max_segments, self.jitter_sigma, complete or not self.mask_padding
        )


class SoftRival(Rival):
    """A rival with a natural place for soft assignments between series; hard by default.

    Args:
        tau_instance: Sharpness of the soft assignment between series; None, the original, is hard.
        alpha: Upper bound of the weight between two different series.
        instance_assignment: sigmoid, gaussian, laplacian, linear or hard.
        distance: Between series; see `TS2Vec`, also for the next four.
        distance_params: Of the distance.
        distance_scale: ``series`` scales each series to [0, 1] before distances are taken.
        distance_normalize: minmax, max or column.
        distance_mode: auto, dense or lazy.
        parameters: See `TSTCC`, which has the same with the same defaults.
    """

    @with_parameters_of(Rival)
    def __init__(
        self,
        *,
        tau_instance: float | None = None,
        alpha: float = 0.5,
        instance_assignment: str = "sigmoid",
        distance: Any = "dtw",
        distance_params: dict[str, Any] | None = None,
        distance_scale: str | None = None,
        distance_normalize: str = "minmax",
        distance_mode: str = "auto",
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.tau_instance = tau_instance
        self.alpha = alpha
        self.instance_assignment = instance_assignment
        self.distance = distance
        self.distance_params = distance_params
        self.distance_scale = distance_scale
        self.distance_normalize = distance_normalize
        self.distance_mode = distance_mode

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.alpha, "alpha", 0, 1)
        self._instance_weights(torch.zeros(1, 1))  # or an error that names what is wrong
