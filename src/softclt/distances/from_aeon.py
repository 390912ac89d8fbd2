"""Any distance of aeon by name, ``aeon:msm``, as a kernel over pairs; aeon itself is optional."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from softclt.compilation import compiled
from softclt.distances.registration import Floats64, Ints, PairKernel, Ragged
from softclt.optional import needed

PREFIX = "aeon:"

# What is in neither list is treated with care: as neither elastic nor symmetric.
_WARPING = {"adtw", "ddtw", "dtw", "shape_dtw", "soft_dtw", "wddtw", "wdtw"}
_EDITING = {"edr", "erp", "lcss", "msm", "twe"}
_ELASTIC = _WARPING | _EDITING | {"dtw_gi", "sbd"}
_SYMMETRIC = _WARPING | _EDITING | {"sbd", "euclidean", "manhattan", "minkowski", "squared"}
_LEAST_STEPS = {"ddtw": 3, "wddtw": 3}  # they compare slopes

# Arguments that belong to a single pair; aeon's defaults are right for every one.
_OF_A_PAIR = frozenset(["transformation_precomputed", "transformed_x", "transformed_y"])


def names() -> list[str]:
    """``aeon:NAME`` of every distance between two series ``(D, T_i)`` and ``(D, T_j)``."""
    return [PREFIX + name for name in _functions()]


def version(metric: object) -> str | None:
    """The version of aeon that a metric comes from; None if it is not one of aeon's."""
    if not isinstance(metric, str) or not metric.startswith(PREFIX):
        return None
    import aeon

    return f"aeon {aeon.__version__}"


@cache
def find(metric: str) -> tuple[PairKernel, dict[str, bool]]:
    """Kernel and tags, see `softclt.distances.registration`, of ``aeon:NAME``.

    The values are aeon's own for float64, except that equal series are at distance 0: aeon's sbd
    rounds there, and its edr finds no step of a constant series close to itself.
    """
    name = metric.removeprefix(PREFIX)
    if name not in _functions():
        raise ValueError(f"unknown distance {metric!r}; known: {', '.join(names())}")
    function = _functions()[name]
    defaults = _parameters(function)
    loop = _over_pairs(function)

    def kernel(x: Ragged, y: Ragged, rows: Ints, cols: Ints, **params: Any) -> Floats64:
        n, m = x.lengths[rows], y.lengths[cols]
        out = np.empty(len(rows))
        if len(rows) == 0:
            return out
        _check_lengths(metric, n, m, params)
        arguments = tuple(
            _as_typed(params[key], default) if key in params else default
            for key, default in defaults.items()
        )
        in_x, in_y = (np.ascontiguousarray(z.values, dtype=np.float64) for z in (x, y))
        try:
            loop(in_x, x.starts, in_y, y.starts, rows, cols, arguments, out)
        except (NumbaError, ZeroDivisionError) as error:
            reason = "division by zero" if isinstance(error, ZeroDivisionError) else "wrong type"
            raise ValueError(
                f"{metric} cannot work with {params} on series of {min(n.min(), m.min())} to "
                f"{max(n.max(), m.max())} steps: {reason}"
            ) from error
        out[out == np.finfo(np.float64).max] = np.inf  # shift_scale of a series of zeros
        return out

    known = [key for key in defaults if key not in _OF_A_PAIR]
    kernel.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in known]
    )
    return kernel, {
        "elastic": name in _ELASTIC,
        "symmetric": name in _SYMMETRIC,
        "window": "window" in defaults,
    }


@cache
def _functions() -> dict[str, Callable[..., float]]:
    """Functions of aeon by name: compiled ones; not those of symbols, which need breakpoints."""
    with needed(f"distances named {PREFIX}NAME need aeon: pip install 'softclt[data]'"):
        from aeon.distances import get_distance_function, get_distance_function_names
    functions = {name: get_distance_function(name) for name in get_distance_function_names()}
    return {
        name: function
        for name, function in sorted(functions.items())
        if isinstance(function, Dispatcher)
        and inspect.Parameter.empty not in _parameters(function).values()
    }


def _parameters(function: Callable[..., float]) -> dict[str, Any]:
    """Names and defaults of all but the two series, in their order."""
    parameters = list(inspect.signature(function).parameters.values())[2:]
    return {parameter.name: parameter.default for parameter in parameters}


def _as_typed(value: Any, default: Any) -> Any:
    """A value as aeon's compiled functions take it: numbers in the default's type, no lists."""
    if isinstance(value, (list, tuple)):
        return np.asarray(value, dtype=np.float64)
    if isinstance(value, (int, np.integer)) and isinstance(default, float):
        return float(value)
    return value


def _check_lengths(metric: str, n: Ints, m: Ints, params: dict[str, Any]) -> None:
    least, shortest = _LEAST_STEPS.get(metric.removeprefix(PREFIX), 1), min(n.min(), m.min())
    if shortest < least:
        raise ValueError(
            f"{metric} needs series of at least {least} steps; the shortest has {shortest}"
        )
    if params.get("itakura_max_slope") is not None and (n != m).any():
        raise ValueError(
            f"itakura_max_slope is for series of one length; these have {shortest} to "
            f"{max(n.max(), m.max())} steps: use window instead"
        )


def _over_pairs(function: Callable[..., float]) -> Callable[..., None]:
    """A compiled loop that calls a compiled function pair by pair, without the GIL."""

    @njit(nogil=True)  # type: ignore[untyped-decorator] # a closure cannot be kept on disk
    def loop(
        x: Floats64,
        x_starts: Ints,
        y: Floats64,
        y_starts: Ints,
        rows: Ints,
        cols: Ints,
        arguments: tuple[Any, ...],
        out: Floats64,
    ) -> None:
        for k in range(len(rows)):
            a, b = _observed_in_both(x, x_starts, y, y_starts, rows[k], cols[k])
            out[k] = _if_trivial(a, b)
            if out[k] < 0:
                out[k] = function(a, b, *arguments)

    return loop  # type: ignore[no-any-return]


@compiled
def _observed_in_both(
    x: Floats64, x_starts: Ints, y: Floats64, y_starts: Ints, i: int, j: int
) -> tuple[Floats64, Floats64]:
    """A pair without the steps where one has a gap: NaN in all channels, on one grid only."""
    a, b = x[:, x_starts[i] : x_starts[i + 1]], y[:, y_starts[j] : y_starts[j + 1]]
    if a.shape[1] != b.shape[1]:
        return a.copy(), b.copy()
    both = np.flatnonzero(~np.isnan(a[0] + b[0]))
    return np.ascontiguousarray(a[:, both]), np.ascontiguousarray(b[:, both])


@compiled
def _if_trivial(a: Floats64, b: Floats64) -> float:
    """NaN without any step, 0 for equal series, else -1."""
    if a.shape[1] == 0:
        return np.nan
    return 0.0 if a.shape == b.shape and (a == b).all() else -1.0
