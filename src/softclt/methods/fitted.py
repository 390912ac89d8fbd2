"""What fitting gives a learner, and how a folder holds it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt import schema
from softclt.data.preparation import SCALES, Scale
from softclt.encoders import Encoder
from softclt.encoders.shapes import AtMost, check_shapes
from softclt.files import too_large
from softclt.persistence import check_entries
from softclt.training import TrainingState
from softclt.training.checkpoint import under
from softclt.validation import check_choice

_CALLS_A_TENSOR = 50  # of torch that making a network takes at most, by far
_CALLS_AT_ALL = 1_000_000
_COPIES = 5  # of its weights that training holds: last and mean ones, gradients, two moments

_DESCRIBED = {"training": schema.FLAG, "fingerprint": schema.TEXT}
_FITTED = {
    "n_features_in": schema.optional(schema.SIZE),
    "scale": schema.optional(schema.either(schema.TEXT, schema.LIST)),
    "seed": schema.COUNT,
    "n_iter": schema.COUNT,
    "history": schema.TABLE,
}


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """All that a learner has once it is fitted: it becomes so at once, or not at all.

    Attributes:
        n_channels: D of the series; None for a network that takes any.
        scale: What is removed from series before the network sees them.
        seed: That all draws came from.
        device: Where the network is.
        fingerprint: Of the series.
        module: The network.
        n_iter: Steps of training.
        history: See `TS2Vec`.
        training: Where training can go on; None where it cannot.
    """

    n_channels: int | None
    scale: Scale
    seed: int
    device: torch.device
    fingerprint: str
    module: Encoder
    n_iter: int
    history: dict[str, Any]
    training: TrainingState | None = None


def check_description(config: dict[str, Any]) -> None:
    """Refuse the description of a saved model that is not as ``save`` writes it."""
    check_entries(config, _DESCRIBED)
    check_entries(config["fitted"], _FITTED)
    check_entries(config["fitted"]["history"], {"loss": schema.NUMBERS})


def check_weights(
    network: Callable[[], Encoder], tensors: dict[str, Tensor], with_last: bool
) -> None:
    """Refuse saved weights that are not those of a network, before any of it takes memory."""
    with torch.device("meta"), AtMost(_CALLS_A_TENSOR * (len(tensors) + 1)):
        made = network()
    check_shapes(made, under("averaged.", tensors))
    if with_last:
        check_shapes(made, under("last.", tensors))
    parameters = {name: own.shape for name, own in made.named_parameters()}
    for name, moment in under("optimizer.", tensors).items():
        parameter = name.rpartition(".")[0]
        if moment.ndim > 0 and moment.shape != parameters.get(parameter):
            raise ValueError(f"optimizer.{name} has the shape {tuple(moment.shape)}")


def check_size(network: Callable[[], Encoder]) -> None:
    """Refuse a network whose training memory cannot hold."""
    try:
        with torch.device("meta"), AtMost(_CALLS_AT_ALL):
            size = sum(p.numel() * p.element_size() for p in network().parameters())
    except (OverflowError, RuntimeError):  # shapes that no index can say
        raise ValueError("the network is larger than any memory") from None
    if problem := too_large(_COPIES * size):
        raise ValueError(f"the network with what trains it {problem}; choose smaller sizes")


def written_scale(scale: Scale) -> list[Any] | str | None:
    """Mean and spread of each channel, or the name of another way, for JSON."""
    return [part.tolist() for part in scale] if isinstance(scale, tuple) else scale


def read_scale(kept: list[Any] | str | None, n_channels: int | None) -> Scale:
    """What `written_scale` gave."""
    if kept is None or isinstance(kept, str):
        check_choice(kept, SCALES[1:], "scale")
        return kept
    if len(kept) != 2 or not all(schema.NUMBERS.fits(half) for half in kept):
        raise ValueError("scale is not two lists of numbers")
    mean, spread = (np.array(half, dtype=np.float64) for half in kept)
    if not len(mean) == len(spread) == n_channels or (spread <= 0).any():
        raise ValueError(f"scale is not a mean and a spread above 0 of {n_channels} channel(s)")
    return mean, spread
