"""Criteria: how good an embedding of the training series looks; higher is better."""

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import squareform

from softclt.probes.leave_one_out import leave_one_out
from softclt.registry import Registry
from softclt.selection.evidence import Evidence, centred, nearest, squared_distances
from softclt.validation import Flags, Floats, Floats64

#: Functions ``Evidence -> float``. Tag ``needs``: what they ask for besides the embedding, of
#: ``labels``, ``distances`` (in data space) and ``others`` (embeddings under other seeds).
criteria: Registry[Callable[[Evidence], float]] = Registry("criterion")

MOST_CLUSTERS = 10
_GROUPINGS = (2, 4, 8)  # clusters that pseudo labels come from

# ------------------------------------------------------------------------------------- with labels


@criteria.register("loo", needs=("labels",))
def leave_one_out_accuracy(seen: Evidence) -> float:
    """Leave-one-out accuracy of a ridge classifier."""
    said = leave_one_out(seen.R, _one_hot(seen))
    return float(np.mean(said.argmax(axis=1) == seen.y))


@criteria.register("loo_r2", needs=("labels",))
def leave_one_out_r2(seen: Evidence) -> float:
    """How much of the labels' variance the same ridge explains: the accuracy without its steps."""
    return _explained(seen.R, _one_hot(seen))


@criteria.register("loo_knn", needs=("labels",))
def nearest_neighbour_accuracy(seen: Evidence) -> float:
    """Share of series whose nearest other has their label; of equally near ones the first."""
    assert seen.y is not None
    others = seen.squares.copy()
    np.fill_diagonal(others, np.inf)
    y = seen.y[seen.rows]
    return float(np.mean(y[others.argmin(axis=1)] == y))


# ------------------------------------------------------------------------ against the data's space


@criteria.register("neighbours", needs=("distances",))
def neighbour_agreement(seen: Evidence) -> float:
    """Overlap of a series' neighbours in the embedding with those in data space."""
    return _overlap(seen.near, seen.near_in_data)


@criteria.register("distance_agreement", needs=("distances",))
def distance_agreement(seen: Evidence) -> float:
    """Correlation of distances in the embedding with those in data space, over all pairs."""
    pairs = np.triu_indices(len(seen.rows), 1)
    return _correlation(np.sqrt(seen.squares[pairs]), seen.apart[pairs])


@criteria.register("alignment", needs=("distances",))
def alignment(seen: Evidence) -> float:
    """How near neighbours in data space are in the embedding: minus their share of all spread.

    Alignment (Wang and Isola, 2020) with neighbours for the views that are not at hand here.
    """
    if seen.collapsed:
        return -1.0
    near = seen.near_in_data
    mates = (seen.squares * near).sum(axis=1) / near.sum(axis=1)  # (N,)
    return -float(mates.mean() / _mean_of_pairs(seen.squares))


@criteria.register("pseudo_labels", needs=("distances",))
def pseudo_labels(seen: Evidence) -> float:
    """How well a ridge reads clusters of the data's space (2, 4 and 8 by Ward) off the embedding.

    The share of their variance that leave-one-out predictions explain.
    """
    tree = ward(squareform(seen.apart, checks=False))
    clusters = [
        fcluster(tree, k, "maxclust")[:, None] == np.arange(1, k + 1)
        for k in _GROUPINGS
        if k < len(seen.rows) or k == _GROUPINGS[0]
    ]
    return _explained(seen.R[seen.rows], np.concatenate(clusters, axis=1).astype(np.float64))


# --------------------------------------------------------------------------- of the embedding alone


@criteria.register("uniformity", needs=())
def uniformity(seen: Evidence) -> float:
    """How evenly directions fill the sphere: -log mean exp(-2 d^2) (Wang and Isola, 2020)."""
    lengths = np.linalg.norm(seen.points, axis=1, keepdims=True)
    directions = seen.points / np.where(lengths > 0, lengths, 1.0)
    return -float(np.log(_mean_of_pairs(np.exp(-2 * squared_distances(directions)))))


@criteria.register("effective_rank", needs=())
def effective_rank(seen: Evidence) -> float:
    """Dimensions in use: exp of the entropy of the singular values (RankMe)."""
    if seen.collapsed:
        return 0.0
    shares = np.sqrt(_variances(seen.points))
    shares = shares[shares > 0] / shares.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


@criteria.register("participation", needs=())
def participation_ratio(seen: Evidence) -> float:
    """Dimensions in use by variance: (sum of the variances)^2 / sum of their squares."""
    if seen.collapsed:
        return 0.0
    variances = _variances(seen.points)
    return float(variances.sum() ** 2 / np.square(variances).sum())


