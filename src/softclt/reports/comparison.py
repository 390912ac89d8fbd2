"""Figures from results: who is ahead (CD diagram), and soft against its control set by set."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softclt.reports.analysis import LEVEL, Analysis, Difference
from softclt.reports.document import Picture, Section, counted
from softclt.reports.figures.shares import label_curves, share_figure
from softclt.reports.figures.style import COLOURS, new_figure, style
from softclt.reports.metric import Metric
from softclt.silence import without_warnings
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHA = 0.05
_NAMED = 4  # data sets that a scatter plot names: those farthest from the diagonal
_PANELS = 12  # soft rows that a scatter plot shows: a grid has more than anybody looks at
_LETTER = 0.02  # width of a letter as a share of a panel
_GREY = "#7f7f7f"


def figures_section(analysis: Analysis, name: str = "") -> Section | None:
    """All figures that the rows allow; what cannot be drawn is said."""
    text, pictures = [], []
    if len(analysis.compared) > 2 and len(analysis.common) > 1:
        try:
            pictures.append(_cd_picture(analysis))
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("aeon"):
                raise
            text.append(
                "The critical-difference diagram needs aeon: pip install 'softclt[data]', then "
                "write this report again. The ranks above are the same."
            )
    honest = [one for one in analysis.differences if not one.row.oracle and len(one.by_set) > 1]
    if honest:
        shown = _farthest(honest)
        some = f" Of {len(honest)} soft rows the {_PANELS} farthest from their controls are shown."
        pictures.append(
            (
                "Soft against control, set by set",
                "A dot for each data set, mean over seeds; above the diagonal soft is "
                f"{'worse' if analysis.metric.lower_is_better else 'better'}. Named are the "
                f"{_NAMED} sets that are farthest from it."
                + (some if len(shown) < len(honest) else ""),
                scatter(shown, analysis.metric),
            )
        )
    if told := [one for one in honest if not one.of_too_few_sets]:
        pictures.append(
            (
                "How the differences spread",
                "A dot for each data set. The box holds the middle half, the line in it is the "
                f"median; the diamond is the mean with its {100 * LEVEL:.0f} % interval.",
                spread_of_differences(told, analysis.metric),
            )
        )
    results, score = analysis.table.results, analysis.metric.name
    if label_curves(results, score):
        caption = "Means over seeds against the share of labels; bars are standard deviations."
        pictures.append(("How many labels are needed", caption, share_figure(results, score)))
    if not (text or pictures):
        return None
    return Section(f"Figures{name}", tuple(text), pictures=tuple(pictures))


def _farthest(differences: Sequence[Difference]) -> list[Difference]:
    """The rows that a scatter plot has room for, in their order."""
    by_size = sorted(range(len(differences)), key=lambda i: -abs(differences[i].mean))
    return [differences[i] for i in sorted(by_size[:_PANELS])]


def _cd_picture(analysis: Analysis) -> Picture:
    left = len(analysis.table.rows) - len(analysis.compared)
    caption = (
        f"Average ranks of {len(analysis.compared)} rows on "
        f"{counted(len(analysis.common), 'data set')}, 1 the best; ours in blue. A bar "
        "joins rows between which no difference is shown: aeon's diagram, one-sided Wilcoxon tests "
        "of each row against the worse ones at "
        f"{ALPHA:g} / (rows − 1), after Friedman's test."
        + (f" Not ranked, see the table: {left}." if left else "")
    )
    return "Critical-difference diagram", caption, critical_difference(analysis)


def critical_difference(analysis: Analysis) -> "Figure":
    """The critical-difference diagram of the compared rows; ours are blue."""
    names = [row.name for row in analysis.compared]
    own = [row.name for row in analysis.compared if not row.published]
    return rank_diagram(analysis.scores, names, own, analysis.metric.lower_is_better)


@style()
def rank_diagram(
    scores: Floats, names: Sequence[str], own: Sequence[str], lower_is_better: bool = False
) -> "Figure":
    """The critical-difference diagram of scores ``(n_sets, n_rows)``, drawn by aeon.

    Args:
        scores: Of data sets by rows.
        names: Of the rows.
        own: Those of them that are blue.
        lower_is_better: Errors rather than scores.
    """
    from aeon.visualisation import plot_critical_difference
    from matplotlib import pyplot as plt

    scale = max(3.6, 0.27 * len(names))
    # Inches for letters of 10 points, and for a tenth of the width that the diagram cuts off.
    textspace = 0.65 + 0.09 * max(map(len, names)) + 0.125 * scale
    with without_warnings(), plt.ioff():  # of rows that are equal everywhere: a bar joins them
        figure, _ = plot_critical_difference(
            scores,
            list(names),
            highlight=dict.fromkeys(own, COLOURS[0]),
            lower_better=lower_is_better,
            alpha=ALPHA,
            width=scale + 2 * textspace,
            textspace=textspace,
        )
    plt.close(figure)
    for line in [one for one in figure.axes[0].lines if one.get_color() == "w"]:
        line.remove()  # it only sets the limits, and would show on a dark page
    for text in figure.axes[0].texts:
        text.set_fontsize(8 if text.get_text().replace(".", "").isdigit() else 10)
    found: Figure = figure
    return found


@style()
def scatter(differences: Sequence[Difference], metric: Metric) -> "Figure":
    """A panel for each soft row: its scores over those of its control."""
    n_columns = min(3, len(differences))
    n_lines = -(-len(differences) // n_columns)
    figure = new_figure(3.4 * n_columns, 3.5 * n_lines)
    axes = np.atleast_1d(figure.subplots(n_lines, n_columns, squeeze=False)).ravel()
    for ax, one in zip(axes, differences, strict=False):
        _scatter_panel(ax, one, metric)
    for ax in axes[len(differences) :]:
        ax.set_axis_off()
    return figure


def _scatter_panel(ax: "Axes", one: Difference, metric: Metric) -> None:
    names = list(one.by_set)
    x = np.array([metric.shown(one.control.mean(name)) for name in names])
    y = x + np.array([metric.shown(one.by_set[name]) for name in names])
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    margin = 0.04 * (high - low or 1.0)
    ends = (low - margin, high + margin)
    ax.plot(ends, ends, color=_GREY, linewidth=0.8, zorder=1)
    ax.scatter(x, y, s=14, color=COLOURS[0], alpha=0.75, linewidth=0, zorder=2)
    _name_outliers(ax, names, x, y, ends)
    ax.set_xlim(ends)
    ax.set_ylim(ends)
    ax.set_aspect("equal")
    ax.set_xlabel(one.control.name)
    ax.set_ylabel(one.row.name)
    ax.set_title(f"{one.wins} up, {one.ties} equal, {one.losses} down", loc="left")


def _name_outliers(
    ax: "Axes", names: Sequence[str], x: Floats, y: Floats, ends: tuple[float, float]
) -> None:
    """Names of the dots farthest from the diagonal, on its outer side and clear of each other.

    Above it they end at their dots, below it they begin there; where a panel has no room for that
    they stand at its edge, and a thin line leads to the dot.
    """
    size = ends[1] - ends[0]
    farthest = np.argsort(-np.abs(y - x))[:_NAMED]
    for side in (1, -1):  # above the diagonal, below it
        own = sorted((i for i in farthest if side * (y[i] - x[i]) > 0), key=lambda i: side * y[i])
        free = -np.inf
        for i in own:
            room = x[i] - ends[0] if side > 0 else ends[1] - x[i]
            at_edge = bool(room < 0.4 * size)
            height = max(side * y[i] + (0.08 if at_edge else 0.03) * size, free)
            if at_edge:  # its far end must not reach the diagonal
                width = _LETTER * size * len(names[i].rpartition("/")[2])
                reach = ends[0] + width if side > 0 else ends[1] - width
                height = max(height, side * reach + 0.03 * size)
            free = height + 0.05 * size
            place = (
                (ends[0] + 0.01 * size, ends[1])[side < 0] if at_edge else x[i] - side * 0.03 * size
            )
            ax.annotate(
                names[i].rpartition("/")[2],
                (x[i], y[i]),
                xytext=(place, side * height),
                ha="left" if at_edge == (side > 0) else "right",
                va="center",
                fontsize=6.5,
                arrowprops={"arrowstyle": "-", "color": _GREY, "linewidth": 0.5, "shrinkA": 1},
            )


@style()
def spread_of_differences(differences: Sequence[Difference], metric: Metric) -> "Figure":
    """A line of dots for each soft row, one for each data set, with box, mean and interval."""
    figure = new_figure(7.5, 0.9 + 0.62 * len(differences))
    ax = figure.subplots()
    rng = np.random.default_rng(0)
    ax.axvline(0, color=_GREY, linewidth=0.8, zorder=0)
    for place, one in enumerate(differences):
        values = np.array([metric.shown(value) for value in one.by_set.values()])
        jitter = place + rng.uniform(-0.22, 0.22, len(values))
        ax.scatter(values, jitter, s=9, color=COLOURS[0], alpha=0.45, linewidth=0)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        bar = (place - 0.26, 0.52)
        ax.broken_barh([(low, high - low)], bar, facecolor="none", edgecolor=_GREY, linewidth=0.9)
        ax.plot([middle, middle], [place - 0.26, place + 0.26], color=_GREY, linewidth=0.9)
        ends = [metric.shown(one.low), metric.shown(one.high)]
        ax.plot(ends, [place, place], color=COLOURS[1], linewidth=2.2, zorder=3)
        ax.plot(metric.shown(one.mean), place, "D", color=COLOURS[1], markersize=5, zorder=4)
    ax.set_yticks(range(len(differences)), [one.row.name for one in differences])
    ax.set_ylim(len(differences) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"soft minus control, {metric.name}{metric.unit and ', points'}")
    return figure
