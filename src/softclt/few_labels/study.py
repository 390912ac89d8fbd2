"""How good the labels at hand are: cross-validation, a learning curve, and what more would give."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.probes.scores import Labels
from softclt.validation import Floats, Ints

Fit = Callable[[Floats, Labels], Any]
"""``(R, y) -> fitted classifier``, such as those of `softclt.probes.classifiers`."""

FOLDS, FEWER_FOLDS = 10, 5  # the fewer with many labels
MOST_LABELS = 500  # more are not needed to see how a curve goes on
MOST_SIZES = 6
FEW = 50  # labels up to which ten divisions are drawn, three above
TOO_WIDE = 0.4  # an interval that leaves more of the range from 0 to 1 open tells nothing
GAIN_TOO_WIDE = 0.2
RESAMPLES = 1000
BEND = 0.5  # how far the exponent of a learning curve may be from that of the sizes seen
WORSE = 0.1  # and how far below zero: more labels hardly ever do harm


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


def wilson(share: float, n: float) -> Interval:
    """A share of n independent tests with the ends of Wilson's interval."""
    z = 1.96
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True, eq=False)
class LabelStudy:
    """What classifiers made of labels that they had not seen.

    Attributes:
        sizes: Labels learned from, ``(S,)``, growing; the last is all but the held-out fold.
        right: Whether a held-out series was labelled right, ``(S, repeats, n)``.
        rows: Rows of the n series that were held out.
        folds: Parts of a division.
        n_labels: All labels there are.
        untested: Classes with one label, which stays among those learned from.
    """

    sizes: Ints
    right: Floats
    rows: Ints
    folds: int
    n_labels: int
    untested: Ints

    @property
    def accuracies(self) -> Floats:
        """Of each size and division, ``(S, repeats)``."""
        return np.asarray(self.right.mean(axis=-1))

    @property
    def spread(self) -> float:
        """Standard deviation of the cross-validated accuracy from division to division."""
        own = self.accuracies[-1]
        return float(own.std(ddof=1)) if len(own) > 1 else math.nan

    @property
    def accuracy(self) -> Interval:
        """Cross-validated accuracy, with Wilson's interval.

        Divisions test the same series again and share most of what they learn from. So the
        interval counts each series once, and its variance is that of independent tests times
        ``1 + k / (k - 1)`` for k folds, as Nadeau and Bengio have it.
        """
        return wilson(float(self.accuracies[-1].mean()), self._independent)

    @property
    def _independent(self) -> float:
        """Independent tests that the held-out series are worth."""
        return len(self.rows) / (1 + self.folds / (self.folds - 1))

    @property
    def tells(self) -> bool:
        """Whether there are labels enough to say how good the predictions are."""
        return self.accuracy.width <= TOO_WIDE

    def gain(self, extra: int = 10, seed: int = 0) -> Interval | None:
        """What ``extra`` more labels of series drawn at random would add to the accuracy.

        The error is taken as ``a m^-b`` of m labels, fitted through all sizes on logarithmic axes
        (errors with half a series added, so that none is zero), with ``b >= 0`` in the estimate.
        The interval comes from drawing held-out series again with replacement, as many as they
        are worth independent ones, and from exponents b that are off by a normal number with
        standard deviation 0.5: what comes need not be as what was. It may go a little below zero.

        Returns:
            None with fewer than three sizes, which show no curve.
        """
        if len(self.sizes) < 3:
            return None
        wrong = 1 - self.right.mean(axis=1)  # (S, n)
        n = wrong.shape[1]
        rng = np.random.default_rng(seed)
        draws = rng.integers(n, size=(RESAMPLES, max(2, round(self._independent))))
        level, slope = self._power_law(wrong[:, draws].mean(axis=-1).T, n)  # (resamples,) each
        bent = np.minimum(slope + BEND * rng.normal(size=RESAMPLES), WORSE)
        gains = self._gain_of(level, bent, extra)
        low, high = np.quantile(gains, [0.025, 0.975])
        level, slope = self._power_law(wrong.mean(axis=1), n)
        value = float(self._gain_of(level, np.minimum(slope, 0.0), extra))
        return Interval(value, min(float(low), value), max(float(high), value))

    def _power_law(self, errors: Floats, n: int) -> tuple[Floats, Floats]:
        """Logarithm of the error with all labels, and slope, for mean errors ``(..., S)``."""
        logs = np.log((errors * n + 0.5) / (n + 1))
        x = np.log(self.sizes)
        slope = logs @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        level = logs.mean(axis=-1) + np.minimum(slope, 0) * (math.log(self.n_labels) - x.mean())
        return np.asarray(level), np.asarray(slope)

    def _gain_of(self, level: Floats, slope: Floats, extra: int) -> Floats:
        ratio = math.log((self.n_labels + extra) / self.n_labels)
        return np.asarray(np.exp(level) * -np.expm1(slope * ratio))


