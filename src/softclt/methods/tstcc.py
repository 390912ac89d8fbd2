"""TS-TCC with soft assignments."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.assignments import instance_weights
from softclt.encoders import Encoder, TCCEncoder, TCCNetwork
from softclt.encoders.tcc import Features
from softclt.encoders.tcc_heads import HEADS
from softclt.losses import SoftContrastiveLoss, functional
from softclt.losses.contextual import nt_xent
from softclt.methods.learner import SOFTNESS_AND_SEED, RepresentationLearner, methods
from softclt.training import Batch, StepDraws, Stream, current_group
from softclt.training import views as augment
from softclt.training.randomness import RowDraws
from softclt.validation import check_range

BETAS, WEIGHT_DECAY = (0.9, 0.99), 3e-4  # of Adam


class Terms(NamedTuple):
    """What the loss of a batch is made of, each for R models.

    Attributes:
        temporal: Of predicting either view from the other, ``(R,)``.
        projections: Of both views, ``(R, B, 32)`` each, for a contextual loss.
        auxiliary: The soft losses of all blocks, ``(R,)``; 0 where ``lambda_aux`` is.
    """

    temporal: Tensor
    projections: tuple[Tensor, Tensor]
    auxiliary: Tensor | float


@methods.register("tstcc", classifier="fine-tune")
class TSTCC(RepresentationLearner):
    """Two views that predict each other's future, with soft contrastive losses on every block.

    ``lambda_aux=0`` is the original TS-TCC (Eldele et al., IJCAI 2021): each series is seen weakly
    distorted (scaled) and strongly (its segments in another order, and noise), the summary of one
    view's past predicts the other view's future steps, and the summaries of both are contrasted
    with those of the other series. The soft version adds ``lambda_aux`` times the soft losses over
    series and over time on the output of each block; with taus of None these are hard.

    Training takes one process: batch statistics are of the whole batch.

    Args:
        widths: Channels of the encoder's blocks; the last is the size M of the embedding.
        kernel_size: Of the first block's convolution; the others have 8 steps.
        stride: Of the first block's convolution.
        dropout: Probability with which a value of the first block is dropped in training.
        hidden_dims: Size of the summary that the transformer makes; a multiple of 4.
        timesteps: Future steps of the last block to predict; half of its steps if it has no more.
        temperature: Of the contextual loss.
        contextual_weight: Of the contextual loss.
        lambda_aux: Of the auxiliary losses.
        aux_temperature: The auxiliary losses compare features by their cosine, divided by this.
            None: by their scalar product as it is, as the paper does; such losses are some thirty
            times as large as the others, and teach less. See docs/few-labels.md.
        lam: Share of the instance term in them.
        tau_instance: Sharpness of the soft assignment between series; None is hard.
        tau_temporal: Sharpness of the soft assignment between steps of the first block's output;
            None is hard.
        alpha: Upper bound of the weight between two different series.
        instance_assignment: sigmoid, gaussian, laplacian, linear or hard.
        temporal_assignment: sigmoid, gaussian, laplacian, linear, neighbor or hard.
        tau_growth: Temporal sharpness grows by this factor a block.
        normalize_weights: Divide the weights of each anchor by their sum.
        weight_cut: Temporal weights below it become 0.
        scale_sigma: Spread of the factors, around 2, of the weak view.
        jitter_sigma: Spread of the noise of the strong view.
        weak_jitter: Add such noise to the weak view as well, as TS-TCC's paper says and its code
            does not.
        max_segments: The strong view has up to one segment less.
        redraw_views: Distort anew at every step; False: the same views of a series at every step,
            as in the original.
        distance: Between series; see `TS2Vec`, also for the next four.
        distance_params: Of the distance.
        distance_scale: ``series`` scales each series to [0, 1] before distances are taken.
        distance_normalize: minmax, max or column.
        distance_mode: auto, dense or lazy.
        scale: ``channel`` removes mean and standard deviation of each channel of the training data;
            None takes values as they are.
        mask_padding: Padded and missing steps take no part in losses, layers and pooling.
        pooling: Of steps to one vector: max, mean, positive (share of steps above 0), or several
            side by side, as in ``max+mean+positive``.
        layers: Read out the last block, or all of them side by side.
        batch_size: Series in a batch; all of them if there are fewer.
        lr: Learning rate of Adam.
        lr_schedule: How it changes over the steps of a fit; see `TS2Vec`.
        max_iter: Steps of training; None: as max_epochs says. 0 is the untrained encoder.
        max_epochs: Passes over the data.
        max_train_length: Longer series are cut into sections.
        warm_start: Go on from the last fit instead of starting again.
        device: auto, cpu or cuda.
        precision: auto, float32, float64 or bfloat16; see `TS2Vec`.
        random_state: Seed; the same seed gives the same model on a CPU.
        progress: Show a bar.

    Attributes:
        module_: The network after the last step: ``module_.encoder`` is what encodes, its
            ``blocks`` give the outputs of all blocks; ``module_.contrast`` are the heads.
        history_: As that of `TS2Vec`.
        n_features_in_: Channels D.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = TSTCC(widths=(4, 8), hidden_dims=8, max_epochs=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        8
    """

    _averages = False
    _numbers_a_step = 4_000
    _varies = SOFTNESS_AND_SEED

    def __init__(
        self,
        *,
        widths: Sequence[int] = (32, 64, 128),
        kernel_size: int = 8,
        stride: int = 1,
        dropout: float = 0.35,
        hidden_dims: int = 100,
        timesteps: int = 10,
        temperature: float = 0.2,
        contextual_weight: float = 0.7,
        lambda_aux: float = 0.5,
        aux_temperature: float | None = 0.2,
        lam: float = 0.5,
        tau_instance: float | None = 20.0,
        tau_temporal: float | None = 2.0,
        alpha: float = 0.5,
        instance_assignment: str = "sigmoid",
        temporal_assignment: str = "sigmoid",
        tau_growth: float = 2,
        normalize_weights: bool = False,
        weight_cut: float = 0.0,
        scale_sigma: float = 1.1,
        jitter_sigma: float = 0.8,
        weak_jitter: bool = False,
        max_segments: int = 8,
        redraw_views: bool = True,
        distance: Any = "dtw",
        distance_params: dict[str, Any] | None = None,
        distance_scale: str | None = None,
        distance_normalize: str = "minmax",
        distance_mode: str = "auto",
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
        self.hidden_dims = hidden_dims
        self.timesteps = timesteps
        self.temperature = temperature
        self.contextual_weight = contextual_weight
        self.lambda_aux = lambda_aux
        self.aux_temperature = aux_temperature
        self.lam = lam
        self.tau_instance = tau_instance
        self.tau_temporal = tau_temporal
        self.alpha = alpha
        self.instance_assignment = instance_assignment
        self.temporal_assignment = temporal_assignment
        self.tau_growth = tau_growth
        self.normalize_weights = normalize_weights
        self.weight_cut = weight_cut
        self.scale_sigma = scale_sigma
        self.jitter_sigma = jitter_sigma
        self.weak_jitter = weak_jitter
        self.max_segments = max_segments
        self.redraw_views = redraw_views
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
        check_encoder_and_views(self)
        for name in ("timesteps", "hidden_dims"):
            check_range(getattr(self, name), name, 1)
        if self.hidden_dims % HEADS:
            raise ValueError(
                f"hidden_dims is {self.hidden_dims}; expected a multiple of {HEADS}, the number of "
                "the transformer's heads"
            )
        check_range(self.temperature, "temperature", 0, open_low=True)
        if self.aux_temperature is not None:
            check_range(self.aux_temperature, "aux_temperature", 0, open_low=True)
        for name in ("contextual_weight", "lambda_aux"):
            check_range(getattr(self, name), name, 0)
        self._criterion = SoftContrastiveLoss(
            tau_instance=self.tau_instance,
            tau_temporal=self.tau_temporal,
            alpha=self.alpha,
            lam=self.lam,
            instance_assignment=self.instance_assignment,
            temporal_assignment=self.temporal_assignment,
            tau_growth=self.tau_growth,
            weight_cut=self.weight_cut,
        )

    def _build(self, n_channels: int) -> Encoder:
        encoder = TCCEncoder(
            n_channels,
            self.widths,
            self.kernel_size,
            self.stride,
            self.dropout,
            self.mask_padding,
        )
        return TCCNetwork(encoder, self.hidden_dims, self.timesteps)

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return adam(parameters, self.lr)  # of encoder and heads: the original's two are alike

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        if self.lambda_aux == 0 or self.lam == 0:
            return None  # nobody would look at them, and distances need not be computed
        return instance_weights(distances, self.tau_instance, self.alpha, self.instance_assignment)

    def _temporal_weights(self, z: Tensor) -> functional.TemporalWeights | None:
        weights: functional.TemporalWeights | None = self._criterion.temporal(z)
        return weights

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        terms = self._terms(module, batch, draws)
        contextual = nt_xent(*terms.projections, self.temperature)
        loss = terms.temporal + self.contextual_weight * contextual
        return loss + self.lambda_aux * terms.auxiliary

    def _terms(self, module: Encoder, batch: Batch, draws: StepDraws) -> Terms:
        """The parts of the loss, of which CA-TCC makes another one."""
        network = cast(TCCNetwork, module.train())  # an earlier fit has left it in evaluation mode
        dropout, complete = _Dropouts(draws), batch.mask is None
        # Either view by itself, so that batch statistics are of one kind of series.
        weak, strong = (
            network.blocks(view, dropout=dropout, complete=complete)
            for view in self._views(batch, draws)
        )
        n_places = network.contrast.n_places(weak[-1].values.shape[2])
        end = draws.integers(Stream.ANCHOR, n_places)  # a tensor: no step waits for it
        contrasted = network.contrast(weak[-1], strong[-1], end, dropout)
        auxiliary: Tensor | float = 0.0
        if self.lambda_aux > 0:
            auxiliary = self._auxiliary(weak, strong, batch)
        return Terms(contrasted.loss, contrasted.projections, auxiliary)

    def _views(self, batch: Batch, draws: StepDraws) -> tuple[Tensor, Tensor]:
        # The official release multiplies views by 100. Batch statistics hide it in training, and
        # are then wrong by as much for the series themselves; here they are taken as they are.
        own = draws if self.redraw_views else RowDraws(draws, batch.index)
        weak_sigma = self.jitter_sigma if self.weak_jitter else 0.0
        complete = batch.mask is None or not self.mask_padding
        return (
            augment.jitter_and_scale(batch.x, own, self.scale_sigma, weak_sigma),
            augment.permute_and_jitter(
                batch.x, own, self.max_segments, self.jitter_sigma, complete
            ),
        )

    def _auxiliary(
        self, weak: Sequence[Features], strong: Sequence[Features], batch: Batch
    ) -> Tensor:
        """Sum over the blocks of the soft losses over time and over series.

        Features are (R, B, T, C) here, so time is the time axis. In the official release they are
        (B, C, T), of which the losses take the second axis for time: its soft temporal loss fails
        on the sizes, and its hard losses contrast channels, so that its hard and soft runs do not
        compare the same thing. Here hard is soft with other weights, nothing else.

        Weights come with the rows of the batch. The official release indexes distances by the
        place in a shuffled copy of the data in its class-aware phase, which are random pairs.
        """
        losses = []
        for depth, (one, two) in enumerate(zip(weak, strong, strict=True)):
            mask = None if one.mask is None or two.mask is None else one.mask & two.mask
            by_lag: functional.TemporalWeights | None = None
            if batch.temporal is not None:
                by_lag = _at_depth(batch.temporal, depth)
            losses.append(
                functional.hierarchical_loss(
                    self._compared(one.values),
                    self._compared(two.values),
                    batch.weights,
                    by_lag,
                    batch.lam,
                    mask,
                    self.normalize_weights,
                    max_levels=1,  # pooling is the encoder's here
                )
            )
        return torch.stack(losses).sum(dim=0)

    def _compared(self, features: Tensor) -> Tensor:
        """Features whose scalar products are what the auxiliary losses compare."""
        if self.aux_temperature is None:
            return features
        cosines: Tensor = F.normalize(features, dim=-1) / self.aux_temperature**0.5
        return cosines


def check_encoder_and_views(model: Any) -> None:
    """Refuse settings that no method on the encoder and the views of TS-TCC can have."""
    if len(model.widths) == 0:
        raise ValueError("widths is empty; the encoder needs one block at least")
    for width in model.widths:
        check_range(width, "widths", 1)
    for name in ("kernel_size", "stride"):
        check_range(getattr(model, name), name, 1)
    check_range(model.dropout, "dropout", 0, 0.99)
    check_range(model.max_segments, "max_segments", 2)
    for name in ("scale_sigma", "jitter_sigma"):
        check_range(getattr(model, name), name, 0)
    if current_group().size > 1:
        raise ValueError(
            f"{type(model).__name__} has batch statistics, which are of the whole batch: it is "
            "trained by one process; start it without torchrun"
        )


def adam(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """The optimiser of TS-TCC."""
    own = list(parameters)
    return torch.optim.Adam(
        own,
        lr=lr,
        betas=BETAS,
        weight_decay=WEIGHT_DECAY,
        fused=True,
        capturable=own[0].is_cuda,
    )


class _Dropouts:
    """Draws factors with numbers of their own at every place of the network."""

    def __init__(self, draws: StepDraws) -> None:
        self.draws, self.site = draws, 0

    def __call__(self, shape: tuple[int, ...], probability: float) -> Tensor:
        self.site += 1
        return self.draws.dropout(shape, probability, 0, self.site)


def _at_depth(temporal: functional.TemporalWeights, depth: int) -> functional.TemporalWeights:
    """The weights of a block, tau * growth^depth, for a loss at one resolution."""
    any_length = getattr(temporal, "any_length", False)
    return functional.LagWeights(lambda length, _: temporal(length, depth), any_length)
