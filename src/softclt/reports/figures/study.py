"""Hard against soft on one data set: what the pictures need, made once and when first asked for."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from softclt.data import Dataset, load
from softclt.data.preparation import find_scale, scale_each_series, scaled
from softclt.distances import pairwise_distance
from softclt.methods import TS2Vec
from softclt.probes.scores import Labels
from softclt.reports.figures.training import snapshots
from softclt.validation import Floats, series_lengths

STEPS = 100  # of training, where a model leaves it open
HARD: dict[str, Any] = {"tau_instance": None, "tau_temporal": None}


class Study:
    """A soft TS2Vec and its hard control, which differs in the taus alone, over training.

    Args:
        data: A data set, its name or path; None for pictures that need none.
        model: The soft model; None is one of the defaults. Without ``max_iter`` it takes 100 steps,
            a small budget for a first look, and without ``random_state`` the seed 0.
    """

    def __init__(self, data: str | Dataset | None, model: TS2Vec | None = None) -> None:
        self.asked_for = data
        self.model = clone(model or TS2Vec())
        self.steps = STEPS if self.model.max_iter is None else self.model.max_iter
        self.seed = 0 if self.model.random_state is None else self.model.random_state
        self.model.set_params(max_iter=self.steps, random_state=self.seed)

    @cached_property
    def data(self) -> Dataset:
        """The data set."""
        if self.asked_for is None:
            raise ValueError("this picture is drawn from series: name a data set")
        return self.asked_for if isinstance(self.asked_for, Dataset) else load(self.asked_for)

    @property
    def X(self) -> Floats:
        """Training series ``(N, D, T)``, which the models learn from."""
        return self.data.X_train

    @property
    def labels(self) -> Labels | None:
        """Their classes, if known."""
        return self.data.y_train

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes."""
        return list(self.data.meta["classes"]) or None

    @property
    def facts(self) -> str:
        """What a caption has to say of the models."""
        soft = f"soft: tau {_tau(self.model.tau_instance)} between series, "
        soft += f"{_tau(self.model.tau_temporal)} over time"
        name = self.data.meta["name"] or "own data"
        return (
            f"{name}, {len(self.X)} training series of up to {self.X.shape[-1]} steps; TS2Vec, "
            f"{self.steps} steps of training, seed {self.seed}; {soft}; hard: without taus."
        )

    @cached_property
    def over_training(self) -> dict[str, dict[int, TS2Vec]]:
        """Both models at four moments: untrained, after a tenth, three tenths, and at the end."""
        at = {0, self.steps // 10, 3 * self.steps // 10, self.steps}
        hard = clone(self.model).set_params(**HARD)
        return {
            "hard": snapshots(hard, self.X, sorted(at)),
            "soft": snapshots(self.model, self.X, sorted(at)),
        }

    @property
    def trained(self) -> dict[str, TS2Vec]:
        """Both at the end of training."""
        return {name: moments[self.steps] for name, moments in self.over_training.items()}

    @property
    def with_control(self) -> dict[str, TS2Vec]:
        """Both, after the encoder that has learned nothing."""
        return {"untrained": self.over_training["hard"][0], **self.trained}

    def distances(self, rows: Any) -> Floats:
        """Raw distances between some training series, as the soft model sees and compares them."""
        model, X = self.model, self.X
        if model.scale is not None:
            X = scaled(X, find_scale(X, model.scale))
        X = scale_each_series(X[rows]) if model.distance_scale == "series" else X[rows]
        return pairwise_distance(X, metric=model.distance, **(model.distance_params or {}))

    def series(self, row: int = 0) -> Floats:
        """The first channel of a training series ``(T_i,)``: no padding, holes filled by lines."""
        length = int(series_lengths(self.X[row : row + 1])[0])
        values = np.asarray(self.X[row, 0, :length], dtype=np.float64)
        known = np.flatnonzero(~np.isnan(values))
        return np.asarray(np.interp(np.arange(length), known, values[known]))

    def steps_of(self, model: TS2Vec, row: int = 0) -> Floats:
        """Representations of the steps of a training series, ``(T_i, M)``."""
        Z: Floats = model.encode(self.X[row : row + 1], level="timestamp")[0]
        return Z[: len(self.series(row))]


def sample(most: int, n: int, labels: Labels | None) -> NDArray[np.intp]:
    """At most so many of n rows, evenly over the classes."""
    order = np.arange(n) if labels is None else np.argsort(labels, kind="stable")
    return np.asarray(order[np.linspace(0, n - 1, min(most, n)).astype(int)])


def _tau(tau: float | None) -> str:
    return "none" if tau is None else f"{tau:g}"
