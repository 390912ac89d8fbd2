"""Tables and pictures of classifiers that were run side by side, from the lines of `softclt bench`.

    python benchmarks/classifying.py results.jsonl [more.jsonl] [--row softclt] [--out FOLDER]
    python benchmarks/classifying.py --few few.jsonl [--out FOLDER]

A table for each archive: means over the data sets that all rows have, mean ranks, and on the data
sets that two rows have, what --row gains over the other with its interval of 95 %, wins, ties and
losses. A score is the mean over the seeds that were run. --seconds adds the time of a seed, which
tells something only where the machine did nothing else. Then the gains over families of data sets,
those that the encoder has seen and others apart (bench/families.toml), and how far left-out
accuracy is from accuracy. --few: by labels of each class, with the interval over data sets.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from by_family import Scores, by_group, scores

from softclt.reports.comparison import rank_diagram
from softclt.reports.figures.style import COLOURS, MARKERS, new_figure, save_figure, style
from softclt.reports.statistics import interval, ranks, wins_ties_losses
from softclt.tasks import Result, read_results

Rows = Mapping[str, Scores]
_GROUPS = ("seen", "unseen")


def main() -> None:
    """Print tables in Markdown, and draw pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="*", type=Path)
    parser.add_argument("--few", nargs="*", type=Path, default=[])
    parser.add_argument("--row", default="softclt")
    parser.add_argument("--least", type=int, default=10, help="Data sets of a row to be ranked.")
    parser.add_argument("--seconds", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for archive in ("ucr", "uea"):
        results = _read(options.results, archive)
        if any(one.configuration == options.row for one in results):
            print(*_archive(archive, results, options), sep="\n")
    if results := _read(options.results, ""):
        print(*_left_out(results), sep="\n")
    if few := _read(options.few, ""):
        print(*_few(few), sep="\n")
        if options.out is not None:
            save_figure(few_figure(few), options.out / "classify-few.png")


def _read(paths: Sequence[Path], archive: str) -> list[Result]:
    found = [one for path in paths for one in read_results(path) if not one.error]
    return [one for one in found if one.dataset.startswith(archive)]


def _archive(archive: str, results: Sequence[Result], options: Any) -> Iterator[str]:
    """The table of an archive, and that of families."""
    rows = scores(results, "accuracy")
    ranked = {name: own for name, own in rows.items() if len(own) >= options.least}
    common = sorted(set.intersection(*(set(own) for own in ranked.values())))
    table = np.array([[own[data] for own in ranked.values()] for data in common])
    of_row = dict(zip(ranked, ranks(table).mean(axis=0), strict=True))
    seeds = {name: {one.seed for one in results if one.configuration == name} for name in rows}
    yield f"\n## {archive}: {len(common)} data sets that all ranked rows have\n"
    yield (
        f"| row | seeds | sets | mean | rank | {options.row} gains | 95 % | wins, ties, losses "
        "| calibration error | log-loss |" + " fit, s | predict, s |" * options.seconds
    )
    yield "|---|" + "---:|" * (11 if options.seconds else 9)
    calibration, surprise = (
        scores([one for one in results if name in one.metrics], name)
        for name in ("calibration_error", "log_loss")
    )
    for name in sorted(ranked, key=lambda name: of_row[name]):
        own = rows[name]
        gains = _gains(rows[options.row], own)
        cells = [name, str(len(seeds[name])), str(len(own))]
        cells += [f"{statistics.fmean(own[data] for data in common):.1f}", f"{of_row[name]:.2f}"]
        if name == options.row:
            cells += ["", "", ""]
        else:
            low, high = interval(list(gains.values()))
            cells += [f"{statistics.fmean(gains.values()):+.2f}", f"{low:+.2f} to {high:+.2f}"]
            cells.append(", ".join(map(str, wins_ties_losses(list(gains.values())))))
        if name in calibration:
            cells.append(f"{statistics.fmean(calibration[name][data] for data in common):.1f}")
            cells.append(f"{statistics.fmean(surprise[name][data] for data in common) / 100:.2f}")
        else:  # a row of another suite
            cells += ["", ""]
        if options.seconds:
            cells += [
                f"{_seconds(results, name, phase, common):.0f}" for phase in ("fit", "predict")
            ]
        yield "| " + " | ".join(cells) + " |"
    yield f"\n### What {options.row} gains over families of {archive}\n"
    yield "| over | " + " | ".join(f"{group} families | 95 %" for group in _GROUPS) + " |"
    yield "|---|" + "---:|" * (2 * len(_GROUPS))
    for name in sorted(ranked, key=lambda name: of_row[name]):
        if name != options.row:
            groups = by_group(_gains(rows[options.row], rows[name]))
            cells = [cell for group in _GROUPS for cell in _of_families(groups[group])]
            yield f"| {name} | " + " | ".join(cells) + " |"
    if options.out is not None:
        figure = rank_diagram(table, list(ranked), [options.row])
        save_figure(figure, options.out / f"classify-{archive}.png")


def _gains(first: Scores, second: Scores) -> dict[str, float]:
    return {data: first[data] - second[data] for data in first if data in second}


def _of_families(gains: Mapping[str, float]) -> tuple[str, str]:
    if not gains:
        return "", ""
    low, high = interval(list(gains.values()))
    return f"{statistics.fmean(gains.values()):+.2f} ({len(gains)})", f"{low:+.2f} to {high:+.2f}"


def _seconds(results: Sequence[Result], row: str, phase: str, sets: Sequence[str]) -> float:
    """Over all these data sets, with one seed."""
    own = [one for one in results if one.configuration == row and one.seed == 0]
    return sum(one.seconds[phase] for one in own if one.dataset in sets)


def _left_out(results: Sequence[Result]) -> Iterator[str]:
    """How far left-out accuracy is from accuracy, row by row."""
    yield "\n## Left-out accuracy against accuracy on the test part\n"
    yield "| row | sets | left out | test | mean gap | mean size of the gap | correlation |"
    yield "|---|" + "---:|" * 6
    known = [one for one in results if np.isfinite(one.metrics.get("loo_accuracy", np.nan))]
    for row in dict.fromkeys(one.configuration for one in known):
        own = [one for one in known if one.configuration == row]
        left = np.array([100 * one.metrics["loo_accuracy"] for one in own])
        test = np.array([100 * one.metrics["accuracy"] for one in own])
        gap = left - test
        yield (
            f"| {row} | {len(own)} | {left.mean():.1f} | {test.mean():.1f} | {gap.mean():+.1f} "
            f"| {np.abs(gap).mean():.1f} | {np.corrcoef(left, test)[0, 1]:.2f} |"
        )


def _curves(results: Sequence[Result]) -> dict[str, dict[int, list[float]]]:
    """Row -> labels of each class -> accuracy on each data set that all have, mean over seeds."""
    found: dict[str, dict[int, list[float]]] = {}
    rows = scores(results, "accuracy")
    common = sorted(set.intersection(*(set(own) for own in rows.values())))
    for name, own in rows.items():
        row, _, labels = name.rpartition(", ")
        found.setdefault(row, {})[int(labels)] = [own[data] for data in common]
    return found


def _few(results: Sequence[Result]) -> Iterator[str]:
    curves = _curves(results)
    labels = sorted({n for curve in curves.values() for n in curve})
    n_sets = len(curves["softclt"][labels[0]])
    yield f"\n## Labels of each class: means over {n_sets} data sets\n"
    yield "| row | " + " | ".join(map(str, labels)) + " |"
    yield "|---|" + "---:|" * len(labels)
    for row, curve in curves.items():
        cells = [f"{statistics.fmean(curve[n]):.1f}" if n in curve else "" for n in labels]
        yield f"| {row} | " + " | ".join(cells) + " |"
    first = next(row for row in curves if row == "softclt")
    for row in curves:
        if row != first:
            gains = [np.subtract(curves[first][n], curves[row][n]) for n in labels]
            ends = [interval(list(own)) for own in gains]
            cells = [
                f"{own.mean():+.1f} ({low:+.1f} to {high:+.1f})"
                for own, (low, high) in zip(gains, ends, strict=True)
            ]
            yield f"| {first} − {row} | " + " | ".join(cells) + " |"


@style()
def few_figure(results: Sequence[Result]) -> Any:
    """Means over data sets against labels of each class; bands are 95 % intervals over these."""
    figure = new_figure(4.6, 3.4)
    ax = figure.subplots()
    for i, (row, curve) in enumerate(_curves(results).items()):
        x = sorted(curve)
        ends = np.array([interval(curve[n]) for n in x])
        mean = [statistics.fmean(curve[n]) for n in x]
        ax.plot(x, mean, color=COLOURS[i], marker=MARKERS[i], label=row)
        ax.fill_between(x, ends[:, 0], ends[:, 1], color=COLOURS[i], alpha=0.12, linewidth=0)
    ax.set_xscale("log")
    ax.set_xticks(x, [str(n) for n in x])
    ax.minorticks_off()
    ax.set(xlabel="labels of each class", ylabel="accuracy in per cent")
    ax.legend(loc="lower right")
    return figure


if __name__ == "__main__":
    main()
