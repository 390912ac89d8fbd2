"""Numbers under the pictures, and orders of their rows: what an eye alone cannot vouch for."""

import numpy as np
from numpy.typing import NDArray

from softclt.probes.scores import Labels
from softclt.validation import Floats

Indices = NDArray[np.intp]


def euclidean_distances(R: Floats) -> Floats:
    """Between the rows of ``(N, M)``, ``(N, N)`` in float64."""
    from scipy.spatial.distance import pdist, squareform

    return np.asarray(squareform(pdist(np.asarray(R, dtype=np.float64))))


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's correlation of two distance matrices ``(N, N)`` over the pairs of different rows.

    NaN where one of them has equal distances only.

    Example:
        >>> D = euclidean_distances(np.array([[0.0], [1.0], [3.0]]))
        >>> round(rank_correlation(D, D**2), 6)
        1.0
    """
    from scipy.stats import rankdata

    pairs = np.triu_indices(len(first), 1)
    ranks = [rankdata(np.asarray(D)[pairs]) for D in (first, second)]
    ranks = [own - own.mean() for own in ranks]
    norm = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / norm if norm > 0 else float("nan")


def rank_shares(D: Floats) -> Floats:
    """Distances as the share of pairs that are closer, 0 to 1; 0 on the diagonal.

    Matrices of different scales and outliers then share one colour bar, and show what
    `rank_correlation` counts.
    """
    from scipy.stats import rankdata

    first, second = np.triu_indices(len(D), 1)
    ranks = (rankdata(np.asarray(D)[first, second]) - 1) / max(1, len(first) - 1)
    shares = np.zeros(D.shape)
    shares[first, second] = shares[second, first] = ranks
    return shares


def shared_neighbours(first: Floats, second: Floats, k: int = 10) -> float:
    """Share of the k nearest neighbours in one distance matrix that are so in the other too.

    By chance it is k / (N - 1).
    """
    near, also = _nearest(first, k), _nearest(second, k)
    return float((near[:, :, None] == also[:, None, :]).any(axis=-1).mean())


def same_label_share(D: Floats, labels: Labels, k: int = 1) -> float:
    """Share of the k nearest neighbours that have the label of the row itself."""
    labels = np.asarray(labels)
    return float(np.mean(labels[_nearest(D, k)] == labels[:, None]))


def seriation(D: Floats) -> Indices:
    """An order of the rows in which close ones stand side by side.

    It is the optimal leaf order of an average-linkage tree.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(D) < 3:
        return np.arange(len(D))
    condensed = squareform(np.asarray(D, dtype=np.float64), checks=False)
    return np.asarray(leaves_list(optimal_leaf_ordering(linkage(condensed, "average"), condensed)))


def class_order(D: Floats, labels: Labels | None) -> Indices:
    """Rows by class and, within each class, by `seriation`; without labels by that alone."""
    if labels is None:
        return seriation(D)
    own = [np.flatnonzero(np.asarray(labels) == label) for label in np.unique(labels)]
    return np.concatenate([rows[seriation(D[np.ix_(rows, rows)])] for rows in own])


def groups(D: Floats, n_groups: int) -> Labels:
    """Neighbourhoods: rows cut into at most so many groups by Ward's tree, numbered by seriation.

    Group 0 stands at one end of the seriation and the last at the other, so that close numbers
    mean close groups.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    condensed = squareform(np.asarray(D, dtype=np.float64), checks=False)
    found = fcluster(linkage(condensed, "ward"), n_groups, "maxclust")
    place = np.argsort(seriation(D))
    names = sorted(set(found), key=lambda name: float(np.median(place[found == name])))
    return np.array([names.index(name) for name in found])


def _nearest(D: Floats, k: int) -> Indices:
    """The k nearest other rows of each row, ``(N, k)``; ties go to the first."""
    D = np.array(D, dtype=np.float64)
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, : min(k, len(D) - 1)]
