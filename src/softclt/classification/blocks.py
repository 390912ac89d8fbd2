"""Blocks of features: each says something else about series, and a classifier may read several."""

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from softclt.data.preparation import resampled, stretched
from softclt.methods import Pretrained, RepresentationLearner, TS2Vec, fit_many, load_pretrained
from softclt.methods.pretrained import level_and_scale
from softclt.optional import needed
from softclt.registry import Registry
from softclt.validation import Floats

_SUMMED = 1024  # steps at most at which series are summed up
_AT = 256  # and at which their values are ranked
_DEPTH = 5  # halvings of a series, for quantiles of its parts


class Block(ABC):
    """Features of series: unlike a method it may look at them in any way, and has no steps.

    Args:
        encoder: The pre-trained encoder of the classifier, with its rich read-out.
        seed: Of what is drawn.
        progress: Show a bar for what is trained.
    """

    def __init__(self, encoder: Pretrained, seed: int, progress: bool = False) -> None:
        self.encoder, self.seed, self.progress = encoder, seed, progress

    def fit(self, X: Floats) -> Self:
        """Look at the series ``(N, D, T)`` to learn from; most have nothing to learn."""
        return self

    @abstractmethod
    def transform(self, X: Floats) -> Floats:
        """Features of series, ``(N, F)``."""

    def models(self) -> dict[str, RepresentationLearner]:
        """What a file has to keep beside the encoder, by name."""
        return {}

    def restore(self, models: Mapping[str, RepresentationLearner]) -> None:  # noqa: B027
        """Take what `models` gave back; most have kept nothing."""


#: Classes of blocks. ``trains``: it learns from the series without labels, which takes long.
#: ``keeps``: whether a fitted one can be saved.
blocks: Registry[type[Block]] = Registry("block of features")


@blocks.register("base", trains=False, keeps=True)
class Rich(Block):
    """The pre-trained encoder's rich read-out of the series as they are."""

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        return self.encoder.transform(X)


@blocks.register("compact", trains=False, keeps=True)
class Compact(Rich):
    """The compact read-out of the same encoder."""

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        compact = copy.copy(self.encoder)
        return np.asarray(compact.set_params(readout="compact").transform(X))


@blocks.register("outputs", trains=False, keeps=True)
class Outputs(Rich):
    """Largest value and mean over time of all blocks of the encoder: what is fine-tuned."""

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        own = copy.copy(self.encoder)
        own.set_params(readout="compact", pooling="max+mean", layers="all")
        return np.asarray(own.transform(X))


@blocks.register("differences", trains=False, keeps=True)
class Differences(Rich):
    """The rich read-out of the differences from step to step."""

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        steps = np.diff(X, axis=-1)
        if steps.shape[-1] == 1:
            steps = np.repeat(steps, 2, axis=-1)
        steps[np.isnan(steps).all(axis=(1, 2))] = 0.0  # values, but no two one after the other
        return super().transform(steps)


@blocks.register("sums", trains=False, keeps=True)
class Sums(Rich):
    """The rich read-out of running sums: slow movements, with little of the noise."""

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        steps = min(_SUMMED, X.shape[-1])
        return super().transform(np.cumsum(resampled(X, steps), axis=-1))


class _OwnEncoder(Rich):
    """The rich read-out of another encoder than the classifier's."""

    own: ClassVar[str]

    def models(self) -> dict[str, RepresentationLearner]:
        """See `Block`."""
        return {self.own: self.encoder}

    def restore(self, models: Mapping[str, RepresentationLearner]) -> None:
        """See `Block`."""
        encoder = models[self.own]
        if not isinstance(encoder, Pretrained):
            raise ValueError(f"its {self.own} is a {type(encoder).__name__}, not pre-trained")
        self.encoder = encoder


@blocks.register("synthetic", trains=False, keeps=True)
class Synthetic(_OwnEncoder):
    """The rich read-out of the encoder that has seen synthetic series only."""

    own = "synthetic"

    def fit(self, X: Floats) -> Self:
        """See `Block`."""
        other = load_pretrained("synthetic", readout="rich", device=self.encoder.device)
        self.encoder = other.fit(X)
        return self


