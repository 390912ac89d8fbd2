"""What TS-TCC learns by: a summary of the past of one view that predicts the other's future."""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders.encoder import EncoderWithHeads
from softclt.encoders.stacked import Linear, uniform_parameter
from softclt.encoders.tcc import BatchNorm, Dropout, Features, TCCEncoder
from softclt.losses.contextual import future_contrast

DEPTH, HEADS, MLP_DIMS = 4, 4, 64  # of the transformer
DROPOUT = 0.1  # in the transformer
PROJECTED = (64, 32)  # the projection's inner and outer size


class _Norm(nn.Module):
    """Layer normalisation of a stack of R networks."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, dims))
        self.bias = nn.Parameter(torch.zeros(1, dims))

    def forward(self, x: Tensor) -> Tensor:
        """Of ``(R, B, S, dims)``."""
        normed = F.layer_norm(x, x.shape[-1:])
        return normed * self.weight[:, None, None] + self.bias[:, None, None]


class _TransformerLayer(nn.Module):
    """Attention and two linear maps, each behind a normalisation and added to what it got."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = _Norm(dims), _Norm(dims)
        self.qkv = uniform_parameter((1, dims, 3 * dims), dims)
        self.out = Linear(dims, dims)
        self.first, self.second = Linear(dims, MLP_DIMS), Linear(MLP_DIMS, dims)

    def forward(
        self, x: Tensor, seen: Tensor, dropout: Dropout | None, n_wanted: int | None = None
    ) -> Tensor:
        """Of tokens ``(R, B, S, dims)``, which see those that ``seen`` ``(R, B, S)`` is True of.

        Only the first ``n_wanted`` of them come out, if not all.
        """

        def dropped(h: Tensor) -> Tensor:
            return h if dropout is None else h * dropout(tuple(h.shape[1:]), DROPOUT)

        mixed = self._attend(self.norm1(x), seen, n_wanted)
        x = x[:, :, :n_wanted] + dropped(self.out(mixed))
        hidden = dropped(F.relu(self.first(self.norm2(x))))
        return x + dropped(self.second(hidden))

    def _attend(self, x: Tensor, seen: Tensor, n_wanted: int | None) -> Tensor:
        r, b, s, dims = x.shape
        made = x.flatten(1, 2) @ self.qkv.to(x.dtype)  # (R, B * S, 3 * dims)
        parts = made.view(r * b, s, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts  # (R * B, heads, S, dims / heads) each
        query = query[:, :, :n_wanted]
        # Scaled by all dims, as TS-TCC has it; the usual scale has those of one head.
        mixed = F.scaled_dot_product_attention(
            query, key, value, seen.reshape(r * b, 1, 1, s), scale=dims**-0.5
        )
        return mixed.transpose(1, 2).reshape(r, b, -1, dims)


class Projection(nn.Module):
    """Two linear maps with batch normalisation and ReLU between them."""

    def __init__(self, n_in: int, n_inner: int, n_out: int) -> None:
        super().__init__()
        self.first, self.second = Linear(n_in, n_inner), Linear(n_inner, n_out)
        self.norm = BatchNorm(n_inner)

    def forward(self, z: Tensor) -> Tensor:
        """From ``(R, B, n_in)`` to ``(R, B, n_out)``."""
        inner = self.first(z[:, None])[:, 0]  # (R, B, n_inner)
        inner = self.norm(inner.transpose(0, 1)[..., None])[..., 0].transpose(0, 1)
        return cast(Tensor, self.second(F.relu(inner)[:, None])[:, 0])


class Contrasted(NamedTuple):
    """What comes of two views.

    Attributes:
        loss: Of predicting either view's future from the other's past, ``(R,)``: the sum.
        projections: Of the two summaries, ``(R, B, 32)`` each.
    """

    loss: Tensor
    projections: tuple[Tensor, Tensor]


class TemporalContrast(nn.Module):
    """The temporal contrasting of TS-TCC, with the head for the contextual one.

    A transformer with a token of its own sums up the steps up to one of them, t, in one view. From
    the summary, one linear map for each of the steps that follow predicts these in the other view.

    Args:
        n_channels: Of the features.
        hidden_dims: Size of the summary; a multiple of 4.
        timesteps: Steps to predict. Where the features have no more steps than that, half of them.
    """

    def __init__(self, n_channels: int, hidden_dims: int = 100, timesteps: int = 10) -> None:
        super().__init__()
        self.timesteps = timesteps
        self.embed = Linear(n_channels, hidden_dims)
        self.token = nn.Parameter(torch.randn(1, hidden_dims))
        self.layers = nn.ModuleList(_TransformerLayer(hidden_dims) for _ in range(DEPTH))
        self.future = uniform_parameter((1, timesteps, hidden_dims, n_channels), hidden_dims)
        self.future_bias = uniform_parameter((1, timesteps, n_channels), hidden_dims)
        self.project = Projection(hidden_dims, *PROJECTED)

    def n_predicted(self, n_steps: int) -> int:
        """How many steps are predicted of features of so many."""
        return self.timesteps if n_steps > self.timesteps else max(1, n_steps // 2)

    def n_places(self, n_steps: int) -> int:
        """At how many steps the past may end, for features of so many."""
        return max(1, n_steps - self.n_predicted(n_steps))

    def forward(
        self, one: Features, two: Features, drawn: Tensor, dropout: Dropout | None = None
    ) -> Contrasted:
        """Contrast two views of the same series.

        Args:
            one, two: Features of the last block.
            drawn: Step at which the past ends, below ``n_places``, for each model ``(R,)``. In a
                shorter series it ends as far in its steps as this lies in all.
            dropout: Draws factors; None: nothing is dropped.
        """
        z1, z2 = (F.normalize(features.values, dim=-1) for features in (one, two))
        n_steps = z1.shape[2]
        k = self.n_predicted(n_steps)
        mask = torch.ones_like(z1[..., 0], dtype=torch.bool)
        if one.mask is not None and two.mask is not None:
            mask = one.mask & two.mask
        numbers = torch.arange(1, n_steps + 1, device=z1.device)
        lengths = (mask * numbers).amax(dim=-1)  # (R, B)
        end = drawn[:, None] * (lengths - k).clamp_min(1) // self.n_places(n_steps)
        steps = end[..., None] + numbers[:k]  # (R, B, K)
        real = F.pad(mask, (0, k)).gather(-1, steps)
        past1, past2 = self.summary(one, two, end, dropout)
        ahead1, ahead2 = (
            F.pad(z, (0, 0, 0, k)).gather(2, steps[..., None].expand(-1, -1, -1, z.shape[-1]))
            for z in (z1, z2)
        )
        loss = future_contrast(ahead2, self.predicted(past1, k), real)
        loss = loss + future_contrast(ahead1, self.predicted(past2, k), real)
        return Contrasted(loss, (self.project(past1), self.project(past2)))

    def summary(
        self, one: Features, two: Features, end: Tensor, dropout: Dropout | None
    ) -> tuple[Tensor, Tensor]:
        """Of the steps of either view up to ``end`` ``(R, B)``: ``(R, B, hidden_dims)`` each."""
        z = torch.cat([one.values, two.values], dim=1)  # (R, 2B, T, C)
        n_tokens, n_looked_at = 1 + z.shape[2], _n_looked_at(z, end)
        z = F.normalize(z[:, :, :n_looked_at], dim=-1)
        seen = torch.arange(z.shape[2], device=z.device) <= torch.cat([end, end], dim=1)[..., None]
        if one.mask is not None and two.mask is not None:
            seen = seen & torch.cat([one.mask, two.mask], dim=1)[..., :n_looked_at]
        tokens = self.embed(z)
        own = self.token[:, None, None].expand(-1, tokens.shape[1], -1, -1).to(tokens)
        tokens = torch.cat([own, tokens], dim=2)
        seen = F.pad(seen, (1, 0), value=True)

        def drawn(shape: tuple[int, ...], probability: float) -> Tensor:
            assert dropout is not None
            n_series, n_drawn, dims = shape  # the same numbers, however many tokens there are
            return dropout((n_series, n_tokens, dims), probability)[:, :, :n_drawn]

        for layer in self.layers:
            wanted = 1 if layer is self.layers[-1] else None  # the summary
            tokens = layer(tokens, seen, None if dropout is None else drawn, wanted)
        first, second = tokens[:, :, 0].chunk(2, dim=1)
        return first, second

    def predicted(self, summary: Tensor, k: int) -> Tensor:
        """Of the k steps that follow, ``(R, B, k, C)``."""
        made = torch.einsum("rbh,rkhc->rbkc", summary, self.future[:, :k].to(summary))
        return made + self.future_bias[:, None, :k]


def _n_looked_at(z: Tensor, end: Tensor) -> int:
    """Steps of features ``(R, B, T, C)`` that the past up to ``end`` needs.

    On a GPU they are all, of which attention leaves those behind the end out: the shapes of a step
    of training are then always the same, and nothing waits for a number.
    """
    return z.shape[2] if z.is_cuda else int(end.max()) + 1


class TCCNetwork(EncoderWithHeads[TCCEncoder]):
    """An encoder of TS-TCC with the heads that it learns by.

    Args:
        encoder: Taken over, not copied.
        hidden_dims, timesteps: See `TemporalContrast`.
    """

    def __init__(self, encoder: TCCEncoder, hidden_dims: int = 100, timesteps: int = 10) -> None:
        super().__init__(encoder)
        self.contrast = TemporalContrast(encoder.output_dims, hidden_dims, timesteps)
