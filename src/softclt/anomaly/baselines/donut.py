"""DONUT: how likely a window's last step is under a VAE of normal windows (Xu et al., 2018)."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from softclt.anomaly.baselines.channels import ChannelScorer, is_flat
from softclt.anomaly.scorers import scorers
from softclt.validation import Floats64, check_random_state_seed, check_range

LEAST_STD = 1e-4
WEIGHT_PENALTY = 1e-3  # of the hidden layers
GRADIENT_NORM = 10.0  # of each parameter
RATE_DROP, RATE_EVERY = 0.75, 10  # the learning rate falls by this factor every so many epochs

_AT_ONCE = 256  # windows that are scored together

Normal = tuple[Tensor, Tensor]  # mean and standard deviation
_MOST = 1e12  # standard deviations: squares of more do not fit into float32


@scorers.register("donut", model=False)
class Donut(ChannelScorer):
    """Minus the expected log-likelihood of a step, as the last of its window.

    One model per channel, trained on all windows of all training series. The modified ELBO leaves
    missing points out of the reconstruction and weakens the prior by their share; a few more points
    go missing in every epoch, so that the model learns to do without. To score, missing points of a
    window are first imputed, by passing it through the model again and again. The first
    ``window - 1`` steps of a series have no score. Values are scaled by mean and standard deviation
    of the training values, so that shift and scale of all series change nothing.

    It has its own few lines of optimisation: the library's training loop is for encoders with
    averaged weights, and knows neither this model's rate schedule nor its gradient clipping. Unlike
    the original there are no labels, and no stop on a held-out part.

    Args:
        window: Steps of a window (120), up to the one that is scored.
        hidden: Width of the two hidden layers of encoder and decoder (100).
        latent: Size of the latent vector (5; the authors chose 3 to 10 by data set).
        missing_rate: Share of points that go missing in an epoch (0.01).
        epochs: Passes over all windows (256).
        batch_size: Windows of a step (256).
        lr: Adam's learning rate (1e-3), times 0.75 every 10 epochs.
        n_imputations: Passes that impute missing points (10).
        n_samples: Latent vectors that the expectation is a mean of. The authors draw 1024, eight
            times as slow; with 128, scores from two draws ranked 4000 steps alike (correlation of
            ranks 0.999).
        random_state: Of initial weights and all draws, in scoring too.
    """

    fills_gaps: ClassVar[bool] = False

    def __init__(
        self,
        *,
        window: int = 120,
        hidden: int = 100,
        latent: int = 5,
        missing_rate: float = 0.01,
        epochs: int = 256,
        batch_size: int = 256,
        lr: float = 1e-3,
        n_imputations: int = 10,
        n_samples: int = 128,
        random_state: Any = None,
    ) -> None:
        self.window, self.hidden, self.latent = window, hidden, latent
        self.missing_rate, self.epochs = missing_rate, epochs
        self.batch_size, self.lr = batch_size, lr
        self.n_imputations, self.n_samples = n_imputations, n_samples
        self.random_state = random_state

    def _learn(self, series: list[Floats64]) -> None:
        for name in ("window", "hidden", "latent", "batch_size", "n_samples"):
            check_range(getattr(self, name), name, 1)
        check_range(self.missing_rate, "missing_rate", 0, 0.99)
        self.seed_ = check_random_state_seed(self.random_state)
        self.models_: list[_VAE] = []
        self.scales_: list[tuple[float, float]] = []
        for d in range(self.n_channels_):
            runs = [x[d] for x in series]
            self.scales_.append(_scale(np.concatenate(runs)))
            self.models_.append(self._train(runs, d))

    def _train(self, runs: list[Floats64], channel: int) -> "_VAE":
        x, starts = self._windows(runs, channel)
        random = self._random(channel)
        model = _VAE(self.window, self.hidden, self.latent, random)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        rates = torch.optim.lr_scheduler.StepLR(optimizer, RATE_EVERY, RATE_DROP)
        inside = torch.arange(self.window)
        size = min(self.batch_size, len(starts))
        for _ in range(self.epochs):
            known = ~x.isnan() & (torch.rand(len(x), generator=random) >= self.missing_rate)
            filled = torch.where(known, x, 0.0)
            order = torch.randperm(len(starts), generator=random)
            for batch in order[: len(order) // size * size].view(-1, size):
                places = starts[batch, None] + inside  # (B, window)
                loss = model.loss(filled[places], known[places], random)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                for parameter in model.parameters():
                    clip_grad_norm_([parameter], GRADIENT_NORM)
                optimizer.step()
            rates.step()
        return model.requires_grad_(False)

    def _windows(self, runs: list[Floats64], channel: int) -> tuple[Tensor, Tensor]:
        """All runs in one row, and where windows with at least one value start."""
        mean, std = self.scales_[channel]
        starts, before = [], 0
        for run in runs:
            if len(run) >= self.window:
                seen = np.lib.stride_tricks.sliding_window_view(~np.isnan(run), self.window)
                starts.append(before + np.flatnonzero(seen.any(axis=1)))
            before += len(run)
        if not sum(map(len, starts)):
            raise ValueError(
                f"no training series has a window of {self.window} steps with values in channel "
                f"{channel}: the longest of {len(runs)} has {max(map(len, runs))} steps; choose a "
                "smaller window"
            )
        row = ((np.concatenate(runs) - mean) / std).astype(np.float32)
        return torch.from_numpy(row), torch.from_numpy(np.concatenate(starts))

    def _random(self, *counters: int) -> torch.Generator:
        state = np.random.SeedSequence([self.seed_, *counters]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state >> 1))

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        scores = np.full(len(x), np.nan)
        if len(x) < self.window:
            return scores
        mean, std = self.scales_[channel]
        random = self._random(channel, 1)
        values = torch.from_numpy(np.clip((x - mean) / std, -_MOST, _MOST).astype(np.float32))
        windows = values.unfold(0, self.window, 1)  # (T - window + 1, window)
        model = self.models_[channel]
        parts = [self._surprise(model, part, random) for part in torch.split(windows, _AT_ONCE)]
        scores[self.window - 1 :] = torch.cat(parts).numpy()
        return scores

    def _surprise(self, model: "_VAE", x: Tensor, random: torch.Generator) -> Tensor:
        """Minus the log-likelihood of the last points of windows ``(B, window)``, ``(B,)``."""
        known = ~x.isnan()
        filled = torch.where(known, x, 0.0)
        gaps = (~known).any(dim=1).nonzero()[:, 0]
        if len(gaps):
            for _ in range(self.n_imputations):
                drawn = model.redraw(filled[gaps], random)
                filled[gaps] = torch.where(known[gaps], x[gaps], drawn)
        z = _draw(model.encode(filled), random, self.n_samples)  # (samples, B, latent)
        at, spread = model.decode_last(z)
        return -_log_density(x[:, -1], at, spread).mean(dim=0)


class _VAE(nn.Module):
    """Two hidden layers each way, diagonal normal laws on both ends."""

    def __init__(self, window: int, hidden: int, latent: int, random: torch.Generator) -> None:
        super().__init__()

        def layer(inputs: int, outputs: int) -> nn.Linear:
            # Without values at first: torch's own would be drawn from its global generator.
            new = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
            nn.init.xavier_uniform_(new.weight, generator=random)
            nn.init.zeros_(new.bias)
            return new

        def body(inputs: int) -> nn.Sequential:
            return nn.Sequential(layer(inputs, hidden), nn.ReLU(), layer(hidden, hidden), nn.ReLU())

        self.encoder, self.decoder = body(window), body(latent)
        self.z_mean, self.z_std = layer(hidden, latent), layer(hidden, latent)
        self.x_mean, self.x_std = layer(hidden, window), layer(hidden, window)

    def encode(self, x: Tensor) -> Normal:
        """The law of z given windows ``(B, window)``."""
        h = self.encoder(x)
        return self.z_mean(h), F.softplus(self.z_std(h)) + LEAST_STD

    def decode(self, z: Tensor) -> Normal:
        """The law of windows given z ``(..., latent)``."""
        h = self.decoder(z)
        return self.x_mean(h), F.softplus(self.x_std(h)) + LEAST_STD

    def decode_last(self, z: Tensor) -> Normal:
        """The law of the last point only."""
        h = self.decoder(z)
        at = F.linear(h, self.x_mean.weight[-1:], self.x_mean.bias[-1:])[..., 0]
        spread = F.linear(h, self.x_std.weight[-1:], self.x_std.bias[-1:])[..., 0]
        return at, F.softplus(spread) + LEAST_STD

    def redraw(self, x: Tensor, random: torch.Generator) -> Tensor:
        """Windows drawn from what the model makes of ``x``."""
        return _draw(self.decode(_draw(self.encode(x), random)), random)

    def loss(self, x: Tensor, known: Tensor, random: torch.Generator) -> Tensor:
        """Minus the mean modified ELBO of a batch, with the penalty on hidden weights."""
        law = self.encode(x)
        z = _draw(law, random)
        dense = [part for part in (*self.encoder, *self.decoder) if isinstance(part, nn.Linear)]
        penalty = sum((part.weight.square().sum() for part in dense), torch.zeros(()))
        elbo = modified_elbo(x, known, z, self.decode(z), law)
        return WEIGHT_PENALTY * penalty - elbo.mean()


def modified_elbo(x: Tensor, known: Tensor, z: Tensor, p_x: Normal, q_z: Normal) -> Tensor:
    """Modified ELBO ``(B,)`` of windows ``(B, window)``, by one latent draw ``(B, latent)`` each.

    ``sum_t alpha_t log p(x_t | z) + beta log p(z) - log q(z | x)``: alpha is 1 at known points and
    0 at missing ones, beta is its mean.
    """
    alpha = known.to(x.dtype)
    prior = _log_density(z, torch.zeros_like(z), torch.ones_like(z)).sum(dim=-1)
    reconstruction = (alpha * _log_density(x, *p_x)).sum(dim=-1)
    return reconstruction + alpha.mean(dim=-1) * prior - _log_density(z, *q_z).sum(dim=-1)


def _log_density(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return -(((x - mean) / std) ** 2) / 2 - std.log() - math.log(2 * math.pi) / 2


def _draw(law: Normal, random: torch.Generator, n: int | None = None) -> Tensor:
    """A draw of a normal law, or ``n`` of them along a new first axis."""
    mean, std = law
    shape = mean.shape if n is None else (n, *mean.shape)
    return mean + std * torch.randn(shape, generator=random)


def _scale(x: Floats64) -> tuple[float, float]:
    """Mean and standard deviation of what is known; 1 for the latter where nothing changes."""
    known = x[~np.isnan(x)]
    if not len(known):
        return 0.0, 1.0
    return float(known.mean()), 1.0 if is_flat(known) else float(known.std())
