"""Whole series in the embedding: by class, and by their neighbourhoods in the input space."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.probes.scores import Labels
from softclt.reports.figures.assignments import assignment_heatmap
from softclt.reports.figures.measures import (
    euclidean_distances,
    groups,
    same_label_share,
    shared_neighbours,
)
from softclt.reports.figures.projection import MOST_NAMED, embedding_scatter
from softclt.reports.figures.style import COLOURS, MARKERS, new_figure, style
from softclt.reports.projection import standardise
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@style()
def instance_maps(
    embeddings: Mapping[str, Floats],
    labels: Labels | None = None,
    classes: Sequence[str] | None = None,
    projection: str = "tsne",
    seed: int = 0,
) -> "Figure":
    """Embeddings of the same series by several models, coloured by class.

    Under each panel: how many series have a nearest neighbour of their own class, counted in the
    standardised embedding and not in the plane. More than 12 classes are told apart by colour and
    shape, but not named.

    Args:
        embeddings: Title -> representations ``(N, M)``, a panel each.
        labels: Classes of the N series, if known.
        classes: Names of the classes.
        projection: ``"tsne"`` or ``"pca"``.
        seed: Of the projection.
    """
    figure = new_figure(0.6 + 3.0 * len(embeddings), 3.2)
    axes = figure.subplots(1, len(embeddings), squeeze=False)[0]
    for ax, (title, R) in zip(axes, embeddings.items(), strict=True):
        embedding_scatter(ax, R, labels, classes, title, projection, seed, legend=False)
        if labels is not None:
            share = same_label_share(euclidean_distances(standardise(R)), labels)
            ax.set_xlabel(f"nearest of the same class: {share:.0%}")
    if labels is not None and len(np.unique(labels)) <= MOST_NAMED:
        names = axes[-1].get_legend_handles_labels()
        figure.legend(*names, loc="outside right center", title="class", markerscale=1.4)
    return figure


@style()
def neighbourhood_maps(
    X: Floats,
    distances: Floats,
    embeddings: Mapping[str, Floats],
    n_groups: int = 6,
    projection: str = "tsne",
    seed: int = 0,
) -> "Figure":
    """The input space beside the embedding, coloured by neighbourhood in the input space.

    On the left the series in groups of close ones, by the distances; on the right the same groups
    in each embedding. Under each: the share of a series' 10 nearest neighbours in the embedding
    that are among its 10 nearest in the input space.

    Args:
        X: Series ``(N, D, T)``; the first channel is drawn.
        distances: Between them ``(N, N)``.
        embeddings: Title -> representations ``(N, M)``, a panel each.
        n_groups: Neighbourhoods, at most.
        projection: ``"tsne"`` or ``"pca"``.
        seed: Of the projection.
    """
    own_group = groups(distances, n_groups)
    found = np.unique(own_group)
    figure = new_figure(2.4 + 2.9 * len(embeddings), 3.5)
    parts: Any = figure.subfigures(
        1, 1 + len(embeddings), width_ratios=[2.4] + [2.9] * len(embeddings)
    )
    left, *rights = parts
    lines = left.subplots(len(found), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, group in zip(lines, found, strict=True):
        rows = np.flatnonzero(own_group == group)
        colour = COLOURS[group % len(COLOURS)]
        ax.plot(X[rows, 0].T, color=colour, linewidth=0.5, alpha=min(1.0, 0.25 + 3 / len(rows)))
        marker = MARKERS[group % len(MARKERS)]
        ax.plot(1.04, 0.5, marker, color=colour, ms=4, transform=ax.transAxes, clip_on=False)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_ylabel(f"{len(rows)}", rotation=0, va="center", ha="right")
        ax.tick_params(labelbottom=group == found[-1])
    left.suptitle("input space: groups of close series", fontsize=8.5)
    left.supylabel("series in the group", fontsize=8.5)
    lines[-1].set_xlabel("time step")
    for right, (title, R) in zip(rights, embeddings.items(), strict=True):
        ax = right.subplots()
        embedding_scatter(ax, R, own_group, None, title, projection, seed, legend=False)
        k = min(10, len(R) - 1)
        share = shared_neighbours(distances, euclidean_distances(standardise(R)), k)
        ax.set_xlabel(f"neighbours kept: {share:.0%}")
    return figure


@style()
def soft_and_hard_figure(
    weights: Floats,
    weight_labels: Labels,
    embeddings: dict[str, Floats],
    labels: Labels,
    classes: Sequence[str] | None = None,
    *,
    heading: str | None = None,
    projection: str = "pca",
) -> "Figure":
    """The soft assignments of a batch beside embeddings of the same data set by several models.

    Args:
        weights: ``(B, B)`` of the batch.
        weight_labels: Classes of the batch, ``(B,)``.
        embeddings: Title -> representations ``(N, M)``, a panel each.
        labels: Classes of the N series.
        classes: Names of the classes.
        heading: Over the whole figure.
        projection: As in `embedding_scatter`.
    """
    figure = new_figure(3.6 * (1 + len(embeddings)), 3.6)
    heat, *scatters = figure.subplots(1, 1 + len(embeddings))
    title = f"soft assignments of a batch of {len(weights)}"
    image = assignment_heatmap(heat, weights, weight_labels, classes, title)
    figure.colorbar(image, ax=heat, shrink=0.8, label="weight (diagonal: 1)")
    for ax, (title, R) in zip(scatters, embeddings.items(), strict=True):
        embedding_scatter(ax, R, labels, classes, title, projection, legend=False)
    if scatters:
        names = scatters[-1].get_legend_handles_labels()
        figure.legend(*names, loc="outside right center", title="class")
    if heading:
        figure.suptitle(heading)
    return figure
