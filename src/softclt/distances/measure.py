"""A metric with its parameters: the same for matrices, batches and stores."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softclt.distances import from_aeon
from softclt.distances.prepare import on_one_grid, without_missing_steps
from softclt.distances.registration import Floats64, Ints, PairKernel, Ragged, distances, per_pair
from softclt.validation import Floats, check_choice, check_known, check_range, check_series

Metric = str | Callable[..., float]

# Grows when a kernel's results change, so that stored ones are not mixed with new.
KERNEL_VERSION = 1

_SLOWER = 50  # times what a cell of ours takes: the cells of other packages and of functions
_ROUNDING = 1e-12  # one minus a similarity of a series and itself may come out as -1e-16
_TAGS_OF_A_FUNCTION = {"elastic": True, "symmetric": False, "window": False}


@dataclass(frozen=True)
class Measure:
    """Distances of pairs of series, with all that can be wrong checked when it is made.

    Attributes:
        metric: A registered name, ``aeon:NAME``, or a function of two arrays ``(D, T_i)`` and
            ``(D, T_j)``.
        window: Sakoe-Chiba band as a share of the longer series.
        params: Parameters of the metric.
        unequal: What metrics that compare step with step do with different lengths.
    """

    metric: Metric
    window: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    unequal: str = "error"

    def __post_init__(self) -> None:
        check_choice(self.unequal, ("error", "resample"), "unequal")
        if isinstance(self.metric, str):
            _check_keywords(self.metric, self.kernel, self.params)
        elif not callable(self.metric):
            names = ", ".join(distances.names())
            raise ValueError(f"metric is {self.metric!r}; expected a function or one of {names}")
        if self.window is not None:
            check_range(self.window, "window", 0.0, 1.0)
            if not self.tags["window"]:
                names = ", ".join(distances.names(window=True))
                raise ValueError(
                    f"{self.title} has no window; {names} have. "
                    "A function of yours gets its own by functools.partial"
                )

    @property
    def kernel(self) -> PairKernel:
        """Called as ``kernel(x, y, rows, cols, **params)``."""
        return _find(self.metric)[0]

    @property
    def tags(self) -> Mapping[str, Any]:
        """elastic, symmetric, window: see `softclt.distances.registration`."""
        return _find(self.metric)[1]

    @property
    def title(self) -> str:
        """What messages call it."""
        if isinstance(self.metric, str):
            return self.metric
        return getattr(self.metric, "__name__", "the metric")

    def prepare(self, X: Any, Y: Any = None) -> tuple[Ragged, Ragged]:
        """What the user gave as the kernels read it; the same twice without Y."""
        collections = _check_collections(X, Y)
        if self.tags["elastic"]:
            ragged = [without_missing_steps(series, name) for name, series in collections.items()]
        else:
            ragged = on_one_grid(collections, self.unequal, self.title)
        return ragged[0], ragged[-1]

    def cells(self, x: Ragged, y: Ragged) -> float:
        """About how many cells of ours a pair costs: the mean cost matrix within the band."""
        n, m = float(x.lengths.mean()), float(y.lengths.mean())
        if not self.tags["elastic"]:
            return n * len(x.values)
        width = m if self.window is None else min(m, 2 * self.window * max(n, m) + 1 + abs(n - m))
        slowness = 1 if self.metric in distances else _SLOWER
        return n * width * len(x.values) * slowness

    def __call__(self, x: Ragged, y: Ragged, rows: Ints, cols: Ints) -> Floats64:
        """Distances of ``x[rows[k]]`` and ``y[cols[k]]``, ``(P,)``, not checked yet."""
        banded = {} if self.window is None else {"window": self.window}
        values = self.kernel(x, y, rows, cols, **self.params, **banded)
        values[(values < 0) & (values > -_ROUNDING)] = 0.0
        return values

    def check(self, values: Floats64, rows: Ints, cols: Ints, other: str = "X") -> Floats64:
        """The values, or an error that names the first pair without a possible distance.

        Args:
            values: Distances ``(P,)``.
            rows, cols: Where the user finds the pairs in X and in ``other``.
            other: ``"X"`` or ``"Y"``.
        """
        largest = np.inf if self.params.get("bound") is not None else np.finfo(np.float64).max
        impossible = np.flatnonzero(~((values >= 0) & (values <= largest)))
        if len(impossible) == 0:
            return values
        k = impossible[0]
        pair = f"X[{rows[k]}] and {other}[{cols[k]}]"
        if not self.tags["elastic"] and np.isnan(values[k]):
            elastic = ", ".join(distances.names(elastic=True))
            raise ValueError(
                f"{pair} have no observed step in common, so no {self.title} distance; "
                f"use an elastic distance ({elastic}) or leave one of them out"
            )
        raise ValueError(
            f"{self.title} gave {values[k]} for {pair}; a distance must be finite and not negative"
        )

    def description(self) -> dict[str, Any]:
        """All that a distance depends on beside the series, for JSON."""
        if not isinstance(self.metric, str):
            raise ValueError(
                f"{self.title} is a function, and what it computes cannot be told from its name; "
                "register it as a distance to keep its results"
            )
        return {
            "metric": self.metric,
            "window": self.window,
            "params": dict(self.params),
            "unequal": self.unequal,
            "version": from_aeon.version(self.metric) or KERNEL_VERSION,
        }


def _find(metric: Metric) -> tuple[PairKernel, Mapping[str, Any]]:
    """Kernel and tags of a registered name, of ``aeon:NAME`` or of a function."""
    if not isinstance(metric, str):
        return per_pair(metric), _TAGS_OF_A_FUNCTION
    if metric.startswith(from_aeon.PREFIX):
        return from_aeon.find(metric)
    return distances[metric], distances.tags(metric)


def _check_keywords(name: str, kernel: PairKernel, params: Mapping[str, Any]) -> None:
    parameters = inspect.signature(kernel).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "window"]
    check_known(params, known, name, "parameter")


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
