"""Pictures of labels: the learning curve, and series that are clear, unclear or to be labelled."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softclt.data import SeriesTable
from softclt.few_labels import LabelStudy, Predictions
from softclt.reports.figures.style import COLOURS, new_figure, style
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CLASSES = 12
EACH = 3  # of the most and of the least certain series of a class
MOST_CHANNELS = 4
_INK, _FOR, _AGAINST = "#000000", COLOURS[0], COLOURS[1]  # those that follow a dark page


@style()
def curve_figure(study: LabelStudy, more: int) -> "Figure":
    """Accuracy against labels learned from, and where ``more`` labels would lead."""
    figure = new_figure(6.4, 3.2)
    ax = figure.subplots()
    found = 100 * study.accuracies  # (S, repeats)
    mean, spread = found.mean(axis=1), found.std(axis=1)
    ax.fill_between(study.sizes, mean - spread, np.minimum(mean + spread, 100), color=_FOR,
                    alpha=0.2, linewidth=0)  # fmt: skip
    ax.plot(study.sizes, mean, "o-", color=_FOR, markersize=4, label="held-out labels")
    gain = study.gain(more)
    if gain is not None:
        # The curve's gain, put on top of what was measured.
        low, value, high = (100 * end for end in (gain.low, gain.value, gain.high))
        top = 100 - mean[-1]
        ends = np.clip([value - low, high - value], 0, None)[:, None]
        ends[1] = max(0.0, min(float(ends[1, 0]), top - value))
        where = study.n_labels + more
        ax.errorbar([where], [mean[-1] + min(value, top)], yerr=ends, fmt="s", color=_AGAINST,
                    markersize=4, capsize=3, label=f"{more} more labels")  # fmt: skip
        ax.plot([study.sizes[-1], where], [mean[-1], mean[-1] + min(value, top)], ":",
                color=_AGAINST, linewidth=1.0)  # fmt: skip
    ax.set_xlabel("labels learned from")
    ax.set_ylabel("accuracy, %")
    ax.set_ylim(max(0.0, float((mean - spread).min()) - 8), 101)
    ax.legend(loc="lower right")
    return figure


@style()
def series_figure(X: Floats, titles: Sequence[str], columns: int = 5) -> "Figure":
    """Series ``(n, D, T)`` as small pictures, in rows."""
    n = len(X)
    columns = min(columns, n)
    lines = -(-n // columns)
    figure = new_figure(1.9 * columns, 0.2 + 1.15 * lines)
    axes = figure.subplots(lines, columns, squeeze=False).reshape(-1)
    for ax, x, title in zip(axes, X, titles, strict=False):
        _draw(ax, x, title, _FOR)
    for ax in axes[n:]:
        ax.set_axis_off()
    return figure


@style()
def certain_figure(
    series: SeriesTable, predictions: Predictions, classes: Sequence[str]
) -> "Figure":
    """A row for each class: its most certain series left, its least certain right."""
    counts = np.bincount(predictions.codes, minlength=len(classes))
    shown = [code for code in range(len(classes)) if counts[code]]
    largest = sorted(sorted(shown, key=lambda code: -counts[code])[:MOST_CLASSES])
    figure = new_figure(9.6, 0.5 + 1.15 * len(largest))
    axes = figure.subplots(len(largest), 2 * EACH, squeeze=False)
    for line, code in zip(axes, largest, strict=True):
        rows = np.flatnonzero(predictions.codes == code)
        ordered = rows[np.argsort(-predictions.confidence[rows], kind="stable")]
        surest = ordered[:EACH]
        least = ordered[EACH:][::-1][:EACH]  # none twice
        for ax, row, colour in [
            *zip(line[:EACH], surest, [_FOR] * EACH, strict=False),
            *zip(line[EACH:], least, [_AGAINST] * EACH, strict=False),
        ]:
            title = f"{_short(series.ids[row])} · {predictions.confidence[row]:.2f}"
            _draw(ax, series.X[row], title, colour)
        for ax in [*line[len(surest) : EACH], *line[EACH + len(least) :]]:
            ax.set_axis_off()
        line[0].set_axis_on()
        line[0].set_ylabel(_short(classes[code]))
    left_out = len(shown) - len(largest)
    if left_out:
        figure.suptitle(f"The {len(largest)} largest classes; {left_out} more are in the table")
    return figure


def channel_words(X: Floats) -> str:
    """What a caption says of the channels of series ``(N, D, T)``; nothing of a single one."""
    d = X.shape[1]
    if d == 1:
        return ""
    part = f"the first {MOST_CHANNELS} of {d}" if d > MOST_CHANNELS else f"all {d}"
    return f"; {part} channels, each on its own scale"


def _draw(ax: "Axes", x: Floats, title: str, colour: str) -> None:
    """Channels of one series ``(D, T)``, each on its own scale where there are several."""
    steps = np.flatnonzero(~np.isnan(x).all(axis=0))
    x = x[:MOST_CHANNELS, : steps[-1] + 1 if len(steps) else 1]
    if len(x) > 1:
        spread = np.nanstd(x, axis=1, keepdims=True)
        x = (x - np.nanmean(x, axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
    for channel in x:
        ax.plot(channel, color=colour, linewidth=0.8, alpha=1.0 if len(x) == 1 else 0.6)
    ax.set_title(title, loc="left", fontsize=7.5)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


def _short(text: object, limit: int = 16) -> str:
    shown = str(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
