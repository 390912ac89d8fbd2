"""The one door for arrays: everything that is not a collection of series is refused here."""

import difflib
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.files import too_large

Floats = NDArray[np.floating[Any]]
Floats32 = NDArray[np.float32]
Floats64 = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

LARGEST = 1e140  # sums of squares of larger numbers leave the range of float64
LEAST_SPREAD = 1e-145  # whose squares are not 0


@dataclass(frozen=True)
class Held:
    """Series out of the container that they came in, such as a table.

    Attributes:
        series: What `check_series` takes.
        ids: One a series, where the container names them.
    """

    series: Any
    ids: list[Any] | None = None


#: Takes series out of a container that it knows; None for all else. ``name`` is for messages.
Opener = Callable[[Any, str], Held | None]

_openers: list[Opener] = []

_EXPECTED = (
    "expected series as (N, D, T), (N, T) for one channel, "
    "or a list of (D, T_i) or (T_i,) arrays for varying length"
)


def opens(opener: Opener) -> Opener:
    """Let `check_series` take what ``opener`` knows; `softclt.data.containers` does."""
    _openers.append(opener)
    return opener


def taken_out(X: Any, name: str = "X") -> Held:
    """Series and ids of what a user passes, be it a container or not."""
    for opener in _openers:
        if (held := opener(X, name)) is not None:
            return held
    return Held(X)


def check_series(
    X: Any, *, name: str = "X", n_channels: int | None = None, min_length: int = 1
) -> Floats:
    """Turn what a user may pass into ``(N, D, T)`` floats, NaN-padded at the end.

    float32 stays float32; everything else becomes float64, so that a large offset can still be
    removed before the cast to float32.

    Args:
        X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing. Or
            a container of `softclt.data.containers`: a frame of pandas or polars, an Arrow table,
            a data set of Hugging Face, a `SeriesTable`.
        name: How error messages call the argument.
        n_channels: Number of channels that X must have, e.g. those of the fitted data.
        min_length: Steps that the longest series needs at least.

    Example:
        >>> check_series([[1.0, 2.0, 3.0], [4.0, 5.0]])
        array([[[ 1.,  2.,  3.]],
        <BLANKLINE>
               [[ 4.,  5., nan]]])
    """
    if hasattr(X, "toarray"):
        raise TypeError(f"{name} is a sparse matrix; time series are dense: pass {name}.toarray()")
    X = taken_out(X, name).series
    if isinstance(X, (list, tuple)):
        X = _stack([_as_floats(x, f"{name}[{i}]") for i, x in enumerate(X)], name)
    array = _as_floats(X, name)
    if array.ndim == 2:
        array = array[:, None, :]  # (N, T) -> (N, 1, T)
    if array.ndim != 3:
        hint = f". Reshape your data: a single series is {name}.reshape(1, -1)"
        hint = hint if array.ndim == 1 else ""
        raise ValueError(f"{name} has shape {array.shape}; {_EXPECTED}{hint}")
    n, d, t = array.shape
    if n == 0:
        raise ValueError(f"{name} has 0 sample(s) (shape={array.shape}); at least 1 is required")
    if d == 0 or t == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape=({n}, 0)) while a minimum of {min_length} is required."
        )
    if t < min_length:
        raise ValueError(
            f"{name} holds series of {t} step(s) (n_features = {t}); at least {min_length} steps "
            "are needed to contrast them with each other"
        )
    if n_channels is not None and d != n_channels:
        swapped = f"; its axes look swapped, use {name}.swapaxes(1, 2)" if t == n_channels else ""
        raise ValueError(
            f"{name} has {d} channel(s) (shape {array.shape}), "
            f"but the model was fitted with {n_channels}{swapped}"
        )
    if (words := unusable_value(array)) is not None:
        raise ValueError(f"{name} {words}")
    return array


def unusable_value(X: Floats, series: int = 0, step: int = 0) -> str | None:
    """What is wrong with the first infinite value, or one too large to be squared; None: nothing.

    Args:
        X: ``(N, D, T)``.
        series, step: Of a larger array, with which X begins.
    """
    limit = min(LARGEST, float(np.finfo(X.dtype).max))
    beyond = (limit < X) | (-limit > X)
    if not beyond.any():
        return None
    i, c, s = (int(axis[0]) for axis in np.nonzero(beyond))
    place = f"series {series + i}, channel {c}, step {step + s}"
    if np.isinf(X[i, c, s]):
        return f"contains infinity: {place}; use NaN for values that are missing"
    return (
        f"contains {X[i, c, s]:g}, too large to square: {place}; use NaN if it is missing, or "
        "divide all values by a constant"
    )


def check_spread(X: Floats) -> None:
    """Refuse channels of ``(N, D, T)`` that vary by so little that the squares of it are 0."""
    for c in range(X.shape[1]):
        values = X[:, c][~np.isnan(X[:, c])]
        if values.size:
            refuse_small(float(values.max() - values.min()), LEAST_SPREAD, c)


def refuse_small(size: Any, least: Any, channel: int) -> None:
    """Refuse a channel whose spread, or largest value, is not 0 but below the least."""
    if 0 < size < least:
        raise ValueError(
            f"channel {channel} of X has values of about {size:.0e}, too small to be told apart "
            f"(below {least:.0e}): multiply all values by a constant"
        )


