"""Who says which series of a batch are alike: providers of targets for the contrast of series.

A provider is a function of the rows of a batch and their embeddings that gives targets, ones on the
diagonal. The paper's compares series as they are, before training; NNCLR and ASCL compare
embeddings while they are learned. The hard loss is the identity.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.encoders import Encoder
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftLearner
from softclt.registry import Registry
from softclt.training import Batch
from softclt.training.distributed import current_group
from softclt.validation import check_known, check_range

Kind = TypeVar("Kind", bound=Encoder)


@dataclass(frozen=True)
class Rows:
    """What a provider may look at, for each of R models.

    Attributes:
        index: Rows of the data set, ``(R, B)``.
        z1, z2: Embeddings of two views of them, ``(R, B, M)``, without a gradient.
        weights: Soft assignments from distances ``(R, B, B)``; None: there are none.
        labels: Class numbers ``(R, B)``, -1 where unknown; None unless it is tagged ``labels``.
        queue: Embeddings of earlier rows; None unless the provider is tagged ``queue``.
    """

    index: Tensor
    z1: Tensor
    z2: Tensor
    weights: Tensor | None
    labels: Tensor | None = None
    queue: "Queue | None" = None


#: A function of `Rows` that gives targets ``(R, B, B)``, ones on the diagonal; None is hard. Its
#: further arguments are settings.
Provider = Callable[..., Tensor | None]

#: Tags: ``space``, where series are compared: ``data``, ``embedding``, ``labels`` or ``none``;
#: ``queue``: whether it wants a `Queue`.
providers: Registry[Provider] = Registry("provider of targets")


@providers.register("distances", space="data", queue=False)
def distances(rows: Rows) -> Tensor | None:
    """Soft assignments from distances in data space, the paper's; or from those given to fit."""
    return rows.weights


@providers.register("hard", space="none", queue=False)
def hard(rows: Rows) -> Tensor | None:
    """The identity: a series is like itself alone."""
    return None


@providers.register("labels", space="labels", queue=False)
def labels(rows: Rows) -> Tensor:
    """Series of one class are alike, by the labels given to fit; -1 is unknown."""
    assert rows.labels is not None
    known = rows.labels >= 0
    same = (rows.labels[:, :, None] == rows.labels[:, None, :]) & known[:, :, None]
    itself = torch.eye(known.shape[1], dtype=torch.bool, device=known.device)
    return (same | itself).to(rows.z1)


@providers.register("ascl", space="embedding", queue=False)
def ascl(rows: Rows, *, temperature: float = 0.05, neighbours: float = 1.0) -> Tensor:
    """Soft targets from the similarity of embeddings (Feng and Patras, ICPR 2022).

    For each series, the softmax q over the others of cosine / temperature; c = 1 - H(q) / log(B -
    1), how sure that is; targets min(1, neighbours * c * q). The original compares with a queue of
    a slow copy of the network; here with the rest of the batch, as it is.
    """
    one, two = F.normalize(rows.z1, dim=-1), F.normalize(rows.z2, dim=-1)
    b = one.shape[1]
    itself = torch.eye(b, dtype=torch.bool, device=one.device)
    if b < 3:  # of a single other series nothing is sure
        return itself.to(one).expand(len(one), b, b)
    q = (one @ two.mT / temperature).masked_fill(itself, float("-inf")).softmax(dim=-1)
    entropy = -torch.special.xlogy(q, q).sum(dim=-1, keepdim=True)
    sure = (1 - entropy / math.log(b - 1)).clamp(0, 1)
    targets: Tensor = (neighbours * sure * q).clamp(max=1)
    return targets.masked_fill(itself, 1.0)


