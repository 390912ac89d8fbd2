"""Groups of series that are alike in an embedding, to colour a map by where there are no labels."""

from typing import TYPE_CHECKING

import numpy as np

from softclt.validation import Floats

if TYPE_CHECKING:
    import pandas as pd

MOST = 8  # clusters: as many colours can be told apart
LARGEST = 2000  # series that the number of clusters is chosen on


def found_clusters(R: Floats, seed: int = 0) -> "pd.Series[str]":
    """The k-means cluster of each embedding ``(N, M)``, the largest first.

    Their number, from 2 to 8, is the one with the highest silhouette on at most 2000 of the series.
    """
    import pandas as pd
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(R))[:LARGEST])
    best, best_score = None, -np.inf
    different = len(np.unique(R[rows], axis=0))
    for k in range(2, min(MOST, len(rows) - 1, different) + 1):
        model = KMeans(k, n_init=3, random_state=seed).fit(R[rows])
        score = silhouette_score(R[rows], model.labels_)
        if score > best_score:
            best, best_score = model, score
    if best is None:
        return pd.Series(["1"] * len(R), name="cluster found")
    labels = best.predict(R.astype(best.cluster_centers_.dtype))
    order = np.argsort(-np.bincount(labels, minlength=best.n_clusters), kind="stable")
    return pd.Series([str(place + 1) for place in np.argsort(order)[labels]], name="cluster found")
