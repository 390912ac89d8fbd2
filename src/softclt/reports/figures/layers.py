"""Distances between series through the layers of an encoder, beside those of the data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.methods.learner import RepresentationLearner
from softclt.probes.scores import Labels
from softclt.reports.figures.measures import (
    class_order,
    euclidean_distances,
    rank_correlation,
    rank_shares,
)
from softclt.reports.figures.projection import MOST_NAMED
from softclt.reports.figures.style import CLOSENESS, class_name, new_figure, style
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL, _DATA_PANEL = 1.0, 2.1  # inches


def some_layers(model: RepresentationLearner, n: int = 5) -> list[int]:
    """At most n layers of a fitted model, evenly from the first to the last."""
    return sorted({int(k) for k in np.linspace(0, model.module_.n_layers - 1, n).round()})


def layer_distances(
    model: RepresentationLearner, X: Any, layers: Sequence[int] | None = None
) -> dict[int, Floats]:
    """Euclidean distances ``(N, N)`` between the pooled outputs of a fitted model's layers."""
    chosen = some_layers(model) if layers is None else layers
    return {k: euclidean_distances(model.encode(X, layer=k)) for k in chosen}


@style()
def distance_matrices(
    data_distances: Floats,
    by_model: Mapping[str, Mapping[int, Floats]],
    labels: Labels | None = None,
    classes: Sequence[str] | None = None,
) -> "Figure":
    """Distances in the data beside those in the layers of several models (the paper's Figure 4).

    Colours are ranks, the share of pairs that are closer, so that all panels share one scale. Under
    each: Spearman's correlation with the distances in the data, over all pairs.

    Args:
        data_distances: ``(N, N)``.
        by_model: Title -> layer -> ``(N, N)``; a row of panels for each model.
        labels: Rows are sorted by class and then by seriation of the data's distances; without
            labels by seriation alone.
        classes: Names of the classes.
    """
    order = class_order(data_distances, labels)
    n_columns = max(len(layers) for layers in by_model.values())
    n_rows = len(by_model)
    wide, tall = _PANEL * n_columns + 0.8, (_PANEL + 0.1) * n_rows + 0.3
    figure = new_figure(_DATA_PANEL + wide, max(tall, _DATA_PANEL))
    parts: Any = figure.subfigures(1, 2, width_ratios=(_DATA_PANEL, wide))
    left, right = parts
    ax = left.subplots()
    image = _matrix(ax, data_distances, order)
    ax.set_title("data: distances between series")
    ax.set_xlabel(f"{len(order)} series" + (", sorted by class" if labels is not None else ""))
    _name_classes(ax, None if labels is None else np.asarray(labels)[order], classes)
    panels = right.subplots(n_rows, n_columns, squeeze=False)
    for i, (title, layers) in enumerate(by_model.items()):
        row = panels[i]
        row[0].set_ylabel(title, fontsize=8.5)
        for panel, (layer, distances) in zip(row, layers.items(), strict=False):
            _matrix(panel, distances, order)
            panel.set_xlabel(f"ρ = {rank_correlation(data_distances, distances):.2f}", labelpad=2)
            if i == 0:
                panel.set_title(f"layer {layer + 1}")
        for panel in row[len(layers) :]:
            panel.set_axis_off()
    label = "share of pairs that are closer"
    right.colorbar(image, ax=panels, shrink=0.85, aspect=30, label=label)
    return figure


def _matrix(ax: "Axes", distances: Floats, order: Any) -> Any:
    image = ax.imshow(rank_shares(distances)[np.ix_(order, order)], CLOSENESS, vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return image


def _name_classes(ax: "Axes", sorted_labels: Any, classes: Sequence[str] | None) -> None:
    """Lines between the classes of sorted rows, and their names, where there is room for them."""
    if sorted_labels is None:
        return
    found, starts = np.unique(sorted_labels, return_index=True)
    if len(found) > MOST_NAMED:
        return
    ends = np.append(starts[1:], len(sorted_labels))
    for start in starts[1:]:
        ax.axhline(start - 0.5, color="white", linewidth=0.8)
        ax.axvline(start - 0.5, color="white", linewidth=0.8)
    ax.set_yticks((starts + ends - 1) / 2, [class_name(label, classes) for label in found])
    ax.tick_params(left=False)
    ax.set_ylabel("class")
