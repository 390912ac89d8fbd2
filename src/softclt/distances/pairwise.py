"""The distance matrix of any metric: checks and preparation; the engine does the rest."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from softclt.distances.engine import distance_matrix, on_cpu
from softclt.distances.measure import Measure, Metric
from softclt.distances.normalize import NORMALIZATIONS, normalize_distances
from softclt.distances.registration import Floats, Floats64
from softclt.parallel import worker_count
from softclt.validation import check_choice


def pairwise_distance(
    X: Any,
    Y: Any = None,
    metric: Metric = "dtw",
    window: float | None = None,
    normalize: str | None = None,
    n_jobs: int | None = -1,
    device: Any = None,
    progress: bool = False,
    unequal: str = "error",
    **params: Any,
) -> Floats64:
    """Distances between all series of X, ``(N, N)``, or of X and Y, ``(N, N_Y)``, in float64.

    A step with a missing channel is missing. Elastic metrics drop missing steps; the others use
    the steps that both series have. Missing steps at the end make a series shorter.

    Args:
        X, Y: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing.
        metric: ``"dtw"`` (root of summed squares, one path for all channels), ``"fastdtw"``,
            ``"tam"``, ``"euclidean"``, ``"cosine"``, another registered name, ``"aeon:NAME"`` where
            aeon is installed, or a function of two arrays ``(D, T_i)`` and ``(D, T_j)``. A function
            gets the series without their missing steps, is not taken for symmetric, and is called
            pair after pair in this thread.
        window: Sakoe-Chiba band as a share of the longer series, in [0, 1]: a path leaves the
            diagonal by at most ``max(floor(window * max(n, m)), |n - m|)`` steps.
        normalize: ``"minmax"``, ``"max"`` or ``"column"``, see `normalize_distances`; not with Y.
        n_jobs: Threads; -1 takes all cores. The result does not depend on it.
        device: ``None`` or ``"cpu"``; ``"cuda"`` computes DTW on a GPU, in float32.
        progress: Show a bar on standard error.
        unequal: What euclidean and cosine do with different lengths: ``"error"``, or
            ``"resample"``: stretch all linearly to the longest. Elastic metrics need neither.
        **params: Parameters of the metric, e.g. ``radius=1`` of fastdtw.

    Example:
        >>> pairwise_distance([[0, 1, 2, 3], [0, 2, 3], [5, 5]]).round(3)
        array([[0.   , 1.   , 7.348],
               [1.   , 0.   , 6.164],
               [7.348, 6.164, 0.   ]])
    """
    check_choice(normalize, NORMALIZATIONS, "normalize")
    if normalize is not None and Y is not None:
        raise ValueError(
            f"normalize={normalize!r} scales by the distances within X; with Y leave it None"
        )
    measure = Measure(metric, window, params, unequal)
    workers = worker_count(n_jobs) if isinstance(metric, str) else 1
    compute = matrix_engine(measure, device)
    x, y = measure.prepare(X, Y)
    half = Y is None and bool(measure.tags["symmetric"])
    computed = compute(measure, x, y, half=half, workers=workers, progress=progress)
    matrix: Floats64 = computed.astype(np.float64, copy=False)
    if Y is None:
        np.fill_diagonal(matrix, 0.0)
    return matrix if normalize is None else normalize_distances(matrix, normalize)


def matrix_engine(measure: Measure, device: Any) -> Callable[..., Floats]:
    """What computes matrices on a device: called as `engine.distance_matrix`."""
    if on_cpu(device):
        return distance_matrix
    from softclt.distances.gpu import gpu_for, matrix_on_device

    return partial(matrix_on_device, device=gpu_for(measure, device))
