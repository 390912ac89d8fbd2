"""CA-TCC with soft assignments: from a few labels to pseudo-labels to a class-aware encoder."""

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from torch import Tensor

from softclt.data.dataset import fingerprint
from softclt.data.labels import UNLABELLED
from softclt.data.partial_labels import PartialLabels, read_labels
from softclt.data.sources import left_on_disk
from softclt.distances.store import matrix_of
from softclt.encoders import Encoder, TCCNetwork
from softclt.encoders.stacked import one_of, stacked
from softclt.losses.contextual import supervised_contrast
from softclt.methods.between import late_weights
from softclt.methods.fitted import Fitted
from softclt.methods.head import ClassifierNetwork
from softclt.methods.labelled import LabelLearner, adopt
from softclt.methods.learner import RepresentationLearner, methods
from softclt.methods.many import fit_many
from softclt.methods.prepared import refuse_empty
from softclt.methods.signature import with_parameters_of
from softclt.methods.stacks import chunks, course_of, speaker, stackable
from softclt.methods.supervised import (
    Lesson,
    class_probabilities,
    fit_classifiers_together,
    phase_seed,
)
from softclt.methods.tstcc import TSTCC
from softclt.training import Batch, Callback, StepDraws, Stream, TrainingState
from softclt.training.checkpoint import TrainingStopped
from softclt.training.phases import Phase, check_ended, phase_folder, run_phase
from softclt.training.randomness import own_draws, torch_seed
from softclt.validation import (
    Floats,
    Floats64,
    Ints,
    check_choice,
    check_distances,
    check_range,
    check_series,
)

PHASES = ("self-supervised", "fine-tune", "class-aware", "classifier")
PREDICTION_SHARE, CONTRAST_SHARE = 0.01, 0.1  # of CA-TCC's losses in the class-aware phase


