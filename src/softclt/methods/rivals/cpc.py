"""Contrastive predictive coding."""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders import Encoder, TCCEncoder
from softclt.encoders.recurrent import Recurrent
from softclt.encoders.stacked import Linear
from softclt.encoders.tcc import Features
from softclt.losses.contextual import future_contrast
from softclt.methods.learner import methods
from softclt.methods.rivals.networks import Helped, last_block
from softclt.methods.rivals.rival import Rival
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws, Stream
from softclt.validation import check_range


@methods.register("cpc", paper="van den Oord et al., 2018", classifier="fine-tune")
class CPC(Rival):
    """The past of a series that predicts its future steps (van den Oord et al., 2018).

    A recurrent network sums up the features up to a random step; linear maps, one for each of the
    steps that follow, predict their features, which are to be told from what the other series of
    the batch predict. There are no views: what one sees is the series itself.

    Args:
        hidden_dims: Size of the summary of the past.
        timesteps: Future steps of the last block to predict; all but the first if it has no more.
        scale_sigma: Has no effect: there are no views.
        jitter_sigma: Has no effect.
        max_segments: Has no effect.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = CPC(widths=(4, 8), hidden_dims=8, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        8
    """

    @with_parameters_of(Rival)
    def __init__(self, *, hidden_dims: int = 100, timesteps: int = 8, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.hidden_dims = hidden_dims
        self.timesteps = timesteps

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("hidden_dims", "timesteps"):
            check_range(getattr(self, name), name, 1)

    def _build(self, n_channels: int) -> Encoder:
        encoder = self._encoder(n_channels)
        return Helped(encoder, Prediction(encoder.output_dims, self.hidden_dims, self.timesteps))

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network = cast(Helped[TCCEncoder, Prediction], module.train())
        features = last_block(network.encoder, batch.x, draws, batch.mask is None)
        n_places = network.helper.n_places(features.values.shape[2])
        ahead = network.helper(features, draws.integers(Stream.ANCHOR, n_places))
        return future_contrast(ahead.future, ahead.predicted, ahead.real)


class Ahead(NamedTuple):
    """The K steps that follow the past of each series.

    Attributes:
        future: Their features, ``(R, B, K, C)``.
        predicted: What the past says of them, likewise.
        real: ``(R, B, K)``, False where a series has no such step; None: all have.
    """

    future: Tensor
    predicted: Tensor
    real: Tensor | None


class Prediction(nn.Module):
    """A recurrent summary of the past, and linear maps of it to the steps that follow."""

    def __init__(self, n_channels: int, hidden_dims: int, timesteps: int) -> None:
        super().__init__()
        self.timesteps = timesteps
        self.summary = Recurrent(n_channels, hidden_dims)
        self.ahead = Linear(hidden_dims, timesteps * n_channels)

    def n_places(self, n_steps: int) -> int:
        """At how many steps the past may end, for features of so many."""
        return n_steps - min(self.timesteps, n_steps - 1)

    def forward(self, features: Features, drawn: Tensor) -> Ahead:
        """Predict what follows a step of each series.

        Args:
            features: Of two steps at least.
            drawn: Step at which the past ends, below ``n_places``, ``(R,)``. In a shorter series it
                ends as far in its steps as this lies in all.
        """
        values, mask = features  # (R, B, T, C)
        n_steps, size = values.shape[2:]
        k = min(self.timesteps, n_steps - 1)
        end = drawn[:, None].expand(values.shape[:2])  # (R, B)
        if mask is not None:
            numbers = torch.arange(1, n_steps + 1, device=values.device)
            lengths = (mask * numbers).amax(dim=-1)
            end = end * (lengths - k).clamp_min(1) // self.n_places(n_steps)
        steps = end[..., None] + torch.arange(1, k + 1, device=values.device)  # (R, B, K)
        # All steps are summed up, not those up to a drawn one, so that shapes stay the same.
        summaries = self.summary(values)
        at_end = end[..., None, None].expand(-1, -1, 1, summaries.shape[-1])
        past = summaries.gather(2, at_end).transpose(1, 2)  # (R, 1, B, hidden_dims)
        predicted = self.ahead(past)[:, 0].view(*end.shape, self.timesteps, size)[:, :, :k]
        future = F.pad(values, (0, 0, 0, k)).gather(2, steps[..., None].expand(-1, -1, -1, size))
        real = None if mask is None else F.pad(mask, (0, k)).gather(-1, steps)
        return Ahead(future, predicted, real)
