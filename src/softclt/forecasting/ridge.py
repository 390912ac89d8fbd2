"""Ridge regression for many penalties and targets at once, from one decomposition.

With the centred design X = U S V', the coefficients for a penalty a are V (S^2 + a)^-1 V'X'Y. V and
S^2 come from X'X alone, and X'X and X'Y are sums over rows, so neither the design nor the targets
are ever needed at once: rows are added a block at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from softclt.validation import Floats, Floats64, check_range

#: The penalties of TS2Vec's forecasting protocol.
ALPHAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


class RidgeSums:
    """Sums over rows, all that a ridge needs to know of them.

    They are taken around the mean of the first block, so that a large offset costs no digits.

    Args:
        n_features: F, columns of the design.
        n_targets: K, columns of the targets.
    """

    def __init__(self, n_features: int, n_targets: int) -> None:
        self.n_rows = 0
        self._centre_x, self._centre_y = np.zeros(n_features), np.zeros(n_targets)
        self._x, self._y = np.zeros(n_features), np.zeros(n_targets)
        self._xx = np.zeros((n_features, n_features))
        self._xy = np.zeros((n_features, n_targets))

    def add(self, X: Floats, Y: Floats) -> None:
        """Add rows ``(R, F)`` with targets ``(R, K)``."""
        if not len(X):
            return
        x, y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
        if self.n_rows == 0:
            self._centre_x, self._centre_y = x.mean(axis=0), y.mean(axis=0)
        x, y = x - self._centre_x, y - self._centre_y
        self.n_rows += len(x)
        self._x += x.sum(axis=0)
        self._y += y.sum(axis=0)
        self._xx += x.T @ x
        self._xy += x.T @ y

    def first(self, n_targets: int) -> "RidgeSums":
        """The same rows with the first targets only, to which other rows can be added."""
        part = RidgeSums(len(self._x), n_targets)
        part.n_rows = self.n_rows
        part._centre_x, part._centre_y = self._centre_x, self._centre_y[:n_targets]
        part._x, part._y = self._x.copy(), self._y[:n_targets].copy()
        part._xx, part._xy = self._xx.copy(), self._xy[:, :n_targets].copy()
        return part

    def decompose(self) -> "RidgePath":
        """The regressions of all penalties."""
        if self.n_rows == 0:
            raise ValueError("there are no rows to fit a ridge on")
        mean_x, mean_y = self._x / self.n_rows, self._y / self.n_rows
        xx = self._xx - np.outer(self._x, mean_x)
        xy = self._xy - np.outer(self._x, mean_y)
        values, axes = np.linalg.eigh(xx)  # (F,), (F, F)
        return RidgePath(
            self._centre_x + mean_x, self._centre_y + mean_y, axes, values.clip(min=0), axes.T @ xy
        )


@dataclass(frozen=True)
class RidgePath:
    """Ridge regressions of every penalty; scikit-learn's ``Ridge(alpha)`` to rounding.

    Attributes:
        mean_x, mean_y: Of the rows: ``(F,)`` and ``(K,)``.
        axes: Principal axes of the design, its columns, ``(F, F)``.
        values: Sums of squares along them, ``(F,)``.
        readings: Targets along them, ``(F, K)``.
    """

    mean_x: Floats64
    mean_y: Floats64
    axes: Floats64
    values: Floats64
    readings: Floats64

    def coefficients(self, alpha: float) -> Floats64:
        """``(F, K)``; a constant column of the design has 0."""
        coefficients: Floats64 = self.axes @ self._shrunk(alpha)
        return coefficients

    def predict(self, X: Floats, alpha: float) -> Floats64:
        """Targets ``(R, K)`` of rows ``(R, F)``."""
        return self._along(X) @ self._shrunk(alpha) + self.mean_y

    def predictions(self, X: Floats, alphas: Sequence[float]) -> Iterable[Floats64]:
        """What `predict` gives for each penalty, in turn."""
        along = self._along(X)
        return (along @ self._shrunk(alpha) + self.mean_y for alpha in alphas)

    def _along(self, X: Floats) -> Floats64:
        along: Floats64 = (np.asarray(X, np.float64) - self.mean_x) @ self.axes
        return along

    def _shrunk(self, alpha: float) -> Floats64:
        shrunk: Floats64 = self.readings / (self.values + alpha)[:, None]
        return shrunk


class Errors:
    """Sums of squared and absolute errors by penalty and target, over rows; NaN does not count.

    Args:
        alphas: The penalties.
        n_targets: K.
    """

    def __init__(self, alphas: Sequence[float], n_targets: int) -> None:
        self.alphas = tuple(alphas)
        self._squared, self._absolute = np.zeros((2, len(self.alphas), n_targets))
        self._count = np.zeros(n_targets)

    def add(self, path: RidgePath, X: Floats, Y: Floats) -> None:
        """Add rows ``(R, F)`` with targets ``(R, K)``."""
        if not len(X):
            return
        observed = ~np.isnan(Y)
        self._count += observed.sum(axis=0)
        for i, predicted in enumerate(path.predictions(X, self.alphas)):
            error = np.where(observed, predicted - Y, 0.0)
            self._squared[i] += np.einsum("rk,rk->k", error, error)
            self._absolute[i] += np.abs(error, out=error).sum(axis=0)

    def means(self) -> tuple[Floats64, Floats64]:
        """Mean squared and mean absolute error of each penalty."""
        count = max(1.0, self._count.sum())
        return self._squared.sum(axis=1) / count, self._absolute.sum(axis=1) / count

    def best(self) -> float:
        """The penalty with the smallest RMSE + MAE; the first of equals."""
        squared, absolute = self.means()
        return self.alphas[int(np.argmin(np.sqrt(squared) + absolute))]


def check_alphas(alphas: Sequence[float]) -> tuple[float, ...]:
    """Penalties to choose from, all above 0."""
    if not len(alphas):
        raise ValueError("alphas is empty; expected penalties to choose from, e.g. (0.1, 1, 10)")
    for alpha in alphas:
        check_range(alpha, "each of alphas", 0, open_low=True)
    return tuple(float(alpha) for alpha in alphas)
