"""Rivals that learn from all series and from the labels of some at the same time."""

import copy
import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softclt.data.dataset import fingerprint
from softclt.data.labels import UNLABELLED
from softclt.data.partial_labels import PartialLabels, read_labels
from softclt.data.sources import left_on_disk
from softclt.encoders import Encoder
from softclt.encoders.stacked import one_of, stacked
from softclt.methods.between import late_weights
from softclt.methods.head import ClassifierNetwork
from softclt.methods.labelled import LabelLearner
from softclt.methods.learner import RepresentationLearner
from softclt.methods.prepared import refuse_empty
from softclt.methods.rivals.rival import Rival
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftLearner
from softclt.methods.stacks import chunks, course_of, speaker, stackable
from softclt.methods.supervised import LEAST_STEPS, new_classifier, phase_seed
from softclt.training import Callback, StepDraws, Stream, TrainingState
from softclt.training.phases import Phase, phase_folder, run_phase
from softclt.training.randomness import own_draws, torch_seed
from softclt.validation import (
    Floats,
    Floats32,
    Ints,
    check_range,
    check_series,
    series_lengths,
)

START, PHASE = "start", "semi-supervised"  # folders of a checkpoint


class Drawn(NamedTuple):
    """Labelled series of a step: ``(R, B', D, T)``, and their classes ``(R, B')``."""

    x: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Given:
    """What a step may look at besides its batch.

    Attributes:
        x: The labelled series of each model, ``(R, N', D, T)``.
        labels: Their class numbers ``(R, N')``.
        n_drawn: How many of them are drawn for a step.
        n_steps: Steps of the whole training.
    """

    x: Tensor
    labels: Tensor
    n_drawn: int
    n_steps: int

    def draw(self, draws: StepDraws) -> Drawn:
        """Labelled series for a step, with repeats: the few are in every one."""
        n_models, n_series = self.labels.shape
        rows = draws.integers(Stream.LABELLED, n_series, (self.n_drawn,))  # (R, B')
        models = torch.arange(n_models, device=rows.device)[:, None]
        return Drawn(self.x[models, rows], self.labels[models, rows])


