"""FixMatch on series."""

from typing import Any, cast

import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.methods.learner import methods
from softclt.methods.rivals.losses import class_loss, pseudo_label_loss
from softclt.methods.rivals.teacher import Taught, TaughtRival
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws
from softclt.validation import check_range


@methods.register("fixmatch", paper="Sohn et al., NeurIPS 2020")
class FixMatch(TaughtRival):
    """Sure answers on weak views are labels of strong ones (Sohn et al., NeurIPS 2020).

    The classifier is an exponential average of the network's weights, as in the paper.

    Args:
        threshold: How likely the likeliest class of the weak view must be.
        unlabelled_weight: Of the loss of all series, next to that of the labelled ones. It is the
            same from the first step on: until the network is sure of something, there is no such
            loss.

    Attributes:
        network_: The classifier; None in a model that was loaded.
        classes_: Sorted.
        module_: Its encoder.

    Example:
        >>> import numpy as np
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=8, length=30, random_state=0)
        >>> y = np.where(np.arange(len(data.y_train)) % 4 == 0, data.y_train, -1)  # the rest hidden
        >>> model = FixMatch(widths=(4, 8), max_iter=2, random_state=0)
        >>> model.fit(data.X_train, y).transform(data.X_test).shape[1]
        8
    """

    @with_parameters_of(TaughtRival)
    def __init__(
        self, *, threshold: float = 0.95, unlabelled_weight: float = 1.0, **parameters: Any
    ) -> None:
        super().__init__(**parameters)
        self.threshold = threshold
        self.unlabelled_weight = unlabelled_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.threshold, "threshold", 0, 1)
        check_range(self.unlabelled_weight, "unlabelled_weight", 0)

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network, drawn = cast(Taught, module), self._given.draw(draws)
        network.follow(draws.counter, self._momentum())
        weak = self._weak(torch.cat([drawn.x, batch.x], dim=1), draws)
        labelled, seen, strong = self._student_logits(network, batch, drawn, weak, draws)
        unlabelled = pseudo_label_loss(seen, strong, self.threshold)
        return class_loss(labelled, drawn.labels) + self.unlabelled_weight * unlabelled
