"""What a classifier says of the series it learns from, each left out in turn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.classification.reliability import Reliability, reliability
from softclt.few_labels import Interval, wilson
from softclt.validation import Floats64, Ints


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Decisions on labelled series by classifiers that were fitted on all the others.

    Attributes:
        classes: ``(L,)``.
        codes: Number of the class that each series was given, ``(N,)``.
        probabilities: What the others say of it, ``(N, L)``.
        counted: Rows of classes with two series or more: the only series of a class cannot be
            found again.
    """

    classes: NDArray[Any]
    codes: Ints
    probabilities: Floats64
    counted: Ints

    @property
    def said(self) -> Ints:
        """Number of the likeliest class of each series, ``(N,)``."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def accuracy(self) -> Interval | None:
        """Share of the counted series that were found again, with Wilson's 95 % interval.

        None where no class has two series.
        """
        if not len(self.counted):
            return None
        right = (self.said == self.codes)[self.counted]
        return wilson(float(right.mean()), len(right))

    @property
    def confusion(self) -> Ints:
        """Counted series by given class (rows) and likeliest class (columns), ``(L, L)``."""
        n = len(self.classes)
        pairs = self.codes[self.counted] * n + self.said[self.counted]
        return np.bincount(pairs, minlength=n * n).reshape(n, n)

    @property
    def margins(self) -> Floats64:
        """Probability of the given class less that of the likeliest other one, ``(N,)``."""
        rows = np.arange(len(self.codes))
        others = self.probabilities.copy()
        others[rows, self.codes] = -np.inf
        return np.asarray(self.probabilities[rows, self.codes] - others.max(axis=1))

    @property
    def suspects(self) -> Ints:
        """Counted series that the others would put elsewhere, those with the least margin first.

        Either their label is a slip, or they are unlike the rest of their class.
        """
        margins = self.margins[self.counted]
        order = self.counted[np.argsort(margins, kind="stable")]
        return np.asarray(order[: int((margins < 0).sum())])

    @property
    def reliability(self) -> Reliability | None:
        """Whether these probabilities are as often right as they say; None as in `accuracy`."""
        if not len(self.counted):
            return None
        return reliability(self.probabilities[self.counted], self.codes[self.counted])
