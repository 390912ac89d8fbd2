"""Does our TS2Vec score as the authors' code does, and what does softness add? UCR, over seeds.

Needs the archive: `SOFTCLT_DATA=... python benchmarks/ucr.py --anchors official.csv`.
The anchors are a CSV with the columns `dataset` and `hard`. Sets are taken by size; all sets have
the same taus, and test labels only score a run. A run that was stopped goes on where it was.
"""

import argparse
import csv
import json
import statistics
import sys
from pathlib import Path

from softclt import TS2Vec, load
from softclt.progress import progress_bar
from softclt.tasks.result import Result
from softclt.tasks.runner import Run, run_all

CONFIGURATIONS = {
    "untrained": TS2Vec.from_preset("hard", max_iter=0),
    "hard": TS2Vec.from_preset("hard"),
    "soft": TS2Vec.from_preset("hard", tau_instance=20.0, tau_temporal=1.0),
    "official": TS2Vec.from_preset("official"),
    "default": TS2Vec(),
    "default-hard": TS2Vec(tau_instance=None, tau_temporal=None),
    "default-dense": TS2Vec(distance_mode="dense"),
    "default-lazy": TS2Vec(distance_mode="lazy"),
}


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anchors", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("ucr.jsonl"))
    parser.add_argument("--configurations", nargs="+", default=["untrained", "hard", "soft"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sets", nargs="*", help="names; all of the anchors that fit if left out")
    parser.add_argument("--max-train", type=int, default=500)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()

    with options.anchors.open(newline="") as file:
        anchors = {
            row["dataset"]: float(row["hard"]) for row in csv.DictReader(file) if row["hard"]
        }
    wanted = options.sets or list(anchors)
    names = [name for name in wanted if _fits(name, options.max_train, options.max_length)]
    runs = {
        (configuration, name, seed): Run(
            "classification",
            CONFIGURATIONS[configuration].set_params(device=options.device),
            f"ucr/{name}",
            seed,
        )
        for seed in range(options.seeds)
        for configuration in options.configurations
        for name in names
    }
    with progress_bar("runs", len(runs), enabled=True) as advance:
        results = run_all(
            list(runs.values()),
            options.out,
            n_workers=options.workers,
            on_result=lambda result: advance(1),
        )
    scores = {key: result.metrics["accuracy"] for key, result in zip(runs, results, strict=True)}
    _report(scores, anchors, names, options.configurations, options.seeds, results[0])


def _spread(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else float("nan")


def _fits(name: str, max_train: int, max_length: int) -> bool:
    try:
        n, _, t = load(f"ucr/{name}").X_train.shape
    except ValueError:
        print(f"{name} is not here", file=sys.stderr)
        return False
    return bool(n <= max_train and t <= max_length)


def _report(
    scores: dict[tuple[str, str, int], float],
    anchors: dict[str, float],
    names: list[str],
    configurations: list[str],
    n_seeds: int,
    example: Result,
) -> None:
    seeds = range(n_seeds)
    lines = [f"| data set | authors' hard | {' | '.join(configurations)} |"]
    lines.append("|---|" + "---|" * (1 + len(configurations)))
    for name in names:
        cells = [[scores[c, name, s] for s in seeds] for c in configurations]
        text = " | ".join(f"{statistics.mean(c):.3f} ± {_spread(c):.3f}" for c in cells)
        lines.append(f"| {name} | {anchors[name]:.3f} | {text} |")
    print("\n".join(lines))
    anchor = statistics.mean(anchors[name] for name in names)
    for c in configurations:
        by_seed = [statistics.mean(scores[c, name, s] for name in names) for s in seeds]
        line = {
            "configuration": c,
            "sets": len(names),
            "accuracy": round(100 * statistics.mean(by_seed), 2),
            "by_seed": [round(100 * value, 2) for value in by_seed],
            "authors_hard": round(100 * anchor, 2),
            "device": example.device,
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
