"""The distance matrix of any metric: checks and preparation; the engine does the rest."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from softclt.distances.base import Floats64, Ints, PairKernel, Ragged, distances, per_pair
from softclt.distances.engine import distance_matrix
from softclt.distances.normalize import NORMALIZATIONS, normalize_distances
from softclt.distances.prepare import on_one_grid, without_missing_steps
from softclt.validation import Floats, check_choice, check_range, check_series

Metric = str | Callable[..., float]

_ROUNDING = 1e-12  # one minus a similarity of a series and itself may come out as -1e-16
_TAGS_OF_A_FUNCTION = {"elastic": True, "symmetric": False, "window": False}


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
            ``"tam"``, ``"euclidean"``, ``"cosine"``, another registered name, or a function of two
            arrays ``(D, T_i)`` and ``(D, T_j)``. A function gets the series without their missing
            steps, is not taken for symmetric, and is called pair after pair in this thread.
        window: Sakoe-Chiba band as a share of the longer series, in [0, 1]: a path leaves the
            diagonal by at most ``max(floor(window * max(n, m)), |n - m|)`` steps.
        normalize: ``"minmax"``, ``"max"`` or ``"column"``, see `normalize_distances`; not with Y.
        n_jobs: Threads; -1 takes all cores. The result does not depend on it.
        device: ``None`` or ``"cpu"``.
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
    check_choice(unequal, ("error", "resample"), "unequal")
    if normalize is not None and Y is not None:
        raise ValueError(
            f"normalize={normalize!r} scales by the distances within X; with Y leave it None"
        )
    if device is not None and str(device) != "cpu":
        raise ValueError(
            f"device is {device!r}; distances run on the CPU in this version: use None or 'cpu'"
        )
    kernel, tags = _resolve(metric, window, params)
    workers = _workers(n_jobs) if isinstance(metric, str) else 1
    collections = _check_collections(X, Y)
    if tags["elastic"]:
        ragged = [without_missing_steps(series, name) for name, series in collections.items()]
    else:
        ragged = on_one_grid(collections, unequal, _title(metric))
    x, y = ragged[0], ragged[-1]
    matrix = distance_matrix(
        kernel,
        x,
        y,
        half=Y is None and bool(tags["symmetric"]),
        cells=x.lengths.mean() * (y.lengths.mean() if tags["elastic"] else 1) * len(x.values),
        workers=workers,
        progress=f"{_title(metric)} distances" if progress else None,
    )
    if Y is None:
        np.fill_diagonal(matrix, 0.0)
    return matrix if normalize is None else normalize_distances(matrix, normalize)


def _resolve(
    metric: Metric, window: float | None, params: dict[str, Any]
) -> tuple[PairKernel, dict[str, Any]]:
    """The kernel with its parameters bound and its results checked, and its tags."""
    if isinstance(metric, str):
        kernel, tags = distances[metric], distances.tags(metric)
        _check_keywords(metric, kernel, params)
    elif callable(metric):
        kernel, tags = per_pair(metric), _TAGS_OF_A_FUNCTION
    else:
        names = ", ".join(distances.names())
        raise ValueError(f"metric is {metric!r}; expected a function or one of {names}")
    if window is not None:
        check_range(window, "window", 0.0, 1.0)
        if not tags["window"]:
            raise ValueError(
                f"{_title(metric)} has no window; {', '.join(distances.names(window=True))} have. "
                "A function of yours gets its own by functools.partial"
            )
        params = {**params, "window": window}

    def checked(x: Ragged, y: Ragged, rows: Ints, cols: Ints) -> Floats64:
        values = kernel(x, y, rows, cols, **params)
        values[(values < 0) & (values > -_ROUNDING)] = 0.0
        impossible = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if len(impossible):
            k = impossible[0]
            other = "X" if x is y else "Y"
            pair = f"X[{rows[k]}] and {other}[{cols[k]}]"
            if not tags["elastic"] and np.isnan(values[k]):
                elastic = ", ".join(distances.names(elastic=True))
                raise ValueError(
                    f"{pair} have no observed step in common, so no {_title(metric)} distance; "
                    f"use an elastic distance ({elastic}) or leave one of them out"
                )
            raise ValueError(
                f"{_title(metric)} gave {values[k]} for {pair}; "
                "a distance must be finite and not negative"
            )
        return values

    return checked, tags


def _check_keywords(name: str, kernel: PairKernel, params: dict[str, Any]) -> None:
    parameters = inspect.signature(kernel).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "window"]
    unknown = [given for given in params if given not in known]
    if unknown:
        raise ValueError(
            f"{name} has no parameter {unknown[0]!r}; known: {', '.join(known) or 'none'}"
        )


def _check_collections(X: Any, Y: Any) -> dict[str, Floats]:
    """The checked arrays by the name that error messages call them."""
    collections = {"X": check_series(X)}
    if Y is not None:
        collections["Y"] = check_series(Y, name="Y")
        d, d_y = (series.shape[1] for series in collections.values())
        if d != d_y:
            raise ValueError(
                f"X has {d} channel(s) and Y has {d_y}; both must be (N, D, T) with the same D"
            )
    return collections


def _workers(n_jobs: int | None) -> int:
    if n_jobs == 0 or not isinstance(n_jobs, (int, np.integer, type(None))):
        raise ValueError(f"n_jobs is {n_jobs!r}; expected a number of threads, or -1 for all cores")
    return int(effective_n_jobs(n_jobs))


def _title(metric: Metric) -> str:
    return metric if isinstance(metric, str) else getattr(metric, "__name__", "the metric")
