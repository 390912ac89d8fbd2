"""The steps of one series in the embedding: over training, and beside the series itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.probes.scores import Labels
from softclt.reports.figures.measures import (
    euclidean_distances,
    same_label_share,
    shared_neighbours,
)
from softclt.reports.figures.projection import project
from softclt.reports.figures.style import (
    COLOURS,
    MARKERS,
    colours_of_points,
    new_figure,
    style,
    without_scales,
)
from softclt.reports.projection import standardise
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NEAREST = 10  # neighbours that are counted


@style()
def timestamps_over_training(
    encodings: Mapping[str, Mapping[int, Floats]], projection: str = "tsne", seed: int = 0
) -> "Figure":
    """Steps of one series in the embeddings of several models over training (Figure 5).

    Under each panel: the share of a step's 10 nearest neighbours in the standardised embedding that
    are among its 10 nearest in time.

    Args:
        encodings: Title -> steps of training -> representations ``(T, M)``; a row for each model.
        projection: ``"tsne"`` or ``"pca"``.
        seed: Of the projection.
    """
    n_columns = max(len(row) for row in encodings.values())
    figure = new_figure(0.9 + 1.65 * n_columns, 0.35 + 1.75 * len(encodings))
    axes = figure.subplots(len(encodings), n_columns, squeeze=False)
    points = None
    for i, (title, over_training) in enumerate(encodings.items()):
        row = axes[i]
        for ax, (step, Z) in zip(row, over_training.items(), strict=False):
            points = _map(ax, Z, np.arange(len(Z)), projection, seed)
            ax.set_xlabel(f"near in time: {_near_in_time(Z):.0%}", labelpad=2)
            if i == 0:
                ax.set_title("untrained" if step == 0 else f"{step} steps")
        row[0].set_ylabel(title)
        for ax in row[len(over_training) :]:
            ax.set_axis_off()
    if points is not None:
        figure.colorbar(points, ax=axes, label="time step", shrink=0.7, aspect=30)
    return figure


@style()
def series_and_timestamps(
    series: Floats,
    encodings: Mapping[str, Floats],
    second: tuple[str, Any] | None = None,
    projection: str = "tsne",
    seed: int = 0,
) -> "Figure":
    """One series beside its steps in several embeddings, coloured by time and by something else.

    Args:
        series: Values of one channel ``(T,)``, none missing.
        encodings: Title -> representations of its steps ``(T, M)``.
        second: Name and values ``(T,)`` of the second row of colours; integers are groups, such as
            `phases`. The values of the series if None.
        projection: ``"tsne"`` or ``"pca"``.
        seed: Of the projection.
    """
    time = np.arange(len(series))
    name, values = ("value", series) if second is None else (second[0], np.asarray(second[1]))
    grouped, groups = values.dtype.kind in "iu", values.astype(int)
    figure = new_figure(2.9 + 1.75 * len(encodings), 3.8)
    axes = figure.subplots(2, 1 + len(encodings), width_ratios=[1.3] + [1] * len(encodings))
    for row, colours, shown in ((axes[0], time, "time step"), (axes[1], values, name)):
        in_groups = grouped and shown == name
        row[0].plot(time, series, color="0.8", linewidth=0.8, zorder=1)
        points = _scatter(row[0], time, series, colours, in_groups)
        row[0].set(xlabel="time step", ylabel="value")
        row[0].set_title(f"coloured by {shown}", loc="left")
        for ax, Z in zip(row[1:], encodings.values(), strict=True):
            _map(ax, Z, colours, projection, seed, in_groups)
        if in_groups:
            row[0].legend(title=name, ncols=2, markerscale=1.6)
        else:
            figure.colorbar(points, ax=row[1:], label=shown, aspect=20, shrink=0.8)
    for column, (title, Z) in enumerate(encodings.items(), 1):
        axes[0, column].set_title(title)
        axes[0, column].set_xlabel(f"near in time: {_near_in_time(Z):.0%}")
        if grouped:
            share = same_label_share(euclidean_distances(standardise(Z)), groups, _NEAREST)
            axes[1, column].set_xlabel(f"same {name}: {share:.0%}")
    return figure


def phases(values: Floats, jump: float = 0.25, width: int = 8) -> Labels:
    """Numbers of the stretches between sudden changes of level, ``(T,)``.

    A change is where the mean of the next ``width`` steps differs from that of the last ``width``
    by more than the share ``jump`` of the series' range, and more than anywhere within ``width``.

    Example:
        >>> phases(np.repeat([0.0, 5.0, 1.0], 20))[[0, 19, 20, 39, 40, 59]]
        array([0, 0, 1, 1, 2, 2])
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means = (sums[width:] - sums[:-width]) / width  # of steps t to t + width - 1
    change = np.zeros(len(values))
    change[width : len(values) - width + 1] = np.abs(means[width:] - means[:-width])
    around = np.lib.stride_tricks.sliding_window_view(np.pad(change, width), 2 * width + 1)
    top = change >= around.max(axis=1)
    starts = top & (change > jump * np.ptp(values))
    return np.cumsum(starts)


def _near_in_time(Z: Floats) -> float:
    time = np.arange(len(Z), dtype=np.float64)[:, None]
    k = min(_NEAREST, len(Z) - 1)
    return shared_neighbours(euclidean_distances(time), euclidean_distances(standardise(Z)), k)


def _map(
    ax: "Axes", Z: Floats, colours: Any, projection: str, seed: int, grouped: bool = False
) -> Any:
    x, y = project(Z, projection, seed).T
    ax.plot(x, y, color="0.85", linewidth=0.5, zorder=1)  # the way through time
    without_scales(ax)
    return _scatter(ax, x, y, colours, grouped)


def _scatter(ax: "Axes", x: Any, y: Any, colours: Any, grouped: bool) -> Any:
    """Points coloured by a number or, with a shape each, by group."""
    if not grouped:
        return ax.scatter(x, y, s=7, c=colours, cmap=colours_of_points(), linewidth=0, zorder=2)
    for i, group in enumerate(np.unique(colours)):
        ax.scatter(
            x[colours == group],
            y[colours == group],
            s=9,
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i % len(MARKERS)],
            linewidth=0,
            zorder=2,
            label=str(group + 1),
        )
    return None