@blocks.register("statistics", trains=False, keeps=True)
class Statistics(Block):
    """Quantiles of values and of their changes in halves, quarters, ...; level and scale."""

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        x = stretched(X, _AT)
        spectrum = np.abs(np.fft.rfft(x, axis=-1))[..., 1:]
        found = [level_and_scale(X).reshape(len(X), -1)]
        for values in (x, np.diff(x), np.diff(x, 2), spectrum):
            for k in range(_DEPTH):
                for part in np.array_split(values, 2**k, axis=-1):
                    n = max(2, min(9, part.shape[-1] // 4))
                    ranked = np.quantile(part, np.linspace(0, 1, n), axis=-1)  # (n, N, D)
                    found.append(np.moveaxis(ranked, 0, -1).reshape(len(X), -1))
        return np.concatenate(found, axis=1).astype(np.float64)


class _Learned(Block):
    """A method that learns from the series, without their labels."""

    own: ClassVar[str]

    @abstractmethod
    def _new(self) -> list[RepresentationLearner]:
        """Models to train."""

    def fit(self, X: Floats) -> Self:
        """See `Block`."""
        self._models = fit_many(self._new(), X)
        return self

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        return np.concatenate([model.transform(X) for model in self._models], axis=1)

    def models(self) -> dict[str, RepresentationLearner]:
        """See `Block`."""
        return {f"{self.own}-{k}": model for k, model in enumerate(self._models)}

    def restore(self, models: Mapping[str, RepresentationLearner]) -> None:
        """See `Block`."""
        own = [name for name in models if name.startswith(f"{self.own}-")]
        self._models = [models[name] for name in sorted(own)]
        if not self._models:
            raise ValueError(f"it has none of the models of its block {self.own}")


@blocks.register("ts2vec", trains=True, keeps=True)
class HardAndSoft(_Learned):
    """TS2Vec trained on the series, hard and soft side by side: all layers, three poolings."""

    own = "ts2vec"

    def _new(self) -> list[RepresentationLearner]:
        options: dict[str, Any] = {
            **{"pooling": "max+mean+positive", "layers": "all", "random_state": self.seed},
            **{"progress": self.progress, "device": self.encoder.device},
        }
        return [TS2Vec(tau_instance=None, tau_temporal=None, **options), TS2Vec(**options)]


@blocks.register("adapted", trains=True, keeps=True)
class Adapted(_OwnEncoder):
    """The encoder after it went on learning from the series, with its rich read-out."""

    own = "adapted"

    def fit(self, X: Floats) -> Self:
        """See `Block`."""
        self.encoder = copy.deepcopy(self.encoder).set_params(random_state=self.seed).adapt(X)
        return self


class _RandomKernels(Block):
    """Features of aeon; short series are stretched to the longest of those learned from."""

    @abstractmethod
    def _new(self) -> Any:
        """The class of the transformer."""

    def fit(self, X: Floats) -> Self:
        """See `Block`."""
        self._steps = max(10, X.shape[-1])
        self._inner = self._new()(random_state=self.seed, n_jobs=1).fit(self._seen(X))
        return self

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        return np.nan_to_num(np.asarray(self._inner.transform(self._seen(X)), np.float32))

    def _seen(self, X: Floats) -> Floats:
        return np.asarray(resampled(X, self._steps), np.float32)


@blocks.register("multirocket", trains=False, keeps=False)
class MultiRocket(_RandomKernels):
    """aeon's MultiRocket."""

    def _new(self) -> Any:
        with needed(_AEON):
            from aeon.transformations.collection.convolution_based import MultiRocket
        return MultiRocket


@blocks.register("hydra", trains=False, keeps=False)
class Hydra(_RandomKernels):
    """aeon's Hydra: how often a kernel of a group is the best match, as roots."""

    def _new(self) -> Any:
        with needed(_AEON), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from aeon.transformations.collection.convolution_based import HydraTransformer
        return HydraTransformer

    def transform(self, X: Floats) -> Floats:
        """See `Block`."""
        return np.asarray(np.sqrt(np.maximum(super().transform(X), 0)))


_AEON = (
    "the features multirocket and hydra come from aeon, which is not installed: "
    "pip install 'softclt[data]'"
)
