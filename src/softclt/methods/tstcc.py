"""TS-TCC with soft assignments."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders import Encoder, TCCEncoder, TCCNetwork
from softclt.encoders.tcc import Features
from softclt.encoders.tcc_heads import HEADS
from softclt.losses import functional
from softclt.losses.contextual import nt_xent
from softclt.methods.learner import RepresentationLearner, methods
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftAtAllLevels
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


class TCCLearner(RepresentationLearner):
    """The encoder, the distortions, the optimiser and the budget of TS-TCC.

    Args:
        widths: Channels of the encoder's blocks; the last is the size M of the embedding.
        kernel_size: Of the first block's convolution; the others have 8 steps.
        stride: Of the first block's convolution.
        dropout: Probability with which a value of the first block is dropped in training.
        scale_sigma: Spread of the factors, around 2, of the weak view.
        jitter_sigma: Spread of the noise of the strong view.
        max_segments: The strong view has up to one segment less.
        batch_size: Series in a batch; all of them if there are fewer.
        lr: Learning rate of Adam.
        max_iter: Steps of training; None: as max_epochs says. 0 is the untrained encoder.
    """

    _averages = False
    _numbers_a_step = 4_000
    _stacks = True

    @with_parameters_of(RepresentationLearner, batch_size=128, lr=3e-4, max_epochs=40)
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
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.widths = widths
        self.kernel_size = kernel_size
        self.stride = stride
        self.dropout = dropout
        self.scale_sigma = scale_sigma
        self.jitter_sigma = jitter_sigma
        self.max_segments = max_segments

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if len(self.widths) == 0:
            raise ValueError("widths is empty; the encoder needs one block at least")
        for width in self.widths:
            check_range(width, "widths", 1)
        for name in ("kernel_size", "stride"):
            check_range(getattr(self, name), name, 1)
        check_range(self.dropout, "dropout", 0, 0.99)
        check_range(self.max_segments, "max_segments", 2)
        for name in ("scale_sigma", "jitter_sigma"):
            check_range(getattr(self, name), name, 0)
        if current_group().size > 1:
            raise ValueError(
                f"{type(self).__name__} has batch statistics, which are of the whole batch: it is "
                "trained by one process; start it without torchrun"
            )

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
        own = list(parameters)  # of encoder and heads: the original's two optimisers are alike
        return torch.optim.Adam(
            own,
            lr=self.lr,
            betas=BETAS,
            weight_decay=WEIGHT_DECAY,
            fused=True,
            capturable=own[0].is_cuda,
        )


@methods.register("tstcc", paper="Eldele et al., IJCAI 2021", classifier="fine-tune")
class TSTCC(TCCLearner, SoftAtAllLevels):
    """Two views that predict each other's future, with soft contrastive losses on every block.

    ``lambda_aux=0`` is the original TS-TCC (Eldele et al., IJCAI 2021). Each series is seen weakly
    distorted (scaled) and strongly (its segments in another order, and noise). The summary of one
    view's past predicts the other view's future steps, and the summaries of both are contrasted
    with those of the other series. The soft version adds ``lambda_aux`` times the soft losses over
    series and over time on the output of each block; with taus of None these are hard.

    Training takes one process: batch statistics are of the whole batch.

    Args:
        hidden_dims: Size of the summary that the transformer makes; a multiple of 4.
        timesteps: Future steps of the last block to predict; half of its steps if it has no more.
        temperature: Of the contextual loss.
        contextual_weight: Of the contextual loss.
        lambda_aux: Of the auxiliary losses.
        aux_temperature: The auxiliary losses compare features by their cosine, divided by this.
            None: by their scalar product as it is, as the paper does; such losses are some thirty
            times as large as the others, and teach less. See docs/few-labels.md.
        lam: Share of the instance term in them.
        tau_temporal: Sharpness of the soft assignment between steps of the first block's output;
            None is hard.
        tau_growth: Temporal sharpness grows by this factor a block.
        weak_jitter: Add such noise to the weak view as well, as TS-TCC's paper says and its code
            does not.
        redraw_views: Distort anew at every step; False: the same views of a series at every step,
            as in the original.

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

    @with_parameters_of(TCCLearner, SoftAtAllLevels, tau_temporal=2.0)
    def __init__(
        self,
        *,
        hidden_dims: int = 100,
        timesteps: int = 10,
        temperature: float = 0.2,
        contextual_weight: float = 0.7,
        lambda_aux: float = 0.5,
        aux_temperature: float | None = 0.2,
        weak_jitter: bool = False,
        redraw_views: bool = True,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.hidden_dims = hidden_dims
        self.timesteps = timesteps
        self.temperature = temperature
        self.contextual_weight = contextual_weight
        self.lambda_aux = lambda_aux
        self.aux_temperature = aux_temperature
        self.weak_jitter = weak_jitter
        self.redraw_views = redraw_views

    def _check_parameters(self) -> None:
        super()._check_parameters()
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

    def _build(self, n_channels: int) -> Encoder:
        encoder = self._encoder(n_channels)
        return TCCNetwork(encoder, self.hidden_dims, self.timesteps)

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        if self.lambda_aux == 0 or self.lam == 0:
            return None  # nobody would look at them, and distances need not be computed
        return super()._instance_weights(distances)

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
            network.encoder.blocks(view, dropout=dropout, complete=complete)
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
