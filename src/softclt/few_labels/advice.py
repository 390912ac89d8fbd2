"""Which series to label next."""

import numpy as np

from softclt.probes.scores import Scores
from softclt.validation import Floats, Ints

MOST = 4000  # of more unlabelled series, as many are drawn
REACH = 2.0  # how far a label speaks for others, in distances to the nearest neighbours


def to_label_next(
    embeddings: Floats,
    probabilities: Scores,
    labelled: Ints,
    n: int = 10,
    neighbors: int = 10,
    seed: int = 0,
) -> Ints:
    """Rows of unlabelled series whose labels would tell most about the others, the first first.

    A label of series i speaks for series j as ``k(i, j) = exp(-(d / s)^2)``: d is their Euclidean
    distance in the standardised embedding, s twice the median of the mean distances to the nearest
    ``neighbors``. One after the other, the series is chosen that adds most to what is spoken for::

        sum over unlabelled j of  w(j) * max(0, k(i, j) - c(j))

    c(j) is the largest k between j and what is labelled or chosen already, so choices keep apart;
    the sum is large in the midst of many, so outliers are not chosen; and ``w = (1 + u) / 2``
    counts the uncertain more, with ``u = 1 - (p1 - p2)`` of the two likeliest classes. The half is
    there because a classifier of very few labels does not know well where it is uncertain.

    Args:
        embeddings: Of all series, ``(N, M)``.
        probabilities: Of each class, ``(N, L)``.
        labelled: Rows that have a label.
        n: How many; fewer where fewer are unlabelled.
        neighbors: That set the scale.
        seed: Of the draw of 4000 where more are unlabelled.
    """
    from sklearn.metrics import pairwise_distances
    from sklearn.preprocessing import StandardScaler

    R = StandardScaler().fit_transform(np.asarray(embeddings, dtype=np.float64))
    free = np.setdiff1d(np.arange(len(R)), labelled)
    if len(free) > MOST:
        free = np.sort(np.random.default_rng(seed).choice(free, MOST, replace=False))
    if not len(free):
        return free
    apart = pairwise_distances(R[free])  # (F, F)
    near = np.partition(apart, min(neighbors, len(free) - 1), axis=1)[:, : neighbors + 1]
    unit = REACH * float(np.median(near.sum(axis=1) / max(1, near.shape[1] - 1))) or 1.0
    speaks = np.exp(-((apart / unit) ** 2))
    covered = np.zeros(len(free))
    if len(labelled):
        nearest = pairwise_distances(R[free], R[labelled]).min(axis=1)
        covered = np.exp(-((nearest / unit) ** 2))
    weight = 1 - margins(probabilities)[free] / 2
    chosen: list[int] = []
    for _ in range(min(n, len(free))):
        worth = weight @ np.maximum(speaks - covered[:, None], 0)  # (F,)
        worth[chosen] = -1.0
        chosen.append(int(worth.argmax()))
        covered = np.maximum(covered, speaks[:, chosen[-1]])
    return np.asarray(free[chosen])


def margins(probabilities: Scores) -> Floats:
    """Between the likeliest class and the next, ``(N,)``: 1 is certain, 0 is a tie."""
    ordered = np.sort(probabilities, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2], dtype=np.float64)
