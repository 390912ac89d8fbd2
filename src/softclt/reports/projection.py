"""Embeddings on a plane, and what the plane leaves out: neighbours in the full embedding."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.optional import needed
from softclt.validation import Floats, Ints, check_choice

PROJECTIONS = ("auto", "tsne", "pca", "umap")
TSNE_AT_MOST = 10_000  # series that "auto" gives to t-SNE: about a minute on one core
PCA_FIRST = 50  # dimensions that t-SNE and UMAP see


@dataclass(frozen=True)
class Plane:
    """Points ``(N, 2)`` and, in words, how they were made."""

    points: Floats
    words: str


def standardise(R: Floats) -> Floats:
    """Each dimension of ``(N, M)`` with mean 0 and variance 1, as the k-NN probe has it."""
    from sklearn.preprocessing import StandardScaler

    return np.asarray(StandardScaler().fit_transform(np.asarray(R, dtype=np.float64)))


def place(R: Floats, projection: str = "auto", seed: int = 0) -> Plane:
    """Put standardised embeddings ``(N, M)`` on a plane.

    Args:
        R: At least 3 embeddings.
        projection: ``"tsne"``, ``"pca"``, ``"umap"`` (needs umap-learn), or ``"auto"``: t-SNE up
            to 10,000 series, PCA for more.
        seed: The same seed gives the same plane.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    check_choice(projection, PROJECTIONS, "projection")
    n = len(R)
    if n < 3:
        raise ValueError(f"a map of {n} series shows nothing; at least 3 are needed")
    if projection == "auto":
        projection = "tsne" if n <= TSNE_AT_MOST else "pca"
    if not np.ptp(R, axis=0).any():
        return Plane(np.zeros((n, 2)), "one dot, since all embeddings are equal")
    with threadpool_limits(1):  # sums in one order: the same plane on any number of cores
        axes, shares = _principal_axes(R, seed)  # (N, <= 50)
        if projection == "pca":
            percent = 100 * float(shares[:2].sum())
            return Plane(axes[:, :2], f"PCA; the two axes hold {percent:.0f} % of the variance")
        if projection == "umap":
            return Plane(_umap(axes, seed), f"UMAP of the first {axes.shape[1]} principal axes")
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (n - 1) / 3)
        tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=seed)
        words = f"t-SNE (perplexity {perplexity:.0f}) of the first {axes.shape[1]} principal axes"
        return Plane(np.asarray(tsne.fit_transform(axes)), words)


def _principal_axes(R: Floats, seed: int) -> tuple[Floats, Floats]:
    """The first 50 principal axes, two at least, and the share of the variance that each holds."""
    from sklearn.decomposition import PCA

    if R.shape[1] == 1:
        R = np.hstack([R, np.zeros_like(R)])  # (N, 2)
    pca = PCA(min(PCA_FIRST, *R.shape), random_state=seed)
    axes = np.asarray(pca.fit_transform(R))
    return axes, np.asarray(pca.explained_variance_ratio_)


def _umap(axes: Floats, seed: int) -> Floats:
    with needed(
        "projection 'umap' needs umap-learn: pip install umap-learn, or take 'tsne' or 'pca'"
    ):
        import umap  # type: ignore[import-not-found]
    learner: Any = umap.UMAP(n_neighbors=min(15, len(axes) - 1), random_state=seed, n_jobs=1)
    return np.asarray(learner.fit_transform(axes), dtype=np.float64)


def nearest_neighbours(R: Floats, k: int) -> tuple[Ints, Floats]:
    """The k nearest others of each row of ``(N, M)``: their rows and distances, both ``(N, k)``.

    Example:
        >>> rows, distances = nearest_neighbours(np.array([[0.0], [1.0], [3.0]]), 1)
        >>> rows.ravel(), distances.ravel()
        (array([1, 0, 1]), array([1., 1., 2.]))
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(k, len(R) - 1)
    index = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(R)
    found = index.kneighbors(return_distance=False)  # (N, k), never the row itself
    # The search works with rounded squares; the few that it found are measured exactly.
    exact = np.stack([np.linalg.norm(R[found[:, j]] - R, axis=1) for j in range(k)], axis=1)
    order = np.argsort(exact, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(exact, order, axis=1)


def kept_neighbours(rows: Ints, points: Floats) -> float:
    """Share of the neighbours ``(N, k)`` that are also among the k nearest on the plane."""
    near, _ = nearest_neighbours(points, rows.shape[1])
    return float((rows[:, :, None] == near[:, None, :]).any(axis=-1).mean())
