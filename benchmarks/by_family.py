"""What do rows score on families of data sets that an encoder has seen, and on others?

    python benchmarks/by_family.py results.jsonl [more.jsonl]
    python benchmarks/by_family.py results.jsonl --pair "soft-?" "hard-?" --pair base untrained

Sets of the same recordings are one family (bench/families.toml); a family's score is the mean of
its sets, a set's the mean over seeds. --pair says what one row gains over another, over families,
with an interval of 95 %: of those seen, of the half of these that chose nothing, and of those
unseen. A pattern stands for the mean of the rows that it finds.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from softclt.bench.families import families
from softclt.reports.statistics import interval, wins_ties_losses
from softclt.tasks import Result, read_results

Scores = Mapping[str, float]  # in per cent, by data set


def main() -> None:
    """Print a line for each row and each pair."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--pair", nargs=2, action="append", default=[], metavar=("ROW", "OVER"))
    parser.add_argument("--metric", default="accuracy")
    options = parser.parse_args()
    results = [one for path in options.results for one in read_results(path) if not one.error]
    rows = scores(results, options.metric)
    for name, own in rows.items():
        line: dict[str, Any] = {"row": name}
        for archive in ("ucr", "uea"):
            found = [score for data, score in own.items() if data.startswith(f"{archive}/")]
            if found:
                line[f"{archive}, {len(found)} sets"] = round(statistics.fmean(found), 2)
        means = by_group(own)
        line |= {g: round(statistics.fmean(m.values()), 2) for g, m in means.items() if m}
        print(json.dumps(line))
    for row, over in options.pair:
        line = {"row": row, "over": over}
        first, second = mean_of(rows, row), mean_of(rows, over)
        differences = {data: first[data] - second[data] for data in first if data in second}
        for group, gains in by_group(differences).items():
            line[group] = summary(list(gains.values()))
        print(json.dumps(line))


def scores(results: Sequence[Result], metric: str) -> dict[str, Scores]:
    """By configuration and data set, mean over seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in results:
        own = found.setdefault(one.configuration, {}).setdefault(one.dataset, [])
        own.append(100 * one.metrics[metric])
    return {
        row: {data: statistics.fmean(own) for data, own in sets.items()}
        for row, sets in sorted(found.items())
    }


def mean_of(rows: Mapping[str, Scores], pattern: str) -> Scores:
    """Mean of the rows that a pattern finds, on the sets that all of them have."""
    found = [own for row, own in rows.items() if row == pattern or fnmatchcase(row, pattern)]
    if not found:
        raise SystemExit(f"no row {pattern!r}; there are: {', '.join(rows)}")
    common = set.intersection(*(set(own) for own in found))
    return {data: statistics.fmean(own[data] for own in found) for data in sorted(common)}


def by_group(scores: Scores) -> dict[str, dict[str, float]]:
    """Means of families: all that were seen, the half of these that chose nothing, unseen ones."""
    table = families()
    found: dict[str, dict[str, float]] = {"seen": {}, "seen, chose nothing": {}, "unseen": {}}
    for family, members in table["families"].items():
        own = [scores[data] for data in members if data in scores]
        if own and family in table["held_out"]:
            found["unseen"][family] = statistics.fmean(own)
        elif own:
            found["seen"][family] = statistics.fmean(own)
            if family not in table["chooses"]:
                found["seen, chose nothing"][family] = statistics.fmean(own)
    return found


def summary(differences: Sequence[float]) -> dict[str, Any]:
    """Mean, interval and signs of differences."""
    low, high = interval(differences)
    wins, _, losses = wins_ties_losses(differences)
    return {
        "families": len(differences),
        "mean": round(statistics.fmean(differences), 2),
        "interval": [round(low, 2), round(high, 2)],
        "up": wins,
        "down": losses,
    }


if __name__ == "__main__":
    main()