def warn_if_axes_look_swapped(X: Floats, name: str = "X") -> None:
    """Warn about more channels than steps, which mostly means (N, T, D) instead of (N, D, T)."""
    _, d, t = X.shape
    if d > t:
        warnings.warn(
            f"{name} has more channels ({d}) than steps ({t}); softclt reads (N, D, T). "
            "If yours is (N, T, D), use softclt.data.from_channels_last",
            UserWarning,
            stacklevel=3,
        )


def observed_steps(X: Floats) -> NDArray[np.bool_]:
    """Steps at which every channel has a value, ``(N, T)``."""
    return np.asarray(np.logical_not(np.isnan(X)).all(axis=1))


def series_lengths(X: Floats) -> NDArray[np.int64]:
    """Steps of each series up to its last one with any value, ``(N,)``; 0 where all is missing."""
    empty = np.asarray(np.isnan(X).all(axis=1))  # (N, T)
    last = X.shape[-1] - np.argmin(empty[:, ::-1], axis=1)
    return np.where(empty.all(axis=1), 0, last).astype(np.int64)


def check_distances(distances: Any, n: int, *, name: str = "distances") -> Floats:
    """A square matrix of finite, non-negative distances between ``n`` series."""
    matrix = _as_floats(distances, name)
    if matrix.shape != (n, n):
        raise ValueError(
            f"{name} has shape {matrix.shape}; expected ({n}, {n}), one row and column a series"
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError(f"{name} must be finite and non-negative; found NaN, infinity or a minus")
    return matrix


def check_random_state_seed(random_state: Any) -> int:
    """An integer seed from what scikit-learn accepts; global generators are left alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"random_state is {random_state!r}; expected None, an integer >= 0 or a NumPy generator"
    )


def check_ignored_labels(y: Any, n: int) -> None:
    """Refuse labels of other series, though nothing is learned from them."""
    if y is not None and hasattr(y, "__len__") and len(y) != n:
        raise ValueError(
            f"y has {len(y)} labels for {n} series; expected one a series, or none: fit does not "
            "look at them"
        )


def check_known(given: Iterable[str], known: Collection[str], of: str, kind: str) -> None:
    """Refuse names that a thing does not have, and say which it has."""
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"{of} has no {kind} {', '.join(map(repr, unknown))}; "
            f"known: {', '.join(known) or 'none'}{did_you_mean(unknown[0], known)}"
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about a name: which known one is close to it, if any is.

    Example:
        >>> did_you_mean("dwt", ["cosine", "dtw"]), did_you_mean("speed", ["cosine", "dtw"])
        ("; did you mean 'dtw'?", '')
    """
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_choice(value: Any, choices: Sequence[Any], name: str) -> None:
    """Refuse a value that is none of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")


def check_range(
    value: Any, name: str, low: float, high: float = math.inf, *, open_low: bool = False
) -> None:
    """Refuse a number outside ``[low, high]`` (``(low, high]`` with ``open_low``)."""
    ok = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if ok and low <= value <= high and not (open_low and value == low):
        return
    end = "" if high == math.inf else f" and at most {high:g}"
    raise ValueError(
        f"{name} is {value!r}; expected a number {'>' if open_low else '>='} {low:g}{end}"
    )


def _as_floats(X: Any, name: str) -> Floats:
    if hasattr(X, "detach"):  # a torch tensor, without importing torch
        X = X.detach().cpu()
        X = X.float() if str(X.dtype) == "torch.bfloat16" else X  # which NumPy does not know
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is {array.dtype}")
    if array.dtype == np.float32:
        return array
    if array.dtype.kind in "OUS":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name} is not numeric ({error}); {_EXPECTED}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}; {_EXPECTED}")
    return array.astype(np.float64)


def _stack(series: list[Floats], name: str) -> Floats:
    """Series of any length side by side, NaN behind the short ones."""
    if not series:
        raise ValueError(f"{name} is empty: 0 sample(s); {_EXPECTED}")
    if series[0].ndim not in (1, 2) or any(s.ndim != series[0].ndim for s in series):
        raise ValueError(
            f"{name} holds arrays of shape {[s.shape for s in series[:3]]}; {_EXPECTED}"
        )
    two_d = [np.atleast_2d(s) for s in series]  # (D, T_i)
    channels = {s.shape[0] for s in two_d}
    if len(channels) > 1:
        raise ValueError(
            f"the series of {name} have different numbers of channels ({sorted(channels)}); "
            "each must be (D, T_i) with the same D"
        )
    dtype = np.float32 if all(s.dtype == np.float32 for s in two_d) else np.float64
    longest = max(s.shape[1] for s in two_d)
    shape = len(series), two_d[0].shape[0], longest
    if problem := too_large(2 * math.prod(shape) * np.dtype(dtype).itemsize):
        raise ValueError(
            f"the {shape[0]} series of {name} have up to {longest} steps: padded to that length, "
            f"they make an array that {problem}; cut the long ones"
        )
    stacked = np.full(shape, np.nan, dtype)
    for row, s in zip(stacked, two_d, strict=True):
        row[:, : s.shape[1]] = s
    return stacked
