"""Pictures with matplotlib: soft assignments as a heat map, embeddings as a scatter plot."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.files import whole_file
from softclt.metrics import Labels
from softclt.validation import Floats, check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> "Figure":
    """A figure that needs no display and leaves pyplot's state alone."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ModuleNotFoundError(
            "figures need matplotlib: pip install 'softclt[report]'", name="matplotlib"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: "Figure", path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a figure whole or not at all; the suffix decides the format."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=dpi)


def assignment_heatmap(
    ax: "Axes",
    weights: Floats,
    labels: Labels | None = None,
    classes: Sequence[str] | None = None,
    title: str = "soft assignments",
) -> Any:
    """Draw soft assignments ``(N, N)``; with labels the series are sorted and the classes framed.

    Colours stand for 0 up to the largest weight between two different series, since the ones on
    the diagonal would drown everything else.

    Returns:
        The image, for a colour bar.
    """
    weights = np.asarray(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"weights have shape {weights.shape}; expected (N, N)")
    n = len(weights)
    if labels is not None:
        order = np.argsort(labels, kind="stable")
        weights, labels = weights[np.ix_(order, order)], np.asarray(labels)[order]
    others = weights[~np.eye(n, dtype=bool)]
    top = float(others.max()) if others.size and others.max() > 0 else 1.0
    image = ax.imshow(weights, cmap="viridis", vmin=0.0, vmax=top, interpolation="nearest")
    ax.set_title(title)
    ax.set_xlabel("series" if labels is None else "series, sorted by class")
    ax.set_ylabel("series" if labels is None else "class")
    if labels is None:
        return image
    found, starts = np.unique(labels, return_index=True)
    ends = np.append(starts[1:], n)
    for start, end in zip(starts, ends, strict=True):
        square = ([start, end, end, start, start], [start, start, end, end, start])
        ax.plot(np.array(square[0]) - 0.5, np.array(square[1]) - 0.5, color="white", linewidth=1.0)
    ax.set_xticks([])
    ax.set_yticks((starts + ends - 1) / 2, [_class_name(label, classes) for label in found])
    return image


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
            s=16,
            color=f"C{position % 10}",
            marker="os^DvP"[position // 10 % 6],
            edgecolor="white",
            linewidth=0.3,
            label=_class_name(label, classes),
        )
    ax.set_title(title)
    ax.set_xticks([])
    ax.set_yticks([])
    if legend:
        ax.legend(loc="best", fontsize="small", framealpha=0.7)


def project(R: Floats, projection: str = "pca", seed: int = 0) -> Floats:
    """Standardised representations ``(N, M)`` in two dimensions, ``(N, 2)``."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    check_choice(projection, ("pca", "tsne"), "projection")
    R = StandardScaler().fit_transform(np.asarray(R, dtype=np.float64))
    if len(R) < 3:
        raise ValueError(f"a plot of {len(R)} series shows nothing; at least 3 are needed")
    if projection == "pca":
        return np.asarray(PCA(2, random_state=seed).fit_transform(R))
    perplexity = min(30.0, (len(R) - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=seed)
    with threadpool_limits(1):  # its threads wait for each other longer than they work
        return np.asarray(tsne.fit_transform(R))


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
    figure = new_figure(4.4 * (1 + len(embeddings)), 4.4)
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


def _class_name(label: Any, classes: Sequence[str] | None) -> str:
    return str(label) if classes is None else str(classes[int(label)])