class LabelledRival(Rival, LabelLearner):
    """A rival with one phase, in which a batch of all series and labelled ones are seen together.

    An epoch is one over all series, whatever the number of labels: each step has ``batch_size`` of
    them, with labels or without, and ``labelled_share`` times as many that are drawn, with repeats,
    from those with labels. Unless ``max_iter`` says otherwise there are at least 200 steps, as in
    all that learns from labels here. Series are taken whole, since a label is of the whole series.

    Args:
        labelled_share: Labelled series of a step, drawn with repeats, for each of all series.
        unlabelled: What stands in y where there is no label; None, NaN and empty texts do, too.
        warm_start: Not for methods that need labels.
    """

    n_phases = 1
    _frozen: tuple[str, ...] = ()  # beginnings of the names of what has no gradient
    _given: Given  # of the one that is asked for the loss of a stack

    @with_parameters_of(Rival)
    def __init__(
        self, *, labelled_share: float = 0.25, unlabelled: Any = UNLABELLED, **parameters: Any
    ) -> None:
        super().__init__(**parameters)
        self.labelled_share = labelled_share
        self.unlabelled = unlabelled

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @abstractmethod
    def _network(self, classifier: ClassifierNetwork) -> Encoder:
        """What is trained: a new classifier, and what goes with it."""

    @abstractmethod
    def _trained(self, network: Encoder, n_steps: int) -> ClassifierNetwork:
        """The classifier that the network has become."""

    def _build(self, n_channels: int) -> Encoder:
        return self._encoder(n_channels)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.labelled_share, "labelled_share", 0, open_low=True)
        if self.warm_start:
            raise ValueError(
                f"{type(self).__name__} learns from labels in one phase, which starts anew with "
                "every fit; leave warm_start out"
            )

    def fit(
        self,
        X: Any,
        y: Any = None,
        distances: Any = None,
        times: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Learn from series, and from the labels of some.

        Args:
            X: See `TSTCC`; in memory.
            y: A label for some series and the marker for the others, ``(N,)``.
            distances: Refused: they are computed where they are needed.
            times: Refused: steps are taken as evenly spaced.
            checkpoint: See `CATCC`; there is one phase, ``1-semi-supervised``.
            callbacks: See `TSTCC`.
        """
        if distances is not None or times is not None:
            raise ValueError(f"{type(self).__name__} takes neither distances nor times")
        if left_on_disk(X) is not None:
            raise ValueError("with labels, series have to be in memory: load them")
        X = check_series(X, min_length=2)
        labels = read_labels(y, len(X), self.unlabelled)
        return self.fit_labelled(X, labels, checkpoint=checkpoint, callbacks=callbacks)

    @staticmethod
    def fit_labelled_many(
        learners: Sequence[Any],
        X: Floats,
        labels: Sequence[PartialLabels],
        *,
        pretrained: Sequence[RepresentationLearner | None],
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
        with_classifier: bool = True,
    ) -> None:
        """See `LabelLearner`; those with equally many labels take their steps as one stack.

        There is no phase without labels, and no encoder without them.
        """
        for learner, before in zip(learners, pretrained, strict=True):
            learner._check_parameters()
            if before is not None:
                raise ValueError(
                    f"{type(learner).__name__} looks at labels from its first step on and has no "
                    "self-supervised phase to leave out; leave pretrained out"
                )
        own = {id(learner): some for learner, some in zip(learners, labels, strict=True)}
        for group in stackable(learners):
            alike: dict[tuple[int, int], list[Any]] = {}
            for learner in group:
                shown = own[id(learner)]
                key = int(shown.known.sum()), len(shown.classes)
                alike.setdefault(key, []).append(learner)
            x = torch.empty(0, X.shape[-1], device=group[0]._torch_device())
            for models in alike.values():
                for part in chunks(range(len(models)), group[0]._stack_size(x)):
                    some = [models[i] for i in part]
                    shown_to = [own[id(model)] for model in some]
                    _fit_stack(some, X, shown_to, checkpoint, callbacks)

    def _begun(self, X: Floats, checkpoint: str | os.PathLike[str] | None) -> Self:
        """A copy with scaling, seed and first weights: what ``fit`` has before its first step."""
        folder = None if checkpoint is None else phase_folder(checkpoint, 0, START)
        begun = copy.copy(self)
        super(LabelledRival, begun).fit(X, checkpoint=folder)
        return begun

    def _looking_at(self, given: Given) -> Self:
        """A copy to ask for the loss of a stack that is given these series."""
        asked = copy.copy(self)
        asked._given = given
        return asked

    def _end(
        self, begun: Self, network: ClassifierNetwork, classes: NDArray[Any], told: dict[str, Any]
    ) -> None:
        """Become what ``begun`` is after training."""
        history = {"loss": told["loss"], "seconds": {"training": told["seconds"]}}
        n_iter, encoder = len(told["loss"]), network.encoder
        self._become(replace(begun._so_far(), module=encoder, n_iter=n_iter, history=history))
        self.network_, self.classes_ = network, classes

    def _n_steps(self, size: int, n_series: int) -> int:
        return 0  # without labels there is nothing to learn

    def _n_training_steps(self, x: Tensor) -> int:
        n_steps = super()._n_steps(x.numel(), len(x))
        return max(LEAST_STEPS, n_steps) if self.max_iter is None else n_steps

    def _is_soft_between_series(self) -> bool:
        return False  # before the first step, which makes weights of its own

    def _previous_training(self) -> TrainingState | None:
        raise ValueError(
            "this model was fitted with labels; training cannot go on from there: "
            "leave training=True of save out"
        )


def _fit_stack(
    models: Sequence[LabelledRival],
    X: Floats,
    labels: Sequence[PartialLabels],
    checkpoint: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
) -> None:
    """Train models that can be stacked, with equally many labels of as many classes each."""
    refuse_empty(models[0], X)
    begun = [model._begun(X, checkpoint) for model in models]
    lead = begun[0]
    codes = np.stack([own.codes for own in labels])  # (R, N)
    seen = lead._seen(X)
    if lead.mask_padding:
        seen = seen[..., : max(2, int(series_lengths(seen).max()))]
    x = torch.as_tensor(seen, dtype=lead._dtype(), device=torch.device(lead.device_))
    seeds = [phase_seed(model.seed_, 1) for model in begun]
    networks = [
        _new_network(model, X, len(own.classes), seed)
        for model, own, seed in zip(begun, labels, seeds, strict=True)
    ]
    network = networks[0] if len(models) == 1 else stacked(networks)
    folder = None if checkpoint is None else Path(checkpoint)
    n_drawn = max(1, round(lead.labelled_share * min(lead.batch_size, len(x))))
    shown = np.stack([np.flatnonzero(each >= 0) for each in codes])  # (R, N')
    known = np.take_along_axis(codes, shown, axis=1)
    rows, classes = (torch.as_tensor(each, device=x.device) for each in (shown, known))
    given = Given(x[rows], classes, n_drawn, lead._n_training_steps(x))
    asked = speaker(begun)._looking_at(given)
    phase = _phase(asked, begun, seen, x, codes, seeds)
    facts = run_phase(phase, network, folder, progress=lead.progress, callbacks=callbacks)
    for r, (model, own, told) in enumerate(zip(models, labels, facts, strict=True)):
        alone = network if len(models) == 1 else one_of(network, r).eval()
        classifier = asked._trained(alone, len(told["loss"]))
        model._end(begun[r], classifier, own.classes, told)


def _phase(
    asked: LabelledRival,
    models: Sequence[LabelledRival],
    seen: Floats32,
    x: Tensor,
    codes: Ints,
    seeds: Sequence[int],
) -> Phase:
    """What a stack learns from the series ``seen``, on their device x, with classes ``(R, N)``.

    ``asked`` says the loss for all models.
    """
    lead = models[0]
    n_steps = asked._given.n_steps
    soft = [model for model in models if isinstance(model, SoftLearner)]
    if len(x) == 1 or all(model.tau_instance is None for model in soft):
        soft = []
    task = replace(
        course_of(models, x, seeds),
        objective=asked._loss,
        weights=late_weights(soft, seen, None, n_steps, x) if soft else None,
        max_length=x.shape[-1],
    )
    run = lead.get_params(deep=False) | {"data": fingerprint(seen, codes[0])}
    for name in ("progress", "random_state", "unlabelled", "warm_start"):
        run.pop(name)
    optimizer, rate = lead._optimizer, (lead.lr, lead.lr_schedule)
    return Phase(PHASE, 1, task, n_steps, optimizer, *rate, frozen=lead._frozen, run=run)


def _new_network(model: LabelledRival, X: Floats, n_classes: int, seed: int) -> Encoder:
    classifier = new_classifier(model, X, n_classes, seed)
    with own_draws(torch_seed(Stream.INIT, seed, 1)):
        network = model._network(classifier)
    return network.to(device=torch.device(model.device_), dtype=model._dtype())
