"""Of the ten series most like a series, how many are of its class?

    python benchmarks/retrieval.py --out retrieval.jsonl [--encoder soft-0=weights/soft-0 ...]
    python benchmarks/retrieval.py --out retrieval.jsonl --ts2vec ItalyPowerDemand GunPoint
    python benchmarks/retrieval.py --summary retrieval.jsonl [--pair soft-* hard-*]

Test parts of the UCR sets that lie in SOFTCLT_DATA; a permutation with seed 0 chooses 300 series of
the larger ones. Each series is a query for the others. Its score is the share of its class among
the 10 nearest, or among as many as its class has others; a set's is the mean over its series.
Labels choose nothing. `base` and other encoders are compared by cosine, as a SeriesIndex does; raw
series, each standardised, by Euclidean distance (stretched to one length where they differ) and by
DTW without a band. TS2Vec is trained on the training part.

A line for each set and method; what the file has already is not measured again. --summary prints
means over sets and over families, and what one method gains over another, over families, with an
interval of 95 %; see by_family.py.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from by_family import by_group, mean_of, summary

from softclt import TS2Vec, load, load_pretrained, pairwise_distance
from softclt.data import Dataset
from softclt.data.catalog import ROOTS_VARIABLE
from softclt.data.preparation import standardised
from softclt.files import append_lines, json_lines
from softclt.validation import Floats, Floats64, Ints

K = 10
MOST = 300

Distances = Callable[[Dataset, Floats], Floats64]


def main() -> None:
    """Measure what is missing, or print what there is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--ts2vec", nargs="*", default=[], metavar="SET")
    parser.add_argument("--summary", type=Path, nargs="*", default=[])
    parser.add_argument("--pair", nargs=2, action="append", default=[], metavar=("METHOD", "OVER"))
    options = parser.parse_args()
    if options.out is not None:
        methods = {"base": cosine("base"), "euclidean": euclidean, "dtw": dtw}
        for one in options.encoder:
            name, _, folder = one.partition("=")
            methods[name] = cosine(folder)
        measure(options.out, methods, options.ts2vec)
    if options.summary:
        summarise(options.summary, options.pair)


def measure(out: Path, methods: dict[str, Distances], with_ts2vec: list[str]) -> None:
    """Append a line for each set and method that the file lacks."""
    done = {(one["set"], one["method"]) for one in read([out])} if out.exists() else set()
    for name in ucr_sets():
        own = {**methods, "ts2vec": ts2vec} if name in with_ts2vec else methods
        wanted = {key: method for key, method in own.items() if (name, key) not in done}
        if not wanted:
            continue
        data = load(f"ucr/{name}")
        assert data.X_test is not None
        assert data.y_test is not None
        chosen = np.sort(np.random.default_rng(0).permutation(len(data.X_test))[:MOST])
        X, y = data.X_test[chosen], data.y_test[chosen]
        for key, method in wanted.items():
            start = time.perf_counter()
            score = precision(method(data, X), y)
            seconds = round(time.perf_counter() - start, 2)
            line: dict[str, Any] = {"set": name, "method": key, "precision_at_10": round(score, 6)}
            append_lines(out, json_lines([line | {"series": len(X), "seconds": seconds}]))


def precision(D: Floats64, y: Ints) -> float:
    """Mean share of the own class among the nearest others."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    nearest = np.argsort(D, axis=1, kind="stable")[:, :K]
    of_own = y[nearest] == y[:, None]  # (N, 10)
    others = np.minimum(np.bincount(y)[y] - 1, K)  # that there are of the own class
    counted = np.arange(of_own.shape[1]) < others[:, None]
    queries = others > 0
    return float(((of_own & counted).sum(axis=1)[queries] / others[queries]).mean())


def cosine(encoder: str) -> Distances:
    """By the compact embedding of a pre-trained encoder."""
    model = load_pretrained(encoder)
    return lambda data, X: _cosine(model.transform(X))


def ts2vec(data: Dataset, X: Floats) -> Floats64:
    """By the embedding of a TS2Vec, with its defaults, of the training part."""
    return _cosine(TS2Vec(random_state=0).fit(data.X_train).transform(X))


def euclidean(data: Dataset, X: Floats) -> Floats64:
    """Of standardised series."""
    return pairwise_distance(standardised(X), metric="euclidean", unequal="resample")


def dtw(data: Dataset, X: Floats) -> Floats64:
    """Of standardised series."""
    return pairwise_distance(standardised(X), metric="dtw")


def _cosine(R: Floats) -> Floats64:
    U = R.astype(np.float64)
    U /= np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
    return np.asarray(1 - U @ U.T)


def ucr_sets() -> list[str]:
    """Names of the sets in the folder ``ucr``."""
    root = Path(os.environ[ROOTS_VARIABLE].split(os.pathsep)[0])
    return sorted(path.stem for path in (root / "ucr").glob("*.npz"))


def read(paths: list[Path]) -> list[dict[str, Any]]:
    """Lines of results."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def summarise(paths: list[Path], pairs: list[list[str]]) -> None:
    """Print a line for each method and each pair."""
    scores: dict[str, dict[str, float]] = {}
    for one in read(paths):
        scores.setdefault(one["method"], {})[f"ucr/{one['set']}"] = 100 * one["precision_at_10"]
    for name, own in scores.items():
        line: dict[str, Any] = {"method": name, "sets": len(own)}
        line["mean"] = round(statistics.fmean(own.values()), 2)
        means = by_group(own)
        line |= {g: round(statistics.fmean(m.values()), 2) for g, m in means.items() if m}
        print(json.dumps(line))
    for first, second in pairs:
        one, other = mean_of(scores, first), mean_of(scores, second)
        gains = {name: one[name] - other[name] for name in one if name in other}
        line = {"method": first, "over": second, "sets": len(gains)}
        line["mean"] = round(statistics.fmean(gains.values()), 2)
        line |= {g: summary(list(own.values())) for g, own in by_group(gains).items() if own}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