def study_labels(
    R: Floats,
    y: Labels,
    fit: Fit,
    *,
    repeats: int | None = None,
    seed: int = 0,
    on_fold: Callable[[int], None] = lambda n: None,
) -> LabelStudy | None:
    """Cross-validate a classifier of embeddings, with all labels of the other folds and with fewer.

    Repeated stratified cross-validation: labels are divided into ten parts (five with more than 50
    labels), or as many as the largest class has labels, so that what is left to learn from has the
    shares of the classes; each part is predicted from the others. Smaller sets of labels are drawn
    from the others with these shares, at least one of each class, the smaller inside the larger.
    The embeddings stay as they are: they must not come from these labels.

    Args:
        R: Embeddings of the labelled series, ``(n, M)``.
        y: Their labels, ``(n,)``; of more than 500, 500 are drawn.
        fit: Makes a classifier.
        repeats: Divisions; 10 up to 50 labels, 3 above.
        seed: Of divisions and draws.
        on_fold: Told of each finished fold, ``repeats * folds`` in all.

    Returns:
        None where no class has two labels: nothing can be held out.
    """
    rng = np.random.default_rng(seed)
    kept = np.sort(_proportional_order(y, rng)[:MOST_LABELS])
    names, codes, counts = np.unique(y[kept], return_inverse=True, return_counts=True)
    alone = counts < 2
    tested = np.flatnonzero(~alone[codes])
    if not len(tested):
        return None
    folds = n_folds(y)
    repeats = n_repeats(y) if repeats is None else repeats
    n_train = len(kept) - -(-len(tested) // folds)
    sizes = np.unique(
        np.geomspace(min(len(names), n_train), n_train, MOST_SIZES).round().astype(int)
    )
    right = np.zeros((len(sizes), repeats, len(tested)))
    for repeat in range(repeats):
        part = _folds_of(codes[tested], folds, rng)
        for fold in range(folds):
            held = part == fold
            train = np.setdiff1d(kept, kept[tested[held]])
            train = train[_proportional_order(y[train], rng)]
            for s, size in enumerate(sizes):
                own = train if s == len(sizes) - 1 else train[:size]
                out = kept[tested[held]]
                right[s, repeat, held] = fit(R[own], y[own]).predict(R[out]) == y[out]
            on_fold(1)
    return LabelStudy(sizes, right, kept[tested], folds, len(y), names[alone].astype(np.int64))


def n_folds(y: Labels) -> int:
    """Parts that labels are divided into, so that the largest class has one in each."""
    largest = int(np.unique(y, return_counts=True)[1].max())
    return min(FOLDS if len(y) <= FEW else FEWER_FOLDS, largest)


def n_repeats(y: Labels) -> int:
    """Divisions of labels, where none are asked for."""
    return 10 if len(y) <= FEW else 3


def _folds_of(y: Labels, folds: int, rng: np.random.Generator) -> Ints:
    """Fold of each label: those of a class go round, and the next class goes on from there."""
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    part = np.empty(len(y), dtype=np.int64)
    part[order] = (np.arange(len(y)) + rng.integers(folds)) % folds
    return part


def _proportional_order(y: Labels, rng: np.random.Generator) -> Ints:
    """An order whose beginnings have the shares of the classes, one of each first."""
    shuffled = rng.permutation(len(y))
    _, codes, counts = np.unique(y[shuffled], return_inverse=True, return_counts=True)
    rank = np.empty(len(y))
    for code in range(len(counts)):
        rank[codes == code] = np.arange(counts[code]) / counts[code]
    return shuffled[np.argsort(rank, kind="stable")]
