"""Soft assignments as pictures: over lag, by design, through the pooled hierarchy, of a batch."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from softclt.assignments import assignments, temporal_weights
from softclt.probes.scores import Labels
from softclt.reports.figures.style import (
    COLOURS,
    DASHES,
    MARKERS,
    SEQUENTIAL,
    class_name,
    new_figure,
    style,
)
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The paper's grids (appendix): windows as shares of the length, one over the standard deviations
# of the gaussian (2.5, 1, 0.5 steps), and taus of the sigmoid.
PAPER_DESIGNS: Mapping[str, Sequence[float]] = {
    "neighbor": (0.1, 0.3, 0.5),
    "linear": (1.0,),
    "gaussian": (0.4, 1.0, 2.0),
    "sigmoid": (0.5, 1.0, 2.5),
}


def weights_over_lag(length: int, tau: float, assignment: str = "sigmoid") -> Floats:
    """Weights of the lags 0 to ``length - 1`` in float64, zeros and all."""
    weights = temporal_weights(length, tau, assignment, dtype=torch.float64)
    assert weights is not None
    return np.pad(weights.numpy(), (0, length - len(weights)))


@style()
def assignment_curves(
    taus: Sequence[float] = (0.25, 0.5, 1.0, 2.5), max_lag: int = 16, assignment: str = "sigmoid"
) -> "Figure":
    """Weights over the lag between two steps for several taus (the paper's Figure 2a)."""
    figure = new_figure(4.2, 2.7)
    ax = figure.subplots()
    _curves(ax, taus, max_lag + 1, assignment, both_sides=False)
    ax.plot([0], [1], "k*", markersize=9, label="hard: this step only", clip_on=False, zorder=4)
    ax.set(xlabel="lag between two steps", ylabel="weight of the pair", xlim=(0, max_lag))
    ax.legend(title=f"{assignment} assignment")
    return figure


@style()
def temporal_designs(
    designs: Mapping[str, Sequence[float]] = PAPER_DESIGNS, length: int = 16
) -> "Figure":
    """Temporal assignments side by side, each for several taus (the paper's appendix).

    Args:
        designs: From names of temporal assignments to their taus.
        length: Steps of the series; neighbor and linear depend on it.
    """
    figure = new_figure(1.85 * len(designs), 2.6)
    axes, keys = figure.subplots(2, len(designs), height_ratios=(1, 0.28), squeeze=False)
    for ax, key, (name, taus) in zip(axes, keys, designs.items(), strict=True):
        _curves(ax, taus, length, name, both_sides=True)
        ax.set(title=name, xlabel="lag")
        key.legend(*ax.get_legend_handles_labels(), loc="center", handlelength=3)
        key.set_axis_off()
        ax.tick_params(labelleft=ax is axes[0])
    axes[0].set_ylabel("weight of the pair")
    return figure


@style()
def pooled_hierarchy(
    series: Floats,
    Z: Floats,
    tau: float = 1.0,
    growth: float = 2.0,
    n_levels: int = 5,
    assignment: str = "sigmoid",
    n_dims: int = 24,
) -> "Figure":
    """A series and its embedding, max-pooled level by level, beside the weights of each level.

    As the paper's Figure 2b says, neighbours grow apart with every pooling, so that tau has to
    grow: the weights then decay as before in original time; with a constant tau they reach further.

    Args:
        series: Values of one channel ``(T,)``, none missing.
        Z: Representations of its steps ``(T, M)``.
        tau: Sharpness at full resolution.
        growth: Of the sharpness, a level.
        n_levels: Levels to show; fewer where one step is left earlier.
        assignment: Of the weights.
        n_dims: Dimensions of Z that are shown: those that vary most.
    """
    length = len(series)
    n_levels = min(n_levels, length.bit_length() - 1)
    most = np.sort(np.argsort(-Z.std(axis=0), kind="stable")[:n_dims])
    shown = (Z[:, most] - Z[:, most].mean(axis=0)) / (Z[:, most].std(axis=0) + 1e-12)
    low, high = np.quantile(shown, [0.02, 0.995])
    figure = new_figure(7.2, 1.1 + 0.92 * n_levels)
    axes = figure.subplots(
        n_levels + 1, 3, width_ratios=(1.15, 1.15, 1), height_ratios=[1] * n_levels + [0.32]
    )
    for level, (line, heat, weights) in enumerate(axes[:-1]):
        values, z = pooled(series, level), pooled(shown, level)
        edges = np.arange(len(values) + 1) * 2**level
        line.plot(np.arange(length) + 0.5, series, color="0.7", linewidth=0.8)
        line.stairs(values, edges, color=COLOURS[0], linewidth=1.3, baseline=None)
        line.set(ylabel=f"level {level}\n{len(values)} steps", xlim=(0, length))
        line.set_title(f"neighbours: {_similar(values[:, None]):.2f}", loc="right", pad=2)
        image = heat.imshow(
            z.T, SEQUENTIAL, aspect="auto", vmin=low, vmax=high, extent=(0, edges[-1], 0, 1)
        )
        heat.set(yticks=[], xlim=(0, length))
        heat.set_title(f"neighbours: {_similar(pooled(Z, level)):.2f}", loc="right", pad=2)
        _level_weights(weights, length, level, tau, growth, assignment)
        if level < n_levels - 1:
            for ax in (line, heat, weights):
                ax.tick_params(labelbottom=False)
    titles = ("series", "embedding", "weights")
    labels = ("time step", "time step", "lag in original steps")
    for top, bottom, title, label in zip(axes[0], axes[-2], titles, labels, strict=True):
        top.set_title(title, loc="left", fontweight="bold", pad=2)
        bottom.set_xlabel(label)
    nothing, bar, key = axes[-1]
    nothing.set_axis_off()
    bar.set_axis_off()
    label = f"value (standardised) of {len(most)} dimensions"
    inset = bar.inset_axes((0.05, 0.7, 0.9, 0.3))
    figure.colorbar(image, cax=inset, orientation="horizontal", label=label)
    key.set_axis_off()
    key.legend(*axes[0, 2].get_legend_handles_labels(), loc="center")
    return figure


def pooled(values: Floats, level: int) -> Floats:
    """Maxima over 2^level steps of ``(T,)`` or ``(T, M)``, halved level by level as in the loss."""
    for _ in range(level):
        half = len(values) // 2
        values = np.maximum(values[0 : 2 * half : 2], values[1 : 2 * half : 2])
    return values


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
    image = ax.imshow(weights, cmap=SEQUENTIAL, vmin=0.0, vmax=top, interpolation="nearest")
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
    ax.set_yticks((starts + ends - 1) / 2, [class_name(label, classes) for label in found])
    return image


def _curves(
    ax: "Axes", taus: Sequence[float], length: int, assignment: str, both_sides: bool
) -> None:
    for i, tau in enumerate(taus):
        weights = weights_over_lag(length, tau, assignment)
        lags = np.arange(length)
        if both_sides:
            lags, weights = np.arange(1 - length, length), np.append(weights[:0:-1], weights)
        uses_tau = assignment != "linear"
        ax.plot(
            lags,
            weights,
            color=COLOURS[i % len(COLOURS)],
            linestyle=DASHES[i % len(DASHES)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=2.2 if both_sides else 3.5,
            drawstyle="steps-mid" if assignment == "neighbor" else "default",
            label=f"tau {tau:g}" if uses_tau else "any tau",
            clip_on=False,
        )
    ax.set_ylim(0, 1.02)


def _level_weights(
    ax: "Axes", length: int, level: int, tau: float, growth: float, assignment: str
) -> None:
    """Weights around a step of one level, with the growing and with a constant tau."""
    steps = length >> level
    grown = tau * growth**level if assignments.tags(assignment)["grows"] else tau
    for sharpness, look, name in (
        (tau, {"color": COLOURS[1], "marker": "s", "linestyle": DASHES[1]}, "constant tau"),
        (grown, {"color": COLOURS[0], "marker": "o"}, f"tau times {growth:g} a level"),
    ):
        weights = weights_over_lag(steps, sharpness, assignment)
        lags = np.arange(1 - steps, steps) * 2**level
        both = np.append(weights[:0:-1], weights)
        ax.plot(lags, both, markersize=2.5, linewidth=1.0, label=name, **look)
    reach = min(length - 1, max(4, int(40 / tau)))
    ax.set(xlim=(-reach, reach), ylim=(-0.03, 1.05), yticks=[0, 1])
    ax.set_title(f"tau {grown:g}", loc="right", pad=2)


def _similar(z: Floats) -> float:
    """Mean correlation of steps with the next one: cosine of ``(T, M)`` without its mean.

    NaN for a series that never changes.
    """
    z = z - z.mean(axis=0)
    if z.shape[1] == 1:
        total = float((z**2).sum())
        return float((z[1:] * z[:-1]).sum()) / total if total > 0 else float("nan")
    unit = z / (np.linalg.norm(z, axis=1, keepdims=True) + 1e-12)
    return float((unit[1:] * unit[:-1]).sum(axis=1).mean())
