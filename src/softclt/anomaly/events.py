"""From flagged steps to events: clearing, what counts as found, and alarms with their severity."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.validation import Flags, Floats, Ints


@dataclass(frozen=True)
class Alarm:
    """A stretch of strange steps.

    Attributes:
        start: Its first step.
        end: Its last step.
        severity: How far its worst score lies from the usual one, the distance of its threshold
            being 1.
    """

    start: int
    end: int
    severity: float


def segments(flags: Flags) -> list[tuple[int, int]]:
    """First step of each run of flagged steps, and the step behind its last.

    Example:
        >>> segments(np.array([True, False, True, True]))
        [(0, 1), (2, 4)]
    """
    edges = np.flatnonzero(np.diff(np.r_[False, flags.astype(bool), False]))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def clear(flags: Flags, delay: int) -> Flags:
    """Take a flag back where one that stays stands in the ``delay`` steps before it.

    Example:
        >>> clear(np.array([True, True, True, True, False]), delay=2)
        array([ True, False, False,  True, False])
    """
    kept = np.zeros(len(flags), dtype=bool)
    last = -delay - 1
    for step in np.flatnonzero(flags):
        if step - last > delay:
            kept[step] = True
            last = step
    return kept


def persistent(flags: Flags, least: int, of: int) -> Flags:
    """Flags of steps at which at least so many of the last ``of`` steps are flagged, itself one.

    Example:
        >>> persistent(np.array([True, False, True, True, False]), least=2, of=3)
        array([False, False,  True,  True, False])
    """
    if least <= 1:
        return flags.astype(bool)
    sums = np.r_[0, np.cumsum(flags)]
    steps = np.arange(1, len(flags) + 1)
    recent = sums[steps] - sums[np.maximum(0, steps - of)]
    return np.asarray(flags & (recent >= least))


def check_persistence(least: int, of: int) -> None:
    """Refuse more strange steps than are looked at."""
    if not 1 <= least <= of:
        raise ValueError(
            f"persist is {least} of {of} steps; expected at least 1, and no more than there are"
        )


def adjust_segments(flags: Flags, labels: Flags, delay: int | None) -> Flags:
    """Flag all of a labelled segment that was hit in time, and nothing of one that was not.

    Args:
        flags: Alarms ``(T,)``.
        labels: Anomalies ``(T,)``.
        delay: A hit is in time within the first ``delay`` + 1 steps of a segment; None is anywhere.

    Example:
        >>> labels = np.array([True, True, True, False, True])
        >>> adjust_segments(np.array([False, True, False, True, False]), labels, delay=1)
        array([ True,  True,  True,  True, False])
    """
    found = flags.astype(bool)
    for start, end in segments(labels):
        in_time = end if delay is None else min(end, start + delay + 1)
        found[start:end] = flags[start:in_time].any()
    return found


def regrid(flags: Flags, times: NDArray[Any]) -> Flags:
    """Flags on a grid of the smallest gap between times; steps that are missing have none.

    Example:
        >>> regrid(np.array([True, True, False]), np.array([0, 10, 40]))
        array([ True,  True, False, False, False])
    """
    cells = grid_cells(times)
    on_grid = np.zeros(cells[-1] + 1 if len(cells) else 0, dtype=bool)
    on_grid[cells[flags.astype(bool)]] = True
    return on_grid


def grid_cells(times: NDArray[Any]) -> Ints:
    """The cell ``(T,)`` of each time in a grid of the smallest gap between different times."""
    gaps = np.diff(times)
    zero = gaps.dtype.type(0) if len(gaps) else 0
    gaps = gaps[gaps > zero]
    if len(gaps) == 0:
        return np.zeros(len(times), dtype=np.int64)
    return np.asarray((times - times[0]) // gaps.min(), dtype=np.int64)


_MOST = float(np.finfo(np.float64).max)


def find_alarms(
    scores: Floats, levels: Floats, gap: int = 7, persist: tuple[int, int] = (1, 1)
) -> list[Alarm]:
    """Alarms of a series, in the order of time.

    Args:
        scores: ``(T,)``; NaN is not scored.
        levels: What a score has to exceed, ``(T,)``; NaN raises no alarm.
        gap: Flagged steps at most so many steps apart are one alarm.
        persist: How many of how many last steps have to exceed their level; see `persistent`.
    """
    flags = persistent(scores > levels, *persist)
    if not flags.any():
        return []
    usual = float(np.nanmedian(scores))
    steps = np.flatnonzero(flags)
    breaks = np.flatnonzero(np.diff(steps) > max(1, gap)) + 1
    alarms = []
    for run in np.split(steps, breaks):
        reach = np.maximum(levels[run] - usual, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):  # where the level is as good as the usual score
            severity = float(np.max((scores[run] - usual) / reach))
        # A usual score above the level would make it negative.
        alarms.append(Alarm(int(run[0]), int(run[-1]), min(max(severity, 1.0), _MOST)))
    return alarms
