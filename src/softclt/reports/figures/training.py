"""Models over training: their losses, and as they were at some of its steps."""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone

from softclt.methods.learner import RepresentationLearner
from softclt.reports.figures.style import COLOURS, DASHES, legend_name, new_figure, style
from softclt.training.schedules import CONSTANT
from softclt.validation import Floats, check_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Model = TypeVar("Model", bound=RepresentationLearner)


def snapshots(
    model: Model, X: Any, at_steps: Sequence[int], distances: Any = None
) -> dict[int, Model]:
    """Fitted copies of ``model`` after so many steps each; the model itself stays as it is.

    One training is stopped at every snapshot and goes on from there. On a CPU each copy has the
    bits of a fit with that ``max_iter``: batches and draws come from (seed, step), the optimiser
    and the running mean of the weights go on. A learning rate that looks at the end of training
    is refused.

    Args:
        model: Its ``max_iter``, ``max_epochs`` and ``warm_start`` do not matter. For series so many
            that ``distance_mode="auto"`` looks at the number of steps, name the mode.
        X: As in ``fit``.
        at_steps: 0 is the untrained encoder.
        distances: As in ``fit``; if they are given, they are not computed for every snapshot.
    """
    steps = sorted(set(at_steps))
    for step in steps:
        check_range(step, "at_steps", 0)
    if model.lr_schedule != CONSTANT:
        raise ValueError(
            f"lr_schedule is {model.lr_schedule!r}, which looks at the end of training, so that a "
            f"training in parts is another one; snapshots need {CONSTANT!r}"
        )
    going = clone(model).set_params(warm_start=True, max_epochs=None)
    taken: dict[int, Model] = {}
    for before, step in zip([0, *steps], steps, strict=False):
        going.set_params(max_iter=step - before).fit(X, distances=distances)
        taken[step] = copy.deepcopy(going).set_params(max_iter=step, warm_start=False)
    return taken


@style()
def training_curves(losses: Mapping[str, Sequence[float]], window: int | None = None) -> "Figure":
    """Losses of several models over training: pale as they are, and their running mean.

    Hard and soft losses are means of different sums: compare their course, not their height.

    Args:
        losses: Title -> loss of each step, as in ``model.history_["loss"]``.
        window: Steps of the running mean; None takes a twentieth of the longest training.
    """
    from matplotlib.ticker import LogLocator

    longest = max(len(own) for own in losses.values())
    window = max(1, longest // 20) if window is None else window
    figure = new_figure(4.6, 2.8)
    ax = figure.subplots()
    for i, (title, own) in enumerate(losses.items()):
        colour, steps = COLOURS[i % len(COLOURS)], np.arange(1, len(own) + 1)
        ax.plot(steps, own, color=colour, linewidth=0.6, alpha=0.35)
        mean = running_mean(np.asarray(own), window)
        ax.plot(
            steps, mean, color=colour, linestyle=DASHES[i % len(DASHES)], label=legend_name(title)
        )
    if all(loss > 0 for own in losses.values() for loss in own):  # the first steps fall far
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.set(xlabel="training step", ylabel="loss", xlim=(0, longest))
    ax.legend(title=f"running mean of {window} steps; pale: each step" if window > 1 else None)
    return figure


def running_mean(values: Floats, window: int) -> Floats:
    """Mean of each value and up to ``window - 1`` before it.

    Example:
        >>> running_mean(np.array([4.0, 2.0, 0.0, 2.0]), 2)
        array([4., 3., 1., 1.])
    """
    check_range(window, "window", 1)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    last = np.arange(1, len(values) + 1)
    first = np.maximum(0, last - window)
    return np.asarray((sums[last] - sums[first]) / (last - first))
