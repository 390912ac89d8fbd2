"""Fine-tuning: the encoder goes on learning from the labels, from where a ridge reads it best.

The head is a linear layer on standardised features; a ridge says where it begins, so that the first
step already knows the classes and does not spoil the encoder. A fifth of the series is held out and
says after how many steps to stop; then all series are learned from, for as many steps.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn import functional as F

from softclt.classification.blocks import Outputs
from softclt.classification.calibration import Calibration, calibrate
from softclt.classification.design import Landmarks, Scaling, product
from softclt.classification.ridge import fit_ridge, targets
from softclt.data.preparation import resampled
from softclt.encoders.encoder import Encoder, EncoderWithHeads
from softclt.encoders.residual import ProjectedEncoder, ResidualEncoder
from softclt.methods import Pretrained
from softclt.training import Batch, StepDraws
from softclt.training.callbacks import Progress
from softclt.training.course import Course, Objective
from softclt.training.phases import Phase, run_phase
from softclt.validation import Floats, Floats64, Ints

LR, BATCH = 1e-4, 32
MOST_STEPS = 500
PATIENCE = 2  # looks without a gain, one every 100 steps
HELD_OUT = 5  # one of so many
_KINDS = ("max", "mean")


@dataclass(frozen=True, eq=False)
class Tuned:
    """A tuned encoder and what reads it.

    Attributes:
        encoder: With its weights after training.
        scaling: Of its outputs.
        coefficients, offset: ``(F, L)`` and ``(L,)``: decisions of scaled outputs.
        calibration: Of these decisions.
        alpha: Penalty of the ridge that it began with.
        held: Rows that were held out while the number of steps was looked for.
        decisions: On these, by the encoder that did not see them, ``(n, L)``.
        steps: Of training.
    """

    encoder: Pretrained
    scaling: Scaling
    coefficients: Floats64
    offset: Floats64
    calibration: Calibration
    alpha: float
    held: Ints
    decisions: Floats64
    steps: int


class _Network(EncoderWithHeads[ResidualEncoder]):
    """The outputs of all blocks of an encoder, standardised, and a linear layer on them."""

    mean: Tensor
    factor: Tensor

    def __init__(
        self, encoder: ResidualEncoder, scaling: Scaling, coefficients: Floats64, offset: Floats64
    ) -> None:
        super().__init__(encoder)
        like = next(encoder.parameters())
        self.register_buffer("mean", torch.as_tensor(scaling.mean).to(like))
        self.register_buffer("factor", torch.as_tensor(scaling.factor).to(like))
        self.head = nn.Linear(*coefficients.shape).to(like)
        with torch.no_grad():
            self.head.weight.copy_(torch.as_tensor(coefficients.T))
            self.head.bias.copy_(torch.as_tensor(offset))

    def logits(self, x: Tensor) -> Tensor:
        """Of complete series ``(B, D, T)``, ``(B, L)``."""
        read = torch.cat(self.encoder.pooled(x, _KINDS, every=True), dim=-1)  # (B D, F / D)
        logits: Tensor = self.head((read.view(len(x), -1) - self.mean) * self.factor)
        return logits


def tune(
    encoder: Pretrained,
    X: Floats,
    codes: Ints,
    weights: Floats64,
    before: Floats64,
    seed: int,
    progress: bool = False,
) -> Tuned | None:
    """The encoder after it learned from labels; None where that does not pay, or cannot be told.

    Args:
        encoder: Pre-trained; it stays as it is.
        X: Series ``(N, D, T)``.
        codes: Of their classes.
        weights: How much each series counts, with mean 1.
        before: Probabilities ``(N, L)`` of each series by what learned from the others: after
            tuning, those that were held out have to be likelier.
        seed: Of what is drawn.
        progress: Show a bar.
    """
    held = held_out(codes, seed)
    if not len(held):
        return None
    rest = np.setdiff1d(np.arange(len(codes)), held)
    lesson = _Lesson(encoder, X, codes, weights, seed, progress)
    first = lesson.begin(rest)
    steps, decisions = lesson.look_for_steps(first, rest, held)
    if lesson.surprise(decisions, held) >= lesson.surprise(np.log(before[held]), held):
        return None
    calibration = calibrate(decisions, codes[held], weights[held])
    whole = lesson.begin(np.arange(len(codes)))
    if steps:
        lesson.learn(whole.network, np.arange(len(codes)), lambda told: told.step >= steps, steps)
    tuned = whole.encoder.keep_weights()
    return Tuned(
        tuned, whole.scaling, *whole.head(), calibration, whole.alpha, held, decisions, steps
    )


def held_out(codes: Ints, seed: int) -> Ints:
    """Rows of a fifth of each class, at least one; none of a class with one series."""
    rng = np.random.default_rng(seed)
    found = []
    for code in np.unique(codes):
        own = rng.permutation(np.flatnonzero(codes == code))
        found.append(own[: max(1, len(own) // HELD_OUT) if len(own) > 1 else 0])
    return np.sort(np.concatenate(found))


@dataclass(frozen=True, eq=False)
class _Start:
    """A network that begins where a ridge ends."""

    encoder: Pretrained
    network: _Network
    scaling: Scaling
    alpha: float

    def head(self) -> tuple[Floats64, Floats64]:
        """Coefficients ``(F, L)`` and offset ``(L,)`` as they are."""
        weight, bias = self.network.head.weight, self.network.head.bias
        return weight.detach().cpu().double().numpy().T, bias.detach().cpu().double().numpy()

    def decisions(self, X: Floats) -> Floats64:
        """Of the network as it is."""
        coefficients, offset = self.head()
        R = self.scaling(Outputs(self.encoder, 0).transform(X))
        return np.asarray(product(R, coefficients) + offset)


@dataclass(frozen=True, eq=False)
class _Lesson:
    """Series with labels, and how they are learned from."""

    encoder: Pretrained
    X: Floats
    codes: Ints
    weights: Floats64
    seed: int
    progress: bool

    def begin(self, rows: Ints) -> _Start:
        """A network that says what a ridge on these series says."""
        encoder = copy.deepcopy(self.encoder)
        own = Landmarks.of(Outputs(encoder, self.seed), self.X[rows])
        codes, weights = self.codes[rows], self.weights[rows] / self.weights[rows].mean()
        counted = np.flatnonzero(np.bincount(codes)[codes] > 1)
        Y = targets(codes, int(self.codes.max()) + 1)
        ridge = fit_ridge(own.products(), Y, weights, counted)
        sure = calibrate(ridge.left_out[counted], codes[counted], weights[counted])
        coefficients = sure.factor * product(own.features.T, ridge.dual)
        inner = cast(ProjectedEncoder, encoder.module_).encoder.requires_grad_(True)
        network = _Network(inner, own.scaling, coefficients, sure(ridge.offset[None])[0])
        return _Start(encoder, network, own.scaling, ridge.alpha)

    def look_for_steps(self, start: _Start, rows: Ints, held: Ints) -> tuple[int, Floats64]:
        """After how many steps the held-out series are likeliest, and the decisions on them."""
        best: list[tuple[float, int, Floats64]] = []

        def look(step: int) -> bool:
            decisions = start.decisions(self.X[held])
            surprise = self.surprise(decisions, held)
            if not best or surprise < best[0][0]:
                best[:] = [(surprise, step, decisions)]
            return step - best[0][1] >= 100 * PATIENCE

        look(0)
        self.learn(start.network, rows, lambda told: look(told.step), MOST_STEPS)
        return best[0][1], best[0][2]

    def surprise(self, odds: Floats64, rows: Ints) -> float:
        """By the true classes of some series, of which these are the log-odds."""
        logs = log_softmax(odds, axis=1)[np.arange(len(rows)), self.codes[rows]]
        return -float(self.weights[rows] @ logs)

    def learn(
        self, network: _Network, rows: Ints, end: Callable[[Progress], bool], n_steps: int
    ) -> None:
        """Take steps on some series, until the end is said to have come."""
        like = next(network.parameters())
        n_read = int(np.median(self.encoder.steps_of(self.X[rows])))
        weights = torch.as_tensor(self.weights[rows]).to(like)
        course = Course(
            objective=_cross_entropy(weights),
            x=torch.as_tensor(resampled(self.X[rows], n_read)).to(like),
            weights=None,
            temporal=None,
            seeds=[self.seed],
            batch_size=BATCH,
            max_length=n_read,
            layout=lambda length, step: length,
            labels=torch.as_tensor(self.codes[rows], device=like.device),
        )
        phase = Phase("fine-tune", 1, course, n_steps, self.encoder._optimizer, LR)
        run_phase(phase, network, progress=self.progress, callbacks=[end])


def _cross_entropy(weights: Tensor) -> Objective:
    """The loss of a batch, each series counting by its weight."""

    def loss(module: Encoder, batch: Batch, draws: StepDraws) -> Tensor:
        logits = cast(_Network, module).logits(batch.x[0]).float()
        assert batch.labels is not None
        each = F.cross_entropy(logits, batch.labels[0], reduction="none")
        return (each * weights[batch.index[0]]).mean()[None]

    return loss
