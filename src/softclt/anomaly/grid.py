"""Steps of equal length: series whose times have gaps, or keep no beat, on a grid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softclt.data.times import Times, since_first
from softclt.validation import Floats

TOLERANCE = 0.01  # share of a step by which a regular time may be off
_MOST_CELLS = 10  # for each row
_TREMBLE = 0.1  # share by which mean and median gap may differ around a beat


@dataclass(frozen=True, eq=False)
class Gridded:
    """A series on a grid.

    Attributes:
        values: ``(D, T)``, NaN where no row falls into a step.
        times: ``(T,)``: of the first row of a step; where there is none, the grid's own.
        words: What was done, for a person; empty where nothing was.
    """

    values: Floats
    times: Times
    words: str


def on_grid(values: Floats, times: Times) -> Gridded:
    """A series ``(D, T)`` with steps of equal length.

    Where all gaps are whole multiples of the most frequent one, rows are missing, and the steps
    without a row are NaN. Otherwise the times keep no strict beat: the step is the mean gap
    if it is near the median, else the median, and rows that fall into the same step are averaged.

    Example:
        >>> gridded = on_grid(np.array([[1.0, 2.0, 3.0]]), np.array([0.0, 10.0, 30.0]))
        >>> gridded.values, gridded.words
        (array([[ 1.,  2., nan,  3.]]), '1 missing step was left empty')
    """
    if len(times) < 2:
        return Gridded(values, times, "")
    since = since_first(times)
    gaps = np.diff(since)
    lengths, counts = np.unique(gaps, return_counts=True)
    step = float(lengths[counts.argmax()])
    off = np.abs(gaps / step - np.round(gaps / step))
    regular = bool((off <= TOLERANCE).all() and (np.round(gaps / step) >= 1).all())
    if regular:
        cells = np.concatenate([[0], np.cumsum(np.round(gaps / step))]).astype(np.int64)
    else:
        step = _beat(gaps)
        cells = _nearest_cells(since, step)
    n_cells = int(cells[-1]) + 1
    if n_cells > _MOST_CELLS * len(times):
        raise ValueError(
            f"the times are too uneven: steps of {in_words(step, times)} would make {n_cells} of "
            f"{len(times)} rows; aggregate them to equal steps first, e.g. to hours"
        )
    if regular and n_cells == len(times):
        return Gridded(values, times, "")
    first = np.unique(cells, return_index=True)[1]
    own_times = _of_grid(times, step, n_cells)
    own_times[cells[first]] = times[first]
    return Gridded(
        _averaged(values, cells, n_cells),
        own_times,
        _what_was_done(regular, step, times, n_cells, n_cells - len(first)),
    )


def in_words(step: float, times: Times) -> str:
    """The length of a step, e.g. ``5 min``."""
    if times.dtype.kind != "M":
        return f"{step:.4g}"
    seconds = step / 1e9
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and (seconds / size) % 1 < TOLERANCE:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:.4g} s"


def _beat(gaps: NDArray[np.float64]) -> float:
    """The median gap; where times tremble around a beat, the mean, which is nearer to it."""
    median, mean = float(np.median(gaps)), float(np.mean(gaps))
    return mean if abs(mean - median) <= _TREMBLE * median else median


def _nearest_cells(since: NDArray[np.float64], step: float) -> NDArray[np.int64]:
    """Cells of times, the grid laid so that they are near the middle of their cells."""
    phases = np.exp(2j * np.pi * since / step)
    offset = np.angle(phases.mean()) / (2 * np.pi)  # mean position in a cell, on a circle
    cells = np.round(since / step - offset).astype(np.int64)
    return np.asarray(cells - cells[0])


def _what_was_done(regular: bool, step: float, times: Times, n_cells: int, n_empty: int) -> str:
    if regular:
        return f"{n_empty} missing step{'s were' if n_empty > 1 else ' was'} left empty"
    return (
        f"the times are irregular: {len(times)} rows were put on a grid of "
        f"{in_words(step, times)}, {n_cells} steps, {n_empty} of them empty"
    )


def _averaged(values: Floats, cells: NDArray[np.int64], n_cells: int) -> Floats:
    """The mean of the known values in each cell, ``(D, n_cells)``."""
    found = np.full((len(values), n_cells), np.nan)
    for row, channel in zip(found, values, strict=True):
        known = ~np.isnan(channel)
        counts = np.bincount(cells[known], minlength=n_cells)
        sums = np.bincount(cells[known], channel[known], minlength=n_cells)
        row[counts > 0] = sums[counts > 0] / counts[counts > 0]
    return found


def _of_grid(times: Times, step: float, n_cells: int) -> Times:
    ahead = np.arange(n_cells) * step
    if times.dtype.kind == "M":
        moved = times[0].astype("datetime64[ns]") + ahead.astype("timedelta64[ns]")
        return np.asarray(moved, dtype=times.dtype)
    return np.asarray(times[0] + ahead, dtype=np.float64)
