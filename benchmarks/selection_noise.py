"""How much of a gain is the choice itself? From results that hold a grid and its control.

    python benchmarks/selection_noise.py results.jsonl [--out selection-noise.png]

Everything is accuracy over that of the control, the mean of its seeds, on each data set; then the
mean over data sets with its 95 % interval. What is compared, all read by one probe:

- the best point of the grid by the test set, on the very seed that it is scored on;
- the best point by the test set on the other seeds, scored on the one that is left out;
- the point that training labels choose;
- every point for all sets, and of those the default;
- and the best of the control's own seeds by the test set: what choosing makes where there is
  nothing to choose but luck.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from softclt.reports.figures.style import COLOURS, new_figure, save_figure, style
from softclt.reports.statistics import interval
from softclt.tasks import Result, read_results

By = Mapping[int, Mapping[str, float]]  # accuracy by seed and point


def gains(
    results: Sequence[Result], grid: str, control: str, default: str
) -> dict[str, list[float]]:
    """Gains over the control on each data set, by what chose.

    Args:
        results: Lines of a suite.
        grid: What the names of the grid's points begin with, up to the bracket.
        control: Name of the control.
        default: Name of a configuration without a choice; the names have a probe.
    """
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in results:
        if not line.error:
            own = found[line.dataset][line.seed]
            own[line.configuration] = 100 * line.metrics["accuracy"]
    probe = control.partition(" · ")[2]
    out: dict[str, list[float]] = defaultdict(list)
    for of_seed in found.values():
        points = {
            name
            for own in of_seed.values()
            for name in own
            if name.startswith(f"{grid}(") and name.endswith(probe)
        }
        points = {p for p in points if all(p in own for own in of_seed.values())}
        train = f"{grid} train · {probe}"
        whole = all({control, default, train} <= set(own) for own in of_seed.values())
        if len(of_seed) < 2 or not points or not whole:
            continue
        hard = statistics.fmean(own[control] for own in of_seed.values())
        for name, value in chosen(of_seed, sorted(points), control).items():
            out[name].append(value - hard)
        for name, row in (("training labels", train), ("no choice: the default", default)):
            out[name].append(statistics.fmean(own[row] for own in of_seed.values()) - hard)
    return dict(out)


def chosen(of_seed: By, points: Sequence[str], control: str) -> dict[str, float]:
    """What each way of choosing by the test set scores on a data set, a mean over seeds."""
    same, other = [], []
    for seed, own in of_seed.items():
        same.append(max(own[point] for point in points))
        rest = [others for s, others in of_seed.items() if s != seed]
        means = {p: statistics.fmean(others[p] for others in rest) for p in points}
        top = max(means.values())
        # Equal ones share: which comes first in a grid says nothing.
        best = [p for p in points if means[p] == top]
        other.append(statistics.fmean(own[p] for p in best))
    return {
        "the test set, same seed": statistics.fmean(same),
        "the test set, other seeds": statistics.fmean(other),
        "no choice: mean of the grid": statistics.fmean(
            own[p] for own in of_seed.values() for p in points
        ),
        "the best seed of hard, by the test set": max(own[control] for own in of_seed.values()),
    }


def draw(rows: Mapping[str, Sequence[float]], printed: float, path: Path) -> None:
    """Means and intervals, one below the other, and the printed gain as a line."""
    with style():
        figure = new_figure(width=6.3, height=2.3)
        axes = figure.subplots()
        for y, values in enumerate(reversed(list(rows.values()))):
            axes.plot(interval(values), [y, y], color=COLOURS[0], linewidth=2)
            axes.plot([statistics.fmean(values)], [y], "o", color=COLOURS[0])
        axes.axvline(0, color="0.6", linewidth=0.8)
        axes.axvline(printed, color=COLOURS[1], linewidth=1, linestyle="--")
        axes.text(printed, 0, " printed gain", color=COLOURS[1], va="center")
        axes.set_yticks(range(len(rows)), [*rows][::-1])
        axes.set_xlabel("accuracy over hard in points, mean over data sets, 95 % interval")
        save_figure(figure, path)


def main() -> None:
    """Print the table, and draw it if wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--grid", default="tau")
    parser.add_argument("--control", default="hard · ridge")
    parser.add_argument("--default", default="soft · ridge")
    parser.add_argument("--printed", type=float, default=2.0, help="gain to compare with")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = gains(read_results(args.results), args.grid, args.control, args.default)
    if not rows:
        parser.error(f"{args.results} has no data set with the whole grid and two seeds")
    rows = dict(sorted(rows.items(), key=lambda row: -np.mean(row[1])))
    for name, values in rows.items():
        low, high = interval(values)
        mean = statistics.fmean(values)
        print(f"{name:40} {mean:+.2f} ({low:+.2f} to {high:+.2f}), {len(values)} sets")
    if args.out is not None:
        draw(rows, args.printed, args.out)


if __name__ == "__main__":
    main()
