"""Synthetic series, family by family."""

from typing import TYPE_CHECKING

from softclt.data import synthetic_series
from softclt.reports.figures.style import COLOURS, new_figure, style, without_scales

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@style()
def synthetic_families(
    families: tuple[int, int] = (6, 2), siblings: int = 4, length: int = 512, random_state: int = 0
) -> "Figure":
    """Small panels of synthetic series; siblings side by side, in a colour.

    Args:
        families: Rows and columns of them.
        siblings: Panels of each.
        length: Steps.
        random_state: Seed.
    """
    rows, columns = families[0], families[1] * siblings
    X = synthetic_series(rows * columns, length, random_state=random_state, siblings=siblings)
    figure = new_figure(1.05 * columns, 0.75 * rows + 0.3)
    figure.suptitle(
        f"{rows * columns} synthetic series: {siblings} siblings of one process side by side"
    )
    for i, ax in enumerate(figure.subplots(rows, columns).flat):
        colour = COLOURS[(i // siblings) % len(families)]
        ax.plot(X[i, 0], color=colour, linewidth=0.6)
        without_scales(ax)
    return figure
