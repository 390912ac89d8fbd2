"""Leave-one-out predictions of a ridge regression, in closed form."""

import numpy as np

from softclt.probes.classifiers import RIDGE_ALPHAS
from softclt.validation import Floats, Floats64


def leave_one_out(R: Floats, targets: Floats) -> Floats64:
    """What a ridge says of each series when it was fitted on all the others, ``(N, L)``.

    Features are standardised, the mean is not shrunk, and the penalty is the one with the smallest
    squared error of these predictions: so does the ridge probe, which does not give them away.

    Args:
        R: Embeddings ``(N, M)``, of at least two series.
        targets: ``(N, L)``.
    """
    y: Floats64 = targets - targets.mean(axis=0)
    scores, values = _components(_standardised(R))  # (N, K), (K,)
    readings = scores.T @ y  # (K, L)
    best, best_error = y, np.inf
    for alpha in RIDGE_ALPHAS:
        shrunk = 1 / (values + alpha)
        leverage = 1 / len(y) + scores**2 @ shrunk  # (N,)
        # What a series adds to its own prediction is taken out of it again.
        left = (y - scores @ (shrunk[:, None] * readings)) / (1 - leverage)[:, None]
        error = float(np.square(left).sum())
        if error < best_error:
            best, best_error = left, error
    predictions: Floats64 = targets - best
    return predictions


def _standardised(R: Floats) -> Floats64:
    """Columns with mean 0 and variance 1; one that says nothing but rounding becomes 0."""
    centred = R - R.mean(axis=0, dtype=np.float64)
    spread = centred.std(axis=0)
    empty = spread <= 1e-12 * np.abs(R).max(axis=0)
    return np.where(empty, 0.0, centred / np.where(empty, 1.0, spread))


def _components(x: Floats64) -> tuple[Floats64, Floats64]:
    """Principal components ``(N, K)`` and their sums of squares ``(K,)``, by the smaller side."""
    if len(x) > x.shape[1]:
        values, axes = np.linalg.eigh(x.T @ x)
        return x @ axes, values.clip(min=0)
    values, vectors = np.linalg.eigh(x @ x.T)
    values = values.clip(min=0)
    return vectors * np.sqrt(values), values
