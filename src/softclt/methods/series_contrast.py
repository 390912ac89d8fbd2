"""Whole series against each other: the method behind encoders that are trained once for all."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from softclt.data.preparation import Scale, as_float32, filled, resampled, standardised
from softclt.data.sources import left_on_disk
from softclt.encoders import Encoder
from softclt.encoders.residual import PROJECTED, ProjectedEncoder, ResidualEncoder
from softclt.losses.contextual import nt_xent
from softclt.methods.learner import methods
from softclt.methods.providers import TargetLearner
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws, Stream
from softclt.training import views as augment
from softclt.training.randomness import numpy_generator
from softclt.validation import Floats, Floats32, Ints, check_range, series_lengths

BETAS = 0.9, 0.98  # of AdamW
_OF_STEPS = ("window", "stride", "causal", "layer")  # options that whole series have none of
_AT_ONCE = {"cpu": 1 << 15, "cuda": 1 << 22}  # steps in a pass: a CPU's cache holds its blocks
_MOST_STEPS = 10**6  # to which short series may be stretched
EVEN = 64  # views have a multiple of so many steps, where series are long enough


@methods.register("series-contrast", paper="this library")
class SeriesContrast(TargetLearner):
    """Two random cuts of each series against those of all others, by soft assignments.

    Each channel of each series is standardised by itself and brought to ``length`` steps; missing
    values are filled along a line. What it is told apart by is its shape, not its level or scale.

    Args:
        width: Size of the encoder; M is six times as much, for each channel of the series.
        length: Most steps at which series are read; longer ones are squeezed to so many. Training
            brings all to them.
        least_length: Least steps at which series are read; shorter ones are stretched. To how many
            views are brought is drawn between the two, anew at every step.
        temperature: Of the loss.
        least_cut: Least share of a series that a view has.
        jitter: Largest spread of the noise of a view.
        distance_length: Steps at which series are compared.
        weight_decay: Of AdamW.
        scale: Has no effect: each series is standardised by itself.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = SeriesContrast(width=8, length=32, max_iter=2, random_state=0)
        >>> model.fit(data.X_train).transform(data.X_test).shape[1]
        48
    """

    _averages = False

    @with_parameters_of(
        TargetLearner,
        tau_instance=16.0,
        instance_assignment="plateau",
        distance_normalize="local",
        neighbours=10,
        scale=None,
        pooling="max+mean",
        batch_size=256,
        lr=2e-3,
        lr_schedule="warmup-cosine",
    )
    def __init__(
        self,
        *,
        width: int = 40,
        length: int = 512,
        least_length: int = 128,
        temperature: float = 0.1,
        least_cut: float = 0.5,
        jitter: float = 0.1,
        distance_length: int = 128,
        weight_decay: float = 0.05,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.width = width
        self.length = length
        self.least_length = least_length
        self.temperature = temperature
        self.least_cut = least_cut
        self.jitter = jitter
        self.distance_length = distance_length
        self.weight_decay = weight_decay

    def _check_parameters(self) -> None:
        super()._check_parameters()
        least, most = self.read_lengths()
        check_range(self._width(), "width", 1, _MOST_STEPS)
        check_range(most, "length", 16, _MOST_STEPS)
        check_range(least, "least_length", 8, _MOST_STEPS)
        check_range(self.distance_length, "distance_length", 2)
        check_range(self.temperature, "temperature", 0, open_low=True)
        check_range(self.least_cut, "least_cut", 0, 1, open_low=True)
        for name in ("jitter", "weight_decay"):
            check_range(getattr(self, name), name, 0)

    def _build(self, n_channels: int) -> Encoder:
        return self._with_queue(ProjectedEncoder(ResidualEncoder(self._width())), PROJECTED)

    def _width(self) -> int:
        return self.width

    def read_lengths(self) -> tuple[int, int]:
        """Least and most steps at which series are read."""
        return self.least_length, self.length

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        own = list(parameters)
        return torch.optim.AdamW(
            own,
            lr=self.lr,
            betas=BETAS,
            weight_decay=self.weight_decay,
            fused=True,
            capturable=own[0].is_cuda,
        )

    def _layout(self, length: int, step: int) -> Hashable:
        return self._steps_of(step)

    def _steps_of(self, step: int) -> int:
        """Steps of the views of a training step; the same for all seeds."""
        least, length = self.read_lengths()
        low, high = -(-min(least, length) // EVEN), length // EVEN
        if low >= high:
            return length
        return EVEN * int(numpy_generator(Stream.CROPS, length, step).integers(low, high + 1))

    def _scaled(self, X: Floats, scale: Scale) -> Floats32:
        return resampled(X, self.read_lengths()[1])

    def _scaled_at_steps(self, X: Floats, causal: bool) -> Floats32:
        # The network standardises what it sees of a series; of all of it, this is more exact.
        return as_float32(X if causal else standardised(filled(X)))

    def _refuse_empty(self, X: Floats) -> None:
        empty = np.flatnonzero(np.isnan(X).all(axis=(1, 2)))
        if len(empty):
            raise ValueError(
                f"series {empty[0]} of X has no step with a value ({len(empty)} such series); "
                "leave it out"
            )

    def encode(self, X: Any, level: str = "instance", **options: Any) -> Floats32:
        """Representations at a level: see :func:`softclt.inference.encode` for the arguments.

        At the level ``instance`` series are read at `least_length` to `length` steps, as near to
        their own as a multiple of 64 is; at others they keep their own. Channels stand side by
        side.
        """
        if not self._is_plain(level, options) or left_on_disk(X) is not None:
            return super().encode(X, level, **options)
        return self.read_outs(X, {self.read_out()})[self.read_out()]

    def _is_plain(self, level: str, options: Mapping[str, Any]) -> bool:
        """Whether whole series are asked for, from both sides, as `transform` does."""
        return level == "instance" and all(options.get(name) in (None, False) for name in _OF_STEPS)

    def read_outs(
        self, X: Any, wanted: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Floats32]:
        """What `transform` gives for several ``(pooling, layers)``, from one pass."""
        X = self._checked(X)
        found: dict[tuple[str, str], Floats32] = {}
        steps = self.steps_of(X)
        for own in np.unique(steps):
            rows = np.flatnonzero(steps == own)
            seen = resampled(X if len(rows) == len(X) else X[rows], int(own))
            for one, R in self._pooled(seen, wanted).items():
                found.setdefault(one, np.empty((len(X), R.shape[1]), np.float32))[rows] = R
        return found

    def _n_numbers(self) -> int:
        return self.n_features_in_ * super()._n_numbers()

    def steps_of(self, X: Floats) -> Ints:
        """At how many steps whole series ``(N, D, T)`` are read: a few different numbers."""
        least, most = self.read_lengths()
        even = -(-series_lengths(X) // EVEN) * EVEN
        steps: Ints = np.clip(even, min(least, most), most)
        return steps

    @torch.no_grad()
    def _pooled(
        self, seen: Floats32, wanted: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Floats32]:
        """Of series of one length; the numbers of a channel stand together, blocks in order."""
        encoder = cast(ProjectedEncoder, self.module_).encoder
        n, d, t = seen.shape
        like = next(encoder.parameters())
        every = any(layers == "all" for _, layers in wanted)
        kinds = list(dict.fromkeys(kind for pooling, _ in wanted for kind in pooling.split("+")))
        n_blocks = encoder.n_layers if every else 1
        parts: dict[tuple[str, str], list[Tensor]] = {one: [] for one in wanted}
        rows = torch.from_numpy(seen).view(n * d, 1, t)
        for channels in torch.split(rows, max(1, _AT_ONCE[like.device.type] // t)):
            values = iter(encoder.pooled(channels.to(like), kinds, every))
            own = {(k, kind): next(values) for k in range(n_blocks) for kind in kinds}
            for pooling, layers in parts:
                blocks = range(n_blocks) if layers == "all" else range(n_blocks - 1, n_blocks)
                vectors = [own[k, kind] for k in blocks for kind in pooling.split("+")]
                parts[pooling, layers].append(torch.cat(vectors, dim=-1).float().cpu())
        return {one: torch.cat(found).view(n, -1).numpy() for one, found in parts.items()}

    def _as_compared(self, seen: Floats32) -> Floats32:
        return resampled(seen, min(self.distance_length, self.read_lengths()[1]))

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network, x = cast(ProjectedEncoder, module), batch.x[0]
        n_steps = self._steps_of(draws.step)
        chance = draws.integers(Stream.CROPS, 2**20, (len(x), 6))[0].to(x) / 2**20  # by series
        views = []
        for view in range(2):
            share, place, noise = chance[:, 3 * view : 3 * view + 3].unbind(-1)
            share = self.least_cut + (1 - self.least_cut) * share
            cut = augment.stretched(x, place * (1 - share), share, n_steps)
            shape = tuple(cut.shape)
            noise = noise[:, None, None] * draws.normal(Stream.JITTER, shape, view)[0]
            cut = cut + self.jitter * noise
            views.append(augment.standardised(cut))
        both = network.project(torch.cat(views)).float()
        one, two = both[None].chunk(2, dim=1)
        targets = self._targets(module, batch, one, two)
        return nt_xent(one, two, self.temperature, targets, batch.group)
