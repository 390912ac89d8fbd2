"""A picture of clusters: what the series of each look like, its medoid and its odd ones."""

from typing import TYPE_CHECKING

import numpy as np

from softclt.data.preparation import standardised
from softclt.reports.figures.style import COLOURS, new_figure, style
from softclt.validation import Floats, Ints, series_lengths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from softclt.search import Clusters

MOST_CLUSTERS = 12
MOST_CHANNELS = 3
_MOST_SERIES = 40  # of a cluster, beside its medoid and odd ones
_MOST_ODD = 3


@style()
def clusters_figure(X: Floats, clusters: "Clusters", heading: str = "") -> "Figure":
    """Small pictures of the series of each cluster, each channel standardised by itself.

    Args:
        X: Series ``(N, D, T)`` that were clustered.
        clusters: As found; the 12 largest are drawn, with 3 channels at most.
        heading: Over all.
    """
    shown = range(min(clusters.n_clusters, MOST_CLUSTERS))
    d = min(X.shape[1], MOST_CHANNELS)
    columns = d if d > 1 else min(3, max(1, len(shown)))
    lines = -(-len(shown) * d // columns)
    figure = new_figure(3.2 * columns + 0.3, 0.9 + 1.55 * max(1, lines))
    axes = figure.subplots(max(1, lines), columns, squeeze=False).reshape(-1)
    for i, ax in enumerate(axes):
        if i < len(shown) * d:
            _draw(ax, X, clusters, i // d, i % d)
        else:
            ax.set_axis_off()
    handles, labels = _entries(axes[: len(shown) * d])
    figure.legend(handles, labels, loc="outside lower center", ncols=max(1, len(labels)))
    left_out = clusters.n_clusters - len(shown)
    more = f" ({left_out} more clusters are in the table)" if left_out else ""
    if heading or more:
        figure.suptitle(heading + more)
    return figure


def _draw(ax: "Axes", X: Floats, clusters: "Clusters", cluster: int, channel: int) -> None:
    own = np.flatnonzero(clusters.labels == cluster)
    medoid = own[clusters.medoid[own]]
    odd = own[clusters.odd[own]]
    odd = odd[np.argsort(-clusters.distance[odd], kind="stable")]
    usual = own[~clusters.odd[own] & ~clusters.medoid[own]]
    some = usual[np.linspace(0, len(usual) - 1, min(len(usual), _MOST_SERIES)).astype(int)]
    _lines(ax, X, some, channel, "series", color="0.6", linewidth=0.5, alpha=0.6)
    _lines(ax, X, odd[:_MOST_ODD], channel, "odd ones", color=COLOURS[1], linewidth=0.9)
    _lines(ax, X, medoid, channel, "medoid", color=COLOURS[0], linewidth=1.8)
    of_channel = f", channel {channel}" if X.shape[1] > 1 else ""
    ax.set_title(f"cluster {cluster}{of_channel}: {len(own)} series, {len(odd)} odd", loc="left")
    ax.margins(x=0.01)
    ax.locator_params(axis="y", nbins=3)


def _lines(
    ax: "Axes", X: Floats, rows: Ints, channel: int, label: str, **looks: float | str
) -> None:
    for i in rows:
        length = max(1, int(series_lengths(X[i : i + 1])[0]))
        values = standardised(X[i : i + 1, channel : channel + 1, :length])[0, 0]
        ax.plot(values, label=label if i == rows[0] else None, **looks)


def _entries(axes: "list[Axes]") -> tuple[list[object], list[str]]:
    """One entry of the legend for each kind of line that is drawn anywhere."""
    found: dict[str, object] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)