@criteria.register("intrinsic_dimension", needs=())
def intrinsic_dimension(seen: Evidence) -> float:
    """Dimension of the surface that the series lie on, by their two nearest others (TwoNN).

    Series with a twin say nothing of it and are left out.
    """
    if len(seen.rows) < 3:
        return 0.0
    others = seen.squares.copy()
    np.fill_diagonal(others, np.inf)
    first, second = np.partition(others, 1, axis=1)[:, :2].T  # (N,) each
    logs = np.log(second[first > 0] / first[first > 0]) / 2
    return float(len(logs) / logs.sum()) if logs.sum() > 0 else 0.0


@criteria.register("clusters", needs=())
def silhouette(seen: Evidence) -> float:
    """Mean silhouette of Ward's clusters, for the best number of them from 2 to 10."""
    n = len(seen.rows)
    if seen.collapsed or n < 3:
        return 0.0
    apart = np.sqrt(seen.squares)
    tree = ward(squareform(apart, checks=False))
    return max(
        _silhouette(apart, fcluster(tree, k, "maxclust") - 1)
        for k in range(2, min(MOST_CLUSTERS, n - 1) + 1)
    )


@criteria.register("no_hubs", needs=())
def absence_of_hubs(seen: Evidence) -> float:
    """How evenly series are neighbours of others, from 1/N (one is of all) to 1."""
    if seen.collapsed:
        return 0.0
    counts = seen.near.sum(axis=0)  # (N,): how often each is a neighbour
    return float(counts.sum() ** 2 / (len(counts) * np.square(counts).sum()))


# -------------------------------------------------------------------------------------- over seeds


@criteria.register("stability", needs=("others",))
def stability(seen: Evidence) -> float:
    """Likeness of the embeddings of other seeds: mean linear CKA (Kornblith et al., 2019)."""
    return float(np.mean([_cka(seen.points, centred(o[seen.rows])) for o in seen.others]))


@criteria.register("stability_neighbours", needs=("others",))
def neighbour_stability(seen: Evidence) -> float:
    """Mean overlap of a series' neighbours with those under other seeds."""
    masks = [nearest(squared_distances(centred(o[seen.rows]))) for o in seen.others]
    return float(np.mean([_overlap(seen.near, mask) for mask in masks]))


def _one_hot(seen: Evidence) -> Floats64:
    assert seen.y is not None
    return np.asarray(seen.y[:, None] == np.arange(seen.y.max() + 1), np.float64)  # (N, L)


def _explained(R: Floats, targets: Floats64) -> float:
    """Share of the targets' variance that leave-one-out predictions explain; 0 if there is none."""
    total = np.square(targets - targets.mean(axis=0)).sum()
    missed = np.square(targets - leave_one_out(R, targets)).sum()
    return float(1 - missed / total) if total > 0 else 0.0


def _overlap(one: Flags, other: Flags) -> float:
    """Mean over rows of what two sets of neighbours share, of all in either."""
    return float(np.mean((one & other).sum(axis=1) / (one | other).sum(axis=1)))


def _correlation(x: Floats64, y: Floats64) -> float:
    """Pearson's; 0 where one of both does not vary."""
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt(np.square(x).sum() * np.square(y).sum())
    return float((x * y).sum() / norm) if norm > 0 else 0.0


def _mean_of_pairs(matrix: Floats64) -> float:
    n = len(matrix)
    return float((matrix.sum() - np.trace(matrix)) / (n * (n - 1)))


def _variances(points: Floats64) -> Floats64:
    """Squared singular values, by the smaller side."""
    n, m = points.shape
    product = points.T @ points if m < n else points @ points.T
    return np.asarray(np.linalg.eigvalsh(product).clip(min=0))


def _silhouette(apart: Floats64, clusters: Floats) -> float:
    """Mean over series of (b - a) / max(a, b); 0 for a series alone in its cluster."""
    member = (clusters[:, None] == np.arange(clusters.max() + 1)).astype(np.float64)  # (N, K)
    sizes = member.sum(axis=0)
    sums = apart @ member  # (N, K): of the distances to each cluster
    rows = np.arange(len(apart))
    own = sizes[clusters]
    inside = sums[rows, clusters] / np.maximum(own - 1, 1)
    means = sums / sizes
    means[rows, clusters] = np.inf
    outside = means.min(axis=1)
    larger = np.maximum(inside, outside)
    shapes = (outside - inside) / np.where(larger > 0, larger, 1.0)
    return float(np.where(own > 1, shapes, 0.0).mean())


def _cka(x: Floats64, y: Floats64) -> float:
    norm = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(np.square(x.T @ y).sum() / norm) if norm > 0 else 0.0
