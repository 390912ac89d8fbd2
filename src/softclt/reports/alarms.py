"""A picture of alarms: the whole series above, the worst stretches close by below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softclt.reports.figures.style import COLOURS, DASHES, legend_name, new_figure, style
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CLOSE_UPS = 4
AROUND = 60  # steps on both sides of an alarm
_STRANGE = COLOURS[1]

Alarmed = tuple[int, int, float]  # first and last step, severity
_MOST_POINTS = 4000  # of a curve: more than a page has dots


@dataclass(frozen=True, eq=False)
class WatchedPanel:
    """One series with its scores.

    Attributes:
        title: What it is; empty for a single one.
        times: ``(T,)``, dates or numbers.
        values: ``(D, T)``, NaN where missing.
        scores: ``(T,)``, NaN where not scored or not judged.
        levels: What a score has to exceed ``(T,)``.
        start: The first judged step.
        alarms: First and last step of each, with its severity.
        channels: Names of the D channels.
    """

    title: str
    times: NDArray[Any]
    values: Floats
    scores: Floats
    levels: Floats
    start: int
    alarms: Sequence[Alarmed]
    channels: Sequence[str] = ()


@style()
def alarms_figure(panels: Sequence[WatchedPanel], heading: str = "") -> "Figure":
    """The series with the worst alarm as a whole, and the worst alarms of all from near.

    Args:
        panels: All watched series.
        heading: Over all.
    """
    close_ups = _worst_apart(panels)
    whole = close_ups[0][0] if close_ups else panels[0]
    rows, columns = -(-len(close_ups) // 2), min(2, len(close_ups))
    figure = new_figure(9.6, 2.6 + 2.7 * rows)
    parts = figure.subfigures(1 + rows, 1, height_ratios=[2.3] + [2.7] * rows, squeeze=False)[:, 0]
    ax, below = parts[0].subplots(2, 1, sharex=True, height_ratios=[2, 1])
    _draw_values(ax, whole, slice(None))
    _draw_scores(below, whole, slice(None))
    for start, end, _ in whole.alarms:
        ax.axvspan(*_span(whole, start, end), color=_STRANGE, alpha=0.25, linewidth=0)
        ax.plot(whole.times[start], 1.0, "v", color=_STRANGE, markersize=4, clip_on=False,
                transform=ax.get_xaxis_transform())  # fmt: skip
    if whole.start:
        ax.axvspan(whole.times[0], whole.times[whole.start], color="0.93", zorder=0, linewidth=0)
        ax.text(0.004, 0.96, "learned from, not judged", transform=ax.transAxes, va="top",
                fontsize=7, color="0.4")  # fmt: skip
    ax.set_title(_title(whole, len(whole.alarms)), loc="left")
    ax.set_xlim(whole.times[0], whole.times[-1])
    for row in range(rows):
        own = close_ups[2 * row : 2 * row + 2]
        axes = parts[1 + row].subplots(
            2, columns, sharex="col", height_ratios=[2, 1], squeeze=False
        )
        for column in range(columns):
            if column >= len(own):
                for unused in axes[:, column]:
                    unused.set_axis_off()
                continue
            rank = 2 * row + column + 1
            _draw_close_up(axes[:, column], *own[column], rank, several=len(panels) > 1)
    handles, labels = ax.get_legend_handles_labels()
    more, names = below.get_legend_handles_labels()
    parts[0].legend(handles + more, labels + names, loc="outside lower center", ncols=8)
    if heading:
        figure.suptitle(heading)
    return figure


def _worst_apart(panels: Sequence[WatchedPanel]) -> list[tuple[WatchedPanel, Alarmed]]:
    """The worst alarms, without those that the close-up of a worse one shows already."""
    ranked = sorted(
        ((panel, alarm) for panel in panels for alarm in panel.alarms),
        key=lambda pair: -pair[1][2],
    )
    chosen: list[tuple[WatchedPanel, Alarmed]] = []
    for panel, (start, end, severity) in ranked:
        if len(chosen) == MOST_CLOSE_UPS:
            break
        near = (own for other, own in chosen if other is panel)
        if not any(start >= first - AROUND and end <= last + AROUND for first, last, _ in near):
            chosen.append((panel, (start, end, severity)))
    return chosen


def _draw_close_up(
    axes: Any, panel: WatchedPanel, alarm: Alarmed, rank: int, several: bool
) -> None:
    start, end, severity = alarm
    near = slice(max(0, start - AROUND), min(len(panel.times), end + AROUND + 1))
    _draw_values(axes[0], panel, near)
    _draw_scores(axes[1], panel, near)
    for first, last, _ in panel.alarms:
        if first < near.stop and last >= near.start:
            for ax in axes:
                ax.axvspan(*_span(panel, first, last), color=_STRANGE, alpha=0.25, linewidth=0)
    title = f"{rank}. severity {severity:.3g}"
    axes[0].set_title(f"{title} · {panel.title}" if several else title, loc="left")
    axes[0].set_xlim(panel.times[near][0], panel.times[near][-1])
    _few_ticks(axes[1])


def _draw_values(ax: "Axes", panel: WatchedPanel, part: slice) -> None:
    times = panel.times[part]
    for i, channel in enumerate(panel.values):
        name = panel.channels[i] if i < len(panel.channels) else "value"
        colour = "0.2" if len(panel.values) == 1 else COLOURS[(0, 2, 3, 4, 5, 6)[i % 6]]
        style_of_line = DASHES[i // 6 % len(DASHES)]
        x, y = _thinned(times, channel[part])
        ax.plot(x, y, color=colour, linestyle=style_of_line, linewidth=0.8, label=legend_name(name))
    ax.set_ylabel(panel.channels[0] if len(panel.channels) == 1 else "value")


def _draw_scores(ax: "Axes", panel: WatchedPanel, part: slice) -> None:
    times = panel.times[part]
    x, y = _thinned(times, panel.scores[part])
    ax.plot(x, y, color=COLOURS[0], linewidth=0.8, label="score")
    levels = np.where(np.isfinite(panel.levels[part]), panel.levels[part], np.nan)
    ax.plot(*_thinned(times, levels), color=_STRANGE, linestyle="--", linewidth=0.9, label="level")
    ax.set_ylabel("score")
    _few_ticks(ax)


def _thinned(times: NDArray[Any], values: Floats) -> tuple[NDArray[Any], Floats]:
    """A long curve by the lowest and highest value of each small stretch: no peak is lost."""
    stretch = -(-len(values) // (_MOST_POINTS // 2))
    if stretch <= 2:
        return times, values
    n = len(values) // stretch
    blocks = values[: n * stretch].reshape(n, stretch)
    low = np.where(np.isnan(blocks), np.inf, blocks).argmin(axis=1)
    high = np.where(np.isnan(blocks), -np.inf, blocks).argmax(axis=1)
    steps = np.sort(np.stack([low, high], axis=1), axis=1) + np.arange(n)[:, None] * stretch
    kept = np.concatenate([steps.reshape(-1), np.arange(n * stretch, len(values))])
    return times[kept], values[kept]


def _span(panel: WatchedPanel, start: int, end: int) -> tuple[Any, Any]:
    """From half a step before the first to half a step behind the last."""
    last = len(panel.times) - 1
    before, behind = panel.times[max(0, start - 1)], panel.times[min(last, end + 1)]
    first, final = panel.times[start], panel.times[end]
    return first - (first - before) / 2, final + (behind - final) / 2


def _few_ticks(ax: "Axes") -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, DateLocator

    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, DateLocator):
        few = AutoDateLocator(maxticks=6)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(few)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(few))  # type: ignore[no-untyped-call]


def _title(panel: WatchedPanel, n_alarms: int) -> str:
    words = f"{n_alarms} alarm{'' if n_alarms == 1 else 's'}"
    return f"{panel.title}: {words}" if panel.title else words
