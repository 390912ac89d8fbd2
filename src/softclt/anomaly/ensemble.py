"""Several scorers as one, by ranks."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from softclt.anomaly.patches import mean_of_known
from softclt.anomaly.scorers import new_scorer, scorers
from softclt.validation import Floats, Floats64

MEMBERS = "patches", "sub-pca", "moving-z"


@scorers.register("ensemble", model=False)
class RankEnsemble(BaseEstimator):  # type: ignore[misc]
    """The mean rank that a step has by several scorers, among the steps of its series, in [0, 1].

    Ranks need no common unit. They see the whole series; a threshold of so many standard deviations
    is out of their reach: take ``conformal``.

    Args:
        members: Names of scorers that read no model.
        random_state: Of those that draw.
    """

    def __init__(self, *, members: Sequence[str] = MEMBERS, random_state: Any = None) -> None:
        self.members, self.random_state = members, random_state

    def fit(self, series: Sequence[Floats]) -> Self:
        """Fit all members."""
        if not len(self.members) or "ensemble" in self.members:
            raise ValueError(f"members is {self.members!r}; expected names of other scorers")
        learned = [name for name in self.members if scorers.tags(name).get("model")]
        if learned:
            raise ValueError(f"members has {learned[0]!r}, which reads a model; leave it out")
        self.members_ = [
            new_scorer(name, random_state=self.random_state).fit(series) for name in self.members
        ]
        return self

    def score(self, series: Floats) -> Floats64:
        """Scores ``(T,)`` of a series ``(D, T)``."""
        return mean_of_known(np.stack([ranks(one.score(series)) for one in self.members_]))


def ranks(scores: Floats) -> Floats64:
    """Share of the known scores below each, in [0, 1]; NaN stays.

    Example:
        >>> ranks(np.array([5.0, np.nan, 1.0, 5.0]))
        array([0.5, nan, 0. , 0.5])
    """
    known = np.sort(scores[~np.isnan(scores)])
    below = np.searchsorted(known, scores, side="left") / max(1, len(known) - 1)
    return np.where(np.isnan(scores), np.nan, below)
