"""A classifier and its teacher, the exponential average of what it has been."""

import copy
from typing import Any

import torch
from torch import Tensor

from softclt.encoders import Encoder
from softclt.encoders.tcc import BatchNorm
from softclt.methods.head import ClassifierNetwork
from softclt.methods.rivals.labelled import Drawn, LabelledRival
from softclt.methods.rivals.networks import Helped
from softclt.methods.signature import with_parameters_of
from softclt.training import Batch, StepDraws
from softclt.validation import check_range


class Taught(Helped[ClassifierNetwork, ClassifierNetwork]):
    """A student, and a teacher that begins as a copy of it."""

    def __init__(self, student: ClassifierNetwork) -> None:
        super().__init__(student, copy.deepcopy(student))
        for part in self.helper.modules():
            if isinstance(part, BatchNorm):
                part.rests_when_frozen = False

    @torch.no_grad()
    def answers(self, x: Tensor, complete: bool) -> Tensor:
        """Logits of the teacher in training, ``(R, B, L)``, by statistics of this batch.

        Those that its student keeps are of other weights and other views; answers by them drift
        until all series are of one class.
        """
        self.helper.train()  # the loop puts to rest what has no gradient
        return self.helper.logits(x, complete=complete)

    @torch.no_grad()
    def follow(self, step: Tensor, momentum: float) -> None:
        """Move the teacher towards the student, weights and batch statistics alike.

        While few steps are taken, it is the plain mean of all that the student has been; later
        ``momentum`` times itself plus the rest of the student. So what the student was before it
        had learned anything does not stay.

        Args:
            step: Number of the student's steps so far, ``()``.
            momentum: Below 1.
        """
        share = (1 / (step + 1)).clamp(min=1 - momentum)
        own, others = (list(part.state_dict().values()) for part in (self.helper, self.encoder))
        gaps = list(torch._foreach_sub(others, own))
        torch._foreach_mul_(gaps, share.to(own[0]))
        torch._foreach_add_(own, gaps)


class TaughtRival(LabelledRival):
    """A rival whose classifier is the teacher of a network that learns by gradients.

    Args:
        teacher_memory: Share of all steps that the teacher reaches back over; it is the plain mean
            of the student's past while that is short. The papers' momentum of 0.999 is a thousand
            steps of more than a hundred thousand, and all of training where that has as many.
    """

    _frozen = ("helper.",)

    @with_parameters_of(LabelledRival)
    def __init__(self, *, teacher_memory: float = 0.05, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.teacher_memory = teacher_memory

    def _network(self, classifier: ClassifierNetwork) -> Encoder:
        return Taught(classifier)

    def _trained(self, network: Encoder, n_steps: int) -> ClassifierNetwork:
        assert isinstance(network, Taught)
        network.follow(torch.tensor(n_steps), self._momentum())  # what the last step has made
        return network.helper

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.teacher_memory, "teacher_memory", 0, 1)

    def _momentum(self) -> float:
        """With which the average reaches back over ``teacher_memory`` of all steps."""
        return 1 - 1 / max(1.0, self.teacher_memory * self._given.n_steps)

    def _student_logits(
        self, network: Taught, batch: Batch, drawn: Drawn, weak: Tensor, draws: StepDraws
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of weak views of labelled series, and of the weak and strong views of all.

        All in one pass: batch statistics are then of all that is normalised by them, and those
        that the classifier keeps, too.

        Args:
            network: With the student.
            batch: Of all series.
            drawn: Labelled ones.
            weak: Views of the labelled series and the batch's, one behind the other.
            draws: Of the step.
        """
        complete = batch.mask is None
        views = torch.cat([weak, self._strong(batch.x, draws, complete)], dim=1)
        logits = network.encoder.logits(views, draws, complete)
        n, b = drawn.labels.shape[1], batch.x.shape[1]
        return logits[:, :n], logits[:, n : n + b], logits[:, n + b :]
