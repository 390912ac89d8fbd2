"""SemiTime."""

from typing import Any, cast

import torch
from torch import Tensor

from softclt.encoders import Encoder, TCCEncoder
from softclt.encoders.tcc_heads import Projection
from softclt.methods.head import ClassifierNetwork
from softclt.methods.learner import methods
from softclt.methods.rivals.labelled import LabelledRival
from softclt.methods.rivals.losses import class_loss, relation_loss
from softclt.methods.rivals.networks import Helped, last_block, pooled
from softclt.methods.rivals.rival import SoftRival
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws
from softclt.validation import check_range

RELATION_DIMS = 256  # inside the network that relates a past to a future
HALVES_SITE = 1  # of the draws for dropout; the classifier has 0


@methods.register("semitime", paper="Fan et al., ICASSP 2021")
class SemiTime(SoftRival, LabelledRival):
    """Classes of some series, and of all whether a past and a future are of one (Fan et al., 2021).

    Every series is cut in its middle. A small network is to tell the past of a series beside its
    own future from its past beside the future of another series, the next ones of the batch; one
    half of a pair is in the weak view, the other in the strong one. With ``tau_instance`` the
    target of another series is how alike the two are, not 0.

    Args:
        relation_weight: Of this loss, next to that of the labelled series.

    Attributes:
        network_: The classifier; None in a model that was loaded.
        classes_: Sorted.
        module_: Its encoder.

    Example:
        >>> import numpy as np
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=8, length=30, random_state=0)
        >>> y = np.where(np.arange(len(data.y_train)) % 4 == 0, data.y_train, -1)  # the rest hidden
        >>> model = SemiTime(widths=(4, 8), max_iter=2, random_state=0)
        >>> model.fit(data.X_train, y).transform(data.X_test).shape[1]
        8
    """

    @with_parameters_of(LabelledRival, SoftRival)
    def __init__(self, *, relation_weight: float = 1.0, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.relation_weight = relation_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.relation_weight, "relation_weight", 0)

    def _network(self, classifier: ClassifierNetwork) -> Encoder:
        encoder = cast(TCCEncoder, classifier.encoder)
        return Helped(classifier, Projection(2 * encoder.output_dims, RELATION_DIMS, 1))

    def _trained(self, network: Encoder, n_steps: int) -> ClassifierNetwork:
        return cast(Helped[ClassifierNetwork, Projection], network).encoder

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network, drawn = (
            cast(Helped[ClassifierNetwork, Projection], module),
            self._given.draw(draws),
        )
        complete = batch.mask is None
        views = self._weak(torch.cat([drawn.x, batch.x], dim=1), draws)
        # All series are in the pass, though labels are of few: for the batch statistics.
        logits = network.encoder.logits(views, draws, complete)[:, : drawn.labels.shape[1]]
        relation = self._relation_loss(network, batch, draws)
        return class_loss(logits, drawn.labels) + self.relation_weight * relation

    def _relation_loss(
        self, network: Helped[ClassifierNetwork, Projection], batch: Batch, draws: StepDraws
    ) -> Tensor:
        complete = batch.mask is None
        both = torch.cat(halves(batch.x, batch.mask), dim=1)  # (R, 2B, D, T')
        views = torch.cat([self._weak(both, draws), self._strong(both, draws, complete)], dim=1)
        encoder = cast(TCCEncoder, network.encoder.encoder)
        features = last_block(encoder, views, draws, complete, HALVES_SITE)
        parts = pooled(features, self.pooling).chunk(4, dim=1)  # (R, B, C) each
        past, future = (parts[0], parts[2]), (parts[3], parts[1])  # of unlike views
        pairs = [torch.cat(pair, dim=-1) for pair in zip(past, future, strict=True)]
        alike = []
        for by, (before, after) in enumerate(zip(past, future, strict=True), start=1):
            pairs.append(torch.cat([before, after.roll(-by, dims=1)], dim=-1))
            alike.append(_alike(batch, by))
        same, other = network.helper(torch.cat(pairs, dim=1))[..., 0].chunk(2, dim=1)  # (R, 2B)
        return relation_loss(same, other, torch.cat(alike, dim=1))


def halves(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The first and the second half of the steps of series ``(R, B, D, T)``.

    Args:
        x: NaN where missing.
        mask: Observed steps ``(R, B, T)``, of which each half has as many; None: all. Then the
            halves are as long as they are and share nothing, so that of an odd number of steps the
            middle one is in neither.
    """
    if mask is None:
        length = x.shape[-1] // 2
        return x[..., :length], x[..., -length:]
    number = mask.cumsum(dim=-1)  # of each observed step, from 1 on
    early = (number <= (number[..., -1:] + 1) // 2)[..., None, :]
    return x.masked_fill(~early, float("nan")), x.masked_fill(early, float("nan"))


def _alike(batch: Batch, by: int) -> Tensor:
    """Of each series of a batch and the one so many places on, ``(R, B)``; 1 of one and itself."""
    if batch.weights is None:
        return batch.index == batch.index.roll(-by, dims=1)
    return batch.weights.roll(-by, dims=2).diagonal(dim1=1, dim2=2)
