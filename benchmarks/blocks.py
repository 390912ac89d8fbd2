"""Which blocks of features does a ridge read best, by training series alone?

    python benchmarks/blocks.py lines.jsonl [--sets "ucr/*" "uea/*"] [--kept FOLDER]
    python benchmarks/blocks.py lines.jsonl --table

Products of at most 1,000 training series of each data set are made once for each block, and kept
in a folder if one is named. Each set of blocks is then scored by what a ridge says of each series
when it was fitted on all others; test parts are not loaded. A line a data set; one with one series
of each class has nothing to leave out. The table has means over families (bench/families.toml): of
the half that chooses, of the other seen ones, and of those that the encoder has not seen; then what
a set of blocks gains over the first, with an interval of 95 %.
"""

import argparse
import fnmatch
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softclt.bench.families import families
from softclt.classification.blocks import blocks
from softclt.classification.classifier import CHOOSING, _spread, _testable
from softclt.classification.design import Landmarks
from softclt.classification.ridge import fit_ridge, targets
from softclt.data import available, load
from softclt.files import append_lines, json_lines
from softclt.methods import load_pretrained
from softclt.reports.statistics import interval
from softclt.validation import Floats64, check_series

BLOCKS = ("base", "compact", "differences", "sums", "synthetic", "statistics")
SETS = (
    *((name,) for name in BLOCKS),
    ("base", "differences"),
    ("base", "sums"),
    ("base", "synthetic"),
    ("base", "statistics"),
    ("base", "compact"),
    ("base", "differences", "sums"),
    ("base", "differences", "statistics"),
    ("base", "differences", "synthetic"),
    ("base", "sums", "statistics"),
    ("base", "differences", "sums", "statistics"),
    ("base", "differences", "synthetic", "statistics"),
    ("base", "differences", "sums", "synthetic"),
    ("base", "differences", "sums", "synthetic", "statistics"),
)
#: Sets of blocks of which one is chosen on each data set, by the left-out error of half of its
#: series; the accuracy is that on the other half, and the other way round.
CHOICES = {
    "either of 2": (SETS[-2], SETS[-1]),
    "either of 3": (SETS[7], SETS[-2], SETS[-1]),
    "either of 4": (SETS[0], SETS[7], SETS[-2], SETS[-1]),
    "either of all": SETS,
}


def main() -> None:
    """Write a line for each data set that has none, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lines", type=Path)
    parser.add_argument("--sets", nargs="*", default=["ucr/*", "uea/*"])
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    there = options.lines.read_text().splitlines() if options.lines.exists() else []
    lines = [json.loads(line) for line in there]
    if options.table:
        for line in table(lines):
            print(json.dumps(line))
        return
    named = [n for n in available() if any(fnmatch.fnmatchcase(n, p) for p in options.sets)]
    for name in _smallest_first(set(named) - {line["data"] for line in lines}):
        append_lines(options.lines, json_lines([scored(name, options.kept)]))


def _smallest_first(names: set[str]) -> list[str]:
    return sorted(names, key=lambda name: (load(name, split="train").X_train.size, name))


def scored(name: str, kept: Path | None) -> dict[str, Any]:
    """Left-out accuracy and error of every set of blocks on a data set."""
    data = load(name, split="train")
    assert data.y_train is not None
    codes = np.unique(data.y_train, return_inverse=True)[1]
    rows = _spread(codes, CHOOSING, 0)
    codes, X = codes[rows], check_series(data.X_train[rows], min_length=2)
    about = {"benchmark": "blocks", "data": name, "series": len(X), "length": X.shape[-1]}
    Y, counted = targets(codes, int(codes.max()) + 1), _testable(codes)
    if not len(counted):
        return about | {"left_out": {}}
    K, seconds = products(X, name, kept)
    right, errors = {}, {}
    for names in SETS:
        mean = np.mean([K[one] for one in names], axis=0)
        left_out = fit_ridge(mean, Y, np.ones(len(codes)), counted).left_out[counted]
        right[names] = left_out.argmax(axis=1) == codes[counted]
        errors[names] = np.mean((left_out - Y[counted]) ** 2, axis=1)
    found = {"+".join(names): _means(right[names], errors[names]) for names in SETS}
    first = np.random.default_rng(0).permutation(len(counted)) % 2 == 0
    for name, among in CHOICES.items():
        own = np.zeros(len(counted), bool), np.zeros(len(counted))
        for chooses in (first, ~first):
            best = min(among, key=lambda names: errors[names][chooses].sum())
            own[0][~chooses], own[1][~chooses] = right[best][~chooses], errors[best][~chooses]
        found[name] = _means(*own)
    return about | {"seconds": seconds, "left_out": found}


def _means(right: Any, errors: Any) -> dict[str, float]:
    return {"accuracy": round(float(right.mean()), 5), "error": round(float(errors.mean()), 6)}


def products(X: Any, name: str, kept: Path | None) -> tuple[dict[str, Floats64], dict[str, float]]:
    """Of all series with all, by block, and the seconds that each took."""
    path = None if kept is None else kept / f"{name.replace('/', '-')}.npz"
    if path is not None and path.exists():
        with np.load(path) as there:
            return {one: there[one].astype(np.float64) for one in there}, {}
    encoder = load_pretrained("base", readout="rich").fit(X)
    K, seconds = {}, {}
    for one in BLOCKS:
        start = time.perf_counter()
        K[one] = Landmarks.of(blocks[one](encoder, 0).fit(X), X).products()
        seconds[one] = round(time.perf_counter() - start, 3)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **{one: own for one, own in K.items()})  # type: ignore[arg-type]
    return K, seconds


def table(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each set of blocks: means over families, and gains over the first set."""
    first, lines = "+".join(SETS[0]), [line for line in lines if line["left_out"]]
    found = []
    for names in (*map("+".join, SETS), *CHOICES):
        line: dict[str, Any] = {"blocks": names}
        for score in ("accuracy", "error"):
            own = {one["data"]: one["left_out"][names][score] for one in lines}
            over = {one["data"]: own[one["data"]] - one["left_out"][first][score] for one in lines}
            for group, gains in by_half(over).items():
                if not gains:
                    continue
                mean = statistics.fmean(by_half(own)[group])
                low, high = interval(gains)
                line[f"{score}, {group}, {len(gains)} families"] = [
                    round(value, 4) for value in (mean, statistics.fmean(gains), low, high)
                ]
        found.append(line)
    return found


def by_half(scores: dict[str, float]) -> dict[str, list[float]]:
    """Means of families: of the half that chooses, of the others seen, and of those unseen."""
    known = families()
    found: dict[str, list[float]] = {"chooses": [], "seen, chose nothing": [], "unseen": []}
    for family, members in known["families"].items():
        own = [scores[data] for data in members if data in scores]
        if own:
            unseen, chooses = family in known["held_out"], family in known["chooses"]
            group = "unseen" if unseen else "chooses" if chooses else "seen, chose nothing"
            found[group].append(statistics.fmean(own))
    return found


if __name__ == "__main__":
    main()
