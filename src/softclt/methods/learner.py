"""The shell around every method: scikit-learn's contract, scaling, distances, training, files."""

import os
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from softclt import inference, persistence, pretrained
from softclt.data.preparation import SCALES
from softclt.encoders import Encoder
from softclt.losses.functional import TemporalWeights
from softclt.methods.embedder import Embedder
from softclt.methods.fitted import (
    Fitted,
    check_description,
    check_size,
    check_weights,
    read_scale,
    written_scale,
)
from softclt.methods.many import fit_many
from softclt.methods.presets import preset
from softclt.methods.signature import tell_parameters
from softclt.registry import Registry
from softclt.training import Batch, Callback, StepDraws, TrainingState
from softclt.training.checkpoint import put_back, tensors_of, under
from softclt.training.distributed import current_group
from softclt.training.loop import HALF_PRECISION, PRECISIONS
from softclt.training.randomness import Stream, own_draws, torch_seed
from softclt.training.schedules import schedules
from softclt.training.state import new_state
from softclt.validation import (
    check_choice,
    check_range,
)

#: Tags: ``paper``, where it is from; ``classifier``, how it learns from few labels.
methods: Registry[type["RepresentationLearner"]] = Registry("method")

_AT_ONCE = 10**10  # numbers that a stack may keep for its backward pass, by our estimate


