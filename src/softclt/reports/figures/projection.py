"""Representations in two dimensions, coloured by class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softclt.probes.scores import Labels
from softclt.reports.figures.style import COLOURS, MARKERS, class_name, legend_name, without_scales
from softclt.reports.projection import place, standardise
from softclt.validation import Floats, check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 12  # classes that a legend can hold


def project(R: Floats, projection: str = "pca", seed: int = 0) -> Floats:
    """Standardised representations ``(N, M)`` in two dimensions, ``(N, 2)``."""
    check_choice(projection, ("pca", "tsne"), "projection")
    return place(standardise(R), projection, seed).points


def embedding_scatter(
    ax: "Axes",
    R: Floats,
    labels: Labels | None = None,
    classes: Sequence[str] | None = None,
    title: str = "embedding",
    projection: str = "pca",
    seed: int = 0,
    legend: bool = True,
) -> None:
    """Draw representations ``(N, M)`` in two dimensions, coloured by class.

    Args:
        ax: Where to draw.
        R: Representations, standardised before they are projected.
        labels: Integers, one for each series.
        classes: Names of the labels.
        title: Above the plot.
        projection: ``"pca"`` or ``"tsne"``.
        seed: Of the projection.
        legend: Whether the classes are named.
    """
    points = project(R, projection, seed)  # (N, 2)
    labels = np.zeros(len(points), dtype=int) if labels is None else np.asarray(labels)
    for position, label in enumerate(np.unique(labels)):
        own = points[labels == label]
        ax.scatter(
            own[:, 0],
            own[:, 1],
            s=14,
            color=COLOURS[position % len(COLOURS)],
            marker=MARKERS[position % len(MARKERS)],
            edgecolor="white",
            linewidth=0.3,
            label=legend_name(class_name(label, classes)),
        )
    ax.set_title(title)
    without_scales(ax)
    if legend:
        ax.legend(loc="best", framealpha=0.7)
