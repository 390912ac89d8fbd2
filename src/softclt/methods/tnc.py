"""Temporal neighbourhood coding with soft assignments."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.assignments import assignments
from softclt.data.stationarity import neighbourhood_widths
from softclt.encoders import Encoder, WindowEncoder
from softclt.encoders.stacked import Linear
from softclt.losses.functional import TemporalWeights
from softclt.losses.neighbourhood import neighbourhood_loss
from softclt.methods.learner import methods
from softclt.methods.rivals.networks import Helped
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import TemporalLearner
from softclt.training import Batch, StepDraws, Stream
from softclt.validation import check_range

WEIGHT_DECAY = 1e-5  # of Adam
DROPOUT = 0.5  # in the discriminator
APART = 5  # others begin so many widths of a neighbourhood away
_CHANCES = 1 << 20  # values of a draw that stands for a number in [0, 1)


class Places(NamedTuple):
    """First steps of windows, in each series of a batch.

    Attributes:
        anchor: ``(R, B)``.
        near: Of windows in its neighbourhood, ``(R, B, K)``.
        far: Of windows outside, likewise.
    """

    anchor: Tensor
    near: Tensor
    far: Tensor


@methods.register("tnc", paper="Tonekaboni et al., ICLR 2021")
class TNC(TemporalLearner):
    """Windows of a series that belong to one neighbourhood, told from others; soft by default.

    ``tau_temporal=None`` is the original TNC (Tonekaboni et al., ICLR 2021). A neighbourhood is as
    wide as the series stays stationary around a window, by the augmented Dickey-Fuller test. A
    network is asked whether two windows belong together. Its target is 1 for neighbours, which are
    drawn from a normal distribution of that width. For windows far off it is
    ``unlabelled_weight``, since some of them are alike all the same.

    The soft targets are ours, as the paper says no more than that they come from the distance of
    the windows' centres. A neighbour is a positive and keeps its target of 1. Another window at
    distance d, in windows, has the weight w(d) of the temporal assignment, and of what that leaves
    to 1 the share ``unlabelled_weight``.

    It differs from the original in six ways. Neighbourhoods are found around every ``window``-th
    step, and an anchor has that of the nearest. They end where the series does. A channel that
    never changes counts as stationary. Anchors are drawn from the whole series. What is held
    reading backwards is that of the whole window, not of its last step. Layers begin as torch's do.

    Args:
        window: Steps of a window; half of those of the series where these have less than twice as
            many. Series that are embedded are cut into windows; each step has the vector of its
            window. See `softclt.encoders.WindowEncoder`.
        output_dims: Size M of the vectors.
        hidden_dims: Recurrent units in each direction.
        samples: Neighbours of an anchor in a step, and as many other windows.
        widest: Most windows to either side in which a neighbourhood is looked for.
        unlabelled_weight: Share of the windows outside a neighbourhood that belong to it.
        tau_temporal: Sharpness of the soft assignment between windows, by their distance in
            windows; None is hard.
        batch_size: Series in a batch, each with one anchor.
        lr: Learning rate of Adam.

    Attributes:
        module_: The network after the last step: ``module_.encoder`` is what encodes.
        history_: As that of `TS2Vec`.
        n_features_in_: Channels D.

    Example:
        >>> from softclt.data import simulated_states
        >>> data = simulated_states(n_series=6, length=200)
        >>> model = TNC(window=20, hidden_dims=8, samples=4, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test[:, :, :20]).shape
        (1, 10)
    """

    _stacks = True
    _averages = False

    @with_parameters_of(TemporalLearner, tau_temporal=0.5, batch_size=10)
    def __init__(
        self,
        *,
        window: int = 50,
        output_dims: int = 10,
        hidden_dims: int = 100,
        samples: int = 20,
        widest: int = 3,
        unlabelled_weight: float = 0.05,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.window = window
        self.output_dims = output_dims
        self.hidden_dims = hidden_dims
        self.samples = samples
        self.widest = widest
        self.unlabelled_weight = unlabelled_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("window", "output_dims", "hidden_dims", "samples", "widest"):
            check_range(getattr(self, name), name, 1)
        check_range(self.unlabelled_weight, "unlabelled_weight", 0, 1)

    def _build(self, n_channels: int) -> Encoder:
        encoder = WindowEncoder(
            n_channels, self.window, self.output_dims, self.hidden_dims, self.mask_padding
        )
        return Helped(encoder, Discriminator(self.output_dims))

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        own = list(parameters)
        return torch.optim.Adam(
            own, lr=self.lr, weight_decay=WEIGHT_DECAY, fused=True, capturable=own[0].is_cuda
        )

    def _in_time(self) -> tuple[float | None, str, float, float]:
        tau, assignment, growth, cut = super()._in_time()
        if tau is not None and assignments.tags(assignment)["grows"]:
            tau = tau / self.window  # by step
        return tau, assignment, growth, cut

    def _steps_of_window(self, length: int) -> int:
        return min(self.window, length // 2)

    def _about(self, x: Tensor) -> Tensor:
        window = self._steps_of_window(x.shape[-1])
        widths = neighbourhood_widths(x.double().cpu().numpy(), window, window, self.widest)
        return torch.as_tensor(widths, device=x.device)

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        if batch.about is None:
            raise ValueError(
                "TNC looks for neighbourhoods in all series before training, which are read batch "
                "by batch here; give them as an array in memory"
            )
        network = cast(Helped[WindowEncoder, Discriminator], module.train())
        r, b, d, t = batch.x.shape
        window = self._steps_of_window(t)
        lengths = torch.full((r, b), t, device=batch.x.device)
        if batch.mask is not None:
            numbers = torch.arange(1, t + 1, device=batch.x.device)
            lengths = (batch.mask * numbers).amax(dim=-1)
        room = (lengths - window).clamp_min(0)  # (R, B)
        places = self._places(room, window, batch, draws)
        starts = torch.cat([places.anchor[..., None], places.near, places.far], dim=-1)
        steps = (starts[..., None] + torch.arange(window, device=starts.device)).flatten(2)
        x = batch.x.gather(-1, steps[:, :, None].expand(-1, -1, d, -1))
        x = x.view(r, b, d, -1, window).transpose(2, 3).flatten(1, 2)  # (R, S, D, W)
        own = None
        if batch.mask is not None:
            x = x.masked_fill(x.isnan().any(dim=2, keepdim=True), 0.0)
            own = (lengths[..., None] - starts).clamp(max=window).flatten(1)
        z = network.encoder.of_windows(x, own).view(r, b, starts.shape[-1], -1)
        logits = network.helper(z[:, :, :1], z[:, :, 1:], draws)  # (R, B, 2K)
        near, far = logits.chunk(2, dim=-1)
        targets = None
        if batch.temporal is not None:
            gaps = (places.far - places.anchor[..., None]).abs()
            targets = weights_at(batch.temporal, gaps, t)
        # A series that is no longer than a window has nothing outside: it teaches nothing.
        anchors = None if batch.mask is None else room > 0
        return neighbourhood_loss(near, far, targets, self.unlabelled_weight, anchors)

    def _places(self, room: Tensor, window: int, batch: Batch, draws: StepDraws) -> Places:
        """Draw windows; ``room`` has the last first step of one in each series."""
        assert batch.about is not None
        b, k = room.shape[1], self.samples

        def below(stream: Stream, n: Tensor, shape: tuple[int, ...]) -> Tensor:
            return draws.integers(stream, _CHANCES, shape) * n // _CHANCES

        anchor = below(Stream.ANCHOR, room + 1, (b,))
        centre = batch.start[:, None] + anchor + window // 2
        nearest = ((centre + window // 2) // window).clamp(max=batch.about.shape[-1] - 1)
        width = window * batch.about.gather(-1, nearest[..., None])  # (R, B, 1)
        here, end = anchor[..., None], room[..., None]
        drawn = draws.normal(Stream.PLACES, (b, k), 0) * width
        near = torch.minimum((here + drawn.round().long()).clamp_min(0), end)
        # Others are on that side of the series where there is more of it.
        late, apart = 2 * here > end, APART * width
        low = torch.where(late, 0, torch.minimum(here + apart, end))
        high = torch.where(late, (here - apart).clamp_min(0), end)
        far = low + below(Stream.SHIFT, high - low + 1, (b, k))
        return Places(anchor, near, far)


class Discriminator(nn.Module):
    """Whether two windows belong to one neighbourhood, by their vectors."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        self.first = Linear(2 * n_in, 4 * n_in)
        self.second = Linear(4 * n_in, 1)

    def forward(self, anchor: Tensor, others: Tensor, draws: StepDraws) -> Tensor:
        """Logits ``(R, B, K)`` of anchors ``(R, B, 1, M)`` and others ``(R, B, K, M)``."""
        pairs = torch.cat([anchor.expand_as(others), others], dim=-1)
        inner = F.relu(self.first(pairs))
        inner = inner * draws.dropout(tuple(inner.shape[1:]), DROPOUT, 0)
        return cast(Tensor, self.second(inner)[..., 0])


def weights_at(temporal: TemporalWeights, gaps: Tensor, length: int) -> Tensor:
    """The weights at whole numbers of steps ``(R, B, K)`` of series of a length."""
    by_lag = temporal(length, 0)  # (lags,) or (R, lags): as far as they are above 0
    by_lag = F.pad(by_lag, (0, 1)).expand(len(gaps), -1)
    found = by_lag.gather(-1, gaps.flatten(1).clamp(max=by_lag.shape[-1] - 1))
    return found.view(gaps.shape)
