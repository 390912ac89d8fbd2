"""Recognition of transformations, as in SSL-ECG."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders import Encoder, TCCEncoder
from softclt.encoders.stacked import Linear, uniform_parameter
from softclt.methods.learner import methods
from softclt.methods.rivals.losses import recognition_loss
from softclt.methods.rivals.networks import Helped, last_block, pooled
from softclt.methods.rivals.rival import Rival
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment

ORIGINAL, NOISY, SCALED, NEGATED, FLIPPED, PERMUTED, WARPED = range(7)
N_KINDS = 7
NOISE = 10 ** (-15 / 20)  # of a series' root mean square: 15 dB below the signal
FACTOR = 1.1  # of what is scaled
PIECES, STRETCH = 9, 1.05  # of what is warped: pieces that are this much faster or slower
HEAD_DIMS, HEAD_DROPOUT = 128, 0.6
HEAD_SITE = 1  # of the draws for dropout; the encoder has 0


@methods.register("ssl-ecg", paper="Sarkar and Etemad, TAFFC 2020", classifier="fine-tune")
class SSLECG(Rival):
    """Which of seven transformations a series went through (Sarkar and Etemad, TAFFC 2020).

    None, noise, scaling, negation, reversal, segments in another order, and steps that pass faster
    and slower; each has a small network that says whether it is this one. Each series comes twice
    in a step, both times transformed at random, which is as much as the two views of other methods.

    Noise, factor and warping are those of the paper, and so are the heads. All seven weigh the
    same here; the paper's weights were chosen for electrocardiograms.

    Args:
        scale_sigma: Has no effect.
        jitter_sigma: Has no effect.
        max_segments: Of the segments in another order.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = SSLECG(widths=(4, 8), max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        8
    """

    def _build(self, n_channels: int) -> Encoder:
        encoder = self._encoder(n_channels)
        return Helped(encoder, Recognition(encoder.output_dims))

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network = cast(Helped[TCCEncoder, Recognition], module.train())
        complete = batch.mask is None
        twice = torch.cat([batch.x, batch.x], dim=1)
        kinds = draws.integers(Stream.KINDS, N_KINDS, (twice.shape[1],))  # (R, 2B)
        x, kinds = transformed(twice, kinds, draws, self.max_segments, complete)
        features = last_block(network.encoder, x, draws, complete)
        return recognition_loss(network.helper(pooled(features, self.pooling), draws), kinds)


class Recognition(nn.Module):
    """A network of two layers for each kind."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        self.first = Linear(n_in, N_KINDS * HEAD_DIMS)
        self.second = uniform_parameter((1, N_KINDS, HEAD_DIMS), HEAD_DIMS)
        self.bias = uniform_parameter((1, N_KINDS), HEAD_DIMS)

    def forward(self, z: Tensor, draws: StepDraws) -> Tensor:
        """Logits ``(R, B, kinds)`` of vectors ``(R, B, n_in)``."""
        inner = F.leaky_relu(self.first(z[:, None])[:, 0]).view(*z.shape[:2], N_KINDS, HEAD_DIMS)
        inner = inner * draws.dropout(tuple(inner.shape[1:]), HEAD_DROPOUT, 0, HEAD_SITE)
        logits: Tensor = (inner * self.second[:, None]).sum(dim=-1) + self.bias[:, None]
        return logits


def transformed(
    x: Tensor, kinds: Tensor, draws: StepDraws, max_segments: int = 8, complete: bool = False
) -> tuple[Tensor, Tensor]:
    """Series ``(R, B, D, T)``, each in its own way, and the ways.

    Args:
        x: NaN where missing.
        kinds: Of each, ``(R, B)``.
        draws: Of the step.
        max_segments: Of what is permuted; see `augment.permute_and_jitter`.
        complete: Nothing is missing.

    Returns:
        The series, and their kinds: as given, but where a permutation of a single segment has
        changed nothing, which is no permutation.
    """
    _, b, d, t = x.shape
    loud = x.square().nanmean(dim=-1, keepdim=True).sqrt()  # (R, B, D, 1)
    noise = NOISE * loud * draws.normal(Stream.JITTER, (b, d, t), 0)
    permuted = augment.permute_and_jitter(x, draws, max_segments, 0.0, complete)
    made = {
        NOISY: x + noise,
        SCALED: FACTOR * x,
        NEGATED: -x,
        FLIPPED: x.flip(-1),
        PERMUTED: permuted,
        WARPED: warped(x, draws),
    }
    out = x
    for kind, version in made.items():
        out = torch.where((kinds == kind)[..., None, None], version, out)
    unchanged = ((permuted == x) | x.isnan()).flatten(2).all(dim=-1)
    return out, kinds.masked_fill((kinds == PERMUTED) & unchanged, ORIGINAL)


def warped(x: Tensor, draws: StepDraws) -> Tensor:
    """Series ``(R, B, D, T)`` of which some pieces pass faster and some slower.

    Values between two steps are interpolated; the first and the last step stay where they are.
    """
    _, b, _, t = x.shape
    numbers = torch.arange(t, device=x.device)
    lengths = (~x.isnan().any(dim=-2) * (numbers + 1)).amax(dim=-1, keepdim=True)  # (R, B, 1)
    fast = draws.keep((b, PIECES), 0.5, 0, Stream.WARPED)  # (R, B, pieces)
    speeds = torch.where(fast, STRETCH, 1 / STRETCH).to(x.dtype)
    pieces = (numbers * PIECES // lengths.clamp_min(1)).clamp(max=PIECES - 1)  # (R, B, T)
    passed = speeds.gather(-1, pieces).cumsum(dim=-1)
    passed = passed - passed[..., :1]
    last = (lengths - 1).clamp_min(0)
    at = passed * last / passed.gather(-1, last).clamp_min(1e-6)
    at = torch.where(numbers < lengths, torch.minimum(at, last.to(at)), numbers.to(at))
    before = at.floor()
    share = (at - before)[..., None, :]
    low = before.long()
    high = torch.minimum(low + 1, torch.where(numbers < lengths, last, numbers))
    first, second = (x.gather(-1, at[..., None, :].expand_as(x)) for at in (low, high))
    # A step that is met exactly is taken as it is, whatever is missing beside it.
    return torch.where(share > 0, first + share * (second - first), first)