class RepresentationLearner(Embedder):
    """``fit``, ``transform``, ``encode`` and files; a method adds two hooks, or some more.

    The two are ``_build`` (the network) and ``_loss`` (of a batch). ``_optimizer`` and ``_layout``
    are there to be changed; so is ``_averages``: the model is the mean of all iterates, not the
    last; and ``_repeats``: fewer series than a batch has come several times in it. Soft assignments
    come with `SoftLearner`. A method with parameters of its own has an ``__init__`` that stores
    them and passes the others on: see `with_parameters_of`.

    With ``_stacks``, models that differ in nothing but what ``_differing`` names (of a class and
    its bases together) take their steps as one stack: ``_loss`` is asked of one of them, for all,
    and what differs comes with the batch. Reading it from ``self`` is an error in a stack.

    Args:
        scale: ``channel`` removes mean and standard deviation of each channel of the training data:
            levels of series stay apart, which rule where they come from sensors of different units.
            ``series`` removes those of each channel of each series, so that only shapes are left;
            it needs whole series, so nothing causal. None takes values as they are.
        mask_padding: Padded and missing steps take no part in losses, layers and pooling.
        pooling: Of steps to one vector: max, mean, positive (share of steps above 0), or several
            side by side, as in ``max+mean+positive``.
        layers: Read out the last block, or all of them side by side.
        batch_size: Series in a batch.
        lr: Learning rate.
        lr_schedule: How it changes over the steps of a fit: constant, linear (falls to 0), cosine
            (likewise, slowly at both ends) or warmup-cosine (rises over a tenth of them before).
        max_iter: Steps of training; None takes 200 for up to 100,000 values and 600 above, unless
            max_epochs is given. 0 is the untrained encoder.
        max_epochs: Passes over the data.
        max_train_length: Longer series are cut into sections.
        warm_start: Go on from the last fit instead of starting again.
        device: auto, cpu or cuda.
        precision: auto (float32; on a GPU the network's products in TF32), float32, float64, or
            bfloat16 (arithmetic; losses stay float32).
        random_state: Seed; the same seed gives the same model on a CPU.
        progress: Show a bar.
    """

    _stacks = False
    _differing: frozenset[str] = frozenset(["random_state", "progress"])
    _numbers_a_step = 20_000  # that training keeps for each step of a series in a batch, about
    _averages = True
    _by_time = False  # whether the loss looks at the times of unevenly spaced steps
    _repeats = False

    seed_: int
    device_: str
    fingerprint_: str
    n_iter_: int
    history_: dict[str, Any]
    training_state_: TrainingState

    def __init__(
        self,
        *,
        scale: str | None = "channel",
        mask_padding: bool = True,
        pooling: str = "max",
        layers: str = "last",
        batch_size: int = 8,
        lr: float = 1e-3,
        lr_schedule: str = "constant",
        max_iter: int | None = None,
        max_epochs: int | None = None,
        max_train_length: int = 3000,
        warm_start: bool = False,
        device: str = "auto",
        precision: str = "auto",
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.scale = scale
        self.mask_padding = mask_padding
        self.pooling = pooling
        self.layers = layers
        self.batch_size = batch_size
        self.lr = lr
        self.lr_schedule = lr_schedule
        self.max_iter = max_iter
        self.max_epochs = max_epochs
        self.max_train_length = max_train_length
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.progress = progress

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tell_parameters(cls)

    @abstractmethod
    def _build(self, n_channels: int) -> Encoder: ...

    @abstractmethod
    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor: ...

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        """Soft assignments from normalised distances; None is hard."""
        return None

    def _temporal_weights(self, z: Tensor) -> TemporalWeights | None:
        """For the loss, in the precision and on the device of z; None is hard."""
        return None

    def _instance_share(self) -> float:
        """Of the loss between series in that of a batch; the rest is the loss in time."""
        return 0.5

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Of a network. Its step has to be proportional to its rate, and fit for a CUDA graph."""
        own = list(parameters)
        return torch.optim.AdamW(own, lr=self.lr, fused=True, capturable=own[0].is_cuda)

    def _layout(self, length: int, step: int) -> Hashable:
        """What decides the shapes of a step on series of a length."""
        return length

    def _about(self, x: Tensor) -> Tensor | None:
        """What the loss has to know of each of all series ``(N, D, T)``, found once: ``(N, ...)``.

        It comes as ``batch.about``. Series that are read batch by batch have none.
        """
        return None

    def _stack_size(self, x: Tensor) -> int:
        """Models that may take their steps together on the data set x."""
        if x.device.type != "cuda":  # a CPU is busy with one
            return 1
        n_steps = self.batch_size * min(x.shape[-1], self.max_train_length)
        return max(1, int(_AT_ONCE / (n_steps * self._numbers_a_step)))

    def _check_parameters(self) -> None:
        check_choice(self.scale, SCALES, "scale")
        pooling, layers = self.read_out()
        inference.check_pooling(pooling)
        check_choice(layers, inference.LAYERS, "layers")
        check_choice(self.precision, (*PRECISIONS, HALF_PRECISION), "precision")
        check_range(self.batch_size, "batch_size", 1)
        check_range(self.lr, "lr", 0, open_low=True)
        schedules[self.lr_schedule]  # or an error that names those there are
        check_range(self.max_train_length, "max_train_length", 2)
        for name in ("max_iter", "max_epochs"):
            if getattr(self, name) is not None:
                check_range(getattr(self, name), name, 0)

    def fit(
        self,
        X: Any,
        y: Any = None,
        distances: Any = None,
        times: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Learn from series without labels.

        Ctrl-C waits for the end of a step; the model then is fitted as far as training came, which
        a warning says, and the KeyboardInterrupt goes on to the caller.

        Args:
            X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
                What `softclt.data.open_series` gives, and large mapped arrays, are not loaded.
            y: Ignored, here for pipelines; but ``targets="labels"`` looks at them.
            distances: Raw distances ``(N, N)`` between the series, or the folder that ``softclt
                distances`` made, to save computing them again, e.g. over a grid of taus. Ignored
                when tau_instance is None; refused when distance_mode is lazy, which would not look
                at them.
            times: Of the steps, ``(N, T)`` or ``(T,)``, dates or numbers, growing. Where steps are
                not evenly spaced, soft temporal weights go by the time between them, in units of
                the median gap, instead of the number of steps. Costs a weight for each pair of
                steps of a batch.
            checkpoint: Folder in which training is kept every 100 steps or 2 minutes. After the
                process was killed, or Ctrl-C, the same call goes on from there, on a CPU to the
                same bits; once training has ended, it returns the trained model at once. What
                another call has kept there is refused. Without random_state, the kept seed holds.
                Also gets ``history-0.jsonl``, a line a step, and TensorBoard's events if that is
                installed.
            callbacks: Functions that get a `softclt.training.Progress` every 100 steps and at the
                end, and end training by returning True: see `softclt.training.stop_on_plateau`.
        """
        fit_many([self], X, y, distances, times, checkpoint, callbacks)
        return self

    @classmethod
    def from_preset(cls, name: str, **overrides: Any) -> Self:
        """An estimator with settings of ``presets.toml``: ``paper``, ``official``, ``hard``."""
        return cls(**preset(methods.name_of(cls), name, overrides))

    def save(self, folder: str | os.PathLike[str], *, training: bool = False) -> None:
        """Write the fitted model as a folder.

        It has ``model.safetensors``, ``config.json``, and ``history.jsonl`` with the loss of each
        step.

        Of several processes that train together, the first writes.

        Args:
            folder: Made if needed; a model in it is replaced.
            training: Also keep the optimiser and the last iterate, so that training can go on after
                loading, with ``warm_start=True``. About four times the size.
        """
        check_is_fitted(self, "module_")
        if current_group().rank > 0:
            return
        tensors = {f"averaged.{k}": v for k, v in self.module_.state_dict().items()}
        if training:
            state = self._previous_training()
            assert state is not None
            tensors = tensors_of(state)
        params = persistence.json_safe(self.get_params(deep=False))
        if not isinstance(self.random_state, (int, np.integer, type(None))):
            params["random_state"] = self.seed_  # what a generator drew
        config = {
            "method": methods.name_of(type(self)),
            "params": params,
            "fitted": self._fitted(),
            "training": training,
            "fingerprint": self.fingerprint_,
            "versions": persistence.versions(),
        }
        persistence.write_model(folder, config, tensors, self.history_["loss"])

    def _fitted(self) -> dict[str, Any]:
        """What `save` tells of the fitted model besides its weights, for `_restore`."""
        return {
            "n_features_in": self.n_features_in_,
            "scale": written_scale(self.scale_),
            "seed": self.seed_,
            "n_iter": self.n_iter_,
            "history": {k: v for k, v in self.history_.items() if k != "loss"},
        }

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, encoder: nn.Module | None = None) -> Self:
        """A model that :meth:`save` wrote; :func:`softclt.load_model` finds the class itself."""
        model = load_model(folder, encoder=encoder)
        if not isinstance(model, cls):
            raise persistence.ModelFileError(
                f"{folder} holds a {type(model).__name__}, not a {cls.__name__}; "
                "use softclt.load_model"
            )
        return model

    def _restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Become the fitted model that ``save`` described."""
        check_description(config)
        kept, goes_on = config["fitted"], config["training"]
        self._check_parameters()
        n_channels, n_iter = kept["n_features_in"], kept["n_iter"]
        scale = read_scale(kept["scale"], n_channels)
        if getattr(self, "encoder", None) is None:  # else it is the caller's, who made it already
            own = partial(self._unfilled, n_channels)
            check_weights(own, tensors, with_last=goes_on and self._averages)
        device = find_device(self.device)
        state = self._new_training(kept["seed"], device, n_channels)
        if not goes_on:
            state.averaged.load_state_dict(under("averaged.", tensors))
        else:
            put_back(state, tensors)
            state.step, state.losses = n_iter, [list(kept["history"]["loss"])]
        self._become(
            Fitted(
                n_channels=n_channels,
                scale=scale,
                seed=kept["seed"],
                device=device,
                fingerprint=config["fingerprint"],
                module=state.averaged,
                n_iter=n_iter,
                history=kept["history"],
                training=state if goes_on else None,
            )
        )

    def _become(self, fitted: Fitted) -> None:
        """Take over at once what fitting has made, in place of all that an earlier fit made."""
        self.n_features_in_ = cast(int, fitted.n_channels)
        self.scale_ = fitted.scale
        self.seed_, self.device_ = fitted.seed, str(fitted.device)
        self.fingerprint_ = fitted.fingerprint
        self.n_iter_, self.history_ = fitted.n_iter, fitted.history
        self._encode_by(fitted.module)
        if fitted.training is not None:
            self.training_state_ = fitted.training

    def _so_far(self) -> Fitted:
        """What fitting has made."""
        check_is_fitted(self, "module_")
        return Fitted(
            n_channels=self.n_features_in_,
            scale=self.scale_,
            seed=self.seed_,
            device=torch.device(self.device_),
            fingerprint=self.fingerprint_,
            module=self.module_,
            n_iter=self.n_iter_,
            history=self.history_,
        )

    def _encode_by(self, module: Encoder) -> None:
        """Have this network from now on, from which training cannot go on."""
        self.module_ = module.eval()
        self.leave_training()

    def leave_training(self) -> None:
        """Drop what training would go on from, several times the size of the model itself."""
        self.__dict__.pop("training_state_", None)

    def _unfilled(self, n_channels: int | None) -> Encoder:
        """A network of the same shapes as that of ``_build``, with any weights."""
        return self._build(cast(int, n_channels))

    def check_size(self) -> None:
        """Refuse a network, of one channel, whose training memory cannot hold."""
        if getattr(self, "encoder", None) is None:
            check_size(partial(self._unfilled, 1))

    def _torch_device(self) -> torch.device:
        return find_device(self.device)

    def _dtype(self) -> torch.dtype:
        return PRECISIONS.get(self.precision, torch.float32)

    def _is_soft_between_series(self) -> bool:
        return self._instance_weights(torch.zeros(1, 1)) is not None

    def _needs_labels(self) -> bool:
        return False

    def _needs_distances(self) -> bool:
        return self._is_soft_between_series()

    def _n_steps(self, size: int, n_series: int) -> int:
        """TS2Vec's rule by the size of the data, unless iterations or epochs are given."""
        if self.max_iter is None and self.max_epochs is None:
            return 200 if size <= 100_000 else 600
        limits = [self.max_iter] if self.max_iter is not None else []
        if self.max_epochs is not None:
            limits.append(self.max_epochs * (n_series // min(self.batch_size, n_series)))
        return int(min(limits))

    def _new_training(
        self, seed: int, device: torch.device, n_channels: int | None
    ) -> TrainingState:
        """The start of training."""
        with own_draws(torch_seed(Stream.INIT, seed)):
            module = self._build(cast(int, n_channels))
        module = module.to(device=device, dtype=self._dtype())
        return new_state(module, self._optimizer, self._averages)

    def _previous_training(self) -> TrainingState | None:
        """Where the last fit ended; None before the first."""
        if hasattr(self, "training_state_"):
            return self.training_state_
        if hasattr(self, "module_"):
            raise NotFittedError(
                "this model was loaded without its training state, so training cannot go on; "
                "save it with save(folder, training=True)"
            )
        return None


def load_model(
    folder: str | os.PathLike[str], *, encoder: nn.Module | None = None
) -> RepresentationLearner:
    """Load any saved model; its folder says which method it is.

    Args:
        folder: That ``save`` or ``softclt pretrain`` wrote, or the name of a pre-trained model.
        encoder: A module like the one that the model was made with, if that was one of your own:
            files hold its weights, not its code.
    """
    if pretrained.is_pretrained(folder):
        kind: Any = methods["pretrained"]
        named = kind(weights=os.fspath(folder))
        return cast(RepresentationLearner, named.set_params(weights=named.weights_).ready())
    if not Path(folder).exists():
        pretrained.folder_of(folder)  # or an error that names those there are
    config, tensors = persistence.read_model(folder)
    name = config["method"]
    if name not in methods:
        raise persistence.ModelFileError(
            f"{folder} holds a model of the unknown method {name!r}; known: {', '.join(methods)}"
        )
    params = config["params"]
    if params.get("encoder") is not None:
        if encoder is None:
            raise persistence.ModelFileError(
                f"{folder} holds a model on an encoder of your own, {params['encoder']}; "
                "give one to load_model(folder, encoder=...), its weights are read"
            )
        params = params | {"encoder": encoder}
    with persistence.one_error(folder, name):
        model = methods[name](**params)
        model._restore(config, tensors)
    return model


def find_device(name: str) -> torch.device:
    """The device that a parameter ``device`` stands for; ``"auto"`` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"device is {name!r}; expected 'auto', 'cpu' or 'cuda'") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but no GPU is available; use device='auto' or 'cpu'")
    return device
