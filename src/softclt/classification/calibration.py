"""From what a ridge says to how likely each class is, by what it says of series left out."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from softclt.validation import Floats64, Ints

USUAL = 3.0  # by which decisions are multiplied where nothing tells
_DOUBT = 1.0  # series that the usual factor, and classes that are alike, count for


@dataclass(frozen=True, eq=False)
class Calibration:
    """Log-odds of the classes: decisions times a factor, and a shift for each class.

    Attributes:
        factor: Above 0.
        shifts: ``(K,)``, with mean 0.
    """

    factor: float
    shifts: Floats64

    def __call__(self, decisions: Floats64) -> Floats64:
        """Log-odds ``(N, K)`` of decisions ``(N, K)``."""
        calibrated: Floats64 = self.factor * decisions + self.shifts
        return calibrated


def calibrate(decisions: Floats64, codes: Ints, weights: Floats64) -> Calibration:
    """The factor and shifts under which the true classes of series were likeliest.

    With few series they stay near the usual ones.

    Args:
        decisions: Of series that were left out, ``(N, K)``; there may be none.
        codes: Their classes, ``(N,)``.
        weights: How much each counts, ``(N,)``.
    """
    n, n_classes = decisions.shape
    of_class = np.eye(n_classes)[codes]  # (N, K)

    def surprise(free: Floats64) -> tuple[float, Floats64]:
        factor, shifts = np.exp(free[0]), free[1:]
        logs = log_softmax(factor * decisions + shifts, axis=1)
        off = free[0] - np.log(USUAL)
        value = -np.sum(weights * logs[np.arange(n), codes])
        value += _DOUBT * (off**2 + np.sum(shifts**2)) / 2
        gap = weights[:, None] * (np.exp(logs) - of_class)
        slope = np.sum(gap * decisions) * factor + _DOUBT * off
        return float(value), np.r_[slope, gap.sum(axis=0) + _DOUBT * shifts]

    start = np.r_[np.log(USUAL), np.zeros(n_classes)]
    bounds = [(np.log(USUAL) - 5, np.log(USUAL) + 5), *[(-20.0, 20.0)] * n_classes]
    found = minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=bounds)
    shifts = found.x[1:]
    return Calibration(float(np.exp(found.x[0])), shifts - shifts.mean())
