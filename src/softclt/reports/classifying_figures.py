"""Pictures of a classifier: whether its confidences hold."""

from typing import TYPE_CHECKING

import numpy as np

from softclt.classification import Reliability
from softclt.reports.figures.style import COLOURS, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AREA = 260.0  # points squared of a dot that stands for all


@style()
def reliability_figure(told: Reliability) -> "Figure":
    """Share that is right against confidence; on the diagonal both are the same."""
    figure = new_figure(3.6, 3.4)
    ax = figure.subplots()
    ax.plot([0, 100], [0, 100], color="#000000", linewidth=0.8, alpha=0.5)
    there = told.counts > 0
    sure, right = 100 * told.confidence[there], 100 * told.accuracy[there]
    ax.plot(sure, right, color=COLOURS[0], linewidth=1.0)
    area = np.maximum(_AREA * told.counts[there] / told.counts.sum(), 6.0)
    ax.scatter(sure, right, s=area, color=COLOURS[0], zorder=3)
    ax.set_xlabel("confidence, %")
    ax.set_ylabel("right, %")
    ax.set_xlim(min(50.0, float(sure.min()) - 5), 103)
    ax.set_ylim(-3, 103)
    return figure
