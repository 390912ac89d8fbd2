"""Whether probabilities are as often right as they say."""

from dataclasses import dataclass

import numpy as np

from softclt.validation import Floats, Floats64, Ints

BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of their confidence, from the least to the most confident.

    Attributes:
        counts: Predictions of each bin, ``(B,)``.
        confidence: Their mean confidence, NaN where a bin is empty.
        accuracy: The share of them that is right, likewise.
    """

    counts: Ints
    confidence: Floats64
    accuracy: Floats64

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean gap between the two, each prediction counting."""
        there = self.counts > 0
        gaps = np.abs(self.confidence[there] - self.accuracy[there])
        return float(self.counts[there] @ gaps / self.counts.sum())


def reliability(probabilities: Floats, codes: Ints, bins: int = BINS) -> Reliability:
    """Sort predictions into bins of equal width by the probability of the likeliest class.

    Args:
        probabilities: Of each class, ``(N, L)``.
        codes: Numbers of the true classes, ``(N,)``; -1 for a class that has no column.
        bins: From 0 to 1.

    Example:
        >>> import numpy as np
        >>> said = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
        >>> round(reliability(said, np.array([0, 0, 1, 0])).ece, 3)
        0.2
    """
    probabilities, codes = np.asarray(probabilities, np.float64), np.asarray(codes)
    if probabilities.ndim != 2 or codes.shape != probabilities.shape[:1] or not len(codes):
        raise ValueError(
            f"probabilities have the shape {probabilities.shape} and codes {codes.shape}; expected "
            "(N, L) and (N,) of at least one prediction"
        )
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    own = np.minimum((sure * bins).astype(np.int64), bins - 1)
    counts = np.bincount(own, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(own, sure, bins) / counts
        accuracy = np.bincount(own, right, bins) / counts
    return Reliability(counts, confidence, accuracy)