@methods.register("catcc", paper="Eldele et al., TPAMI 2023")
class CATCC(LabelLearner, TSTCC):
    """TS-TCC that learns classes from a few labels, and then contrasts classes instead of series.

    ``fit(X, y)`` has four phases (Eldele et al., TPAMI 2023):

    1. ``self-supervised``: TS-TCC on all series.
    2. ``fine-tune``: all weights on the labelled series. It then says a pseudo-label of every
       series.
    3. ``class-aware``: from the fine-tuned encoder, with new heads, on all series. The loss is 0.01
       times the temporal one, 0.1 times the supervised contrast of pseudo-labels, and 0.1 times
       ``lambda_aux`` times the soft losses on all blocks; ``lambda_aux=0`` is the original CA-TCC.
    4. ``classifier``: a linear layer on the frozen encoder, on the labels given, and no others.

    ``fit(X)`` without y is the first phase alone, that is TS-TCC.

    Where labels are looked at, series are taken whole; the class-aware phase takes a random window
    of those longer than ``max_train_length``.

    Args:
        unlabelled: What stands in y where there is no label; None, NaN and empty texts do, too.
        confidence: Pseudo-labels less likely than this are left out: such a series then has no
            positive but itself.
        keep_labels: Take the labels given, not pseudo-labels, for labelled series in the
            class-aware phase. The original has pseudo-labels for all.
        label_iter: Steps of the phases on labels; None takes 40 passes over the labelled series, at
            least 200 steps.
        max_iter: Steps of the self-supervised and of the class-aware phase each.
        max_epochs: Passes over the data, of these two phases each.
        warm_start: Go on from the last fit instead of starting again; for fits without y.

    Attributes:
        module_: The network after the last phase that changed it.
        network_: The classifier; None before its phase, and in a model that was loaded.
        classes_: Sorted.
        pseudo_labels_: Class number of each series that has any value, -1 where none is likely.
        history_: As that of `TS2Vec` for the first phase; ``phases`` has ``loss`` and ``seconds``
            of the others.

    Example:
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=8, length=30, random_state=0)
        >>> y = np.where(np.arange(len(data.y_train)) % 4 == 0, data.y_train, -1)  # the rest hidden
        >>> model = CATCC(widths=(4, 8), hidden_dims=8, max_iter=2, label_iter=2, random_state=0)
        >>> model.fit(data.X_train, y).transform(data.X_test).shape[1]
        8
    """

    n_phases = len(PHASES)
    pseudo_labels_: Ints

    @with_parameters_of(TSTCC)
    def __init__(
        self,
        *,
        unlabelled: Any = UNLABELLED,
        confidence: float = 0.0,
        keep_labels: bool = True,
        label_iter: int | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.unlabelled = unlabelled
        self.confidence = confidence
        self.keep_labels = keep_labels
        self.label_iter = label_iter

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_range(self.confidence, "confidence", 0, 1)
        if self.label_iter is not None:
            check_range(self.label_iter, "label_iter", 0)

    def fit(
        self,
        X: Any,
        y: Any = None,
        distances: Any = None,
        times: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
        *,
        pretrained: RepresentationLearner | None = None,
        phases: str | Sequence[str] | None = None,
    ) -> Self:
        """Learn from series, and from the labels of some.

        Args:
            X: See `TSTCC`; with y, in memory.
            y: A label for some series and the marker for the others, ``(N,)``. None: the
                self-supervised phase alone.
            distances: See `TSTCC`.
            times: See `TSTCC`.
            checkpoint: Folder in which every phase has one of its own, ``1-self-supervised`` to
                ``4-classifier``. The same call goes on where it was killed, and runs no phase
                again that has ended.
            callbacks: See `TSTCC`; all phases call them, and True ends the phase.
            pretrained: A fitted TS-TCC, or CA-TCC fitted without y: in place of the first phase.
            phases: Those to run, by name; all if None. Earlier ones are then taken from the
                checkpoint, in which they must have ended, and later ones are left out.
        """
        if y is None:
            if pretrained is not None or phases is not None:
                raise ValueError("pretrained and phases are for fits with labels; give y as well")
            folder = None if checkpoint is None else phase_folder(checkpoint, 1, PHASES[0])
            return super().fit(X, None, distances, times, folder, callbacks)
        if left_on_disk(X) is not None:
            raise ValueError(
                "with labels, series have to be in memory: load them, or fit without y first"
            )
        self._check_parameters()
        X = check_series(X, min_length=2)
        labels = read_labels(y, len(X), self.unlabelled)
        folder = None if checkpoint is None else Path(checkpoint)
        call = _Call(X, labels, distances, times, folder, callbacks, pretrained)
        _fit_phases([self], [call], _asked(phases))
        return self

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
        """See `LabelLearner`; the class-aware phases of models that can be stacked are one."""
        calls = {}
        folder = None if checkpoint is None else Path(checkpoint)
        for learner, own, before in zip(learners, labels, pretrained, strict=True):
            learner._check_parameters()
            calls[id(learner)] = _Call(X, own, None, None, folder, callbacks, before)
        for group in stackable(learners):
            asked = PHASES if with_classifier else PHASES[:-1]
            _fit_phases(group, [calls[id(learner)] for learner in group], asked)

    def first_phase(self) -> TSTCC:
        """See `LabelLearner`."""
        own = {name: getattr(self, name) for name in TSTCC._get_param_names()}
        return TSTCC(**own | {"warm_start": False})

    def _self_supervised(self, call: "_Call", asked: Sequence[str]) -> None:
        first: RepresentationLearner
        if call.pretrained is not None:
            first = call.pretrained
            adopt(self, first)
        else:
            folder = None if call.folder is None else phase_folder(call.folder, 1, PHASES[0])
            if PHASES[0] not in asked:
                check_ended(call.folder, 1, PHASES[0])
            first = self.first_phase()
            given = call.distances, call.times
            fit_many([first], call.X, None, *given, folder, call.callbacks, title=PHASES[0])
            adopt(self, first, first.seed_)
        self.classes_ = call.labels.classes
        self.history_["phases"] = {}

    def _become(self, fitted: Fitted) -> None:
        super()._become(fitted)
        self.__dict__.pop("pseudo_labels_", None)  # which were those of another network

    def _guess_labels(self, tuned: ClassifierNetwork, call: "_Call") -> None:
        probabilities = class_probabilities(self, tuned, call.X)
        self.pseudo_labels_ = pseudo_labels(
            probabilities, call.labels, self.confidence, self.keep_labels
        )

    def _end_phase(
        self,
        name: str,
        facts: dict[str, Any],
        module: Encoder,
        network: ClassifierNetwork | None = None,
    ) -> None:
        """Have what a phase has made."""
        self._encode_by(module)
        self.network_ = network
        self.history_["phases"][name] = facts

    def _class_aware_loss(self, module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        terms = self._terms(module, batch, draws)
        assert batch.labels is not None
        classes = supervised_contrast(*terms.projections, batch.labels, self.temperature)
        soft = self.lambda_aux * terms.auxiliary
        return PREDICTION_SHARE * terms.temporal + CONTRAST_SHARE * (classes + soft)

    def _with_new_heads(self, tuned: ClassifierNetwork, seed: int) -> Encoder:
        """The fine-tuned encoder, with heads of the seed."""
        with own_draws(torch_seed(Stream.INIT, seed)):
            module = cast(TCCNetwork, self._build(self.n_features_in_))
        trained = cast(TCCNetwork, tuned.encoder)
        module.encoder.load_state_dict(trained.encoder.state_dict())
        return module.to(device=torch.device(self.device_), dtype=self._dtype())

    def _previous_training(self) -> TrainingState | None:
        if "phases" in getattr(self, "history_", {}):
            raise ValueError(
                "this model was fitted with labels, in phases; training cannot go on from there: "
                "leave warm_start, and training=True of save, out"
            )
        return super()._previous_training()


def _fit_phases(models: Sequence[CATCC], calls: Sequence["_Call"], asked: Sequence[str]) -> None:
    """All phases of models that can be stacked, on the same series.

    After an error the models are as they were, after Ctrl-C as the last phase that ended left them.
    """
    copies = [copy.copy(model) for model in models]
    try:
        _run_phases(copies, calls, asked)
    except TrainingStopped:
        _take_over(models, copies)
        raise
    _take_over(models, copies)


def _take_over(models: Sequence[CATCC], copies: Sequence[CATCC]) -> None:
    for model, one in zip(models, copies, strict=True):
        model.__dict__ = one.__dict__


def _run_phases(models: Sequence[CATCC], calls: Sequence["_Call"], asked: Sequence[str]) -> None:
    refuse_empty(models[0], calls[0].X)
    calls = [call.with_a_matrix() for call in calls]
    each = list(zip(models, calls, strict=True))
    last = PHASES.index(asked[-1])
    for model, call in each:
        model._self_supervised(call, asked)
    if last >= 1:
        tuned = _train_classifiers(each, asked, 1)
    if last >= 2:
        for (model, call), network in zip(each, tuned, strict=True):
            model._guess_labels(network, call)
        for part in chunks(range(len(models)), models[0]._stack_size(_on_device(*each[0]))):
            _class_aware([(*each[i], tuned[i]) for i in part], asked)
    if last >= 3:
        _train_classifiers(each, asked, 3)


def _train_classifiers(
    each: Sequence[tuple[CATCC, "_Call"]], asked: Sequence[str], number: int
) -> list[ClassifierNetwork]:
    """The phase of this number: fine-tuning of all weights, or a layer on the frozen ones."""
    name, (lead, call) = PHASES[number], each[0]
    frozen = name == "classifier"
    fitted = fit_classifiers_together(
        [model for model, _ in each],
        [own.X for _, own in each],
        [own.labels for _, own in each],
        Lesson(name, number + 1, frozen, n_steps=lead.label_iter, folder=call.folder),
        callbacks=call.callbacks,
        found_only=name not in asked,
    )
    for (model, _), (network, facts) in zip(each, fitted, strict=True):
        model._end_phase(name, facts, network.encoder, network)
    return [network for network, _ in fitted]


def _class_aware(
    stack: Sequence[tuple[CATCC, "_Call", ClassifierNetwork]], asked: Sequence[str]
) -> None:
    """The third phase of models, from their fine-tuned networks on."""
    lead, call, _ = stack[0]
    models = [model for model, _, _ in stack]
    seeds = [phase_seed(model.seed_, 3) for model in models]
    modules = [
        model._with_new_heads(tuned, seed)
        for (model, _, tuned), seed in zip(stack, seeds, strict=True)
    ]
    module = modules[0] if len(modules) == 1 else stacked(modules)
    x = _on_device(lead, call)
    seen = lead._seen(call.X)
    n_steps = lead._n_steps(seen.size, len(seen))

    soft = any(model._is_soft_between_series() for model in models) and len(seen) > 1
    codes = np.stack([model.pseudo_labels_ for model in models])
    task = replace(
        course_of(models, x, seeds),
        objective=speaker(models)._class_aware_loss,
        weights=late_weights(models, seen, call.distances, n_steps, x) if soft else None,
        labels=torch.as_tensor(codes, device=x.device),
    )
    given = None if call.distances is None else fingerprint(call.distances)
    run = lead.get_params(deep=False) | {"data": fingerprint(seen, codes[0]), "distances": given}
    for name in ("progress", "random_state", "label_iter", "unlabelled", "warm_start"):
        run.pop(name)
    phase = Phase(
        "class-aware",
        3,
        task,
        n_steps,
        lead._optimizer,
        lead.lr,
        lead.lr_schedule,
        run=run,
    )
    facts = run_phase(
        phase,
        module,
        call.folder,
        progress=lead.progress,
        callbacks=call.callbacks,
        found_only="class-aware" not in asked,
    )
    for r, (model, own) in enumerate(zip(models, facts, strict=True)):
        model._end_phase("class-aware", own, module if len(models) == 1 else one_of(module, r))


def _on_device(model: CATCC, call: "_Call") -> Tensor:
    """The series as the network sees them."""
    device = torch.device(model.device_)
    return torch.as_tensor(model._seen(call.X), dtype=model._dtype(), device=device)


def pseudo_labels(
    probabilities: Floats64,
    labels: PartialLabels,
    confidence: float = 0.0,
    keep_labels: bool = True,
) -> Ints:
    """The likeliest class of each series, -1 where it is less likely than ``confidence``.

    Args:
        probabilities: Of the classes, ``(N, L)``.
        labels: Those given; kept as they are with ``keep_labels``.
        confidence: In [0, 1]; 0 keeps all.
        keep_labels: See `CATCC`.

    Example:
        >>> labels = PartialLabels(np.array(["a", "b"]), np.array([0, -1, -1]))
        >>> pseudo_labels(np.array([[0.2, 0.8], [0.1, 0.9], [0.5, 0.5]]), labels, confidence=0.7)
        array([ 0,  1, -1])
    """
    codes = np.where(probabilities.max(axis=1) >= confidence, probabilities.argmax(axis=1), -1)
    return np.where(labels.known, labels.codes, codes) if keep_labels else codes


def _asked(phases: str | Sequence[str] | None) -> Sequence[str]:
    """Names of phases in their order."""
    if phases is None:
        return PHASES
    names = [phases] if isinstance(phases, str) else list(phases)
    if not names:
        raise ValueError(f"phases is empty; name some of {', '.join(PHASES)}, or leave it out")
    for name in names:
        check_choice(name, PHASES, "phases")
    return sorted(names, key=PHASES.index)


@dataclass(frozen=True)
class _Call:
    """What is asked for."""

    X: Floats
    labels: PartialLabels
    distances: Any
    times: Any
    folder: Path | None
    callbacks: Sequence[Callback]
    pretrained: RepresentationLearner | None

    def with_a_matrix(self) -> "_Call":
        """The same with distances, if they are given, as a checked matrix."""
        if self.distances is None:
            return self
        return replace(self, distances=check_distances(matrix_of(self.distances), len(self.X)))
