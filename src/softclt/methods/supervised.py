"""Cross-entropy on the labelled series: fine-tuning, linear probing, training from scratch."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from softclt.data.dataset import fingerprint
from softclt.data.partial_labels import PartialLabels
from softclt.encoders import Encoder
from softclt.encoders.stacked import one_of, stacked
from softclt.methods.head import ClassifierNetwork
from softclt.methods.learner import RepresentationLearner
from softclt.methods.stacks import chunks
from softclt.training import Batch, Callback, StepDraws
from softclt.training.course import Course
from softclt.training.phases import Phase, run_phase
from softclt.training.randomness import Stream, own_draws, torch_seed
from softclt.validation import Floats, Floats32, Floats64, Ints, series_lengths

_STEPS_AT_ONCE = 1 << 16  # of all series in a forward pass
SOUND_BATCH = 16  # series; the statistics of smaller batches are worse than those kept
EPOCHS = 40
LEAST_STEPS = 200  # with three labels an epoch is a step, and forty of them teach nothing


@dataclass(frozen=True)
class Lesson:
    """One training of a classifier on labels.

    Attributes:
        name, number: Of the phase.
        frozen: Whether only the head learns: the encoder then has neither dropout nor new batch
            statistics.
        from_scratch: Whether the encoder was never trained, and has no statistics worth keeping.
        n_steps: Steps to take; None is 40 passes over the labelled series, at least 200 steps.
        folder: Of the phases' checkpoints; None keeps none.
    """

    name: str
    number: int = 2
    frozen: bool = False
    from_scratch: bool = False
    n_steps: int | None = None
    folder: str | Path | None = None


def fit_classifiers_together(
    learners: Sequence[RepresentationLearner],
    X: Sequence[Floats],
    labels: Sequence[PartialLabels],
    lesson: Lesson,
    *,
    callbacks: Sequence[Callback] = (),
    found_only: bool = False,
) -> list[tuple[ClassifierNetwork, dict[str, Any]]]:
    """Classifiers that start from the encoders of fitted learners, which stay as they are.

    Heads are new. They read what `ClassifierNetwork` says, where all series of a learner, those
    without labels too, have one length or not. Batches hold ``batch_size`` labelled series, or all
    of them if there are fewer: one label a class is enough. Batches of less than 16 series leave
    the batch statistics as pre-training made them from all series; larger ones, and those of an
    encoder that starts from scratch, have statistics of their own, as usual.

    On a GPU those with equally many labels and the same network take their steps as one stack.

    Args:
        learners: Fitted; give the encoder, the scaling, the optimiser with its rate and the seed.
        X: All series ``(N, D, T)`` of each.
        labels: Of them.
        lesson: What to train.
        callbacks: See ``fit``.
        found_only: See `run_phase`.

    Returns:
        Of each the network, and ``loss`` by step and ``seconds`` of its training.
    """
    pupils = [_pupil(*own, lesson) for own in zip(learners, X, labels, strict=True)]
    groups: dict[Any, list[int]] = {}
    for i, pupil in enumerate(pupils):
        groups.setdefault(i if lesson.folder is not None else pupil.kind(), []).append(i)
    fitted: dict[int, tuple[ClassifierNetwork, dict[str, Any]]] = {}
    for group in groups.values():
        first = pupils[group[0]]
        for part in chunks(group, first.learner._stack_size(first.x)):
            own = _teach([pupils[i] for i in part], lesson, callbacks, found_only)
            fitted |= dict(zip(part, own, strict=True))
    return [fitted[i] for i in range(len(pupils))]


@dataclass(frozen=True)
class _Pupil:
    """A network that is to learn from labelled series."""

    learner: RepresentationLearner
    network: ClassifierNetwork
    x: Tensor  # (n, D, T)
    codes: Ints  # (n,)
    seed: int
    n_steps: int

    def kind(self) -> Any:
        """The same for those that can be stacked."""
        own, network = self.learner, self.network
        shapes = [(name, value.shape) for name, value in network.state_dict().items()]
        settings = own.lr, own.batch_size, own.precision, own.mask_padding, own.max_train_length
        return (
            type(network.encoder),
            network.keep_statistics,
            network.pooling,
            network.n_steps,
            str(shapes),
            str(self.x.shape),
            self.n_steps,
            settings,
        )


def _pupil(
    learner: RepresentationLearner, X: Floats, labels: PartialLabels, lesson: Lesson
) -> _Pupil:
    seed = phase_seed(learner.seed_, lesson.number)
    device, known = torch.device(learner.device_), labels.known
    seen = learner._seen(X[known])
    if learner.mask_padding:
        seen = seen[..., : int(series_lengths(seen).max())]  # what pads all series is not there
    x = torch.as_tensor(seen, dtype=learner._dtype(), device=device)
    few = min(len(x), learner.batch_size) < SOUND_BATCH
    keep = few and not lesson.from_scratch
    network = new_classifier(learner, X, len(labels.classes), seed, keep)
    n_steps = label_steps(len(x), learner.batch_size) if lesson.n_steps is None else lesson.n_steps
    return _Pupil(learner, network, x, labels.codes[known], seed, n_steps)


def _teach(
    pupils: Sequence[_Pupil], lesson: Lesson, callbacks: Sequence[Callback], found_only: bool
) -> list[tuple[ClassifierNetwork, dict[str, Any]]]:
    """Train a stack of classifiers."""
    lead, alone = pupils[0], len(pupils) == 1
    learner, network = lead.learner, lead.network
    if not alone:
        network = stacked([pupil.network for pupil in pupils])
    x = torch.cat([pupil.x for pupil in pupils])
    codes = np.concatenate([pupil.codes for pupil in pupils])
    task = Course(
        objective=cross_entropy,
        x=x,
        weights=None,
        temporal=None,
        seeds=[pupil.seed for pupil in pupils],
        batch_size=learner.batch_size,
        max_length=x.shape[-1],
        layout=lambda length, step: length,
        precision=learner.precision,
        labels=torch.as_tensor(codes, device=x.device),
        apart=not alone,
    )
    phase = Phase(
        lesson.name,
        lesson.number,
        task,
        lead.n_steps,
        learner._optimizer,
        learner.lr,
        frozen=("encoder.",) if lesson.frozen else (),
        run={
            "data": fingerprint(lead.x.cpu().numpy(), lead.codes),
            "batch_size": learner.batch_size,
            "keep_statistics": network.keep_statistics,
            "lr": learner.lr,
            "precision": learner.precision,
        },
    )
    facts = run_phase(
        phase,
        network,
        lesson.folder,
        progress=learner.progress,
        callbacks=callbacks,
        found_only=found_only,
    )
    networks = [network] if alone else [one_of(network, r).eval() for r in range(len(pupils))]
    return list(zip(networks, facts, strict=True))


def cross_entropy(module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
    """Of the labels of a batch, the mean of each model ``(R,)``."""
    network = cast(ClassifierNetwork, module)
    logits = network.logits(batch.x, draws, complete=batch.mask is None)  # (R, B, L)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    assert batch.labels is not None
    each = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")
    return each.view(batch.labels.shape).mean(dim=-1)


def new_classifier(
    learner: RepresentationLearner,
    X: Floats,
    n_classes: int,
    seed: int,
    keep_statistics: bool = False,
) -> ClassifierNetwork:
    """A copy of the learner's encoder with a new head for series like X."""
    lengths = np.unique(_lengths(learner.module_, X))
    length = int(lengths[0]) if len(lengths) == 1 else None
    encoder = copy.deepcopy(learner.module_).requires_grad_(True)
    with own_draws(torch_seed(Stream.INIT, seed)):
        network = ClassifierNetwork(
            encoder, X.shape[1], n_classes, length, learner.read_out()[0], keep_statistics
        )
    like = next(encoder.parameters())
    return network.to(device=like.device, dtype=like.dtype)