@providers.register("nnclr", space="embedding", queue=True)
def nnclr(rows: Rows, *, neighbours: int = 5) -> Tensor:
    """The nearest neighbours in a queue of embeddings (after Dwibedi et al., ICCV 2021).

    Series of the batch that are among the nearest of a series in the queue and the batch together
    have a target of 1, as the paper has it: additional positives. The original puts the neighbour
    in place of the view, and has a predictor; targets cannot say that.
    """
    assert rows.queue is not None
    one, two = F.normalize(rows.z1, dim=-1), F.normalize(rows.z2, dim=-1)
    itself = rows.index[:, :, None] == rows.index[:, None, :]
    within = (one @ two.mT).masked_fill(itself, float("-inf"))  # (R, B, B)
    earlier = one @ rows.queue.vectors.to(one).mT  # (R, B, Q)
    gone = rows.queue.index[:, None, :] == rows.index[:, :, None]  # the series itself, earlier
    gone = gone | (rows.queue.index < 0)[:, None, :]
    everyone = torch.cat([within, earlier.masked_fill(gone, float("-inf"))], dim=-1)
    least = everyone.topk(min(neighbours, everyone.shape[-1]), dim=-1).values[..., -1:]
    near = (within >= least) & within.isfinite()
    rows.queue.put(rows.index, two)
    same = torch.eye(one.shape[1], dtype=torch.bool, device=one.device)
    return (near | same).to(one)


class Queue(nn.Module):
    """Embeddings of the latest rows, for each of R models.

    Args:
        size: Rows.
        n_dims: M.
    """

    vectors: Tensor  # (R, Q, M), unit vectors, the newest first
    index: Tensor  # (R, Q), -1 where there is none yet

    def __init__(self, size: int, n_dims: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(1, size, n_dims))
        self.register_buffer("index", torch.full((1, size), -1))

    @torch.no_grad()
    def put(self, index: Tensor, vectors: Tensor) -> None:
        """Put rows ``(R, B)`` and their vectors ``(R, B, M)`` in front; the oldest fall out."""
        size = self.index.shape[1]
        vectors = vectors.to(self.vectors)
        self.vectors.copy_(torch.cat([vectors, self.vectors], dim=1)[:, :size])
        self.index.copy_(torch.cat([index, self.index], dim=1)[:, :size])


class TargetLearner(SoftLearner):
    """A method that takes its targets between series from any provider.

    Args:
        targets: Who says which series are alike: distances (the paper's), hard, labels (those given
            to fit), ascl or nnclr; see ``softclt list providers``. But for distances, neither
            tau_instance nor what shapes its weights has an effect.
        target_params: Settings of the provider, e.g. ``{"neighbours": 10}``.
        queue_size: Rows in the queue of a provider that has one.
    """

    @with_parameters_of(SoftLearner)
    def __init__(
        self,
        *,
        targets: str = "distances",
        target_params: dict[str, Any] | None = None,
        queue_size: int = 64,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.targets = targets
        self.target_params = target_params
        self.queue_size = queue_size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        known = list(inspect.signature(providers[self.targets]).parameters)[1:]
        check_known(self.target_params or {}, known, f"targets={self.targets!r}", "setting")
        check_range(self.queue_size, "queue_size", 1)
        if self.targets not in ("distances", "hard") and current_group().size > 1:
            raise ValueError(
                f"targets={self.targets!r} looks at the whole batch, which processes share; start "
                "it without torchrun, or take targets from distances"
            )

    def _instance_weights(self, distances: Tensor) -> Tensor | None:
        if self.targets != "distances":
            return None
        return super()._instance_weights(distances)

    def _needs_labels(self) -> bool:
        return self.targets == "labels"

    def _has_queue(self) -> bool:
        return bool(providers.tags(self.targets)["queue"])

    def _with_queue(self, encoder: Kind, n_dims: int) -> Kind:
        """The encoder, with a queue if the provider wants one."""
        if self._has_queue():
            encoder.add_module("queue", Queue(self.queue_size, n_dims))
        return encoder

    def _targets(self, module: Encoder, batch: Batch, z1: Tensor, z2: Tensor) -> Tensor | None:
        """Targets between the series of a batch, by two views' vectors ``(R, B, M)``."""
        queue = None
        if self._has_queue():
            queue = cast(Queue, module.get_submodule("queue"))
        rows = Rows(batch.index, z1.detach(), z2.detach(), batch.weights, batch.labels, queue)
        return providers[self.targets](rows, **self.target_params or {})
