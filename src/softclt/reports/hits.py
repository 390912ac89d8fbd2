"""A picture of a search: each query above the series that are most like it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softclt.reports.figures.style import COLOURS, new_figure, style
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_QUERIES = 4
MOST_HITS = 8


@dataclass(frozen=True)
class Panel:
    """One series.

    Attributes:
        title: What it is.
        values: ``(D, T)``.
        start: Number of its first step.
    """

    title: str
    values: Floats
    start: int = 0


@style()
def hits_figure(columns: Sequence[Sequence[Panel]], heading: str = "") -> "Figure":
    """Queries side by side, each above its hits; every panel has a scale of its own.

    Args:
        columns: A query and its hits; the first 4 queries are drawn, with 8 hits each.
        heading: Over all.
    """
    shown = [list(column)[: MOST_HITS + 1] for column in columns[:MOST_QUERIES]]
    lines = max(len(column) for column in shown)
    figure = new_figure(3.4 * len(shown) + 0.4, 0.6 + 0.85 * lines)
    axes = figure.subplots(lines, len(shown), squeeze=False)
    for j, column in enumerate(shown):
        for i, ax in enumerate(axes[:, j]):
            if i < len(column):
                _draw(ax, column[i], query=i == 0)
            else:
                ax.set_axis_off()
    left_out = len(columns) - len(shown)
    more = f" ({left_out} more queries are in the table)" if left_out else ""
    if heading or more:
        figure.suptitle(heading + more)
    return figure


def _draw(ax: "Axes", panel: Panel, query: bool) -> None:
    steps = panel.start + np.arange(panel.values.shape[-1])
    for c, values in enumerate(panel.values):
        colour = COLOURS[c % len(COLOURS)]
        ax.plot(steps, values, color=colour, linewidth=1.6 if query else 1.0)
    ax.set_title(panel.title, loc="left", fontweight="bold" if query else "normal")
    ax.margins(x=0.01)
    ax.locator_params(axis="y", nbins=2)
    if query:
        ax.set_facecolor("0.95")