def label_steps(n_series: int, batch_size: int) -> int:
    """Steps of training on n labelled series, where nothing else is said."""
    return max(LEAST_STEPS, EPOCHS * (n_series // min(batch_size, n_series)))


def phase_seed(seed: int, number: int) -> int:
    """Of a phase, so that no phase draws the numbers of another."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


@torch.no_grad()
def class_probabilities(
    learner: RepresentationLearner, network: ClassifierNetwork, X: Any
) -> Floats64:
    """How likely each class is for each series, ``(N, L)``; none depends on its batch mates."""
    seen = learner._seen(X)
    like = next(network.parameters())
    probabilities = np.empty((len(seen), network.n_classes))
    network.eval()
    for rows, length in _of_one_length(network, seen):
        x = torch.as_tensor(seen[rows, :, :length], dtype=like.dtype, device=like.device)
        logits = network.logits(x[None])[0].double()
        probabilities[rows] = logits.softmax(dim=-1).cpu().numpy()
    return probabilities


def _of_one_length(module: Encoder, X: Floats32) -> Iterator[tuple[Ints, int]]:
    """Rows of one length, some at a time, and the length."""
    lengths = _lengths(module, X)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        size = max(1, _STEPS_AT_ONCE // length)
        for start in range(0, len(rows), size):
            yield rows[start : start + size], length


def _lengths(module: Encoder, X: Floats) -> Ints:
    """Steps of each series as the encoder counts them: with padding let in, all are real."""
    return series_lengths(X) if module.mask_padding else np.full(len(X), X.shape[-1])
