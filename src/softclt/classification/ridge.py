"""Ridge regression of classes on many features, with what it says of rows that it has not seen.

There are far more features than series, so everything is done by products of rows with rows. With
K = X X' of the centred features, K = U S U', the prediction for the rows themselves is H Y with
H = U S (S + a)^-1 U' + 1/N, and the one for row i by a ridge fitted on all the others is
``y_i - (y - H y)_i / (1 - H_ii)``. One decomposition serves all penalties a.

Leaving a row out also makes its class rarer, and so speaks against it: where features tell
nothing, every left-out row would be given to another class. So the mean of the targets stays that
of all rows.

Of very many series some are landmarks: the ridge then lives in the span of their features, and
what grows with N is only the number of rows that are summed up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softclt.validation import Floats, Floats64, Ints

#: Penalties to choose from, where the mean squared length of a row of features is 1.
ALPHAS = tuple(float(a) for a in np.logspace(-5, 2, 15))
NEVER_HELD_OUT = 1e-2  # the penalty where no class has a second series to choose one by
_LEAST = 1e-10  # of the largest variance along an axis: what is below is rounding
_FIXED = 1e-8  # of 1 - H_ii: such a row is predicted by itself, whatever the others say


@dataclass(frozen=True, eq=False)
class Readout:
    """A fitted ridge.

    Attributes:
        alpha: The penalty.
        dual: ``(L, K)``: decisions are products of a row with the landmarks, times this.
        offset: ``(K,)``, of the decisions.
        left_out: What ridges fitted on all other rows say of each row, ``(N, K)``.
        error: Mean squared error of ``left_out``, each class counting by its weight.
    """

    alpha: float
    dual: Floats64
    offset: Floats64
    left_out: Floats64
    error: float


def targets(codes: Ints, n_classes: int) -> Floats64:
    """1 for the class of a series and -1 for the others, ``(N, K)``."""
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def fit_ridge(
    K: Floats64,
    Y: Floats64,
    weights: Floats64,
    counted: Ints,
    alphas: Sequence[float] = ALPHAS,
) -> Readout:
    """A ridge whose landmarks are all its rows.

    Args:
        K: Products of rows with rows, ``(N, N)``.
        Y: ``(N, K)``.
        weights: Of the rows, with mean 1, ``(N,)``.
        counted: Rows by whose left-out errors the penalty is chosen.
        alphas: To choose from.
    """
    share = weights / weights.sum()
    middle = K @ share
    centred = K - middle - middle[:, None] + share @ middle
    root = np.sqrt(weights)[:, None]
    values, axes = np.linalg.eigh(root * centred * root.T)
    kept = values > _LEAST * max(values[-1], 0.0)
    values, axes = values[kept], axes[:, kept]
    path = _Path(axes * np.sqrt(values), values, root, Y)
    alpha, left_out, error = path.choose(alphas, counted)
    dual = root * (axes @ (path.readings / np.sqrt(values)[:, None] / (values + alpha)[:, None]))
    return _centred(alpha, dual, middle, share, path.mean, left_out, error)


def fit_on_landmarks(
    K: Floats64,
    products: Callable[[slice], Floats64],
    Y: Floats64,
    weights: Floats64,
    counted: Ints,
    alphas: Sequence[float] = ALPHAS,
    size: int = 1024,
) -> Readout:
    """A ridge of many rows in the span of a few landmarks.

    Args:
        K: Products of landmarks with landmarks, ``(L, L)``.
        products: Of some of the rows with the landmarks, ``(n, L)``.
        Y: Of all rows, ``(N, K)``.
        weights: See `fit_ridge`; of all rows.
        counted: See `fit_ridge`.
        alphas: To choose from.
        size: Rows at a time.
    """
    values, axes = np.linalg.eigh(K)
    kept = values > _LEAST * max(values[-1], 0.0)
    basis = axes[:, kept] / np.sqrt(values[kept])  # (L, R)
    n, share = len(Y), weights / weights.sum()
    Z = np.empty((n, basis.shape[1]), np.float32)
    for start in range(0, n, size):
        rows = slice(start, min(n, start + size))
        Z[rows] = products(rows) @ basis
    mean = share @ Z
    Z -= mean.astype(np.float32)
    root = np.sqrt(weights)[:, None]
    Z *= root.astype(np.float32)
    values, turned = np.linalg.eigh(np.asarray(Z.T @ Z, np.float64))
    values, turned = values.clip(min=1e-12 * max(values[-1], 1e-300)), turned
    path = _Path(Z @ turned, values, root, Y)
    alpha, left_out, error = path.choose(alphas, counted)
    dual = basis @ (turned @ (path.readings / (values + alpha)[:, None]))
    offset = path.mean - mean @ (turned @ (path.readings / (values + alpha)[:, None]))
    return Readout(alpha, dual, offset, left_out, error)


class _Path:
    """The ridges of all penalties.

    Args:
        along: Centred rows along orthogonal axes, each times the root of its weight, ``(N, R)``.
        values: Their sums of squares along these, ``(R,)``.
        root: Of the weights, ``(N, 1)``.
        Y: ``(N, K)``.
    """

    def __init__(self, along: Floats, values: Floats64, root: Floats64, Y: Floats64) -> None:
        share = root**2 / np.sum(root**2)
        self.along, self.values, self.root, self.Y = along, values, root, Y
        self.mean = np.sum(share * Y, axis=0)
        self.readings = np.asarray(along.T @ (root * (Y - self.mean)), np.float64)  # (R, K)
        self._share, self._squares = share, along**2

    def left_out(self, alpha: float) -> Floats64:
        """What each row is predicted to be by a ridge on all others, ``(N, K)``."""
        shrunk = self.readings / (self.values + alpha)[:, None]
        said = (self.along @ shrunk) / self.root + self.mean
        own = self._squares @ (1 / (self.values + alpha)) + self._share[:, 0]
        left_out = self.Y - (self.Y - said) / np.maximum(1 - own, _FIXED)[:, None]
        rarer = (self.Y - self.mean) * self._share / (1 - self._share)
        return np.asarray(left_out + rarer)

    def choose(self, alphas: Sequence[float], counted: Ints) -> tuple[float, Floats64, float]:
        """The penalty with the least left-out error, what is said with it, and the error."""
        if not len(counted):
            return NEVER_HELD_OUT, self.left_out(NEVER_HELD_OUT), np.inf
        share = self._share[counted, 0] / self._share[counted, 0].sum()
        best: tuple[float, Floats64, float] | None = None
        for alpha in alphas:
            found = self.left_out(alpha)
            squared = np.mean((found[counted] - self.Y[counted]) ** 2, axis=1)
            error = float(share @ squared)
            if best is None or error < best[2]:
                best = alpha, found, error
        assert best is not None
        return best


def _centred(
    alpha: float,
    dual: Floats64,
    middle: Floats64,
    share: Floats64,
    mean: Floats64,
    left_out: Floats64,
    error: float,
) -> Readout:
    """The same for rows that are not centred: with k products of a row with the landmarks.

    The centred row is k - k.share - middle + share.middle, of which the columns' sum with dual is
    what the offset and a dual of mean zero are.
    """
    total = dual.sum(axis=0)
    offset = mean - middle @ dual + (share @ middle) * total
    return Readout(alpha, dual - share[:, None] * total, offset, left_out, error)
