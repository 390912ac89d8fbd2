"""Mean Teacher on series."""

from typing import Any, cast

import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.methods.learner import methods
from softclt.methods.rivals.losses import class_loss, consistency_loss, ramp_up
from softclt.methods.rivals.teacher import Taught, TaughtRival
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws
from softclt.validation import check_range


@methods.register("mean-teacher", paper="Tarvainen and Valpola, NIPS 2017")
class MeanTeacher(TaughtRival):
    """A student that agrees with the average of what it has been (Tarvainen and Valpola, 2017).

    The student sees the weak and the strong view of every series and is to say of either what its
    teacher says of a weak view of its own. The teacher drops nothing out and is the classifier.

    Args:
        consistency_weight: Of the squared distance between the answers of both, next to the loss
            of the labelled series. Published weights are 1 to the number of classes; the larger
            ones hold on to the first mistakes of a training this short.
        ramp_up: Share of all steps over which this weight grows to its full size, as
            exp(-5 (1 - t)^2): a student that knows nothing is not to agree with itself.

    Attributes:
        network_: The teacher; None in a model that was loaded.
        classes_: Sorted.
        module_: Its encoder.

    Example:
        >>> import numpy as np
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=8, length=30, random_state=0)
        >>> y = np.where(np.arange(len(data.y_train)) % 4 == 0, data.y_train, -1)  # the rest hidden
        >>> model = MeanTeacher(widths=(4, 8), max_iter=2, random_state=0)
        >>> model.fit(data.X_train, y).transform(data.X_test).shape[1]
        8
    """

    @with_parameters_of(TaughtRival)
    def __init__(
        self, *, consistency_weight: float = 1.0, ramp_up: float = 0.5, **parameters: Any
    ) -> None:
        super().__init__(**parameters)
        self.consistency_weight = consistency_weight
        self.ramp_up = ramp_up

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.consistency_weight, "consistency_weight", 0)
        check_range(self.ramp_up, "ramp_up", 0, 1)

    def _loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        network, drawn = cast(Taught, module), self._given.draw(draws)
        network.follow(draws.counter, self._momentum())
        n, b = drawn.labels.shape[1], batch.x.shape[1]
        views = self._weak(torch.cat([drawn.x, batch.x, batch.x], dim=1), draws)
        answers = network.answers(views[:, n + b :], batch.mask is None)
        logits = self._student_logits(network, batch, drawn, views[:, : n + b], draws)
        gaps = [consistency_loss(own, answers) for own in logits[1:]]
        weight = self.consistency_weight * ramp_up(
            draws.counter, round(self.ramp_up * self._given.n_steps)
        )
        return class_loss(logits[0], drawn.labels) + weight * (gaps[0] + gaps[1]) / 2
