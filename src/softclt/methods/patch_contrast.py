"""Patches of series against each other, by how far apart in time they are."""

from typing import Any, cast

import torch
from torch import Tensor

from softclt.assignments import weights_by_time
from softclt.data.preparation import Scale, scaled
from softclt.encoders import Encoder
from softclt.encoders.residual import ProjectedEncoder
from softclt.losses.contextual import nt_xent
from softclt.losses.modules import check_temporal
from softclt.methods.learner import methods
from softclt.methods.series_contrast import SeriesContrast
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment
from softclt.validation import Floats, Floats32, check_range

_CHANCE = 1 << 20  # as fine as places are drawn


@methods.register("patch-contrast", paper="this library")
class PatchContrast(SeriesContrast):
    """Short patches of each series, by soft assignments in time: what lies near is alike.

    Of each section of a batch so many patches are drawn. The other view of a patch begins up to a
    quarter of its length earlier or later. Patches of one section are soft positives by the time
    between them, counted in patches; those of others are negatives. One long series is enough.
    ``transform`` embeds series that are patches: it brings each to ``length`` steps.

    Args:
        tau_temporal: Sharpness of the soft assignment between patches; None is hard.
        temporal_assignment: sigmoid, gaussian, laplacian, linear or hard.
        patches: That are drawn of each section of a batch.
        length: Steps of a patch.
        least_length: Has no effect: a patch has ``length`` steps.
        least_cut: Has no effect: views are patches of full length.

    Example:
        >>> import numpy as np
        >>> model = PatchContrast(width=8, max_iter=2, random_state=0)
        >>> series = np.sin(np.arange(500) / 5)
        >>> model.fit([series]).transform([series[:64], series[64:128]]).shape
        (2, 48)
    """

    @with_parameters_of(
        SeriesContrast,
        tau_instance=None,
        instance_assignment="sigmoid",
        distance_normalize="minmax",
        neighbours=0,
        width=16,
        length=64,
        batch_size=4,
        lr=1e-3,
        max_iter=200,
        max_train_length=2048,
    )
    def __init__(
        self,
        *,
        tau_temporal: float | None = 1.0,
        temporal_assignment: str = "sigmoid",
        patches: int = 16,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.tau_temporal = tau_temporal
        self.temporal_assignment = temporal_assignment
        self.patches = patches

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_temporal(self.tau_temporal, self.temporal_assignment, 1, 0.0)
        check_range(self.patches, "patches", 1)

    def read_lengths(self) -> tuple[int, int]:
        """A patch has one length."""
        return self.length, self.length

    def _scaled(self, X: Floats, scale: Scale) -> Floats32:
        return scaled(X, "series")

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network, x = cast(ProjectedEncoder, module), batch.x[0]  # (B, D, T)
        places = self._places(x, draws)  # 2 of (B, P)
        steps = min(self.length, x.shape[-1])
        views = []
        for view, own in enumerate(places):
            index = own[..., None] + torch.arange(steps, device=x.device)  # (B, P, steps)
            index = index[:, None].expand(-1, x.shape[1], -1, -1)
            cut = x[:, :, None].expand(-1, -1, own.shape[1], -1).gather(-1, index)
            cut = augment.standardised(cut.transpose(1, 2).flatten(0, 1).nan_to_num())
            noise = draws.normal(Stream.JITTER, tuple(cut.shape), view)[0]
            views.append(cut + self.jitter * noise)
        both = network.project(torch.cat(views)).float()
        one, two = both[None].chunk(2, dim=1)
        weights = self._patch_weights(places[0].to(x) / self.length, batch.weights)
        return nt_xent(one, two, self.temperature, weights, batch.group)

    def _places(self, x: Tensor, draws: StepDraws) -> tuple[Tensor, Tensor]:
        """First steps of the patches of both views, ``(B, P)``, where a series has values."""
        observed = ~x.isnan().all(dim=1)  # (B, T)
        first = observed.int().argmax(dim=-1)
        end = x.shape[-1] - observed.flip(-1).int().argmax(dim=-1)
        steps = min(self.length, x.shape[-1])
        last = (end - steps).clamp_min(first).clamp_max(x.shape[-1] - steps)[:, None]
        first = first.clamp_max(x.shape[-1] - steps)[:, None]
        shape = len(x), self.patches, 2
        place, shift = (draws.integers(Stream.PLACES, _CHANCE, shape)[0] / _CHANCE).unbind(-1)
        one = first + (place * (last - first + 1)).long()
        near = ((2 * shift - 1) * (self.length / 4)).round().long()
        two = torch.minimum(torch.maximum(one + near, first), last)
        return one, two

    def _patch_weights(self, times: Tensor, between: Tensor | None) -> Tensor | None:
        """Soft assignments of all patches ``(1, B * P, B * P)``; None is hard."""
        soft = weights_by_time(times, self.tau_temporal, self.temporal_assignment)  # (B, P, P)
        if soft is None and between is None:
            return None
        b, p = times.shape
        same = torch.eye(b * p, dtype=times.dtype, device=times.device).view(b, p, b, p)
        weights = (
            torch.zeros_like(same)
            if between is None
            else (between.view(b, 1, b, 1).to(times).expand(b, p, b, p).clone())
        )
        own = torch.arange(b, device=times.device)
        weights[own, :, own] = same[own, :, own] if soft is None else soft
        return torch.maximum(weights, same).view(1, b * p, b * p)
