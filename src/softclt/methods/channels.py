"""A model of one channel on series of several: side by side, or as one network for all."""

import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np
from torch import Tensor

from softclt.methods.learner import RepresentationLearner
from softclt.training.randomness import own_draws
from softclt.validation import Floats

Model = TypeVar("Model", bound=RepresentationLearner)


def one_by_one(X: Floats) -> Floats:
    """Every channel as a series of its own, ``(N * D, 1, T)``: all channels of a series in turn."""
    n, d, t = X.shape
    return X.reshape(n * d, 1, t)


def transform_channels(model: RepresentationLearner, X: Floats) -> Floats:
    """Embeddings of the channels of ``(N, D, T)`` side by side, ``(N, D * M)``."""
    return np.asarray(model.transform(one_by_one(X)).reshape(len(X), -1))


def with_channels(model: Model, n_channels: int) -> Model:
    """A fitted model of one channel as one of several that starts as the mean over channels.

    Weights of the first layer are repeated and divided by the number of channels, so that equal
    channels give what the one gave. Methods that read channels one by one have no such layer and
    go on as they are. The model itself stays as it is; the new one cannot go on with its training.
    """
    if model.n_features_in_ != 1:
        raise ValueError(
            f"the model was fitted on {model.n_features_in_} channels; expected one, e.g. "
            "fit(one_by_one(X))"
        )
    scale = model.scale_
    if isinstance(scale, tuple):
        mean, std = scale
        scale = np.repeat(mean, n_channels), np.repeat(std, n_channels)
    with own_draws(0):  # the new weights are replaced, all of them
        module = model._build(n_channels)
    narrow = model.module_.state_dict()
    module.load_state_dict(
        {name: _widened(narrow[name], new, n_channels) for name, new in module.state_dict().items()}
    )
    like = next(model.module_.parameters())
    wide = copy.copy(model)
    module = module.to(device=like.device, dtype=like.dtype)
    wide._become(replace(model._so_far(), n_channels=n_channels, scale=scale, module=module))
    return wide


def _widened(weights: Tensor, like: Tensor, n_channels: int) -> Tensor:
    if weights.shape == like.shape:
        return weights
    pairs = zip(weights.shape, like.shape, strict=True)
    different = [pair for pair in pairs if pair[0] != pair[1]]
    if different != [(1, n_channels)]:
        raise ValueError(
            f"a layer with weights of shape {tuple(weights.shape)} has {tuple(like.shape)} for "
            f"{n_channels} channels; this method cannot be carried over to them"
        )
    return weights.expand_as(like) / n_channels
