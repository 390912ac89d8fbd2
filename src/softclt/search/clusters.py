"""Groups of series that are alike, by their embeddings: who is in, how surely, who is typical."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import silhouette_score

from softclt.validation import Flags, Floats, Floats64, Ints, check_choice, check_range

METHODS = ("kmeans", "hdbscan")

_SCORED = 2000  # series by which a number of clusters is judged
_STARTS = 10
_LEAST_CLUSTER = 5  # series, of HDBSCAN


@dataclass(frozen=True)
class Clusters:
    """What `find_clusters` has found for N series.

    Attributes:
        labels: Cluster of each series from 0 on, the largest first; -1 for none.
        confidence: From 0 to 1. Of k-means, how much nearer the own centre is than the next one, as
            a share; of HDBSCAN, the strength of membership. NaN with one cluster.
        distance: To the centre of the own cluster, NaN for none.
        medoid: Whether it is the one nearest to the centre of its cluster.
        odd: Whether it is far from the centre of its cluster: by Tukey's rule, beyond the third
            quartile of its distances by more than 1.5 times the distance between the quartiles.
        scores: Mean silhouette by number of clusters, of those that were tried.
    """

    labels: Ints
    confidence: Floats64
    distance: Floats64
    medoid: Flags
    odd: Flags
    scores: dict[int, float]

    @property
    def n_clusters(self) -> int:
        """How many there are."""
        return int(self.labels.max(initial=-1)) + 1


def find_clusters(
    R: Floats,
    k: int | None = None,
    *,
    method: str = "kmeans",
    most: int = 20,
    random_state: int = 0,
) -> Clusters:
    """Clusters of embeddings.

    Embeddings count by their direction, as in a search: their mean is taken away, then each becomes
    a unit vector.

    Args:
        R: Embeddings ``(N, M)``.
        k: Number of clusters; None tries 2 to ``most`` and takes the one with the largest mean
            silhouette, of 2,000 series at most.
        method: ``kmeans``, or ``hdbscan``, which finds the number itself and leaves series out that
            are in no dense region.
        most: Largest number of clusters that is tried.
        random_state: Seed.
    """
    check_choice(method, METHODS, "method")
    if method == "hdbscan" and k is not None:
        raise ValueError("hdbscan finds the number of clusters itself; leave k out, or use kmeans")
    if k is not None:
        check_range(k, "k", 1, len(R))
    check_range(most, "most", 2)
    U = _directions(R)
    n_different = len(np.unique(U, axis=0))
    if k is not None and n_different < k:
        raise ValueError(f"k is {k}, but the series have {n_different} different embedding(s)")
    if method == "hdbscan":
        return _by_density(U)
    scores: dict[int, float] = {}
    if k is None:
        scores = _silhouettes(U, min(most, n_different), random_state)
        k = max(scores, key=lambda one: scores[one], default=1)
    found = _k_means(U, k, random_state)
    distances = found.transform(U)  # (N, k)
    nearest = np.sort(distances, axis=1)
    confidence = np.full(len(U), np.nan)
    if k > 1:
        apart = np.where(nearest[:, 1] > 0, nearest[:, 1], 1)
        confidence = 1 - nearest[:, 0] / apart
    return _described(U, found.labels_, confidence, scores)


def _directions(R: Floats) -> Floats64:
    U = np.asarray(R, dtype=np.float64)
    U = U - U.mean(axis=0)
    length = np.linalg.norm(U, axis=1, keepdims=True)
    return np.asarray(U / np.where(length > 1e-9 * np.abs(R).max(initial=1e-300), length, np.inf))


def _k_means(U: Floats64, k: int, seed: int) -> Any:
    return KMeans(k, n_init=_STARTS, random_state=seed).fit(U)


def _silhouettes(U: Floats64, most: int, seed: int) -> dict[int, float]:
    """Mean silhouette of k-means on some of the series, for each number of clusters."""
    some = np.random.default_rng(seed).permutation(len(U))[:_SCORED]
    U = U[np.sort(some)]
    most = min(most, len(np.unique(U, axis=0)), len(U) - 1)
    tried = range(2, most + 1)
    return {k: float(silhouette_score(U, _k_means(U, k, seed).labels_)) for k in tried}


def _by_density(U: Floats64) -> Clusters:
    if len(U) < _LEAST_CLUSTER:
        raise ValueError(f"hdbscan needs at least {_LEAST_CLUSTER} series, there are {len(U)}")
    found = HDBSCAN(min_cluster_size=_LEAST_CLUSTER, copy=True).fit(U)
    return _described(U, found.labels_, found.probabilities_, {})


def _described(
    U: Floats64, labels: Ints, confidence: Floats64, scores: dict[int, float]
) -> Clusters:
    kinds, sizes = np.unique(labels[labels >= 0], return_counts=True)
    ordered = np.full(len(U), -1)
    distance = np.full(len(U), np.nan)
    medoid, odd = np.zeros(len(U), dtype=bool), np.zeros(len(U), dtype=bool)
    for new, kind in enumerate(kinds[np.argsort(-sizes, kind="stable")]):
        own = np.flatnonzero(labels == kind)
        ordered[own] = new
        far = distance[own] = np.linalg.norm(U[own] - U[own].mean(axis=0), axis=1)
        medoid[own[far.argmin()]] = True
        low, high = np.quantile(far, [0.25, 0.75])
        odd[own] = far > high + 1.5 * (high - low) + 1e-9  # equal ones differ by rounding
    return Clusters(
        ordered, np.asarray(confidence, dtype=np.float64), distance, medoid, odd, scores
    )
