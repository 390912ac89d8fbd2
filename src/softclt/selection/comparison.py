"""Training of configurations side by side, and what the training series say of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from softclt.data.preparation import find_scale, scale_each_series, scaled
from softclt.distances import BatchDistances
from softclt.identity import settings_key
from softclt.methods import RepresentationLearner, fit_many
from softclt.probes.classifiers import probes
from softclt.selection.criteria import criteria
from softclt.selection.evidence import check_labels, sample_rows
from softclt.selection.scores import criterion_of, embedding_score
from softclt.silence import without_warnings
from softclt.validation import Floats, Floats32

Parameters = dict[str, Any]

_FOLDS = 5


@dataclass(frozen=True)
class Member:
    """A configuration: what it changes, and its score under each seed."""

    params: Parameters
    scores: tuple[float, ...]
    model: RepresentationLearner = field(repr=False)

    @property
    def score(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Comparison:
    """All that the scores of configurations depend on, besides the configurations."""

    model: RepresentationLearner
    X: Floats
    y: Any
    strategy: str
    probe: str
    seeds: Sequence[int]
    distances: Any
    progress: bool

    @property
    def criterion(self) -> str | None:
        """What scores; None where nothing is compared."""
        if self.strategy == "default":
            return None
        if self.strategy == "train" and self.probe != "ridge":
            return f"cross-validated {self.probe}"
        return criterion_of(self.strategy)

    def check(self) -> None:
        """Refuse what could not be scored, before anything is trained."""
        if self.strategy == "default":
            return
        if len(self.X) < 2:
            raise ValueError("X holds one series only; nothing can be compared on it")
        needs = criteria.tags(criterion_of(self.strategy))["needs"]
        if "labels" in needs:
            if self.y is None:
                raise ValueError(
                    f"strategy={self.strategy!r} scores by labels, and y is None; give the labels "
                    "of X, or use strategy='unlabelled'"
                )
            check_labels(self.y, len(self.X))
        if "others" in needs and len(self.seeds) < 2:
            raise ValueError(
                f"strategy={self.strategy!r} compares embeddings of several seeds; use seeds=2 "
                "or more"
            )
        if self.strategy == "train" and self.probe != "ridge":
            probes[self.probe]  # an unknown name is refused here

    def members(self, grid: Sequence[Mapping[str, Any]]) -> list[Member]:
        """Train every configuration under every seed in one go, and score them."""
        models = [
            clone(self.model).set_params(
                **{"progress": self.progress, "random_state": seed, **params}
            )
            for params in grid
            for seed in self.seeds
        ]
        fit_many(models, self.X, distances=self.distances)
        n = len(self.seeds)
        stacks = [models[start : start + n] for start in range(0, len(models), n)]
        distances = self._distances(models[0])
        return [
            Member(dict(params), self._scores(stack, distances), stack[0])
            for params, stack in zip(grid, stacks, strict=True)
        ]

    def _scores(self, models: list[RepresentationLearner], distances: Any) -> tuple[float, ...]:
        if self.strategy == "default":
            return (float("nan"),) * len(models)
        embeddings = [model.transform(self.X) for model in models]  # (N, M) each
        if self.strategy == "train" and self.probe != "ridge":
            return tuple(cross_validated(self.probe, R, self.y) for R in embeddings)
        return tuple(
            embedding_score(
                self.strategy,
                R,
                self.y,
                distances=distances,
                others=embeddings[:i] + embeddings[i + 1 :],
            )
            for i, R in enumerate(embeddings)
        )

    def _distances(self, fitted: RepresentationLearner) -> Any:
        """Between the training series, if the criterion asks for them."""
        if self.strategy == "default" or self.distances is not None:
            return self.distances
        if "distances" not in criteria.tags(criterion_of(self.strategy))["needs"]:
            return None
        return data_distances(self.model, self.X, fitted.device_, self.progress)


def data_distances_key(model: RepresentationLearner) -> str:
    """Equal for models whose `data_distances` between the same series are the same."""
    settings = model.distance, model.distance_params, model.scale, model.distance_scale
    return settings_key(settings)


def data_distances(
    model: RepresentationLearner, X: Floats, device: str | None = None, progress: bool = False
) -> Floats32:
    """Distances between the series that criteria look at, as a model measures them, up to scale.

    They are of the rows that `sample_rows` names. What takes long and was computed in training
    comes from the cache.
    """
    some = X[sample_rows(len(X))]
    seen = scaled(some, find_scale(X, model.scale))
    between = BatchDistances(
        scale_each_series(seen) if model.distance_scale == "series" else seen,
        metric=model.distance,
        mode="dense",
        normalize="max",  # criteria do not depend on the scale
        device=device,
        progress=progress,
        **(model.distance_params or {}),
    )
    assert between.matrix is not None
    return between.matrix.cpu().numpy()


def cross_validated(probe: str, R: Floats, y: Any) -> float:
    """Accuracy of a registered probe by five folds with equal shares of the classes.

    With fewer than five series of the rarest class there are as many folds, but at least two.
    """
    y = np.asarray(y)
    rarest = int(np.unique(y, return_counts=True)[1].min())
    folds = StratifiedKFold(min(max(rarest, 2), _FOLDS), shuffle=True, random_state=0)
    with without_warnings(UserWarning, "The least populated class"):
        parts = list(folds.split(R, y))
    right = 0
    for train, test in parts:
        right += int((probes[probe](R[train], y[train]).predict(R[test]) == y[test]).sum())
    return right / len(y)
