"""Scores over the share of labels: how many labels a method needs."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from softclt.reports.figures.style import COLOURS, DASHES, MARKERS, legend_name, new_figure, style
from softclt.reports.metric import Metric
from softclt.tasks.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = dict[float, list[float]]  # share in per cent -> scores of the seeds

_PANELS_A_LINE = 3


def label_curves(
    results: Sequence[Result], metric: str = "accuracy"
) -> dict[str, dict[str, Curve]]:
    """Data set -> row -> curve, of results that have ``<share>.<metric>`` for several shares."""
    found: dict[str, dict[str, Curve]] = {}
    for result in results:
        scores = {}
        for name, score in result.metrics.items():
            if (share := _share(name, metric)) is not None:
                scores[share] = score
        if len(scores) > 1:
            row = result.configuration or result.method
            curve = found.setdefault(result.dataset, {}).setdefault(row, {})
            for share, score in scores.items():
                curve.setdefault(share, []).append(score)
    return found


@style()
def share_figure(results: Sequence[Result], metric: str = "accuracy") -> "Figure":
    """Means over seeds against the share of labels, a panel a data set, a line a row.

    The bars are standard deviations over seeds.

    Args:
        results: Of the task transfer or semi_supervised with several shares.
        metric: Without the share before it.
    """
    sets = label_curves(results, metric)
    if not sets:
        raise ValueError(
            f"no result has the metric {metric!r} for several shares of labels, such as "
            f"'10.{metric}'; run a task with several shares"
        )
    unit = Metric(metric)
    columns = min(_PANELS_A_LINE, len(sets))
    lines = math.ceil(len(sets) / columns)
    figure = new_figure(0.6 + 3.0 * columns, 0.5 + 2.5 * lines)
    axes = figure.subplots(lines, columns, squeeze=False).reshape(-1)
    rows = list(dict.fromkeys(row for curves in sets.values() for row in curves))
    for ax, (dataset, curves) in zip(axes, sets.items(), strict=False):
        for row, curve in curves.items():
            _draw(ax, rows.index(row), row, curve, unit)
        ax.set(title=dataset, xlabel="share of labels in per cent")
    for ax in axes[len(sets) :]:
        ax.set_visible(False)
    words = f"{metric}{' in per cent' if unit.percent else ''}"
    for line in range(lines):
        axes[line * columns].set_ylabel(words)
    legend: dict[str, Any] = {}
    for ax in axes:
        legend |= {str(drawn.get_label()): drawn for drawn in ax.containers}
    _add_legend(figure, legend)
    return figure


def _add_legend(figure: "Figure", handles: dict[str, Any]) -> None:
    """Below the panels, in as many columns as the figure is wide enough for."""
    for columns in range(min(4, len(handles)), 0, -1):
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=columns
        )
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def _share(name: str, metric: str) -> float | None:
    """The per cent that stand before a metric, as in ``2.5.accuracy``."""
    before = name.removesuffix(f".{metric}")
    try:
        return None if before == name else float(before)
    except ValueError:  # something else, e.g. the name of a source
        return None


def _draw(ax: "Axes", i: int, row: str, curve: Curve, unit: Metric) -> None:
    shares = sorted(curve)
    means = [unit.shown(fmean(curve[share])) for share in shares]
    spreads = [unit.shown(stdev(curve[s])) if len(curve[s]) > 1 else 0.0 for s in shares]
    ax.errorbar(
        shares,
        means,
        yerr=spreads,
        color=COLOURS[i % len(COLOURS)],
        marker=MARKERS[i % len(MARKERS)],
        linestyle=DASHES[i % len(DASHES)],
        markersize=3.5,
        elinewidth=0.7,
        capsize=2,
        label=legend_name(row),
    )
