"""A picture of forecasts: the end of each series, what may come, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softclt.reports.figures.style import COLOURS, new_figure, style
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 12


@dataclass(frozen=True)
class ForecastPanel:
    """One channel of one series.

    Attributes:
        title: What it is.
        times: Of the end of the series ``(T,)``, dates or numbers.
        values: There, NaN where missing.
        future: Times of the forecast ``(H,)``.
        forecast: Values ``(H,)``.
        lower, upper: Ends of the intervals ``(H,)``; None without any.
        truth: What came, where it is known ``(H,)``.
    """

    title: str
    times: NDArray[Any]
    values: Floats
    future: NDArray[Any]
    forecast: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    truth: Floats | None = None


@style()
def forecast_figure(
    panels: Sequence[ForecastPanel], coverage: float | None = None, heading: str = ""
) -> "Figure":
    """The end of each series, its forecast and the band of its intervals, one below the other.

    Args:
        panels: At most the first 12 are drawn.
        coverage: Of the band, for the legend.
        heading: Over all.
    """
    shown = list(panels)[:MOST_PANELS]
    columns = 1 if len(shown) <= 4 else 2
    lines = -(-len(shown) // columns)
    width, height = (7.2, 0.9 + 1.75 * lines) if columns == 1 else (9.6, 0.9 + 1.6 * lines)
    figure = new_figure(width, height)
    axes = figure.subplots(lines, columns, squeeze=False).reshape(-1)
    for ax, panel in zip(axes, shown, strict=False):
        _draw(ax, panel, coverage)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    left_out = len(panels) - len(shown)
    more = f" ({left_out} more are in the table)" if left_out else ""
    if heading or more:
        figure.suptitle(heading + more)
    return figure


def _draw(ax: "Axes", panel: ForecastPanel, coverage: float | None) -> None:
    colour = COLOURS[1]
    ax.plot(panel.times, panel.values, color="0.25", linewidth=1.0, label="history")
    if panel.truth is not None:
        ax.plot(panel.future, panel.truth, color="0.25", linewidth=1.0, linestyle=":", label="came")
    if panel.lower is not None and panel.upper is not None:
        share = "interval" if coverage is None else f"{coverage:.0%} interval"
        ax.fill_between(
            panel.future,
            panel.lower,
            panel.upper,
            color=colour,
            alpha=0.2,
            linewidth=0,
            label=share,
        )
    known = np.flatnonzero(np.isfinite(panel.values))[-1:]
    future = np.concatenate([panel.times[known], panel.future])  # from the last value on
    ax.plot(future, [*panel.values[known], *panel.forecast], color=colour, label="forecast")
    ax.axvline(panel.times[-1], color="0.6", linewidth=0.7, linestyle=(0, (2, 2)))
    ax.set_title(panel.title, loc="left")
    ax.margins(x=0.01)
    if panel.future.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
