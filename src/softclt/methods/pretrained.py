"""Encoders that come trained: embeddings of any series at once."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from softclt.data.dataset import fingerprint
from softclt.data.preparation import resampled
from softclt.data.sources import left_on_disk
from softclt.encoders import Encoder
from softclt.encoders.residual import ResidualEncoder
from softclt.methods.fitted import Fitted
from softclt.methods.learner import methods
from softclt.methods.prepared import checked
from softclt.methods.series_contrast import SeriesContrast
from softclt.methods.signature import with_parameters_of
from softclt.persistence import ModelFileError, check_entries
from softclt.pretrained import Weights, find_weights, names
from softclt.schema import DIGEST, FLAG, SIZE, TABLE, TEXT
from softclt.training import Callback
from softclt.training.checkpoint import TrainingStopped, under
from softclt.training.loop import HALF_PRECISION
from softclt.validation import (
    Floats,
    Floats32,
    check_choice,
    check_ignored_labels,
    check_random_state_seed,
    check_series,
)

READOUTS = {"compact": ("max+mean", "last"), "rich": ("max+mean+positive", "all")}
COARSER = 2, 4  # by which rich reads the series a second and a third time
CHANNELS = ("concat", "mean")
_BY_THE_WEIGHTS = dict.fromkeys(["width", "length", "least_length", "pooling", "layers"])
_ADAPTING = {"max_iter": 0, "lr": 2e-4, "batch_size": 64}


@dataclass(frozen=True, eq=False)
class _Start:
    """Where an encoder begins: weights of the package, or what it has become since.

    ``before`` is where the last ``fit`` began: the next one begins there, too.
    """

    asked: str
    name: str
    digest: str
    width: int
    length: int
    least_length: int
    tensors: Mapping[str, Tensor]
    adapted: bool = False
    before: "_Start | None" = None

    @classmethod
    def of(cls, asked: str, weights: Weights) -> "_Start":
        params = weights.config["params"]
        tensors = under("averaged.", dict(weights.tensors))
        own = params["width"], params["length"], params["least_length"]
        return cls(asked, weights.name, weights.digest, *own, tensors)


@methods.register("pretrained", paper="this library")
class Pretrained(SeriesContrast):
    """A trained encoder, frozen: ``fit`` looks at the series and changes nothing.

    `softclt.load_pretrained` gives it ready for ``transform``. Each channel is encoded by itself,
    standardised: where level or scale tell classes apart, the read-out ``rich`` has both. A channel
    with one value, or without any, counts as constant; a series without any value is refused.

    Args:
        weights: A name that ``softclt list models`` shows, or a folder of ``softclt pretrain``.
        readout: ``compact``: largest value and mean over time of the last block, for search,
            clusters, plots and SVMs. ``rich``: of all blocks, with the share of positive steps, at
            ``length`` steps, at half and at a quarter as many, and level and scale of the series:
            for linear classifiers.
        channels: ``concat`` puts the embeddings of channels side by side, ``mean`` averages them.
        max_iter: Steps of training that ``fit`` takes on, from the trained weights; 0 leaves them.
        width: Decided by the weights.
        length: Most steps at which series are read; None: as in training.
        least_length: Least steps; None: as in training.
        pooling: None: as the read-out has it.
        layers: None: as the read-out has it.

    Attributes:
        weights_: The name with its version.
        digest_: SHA-256 of the weights.
        adapted_: Whether it has been trained on from there.

    Example:
        >>> from softclt import load_pretrained
        >>> load_pretrained("base").transform([[1.0, 3.0, 2.0, 5.0], [2.0, 2.5, 0.0]]).shape
        (2, 240)
    """

    @with_parameters_of(SeriesContrast, **_BY_THE_WEIGHTS, **_ADAPTING)
    def __init__(
        self,
        *,
        weights: str = "base",
        readout: str = "compact",
        channels: str = "concat",
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.weights = weights
        self.readout = readout
        self.channels = channels

    @property
    def weights_(self) -> str:
        """Name of the weights, with its version."""
        return self._start().name

    @property
    def digest_(self) -> str:
        """SHA-256 of the weights that came with the name."""
        return self._start().digest

    @property
    def adapted_(self) -> bool:
        """Whether it has been trained on from there."""
        return self._start().adapted

    def ready(self) -> Self:
        """Load the weights, so that series of any number of channels can be encoded."""
        return self._ready(getattr(self, "n_features_in_", None))

    def _ready(self, n_channels: int | None, digest: str = "") -> Self:
        self._check_parameters()
        seed, device = check_random_state_seed(self.random_state), self._torch_device()
        self._become(
            Fitted(
                n_channels=n_channels,
                scale=None,
                seed=seed,
                device=device,
                fingerprint=digest,
                module=self._new_training(seed, device, n_channels).averaged,
                n_iter=0,
                history={"loss": []},
            )
        )
        return self

    def fit(self, X: Any, y: Any = None, *args: Any, **options: Any) -> Self:
        """Look at the series; with max_iter above 0, train on them from the trained weights.

        Args:
            X: See `SeriesContrast`. Later series have as many channels.
            y: Ignored; here for pipelines.
            *args: As other methods have them; they matter where max_iter is above 0.
            **options: Likewise.
        """
        if self.max_iter != 0:
            last = self._start()
            start = self._start_ = last.before or last
            try:
                super().fit(X, y, *args, **options)
            except TrainingStopped:  # Ctrl-C: it is trained as far as that
                self._start_after(start, self, before=start)
                raise
            except BaseException:
                self._start_ = last
                raise
            return self._start_after(start, self, before=start)
        if left_on_disk(X) is not None:
            return super().fit(X, y, *args, **options)
        self._check_parameters()
        X = checked(self, X, goes_on=False)
        check_ignored_labels(y, len(X))
        return self._ready(X.shape[1], fingerprint(X))

    def adapt(
        self,
        X: Any,
        *,
        max_iter: int = 200,
        distances: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Go on training on your own series without labels; the model keeps what it becomes.

        Args:
            X: See `SeriesContrast`.
            max_iter: Steps.
            distances: See ``fit`` of other methods.
            checkpoint: Likewise.
            callbacks: Likewise.
        """
        start = self._start()
        trained = clone(self).set_params(max_iter=max_iter)
        trained._start_ = replace(start, before=None)  # from what it has become
        try:
            trained.fit(X, None, distances, None, checkpoint, callbacks)
        except TrainingStopped:  # Ctrl-C: it is trained as far as that
            self._take_over(start, trained)
            raise
        return self._take_over(start, trained)

    def _take_over(self, start: _Start, trained: "Pretrained") -> Self:
        self.__dict__.update({k: v for k, v in vars(trained).items() if k.endswith("_")})
        return self._start_after(start, trained)

    def _start_after(
        self, start: _Start, trained: "Pretrained", before: _Start | None = None
    ) -> Self:
        tensors = {k: v.detach().cpu().clone() for k, v in trained.module_.state_dict().items()}
        self._start_ = replace(start, tensors=tensors, adapted=True, before=before)
        return self

    def keep_weights(self) -> Self:
        """Make its weights what its network has become, after somebody trained that in place."""
        return self._start_after(self._start(), self)

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        if (start := self.__dict__.get("_start_")) is not None and start.asked == self.weights:
            copy._start_ = start
        return copy

    def read_outs(
        self, X: Any, wanted: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Floats32]:
        """What `transform` gives for several ``(pooling, layers)``, from one pass."""
        X = check_series(X)
        found = super().read_outs(X, wanted)
        return {
            one: self._of_channels(R.reshape(len(X), X.shape[1], -1), X) for one, R in found.items()
        }

    def _pooled(
        self, seen: Floats32, wanted: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Floats32]:
        n, d, t = seen.shape
        series = [seen]
        if self.readout == "rich":
            series += [resampled(seen, max(2, t // times)) for times in COARSER]
        half = self.precision == HALF_PRECISION
        with torch.autocast(self._torch_device().type, torch.bfloat16, enabled=half):
            every = [super(Pretrained, self)._pooled(one, wanted) for one in series]
        found = {}
        for one in wanted:
            own = [R[one].reshape(n, d, -1) for R in every]
            found[one] = np.concatenate(own, axis=-1).reshape(n, -1)
        return found

    def _of_channels(self, R: Floats32, X: Floats) -> Floats32:
        """From ``(N, D, M)`` to what the read-out and ``channels`` say."""
        if self.readout == "rich":
            R = np.concatenate([R, level_and_scale(X)], axis=-1)
        if self.channels == "concat":
            return R.reshape(len(R), -1)
        there = np.asarray(~np.isnan(X).all(axis=-1))[..., None]  # (N, D, 1)
        mean = np.where(there, R, 0).sum(axis=1) / there.sum(axis=1)
        return np.asarray(mean, dtype=np.float32)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """max0, ..., mean0, ...; with all blocks block0_max0, ...; channel1_max0 where several."""
        return self._names_by_channel(getattr(self, "n_features_in_", None) or 1)

    def _names_of(self, n_numbers: int) -> NDArray[np.object_]:
        if self.channels == "mean":
            return self.get_feature_names_out()
        return self._names_by_channel(n_numbers // len(self._names_of_a_channel()))

    def _names_by_channel(self, n_channels: int) -> NDArray[np.object_]:
        names = self._names_of_a_channel()
        if self.channels == "concat" and n_channels > 1:
            names = [f"channel{c}_{name}" for c in range(n_channels) for name in names]
        return np.array(names, dtype=object)

    def _names_of_a_channel(self) -> list[str]:
        pooling, layers = self.read_out()
        encoder = self._encoder()
        blocks = range(encoder.n_layers) if layers == "all" else [encoder.n_layers - 1]
        names = [
            f"{f'block{k}_' if layers == 'all' else ''}{kind}{i}"
            for k in blocks
            for kind in pooling.split("+")
            for i in range(encoder.widths[k])
        ]
        if self.readout == "rich":
            coarser = [f"coarser{times}_{name}" for times in COARSER for name in names]
            names = [*names, *coarser, "level", "scale"]
        return names

    def _start(self) -> _Start:
        start: _Start | None = self.__dict__.get("_start_")
        if start is None or start.asked != self.weights:
            start = self._start_ = _Start.of(self.weights, find_weights(self.weights))
        return start

    def _check_parameters(self) -> None:
        check_choice(self.readout, tuple(READOUTS), "readout")
        check_choice(self.channels, CHANNELS, "channels")
        start = self._start()
        if self.width not in (None, start.width):
            raise ValueError(
                f"width is {self.width}, but {start.name} has {start.width}; leave width out"
            )
        super()._check_parameters()

    def _build(self, n_channels: int) -> Encoder:
        network = self._unfilled(n_channels)
        network.load_state_dict(dict(self._start().tensors))
        return network

    def _unfilled(self, n_channels: int | None) -> Encoder:
        return super()._build(0)  # the same for any number of channels

    def _width(self) -> int:
        return self._start().width

    def read_lengths(self) -> tuple[int, int]:
        """Least and most steps at which series are read: those of training unless given."""
        start = self._start()
        least = start.least_length if self.least_length is None else self.least_length
        return least, start.length if self.length is None else self.length

    def read_out(self) -> tuple[str, str]:
        """Pooling and layers of `transform`: those of ``readout`` unless given."""
        pooling, layers = READOUTS[self.readout]
        pooling = pooling if self.pooling is None else self.pooling
        return pooling, layers if self.layers is None else self.layers

    def _needs_distances(self) -> bool:
        return self.max_iter != 0 and super()._needs_distances()

    def _is_soft_between_series(self) -> bool:
        return self.max_iter != 0 and super()._is_soft_between_series()

    def _encoder(self) -> ResidualEncoder:
        with torch.device("meta"):
            return ResidualEncoder(self._start().width)

    def _fitted(self) -> dict[str, Any]:
        start = self._start()
        return super()._fitted() | {
            "weights": {
                "name": start.name,
                "sha256": start.digest,
                "width": start.width,
                "length": start.length,
                "least_length": start.least_length,
                "adapted": start.adapted,
            }
        }

    def _restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        check_entries(config["fitted"], {"weights": TABLE})
        own = config["fitted"]["weights"]
        check_entries(own, _OF_WEIGHTS, "weights.")
        shape = own["width"], own["length"], own["least_length"]
        kept = under("averaged.", tensors)
        if own["name"] in names() and find_weights(own["name"]).digest != own["sha256"]:
            raise ModelFileError(
                f"the model began with {own['name']} (SHA-256 {own['sha256'][:12]}...), but this "
                "version of softclt has other weights of that name; use the version that saved it"
            )
        origin = self.weights, own["name"], own["sha256"]
        self._start_ = _Start(*origin, *shape, kept, own["adapted"])
        super()._restore(config, tensors)


_OF_WEIGHTS = {
    **{"name": TEXT, "sha256": DIGEST, "adapted": FLAG},
    **{"width": SIZE, "length": SIZE, "least_length": SIZE},
}


def level_and_scale(X: Floats) -> Floats32:
    """Mean and spread of each channel ``(N, D, 2)``, signed and on a logarithmic scale."""
    seen = ~np.isnan(X)
    count = np.maximum(seen.sum(axis=-1), 1)
    values = np.where(seen, X, 0.0).astype(np.float64)
    mean = values.sum(axis=-1) / count
    spread = np.sqrt((np.where(seen, values - mean[..., None], 0.0) ** 2).sum(axis=-1) / count)
    both = np.stack([mean, spread], axis=-1)
    return np.asarray(np.sign(both) * np.log1p(np.abs(both)), dtype=np.float32)


def load_pretrained(
    name: str = "base",
    *,
    readout: str = "compact",
    channels: str = "concat",
    **parameters: Any,
) -> Pretrained:
    """An encoder that is trained already: its ``transform`` needs no ``fit``.

    Args:
        name: That ``softclt list models`` shows; without a version the newest. Or a folder that
            ``softclt pretrain`` wrote.
        readout: ``compact`` or ``rich``: see `Pretrained`.
        channels: ``concat`` or ``mean``: see `Pretrained`.
        **parameters: Of `Pretrained`, such as ``device``.

    Example:
        >>> load_pretrained("base", readout="rich").transform([[1.0, 3.0, 2.0, 5.0]]).shape
        (1, 6122)
    """
    model = Pretrained(weights=name, readout=readout, channels=channels, **parameters)
    model.weights = model.weights_
    return model.ready()
