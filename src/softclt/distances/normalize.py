"""Distances brought into [0, 1], as the soft assignments expect them."""

from typing import Any

import numpy as np

from softclt.distances.registration import Floats, Floats64
from softclt.validation import check_choice, check_distances

NORMALIZATIONS = (None, "minmax", "max", "column", "local")
NEIGHBOUR = 10  # whose distance is the unit of a series, in local scaling


def normalize_distances(distances: Any, how: str | None = "minmax") -> Floats64:
    """Scale a raw ``(N, N)`` matrix to [0, 1]; what its diagonal holds is ignored and becomes 0.

    Args:
        distances: Finite and non-negative.
        how: ``"minmax"``: from the smallest to the largest distance between two series, the
            paper's words; all 0 if all are equal. ``"max"``: divided by the largest.
            ``"column"``: the authors' code; each column from the smallest distance of the whole
            matrix to its own largest, so that the result is not symmetric; all 0 for two series.
            ``"local"``: divided by the distances of both series to their tenth neighbour (the
            geometric mean of the two); such a distance is 1/2, twice as far and more is 1.
            ``None``: left as it is.

    Example:
        >>> normalize_distances([[0, 1, 4], [1, 0, 2], [4, 2, 0]], "max")
        array([[0.  , 0.25, 1.  ],
               [0.25, 0.  , 0.5 ],
               [1.  , 0.5 , 0.  ]])
    """
    check_choice(how, NORMALIZATIONS, "normalize")
    shape = np.shape(distances)
    if len(shape) != 2 or shape[0] != shape[1] or 0 in shape:
        raise ValueError(
            f"distances have shape {shape}; expected (N, N), a row and column a series"
        )
    matrix = check_distances(distances, shape[0]).astype(np.float64)  # (N, N), a copy
    if how is None:
        return matrix
    if how == "local":
        return _by_neighbourhood(matrix)
    if how != "max":
        matrix -= off_diagonal(matrix).min(initial=matrix.max())
    np.fill_diagonal(matrix, 0.0)
    span = matrix.max(axis=0 if how == "column" else None, keepdims=True)
    matrix /= np.where(span > 0, span, 1.0)  # where all are equal they are 0 by now
    return matrix


def _by_neighbourhood(matrix: Floats64) -> Floats64:
    """In place."""
    n = len(matrix)
    np.fill_diagonal(matrix, np.inf)
    place = min(NEIGHBOUR, n - 1) - 1
    unit = np.array([np.partition(row, place)[place] for row in matrix]) if n > 1 else np.ones(1)
    np.fill_diagonal(matrix, 0.0)
    root = np.sqrt(np.maximum(unit, np.finfo(np.float64).tiny))
    with np.errstate(over="ignore"):  # far from copies of each other is far enough
        matrix /= 2 * root[:, None]
        matrix /= root
    return np.minimum(matrix, 1.0, out=matrix)


def off_diagonal(matrix: Floats) -> Floats:
    """The values beside the diagonal of ``(N, N)``, as ``(N - 1, N)`` in their order, not copied.

    Example:
        >>> off_diagonal(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]]))
        array([[1., 2., 3.],
               [4., 5., 6.]])
    """
    n = len(matrix)
    return np.ravel(matrix)[1:].reshape(n - 1, n + 1)[:, :-1]
