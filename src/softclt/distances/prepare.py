"""From checked arrays with gaps and padding to the series that kernels read."""

import numpy as np

from softclt.distances.registration import Ragged, distances
from softclt.validation import Floats, observed_steps, series_lengths

_SINGLE_RANGE = (1e-12, 1e12)  # of a series' largest value, for squares in float32


def without_missing_steps(X: Floats, name: str) -> Ragged:
    """The steps at which all channels have a value, for elastic distances.

    In the precision of the data, since kernels follow it; float32 that its range does not suit
    becomes float64.
    """
    observed = _observed(X, name)  # (N, T)
    starts = np.concatenate([[0], np.cumsum(observed.sum(axis=1))])
    channels = X.transpose(1, 0, 2)  # (D, N, T)
    # One channel without gaps needs no copy.
    values = channels.reshape(len(channels), -1) if observed.all() else channels[:, observed]
    ragged = Ragged(np.ascontiguousarray(values), starts)
    return ragged.astype(np.float64) if _too_wide(ragged) else ragged


def _too_wide(x: Ragged) -> bool:
    """Whether float32 values are too large or too small for sums of squares in float32.

    Asked of all series at once, so that a pair's distance does not depend on where it is computed.
    """
    if x.values.dtype != np.float32:
        return False
    steps = np.abs(x.values).max(axis=0)  # (T_0 + T_1 + ...)
    each = np.maximum.reduceat(steps, x.starts[:-1])  # (N,)
    smallest, largest = _SINGLE_RANGE
    return bool(((each > largest) | ((each > 0) & (each < smallest))).any())


def on_one_grid(collections: dict[str, Floats], unequal: str, metric: str) -> list[Ragged]:
    """Series of one common length, for distances that compare step with step.

    Args:
        collections: What error messages call it, and ``(N, D, T)``.
        unequal: ``"error"`` refuses different lengths, ``"resample"`` stretches all to the longest.
        metric: Named in the error.
    """
    observed = {name: _observed(X, name) for name, X in collections.items()}  # (N, T) each
    lengths = {name: series_lengths(X) for name, X in collections.items()}
    longest = max(int(own.max()) for own in lengths.values())
    shortest = min(int(own.min()) for own in lengths.values())
    if shortest < longest and unequal == "error":
        raise ValueError(
            f"{metric} compares step with step, but the series have {shortest} to {longest} "
            f"steps; use an elastic distance ({', '.join(distances.names(elastic=True))}) "
            "or unequal='resample'"
        )
    ragged = []
    for name, X in collections.items():
        gapped = np.where(observed[name][:, None, :], X, X.dtype.type(np.nan))
        if shortest == longest:
            grid = gapped[..., :longest]
        else:
            grid = np.empty((*X.shape[:2], longest), X.dtype)
            for own, series, length in zip(grid, gapped, lengths[name], strict=True):
                own[:] = _stretch(series[:, :length], longest)
        values = grid.transpose(1, 0, 2).reshape(X.shape[1], -1)  # (D, N * longest)
        ragged.append(Ragged(values, longest * np.arange(len(X) + 1)))
    return ragged


def _observed(X: Floats, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    observed = observed_steps(X)
    empty = np.flatnonzero(~observed.any(axis=1))
    if len(empty):
        raise ValueError(
            f"{name}[{empty[0]}] has no step at which all channels have a value, so it has no "
            f"distance to any series ({len(empty)} such series in {name}); leave it out"
        )
    return observed


def _stretch(series: Floats, length: int) -> Floats:
    """Linear interpolation ``(D, T_i) -> (D, length)``; between steps of a gap stays a gap."""
    own = series.shape[1]
    if own == length:
        return series
    # In whole numbers, so that a step which falls on a step of the grid is taken over exactly.
    left, beyond = np.divmod(np.arange(length) * (own - 1), length - 1)  # (length,) each
    right = np.minimum(left + 1, own - 1)
    share = beyond / (length - 1)
    between = (1 - share) * series[:, left] + share * series[:, right]
    return np.where(beyond == 0, series[:, left], between)
