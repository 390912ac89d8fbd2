"""Scores of an embedding by what is known of the training series, and the choice by scores."""

import math
from collections.abc import Sequence
from typing import Any

from softclt.selection.criteria import criteria
from softclt.selection.evidence import Evidence

#: Which criterion a strategy stands for; how these were found: docs/choosing-tau.md.
CRITERIA_OF = {"train": "loo", "unlabelled": "pseudo_labels"}

_MISSING = {
    "labels": "labels: give y, or choose with strategy='unlabelled'",
    "distances": "distances between the series in data space: give `distances`",
    "others": "embeddings under other seeds: give `others`, or ask for 2 seeds or more",
}


def embedding_score(
    strategy: str, R: Any, y: Any = None, *, distances: Any = None, others: Sequence[Any] = ()
) -> float:
    """How good an embedding looks by the training series alone; higher is better.

    Args:
        strategy: ``"train"``, ``"unlabelled"``, or the name of a criterion.
        R: Embedding of the training series, ``(N, M)``.
        y: Their labels; ``"unlabelled"`` does not look at them.
        distances: Raw distances ``(N, N)`` between them in data space.
        others: Embeddings of the same series by the same configuration under other seeds.

    Example:
        >>> embedding_score("train", [[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"])
        1.0
    """
    name = criterion_of(strategy)
    return _score(name, Evidence(R, y, distances, others))


def training_scores(
    R: Any, y: Any = None, distances: Any = None, others: Sequence[Any] = ()
) -> dict[str, float]:
    """All criteria for which there is what they need, to study choices afterwards.

    Their names are those of `metric_of`; the arguments are those of `embedding_score`.
    """
    seen = Evidence(R, y, distances, others)
    scores = {}
    for name in criteria.names():
        if set(criteria.tags(name)["needs"]) <= seen.kinds:
            scores[metric_of(name)] = criteria[name](seen)
    return scores


def metric_of(strategy: str) -> str:
    """The name that the criterion of a strategy has in `training_scores`.

    Example:
        >>> metric_of("train"), metric_of("stability")
        ('loo', 'criterion.stability')
    """
    name = criterion_of(strategy)
    return name if "labels" in criteria.tags(name)["needs"] else f"criterion.{name}"


def criterion_of(strategy: str) -> str:
    """The criterion that a strategy stands for; a criterion stands for itself."""
    name = CRITERIA_OF.get(strategy, strategy)
    if name not in criteria:
        known = ", ".join([*CRITERIA_OF, *criteria.names()])
        raise ValueError(f"unknown strategy {strategy!r}; known: {known}")
    return name


def choose(scores: Sequence[float], preferred: int | None = None) -> int:
    """Position of the best score; among equals the preferred one, else the first.

    A score that is no number is the worst.

    Example:
        >>> choose([0.8, 0.9, 0.9]), choose([0.8, 0.9, 0.9], preferred=2)
        (1, 2)
    """
    known = [-math.inf if math.isnan(score) else score for score in scores]
    best = max(known)
    equals = [i for i, score in enumerate(known) if math.isclose(score, best, rel_tol=1e-12)]
    return preferred if preferred in equals else equals[0]


def _score(name: str, seen: Evidence) -> float:
    for kind in criteria.tags(name)["needs"]:
        if kind not in seen.kinds:
            raise ValueError(f"the criterion {name!r} needs {_MISSING[kind]}")
    return criteria[name](seen)
