"""CoST with soft assignments."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders import CoSTEncoder, Encoder
from softclt.encoders.dilated import MOST_BLOCKS
from softclt.losses import functional
from softclt.losses.queue import soft_queue_loss
from softclt.methods.learner import methods
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftInTimeLearner
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment
from softclt.validation import check_range

DROPOUT = 0.1  # on the season, in training
EPS = 1e-6  # keeps amplitudes and phases differentiable where a frequency is absent
MOMENTUM, WEIGHT_DECAY = 0.9, 1e-4  # of SGD


@methods.register("cost", paper="Woo et al., ICLR 2022")
class CoST(SoftInTimeLearner):
    """Trend and season side by side, by contrast in time and in frequency; soft by default.

    ``tau_instance=None, tau_temporal=None`` is the original CoST (Woo et al., ICLR 2022). Its loss
    is that of the trend plus ``season_weight`` times that of the season, of two views of each
    series that are scaled, shifted and jittered at random.

    The season's loss contrasts the series of a batch at each frequency, by amplitude and by phase:
    there the soft assignments between series are those of TS2Vec. The trend's loss knows one
    positive, the same series at the same random step, against keys of earlier batches (MoCo). No
    code of a soft version was ever released, so how to soften it in time is a choice made here. The
    keys of the same series at the steps around it are positives too, weighted by their lag, and
    each stands against the queue alone. Steps of the same series are no negatives in CoST, so they
    do not become each other's here. With sharp weights, or none, the loss is the original one.

    The season belongs to windows of ``max_train_length`` steps. Series that are shorter are
    followed by zeros and longer ones encoded window by window, from their first step on, so that
    padding changes nothing. What the paper reads out is the last step of a window of 201:
    ``encode(X, level="timestamp", causal=True, context=200)``, in general a context of
    ``max_train_length - 1``.

    Args:
        output_dims: Size M of the embedding, half of it trend and half season; even.
        hidden_dims: Channels inside the dilated convolutions.
        depth: Their residual blocks before the last.
        kernel_sizes: Steps that the trend's convolutions see; their mean is the trend.
        season_weight: Of the season's loss.
        queue_size: Keys of earlier batches that the trend is contrasted with.
        key_momentum: Share of itself that the keys' network keeps at each step.
        temperature: Of the trend's loss.
        layers: Read out trend and season, or all blocks below as well.
        batch_size: Series in a batch; fewer series come several times.
        lr: Learning rate of SGD.
        max_train_length: Steps of the season's windows; longer series are cut into sections.

    Attributes:
        module_: The encoder after the last step.
        history_: As that of `TS2Vec`.
        n_features_in_: Channels D.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = CoST(output_dims=16, hidden_dims=8, depth=3, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        16
    """

    _averages = False
    _repeats = True

    @with_parameters_of(
        SoftInTimeLearner, batch_size=128, lr_schedule="cosine", max_train_length=201
    )
    def __init__(
        self,
        *,
        output_dims: int = 320,
        hidden_dims: int = 64,
        depth: int = 10,
        kernel_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
        season_weight: float = 5e-4,
        queue_size: int = 256,
        key_momentum: float = 0.999,
        temperature: float = 0.07,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.output_dims = output_dims
        self.hidden_dims = hidden_dims
        self.depth = depth
        self.kernel_sizes = kernel_sizes
        self.season_weight = season_weight
        self.queue_size = queue_size
        self.key_momentum = key_momentum
        self.temperature = temperature

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, low in (("output_dims", 2), ("hidden_dims", 1), ("queue_size", 1)):
            check_range(getattr(self, name), name, low)
        check_range(self.depth, "depth", 0, MOST_BLOCKS)
        if self.output_dims % 2:
            raise ValueError(
                f"output_dims is {self.output_dims}; expected an even number, of which one half is "
                "trend and one season"
            )
        if len(self.kernel_sizes) == 0:
            raise ValueError("kernel_sizes is empty; the trend needs one convolution at least")
        for size in self.kernel_sizes:
            check_range(size, "kernel_sizes", 1)
        check_range(self.season_weight, "season_weight", 0)
        check_range(self.key_momentum, "key_momentum", 0, 1)
        check_range(self.temperature, "temperature", 0, open_low=True)

    def _build(self, n_channels: int) -> Encoder:
        return CoSTEncoder(
            n_channels,
            self.output_dims,
            self.hidden_dims,
            self.depth,
            self.kernel_sizes,
            self.max_train_length,
            self.queue_size,
            self.mask_padding,
        )

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        module = cast(CoSTEncoder, module)
        if not self.mask_padding and batch.mask is not None:
            batch = _unmasked(batch)
        views = [augment.distort(batch.x, draws, view) for view in (0, 1)]
        complete = batch.mask is None
        left, right = module.query.features(torch.cat(views, dim=1), complete=complete).chunk(2, 2)
        trend = self._trend_loss(module, left, views[1], batch, draws)
        return trend + self.season_weight * self._season_loss(module, (left, right), batch, draws)

    def _trend_loss(
        self, module: CoSTEncoder, z: Tensor, other: Tensor, batch: Batch, draws: StepDraws
    ) -> Tensor:
        """Momentum contrast of features ``(R, T, B, M)`` with the other view ``(R, B, D, T)``."""
        t = other.shape[-1]
        by_lag = z.new_ones(1) if batch.temporal is None else batch.temporal(t, 0)
        reach = by_lag.shape[-1] - 1
        anchors = anchor_steps(draws.integers(Stream.ANCHOR, t), batch.mask, other)  # (R, B)
        with torch.no_grad():
            module.follow(self.key_momentum)
            features = module.key.features(other, complete=batch.mask is None)
            keys = module.key.projected(features, anchors, reach)  # (R, 2 reach + 1, B, C)
        query = module.query.projected(z, anchors, 0)[:, 0]
        weights = positive_weights(by_lag, anchors, t, batch.mask)
        loss = soft_queue_loss(
            query,
            keys.transpose(1, 2),
            module.queue.clone(),  # which changes before the gradient is taken
            weights,
            self.temperature,
            self.normalize_weights,
        )
        real = None if batch.mask is None else batch.mask.any(dim=-1)
        if batch.group.size > 1 and real is not None:
            everyone = batch.group.gather(real, -1)
            share = real.sum(dim=-1) / everyone.sum(dim=-1).clamp_min(1)
            loss, real = loss * batch.group.size * share, everyone
        module.enqueue(batch.group.gather(keys[:, reach], -2), real)
        return loss

    def _season_loss(
        self,
        module: CoSTEncoder,
        features: tuple[Tensor, Tensor],
        batch: Batch,
        draws: StepDraws,
    ) -> Tensor:
        """Contrast of the spectra of both views, with gradients for both."""
        spectra = []
        for view, z in enumerate(features):
            season = module.season(z)  # (R, T, B, C)
            _, t, b, c = season.shape
            season = season * draws.dropout((b, t, c), DROPOUT, view).transpose(1, 2)
            season = F.normalize(season, dim=-1)
            if batch.mask is not None:
                season = module.query.inside(batch.x, season)
            spectra.append(torch.fft.rfft(season, dim=1).transpose(1, 2))  # (R, B, F, C)
        mask = None
        if batch.mask is not None:
            some = batch.group.gather(batch.mask.any(dim=-1), -1)
            mask = some[..., None].expand(*some.shape, spectra[0].shape[-2])
        losses = [
            functional.soft_instance_loss(
                batch.group.gather(one, -3),
                batch.group.gather(two, -3),
                batch.weights,
                mask,
                self.normalize_weights,
            )
            for one, two in zip(*map(amplitude_and_phase, spectra), strict=True)
        ]
        return (losses[0] + losses[1]) / 2


def amplitude_and_phase(spectrum: Tensor) -> tuple[Tensor, Tensor]:
    """Of complex numbers; both have a gradient everywhere, also at 0."""
    real, imaginary = spectrum.real, spectrum.imag
    amplitude = ((real + EPS) ** 2 + (imaginary + EPS) ** 2).sqrt()
    return amplitude, torch.atan2(imaginary, real + EPS)


def anchor_steps(drawn: Tensor, mask: Tensor | None, x: Tensor) -> Tensor:
    """The step at which each series is contrasted, ``(R, B)``: one for all that miss nothing.

    A series with n observed steps out of T is contrasted at the one that lies as far in them as the
    step drawn lies in T.

    Args:
        drawn: A step of each model, ``(R,)``.
        mask: ``(R, B, T)``, True at observed steps.
        x: Series ``(R, B, D, T)``.
    """
    r, b, _, t = x.shape
    if mask is None:
        return drawn[:, None].expand(r, b)
    number = mask.cumsum(dim=-1)  # of each observed step, from 1 on
    wanted = drawn[:, None] * number[..., -1] // t + 1
    return ((number == wanted[..., None]) & mask).int().argmax(dim=-1)


def positive_weights(by_lag: Tensor, anchors: Tensor, t: int, mask: Tensor | None) -> Tensor:
    """Weights ``(R, B, 2 * reach + 1)`` of the steps around the anchors; 0 where there is none."""
    reach = by_lag.shape[-1] - 1
    lags = torch.arange(-reach, reach + 1, device=anchors.device)
    steps = anchors[..., None] + lags
    there = (steps >= 0) & (steps < t)
    if mask is not None:
        there = there & mask.gather(-1, steps.clamp(0, t - 1))
    return by_lag[..., lags.abs()] * there


def _unmasked(batch: Batch) -> Batch:
    """What is missing counts as observed by all losses, as in the original; x keeps its NaN."""
    return replace(batch, mask=torch.ones_like(cast(Tensor, batch.mask)))
