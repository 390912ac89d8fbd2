"""Do the ten series to label next help more than ten random ones, and do the intervals hold?

    python benchmarks/labelling.py [--sets GunPoint] [--draws 12] [--tries 16]

On sets that the `data` extra brings along. TS2Vec learns from all series of a set without labels,
an SVM reads its embedding. next: half of the series may be labelled, the others judge; from k
labels a class, ten more by each rule, points of accuracy above ten random ones, means over draws.
intervals: share of tries in which the interval of `study_labels` holds the accuracy on all other
series, and that of ten more labels the gain they brought (mean of eight draws of ten).
"""

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from softclt import TS2Vec
from softclt.data import read_series
from softclt.few_labels import margins, study_labels, to_label_next
from softclt.probes.classifiers import probes
from softclt.probes.probabilities import probe_probabilities

SETS = [
    "uea/JapaneseVowels",
    "ucr/ItalyPowerDemand",
    "ucr/GunPoint",
    "ucr/ArrowHead",
    "ucr/OSULeaf",
]
MORE = 10
Rows = np.ndarray[Any, np.dtype[np.int64]]
Set = tuple[np.ndarray[Any, Any], Rows]  # embeddings (N, M), classes (N,)
Rule = Callable[[Set, Rows, Rows, np.random.Generator], Rows]


def embedded(name: str) -> Set:
    """All series of a set, as TS2Vec sees them with one seed."""
    table = read_series(name, split="all")
    codes = np.unique(np.asarray(table.labels), return_inverse=True)[1]
    return TS2Vec(random_state=0, device="cpu").fit(table.X).transform(table.X), codes


def first_labels(y: Rows, rows: Rows, each: int, rng: np.random.Generator) -> Rows:
    """So many rows of each class."""
    return np.concatenate(
        [rng.permutation(rows[y[rows] == c])[:each] for c in np.unique(y)]
    ).astype(np.int64)


def likely(data: Set, labelled: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probabilities of the classes of all series, from the labelled ones."""
    R, y = data
    return probe_probabilities(probes["svm"](R[labelled], y[labelled]), R)


def accuracy(data: Set, labelled: Rows, judged: Rows) -> float:
    """Share of rows that an SVM of the labelled ones gets right."""
    R, y = data
    return float((probes["svm"](R[labelled], y[labelled]).predict(R[judged]) == y[judged]).mean())


def at_random(data: Set, pool: Rows, labelled: Rows, rng: np.random.Generator) -> Rows:
    """Ten of those that have no label."""
    return rng.permutation(np.setdiff1d(pool, labelled))[:MORE]


def advised(data: Set, pool: Rows, labelled: Rows, rng: np.random.Generator) -> Rows:
    """Ours."""
    places = np.searchsorted(pool, labelled)
    return pool[to_label_next(data[0][pool], likely(data, labelled)[pool], places, MORE)]


def least_certain(data: Set, pool: Rows, labelled: Rows, rng: np.random.Generator) -> Rows:
    """The usual rule."""
    free = np.setdiff1d(pool, labelled)
    return free[np.argsort(margins(likely(data, labelled)[free]))[:MORE]]


RULES: dict[str, Rule] = {"advised": advised, "least certain": least_certain}


def gains_over_random(data: Set, each: int, draws: int) -> dict[str, float]:
    """Points above ten random labels, by rule."""
    found: dict[str, list[float]] = {name: [] for name in RULES}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        order = rng.permutation(len(data[1]))
        pool, judged = np.sort(order[::2]), order[1::2]
        labelled = np.sort(first_labels(data[1], pool, each, rng))
        plain = np.mean(
            [
                accuracy(data, np.r_[labelled, at_random(data, pool, labelled, rng)], judged)
                for _ in range(8)
            ]
        )
        for name, rule in RULES.items():
            own = accuracy(data, np.r_[labelled, rule(data, pool, labelled, rng)], judged)
            found[name].append(100 * (own - float(plain)))
    return {name: round(float(np.mean(values)), 1) for name, values in found.items()}


def intervals_hold(data: Set, each: int, tries: int) -> list[tuple[bool, bool | None]]:
    """Whether the intervals of accuracy and of gain hold what came, for each try."""
    R, y = data
    everything = np.arange(len(y))
    found = []
    for one in range(tries):
        rng = np.random.default_rng(one)
        labelled = first_labels(y, everything, each, rng)
        study = study_labels(R[labelled], y[labelled], probes["svm"], seed=one)
        assert study is not None
        real = accuracy(data, labelled, np.setdiff1d(everything, labelled))
        gain, came = study.gain(MORE), []
        for _ in range(8):
            more = np.r_[labelled, at_random(data, everything, labelled, rng)]
            judged = np.setdiff1d(everything, more)
            came.append(accuracy(data, more, judged) - accuracy(data, labelled, judged))
        held = None if gain is None else bool(gain.low <= np.mean(came) <= gain.high)
        found.append((study.accuracy.low <= real <= study.accuracy.high, held))
    return found


def main() -> None:
    """Print a line for each row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--tries", type=int, default=16)
    options = parser.parse_args()
    held: list[tuple[bool, bool | None]] = []
    for name in options.sets:
        data = embedded(name)
        for each in (1, 3, 8):
            row = gains_over_random(data, each, options.draws)
            line = {"benchmark": "ten labels over random, points", "set": name}
            print(json.dumps(line | {"labels_a_class": each, **row}), flush=True)
        for each in (3, 6):
            held += intervals_hold(data, each, options.tries)
    gains = [gain for _, gain in held if gain is not None]
    share = {"accuracy": np.mean([own for own, _ in held]), "gain": np.mean(gains)}
    line = {"benchmark": "intervals that held, share", "tries": len(held)}
    print(json.dumps(line | {name: round(float(v), 3) for name, v in share.items()}))


if __name__ == "__main__":
    main()
