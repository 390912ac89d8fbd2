"""The paper's grid of 7 x 5 taus at once: how long, and is each model what it would be alone?

    SOFTCLT_DATA=... python benchmarks/grid.py --workers 14 --out grid.jsonl

Sets: the first so many of the UCR archive, by name, with at most 300 training series of at most 300
steps. All 35 models of a set are trained by one `fit_many`
with seed 0, again with seed 1, and each alone with seed 0; an SVM scores each. What training alone
changes is rounding, so it should change accuracies no more than another seed does. Times are of
`fit_many` alone, distances and captures included. A JSON line a set, and one for all.
"""

import json
import multiprocessing
import statistics
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import torch

from softclt import TS2Vec, fit_many, load
from softclt.data import Dataset, available
from softclt.probes.classifiers import probes
from softclt.tasks.scaling import protocol_scaling
from softclt.validation import Floats

TAUS = list(product([1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0], [0.5, 1.0, 1.5, 2.0, 2.5]))
STEPS = 200


def models(seed: int) -> list[TS2Vec]:
    """The grid."""
    return [
        TS2Vec(tau_instance=i, tau_temporal=t, max_iter=STEPS, random_state=seed) for i, t in TAUS
    ]


def together(name: str, seed: int) -> tuple[list[tuple[Floats, Floats]], float]:
    """Embeddings of the training and test series by each model of the grid, and seconds."""
    X_train, X_test = protocol_scaling(load(f"ucr/{name}"))
    start = time.perf_counter()
    fitted = fit_many(models(seed), X_train)
    seconds = time.perf_counter() - start
    return [(model.transform(X_train), model.transform(X_test)) for model in fitted], seconds


def alone(name: str, i: int) -> float:
    """Accuracy of model i of the grid, trained by itself with seed 0."""
    X_train, X_test = protocol_scaling(load(f"ucr/{name}"))
    model = models(0)[i].fit(X_train)
    return accuracy(name, model.transform(X_train), model.transform(X_test))


def accuracy(name: str, R_train: Floats, R_test: Floats) -> float:
    """Of an SVM on embeddings, on the test series."""
    data = load(f"ucr/{name}")
    return float((probes["svm"](R_train, data.y_train).predict(R_test) == data.y_test).mean())


def fits(data: Dataset) -> bool:
    """Whether a set is small enough."""
    n, _, t = data.X_train.shape
    return bool(n <= 300 and t <= 300)


def spread(one: list[float], other: list[float]) -> float:
    """Standard deviation of a difference, in points."""
    return round(100 * statistics.pstdev(a - b for a, b in zip(one, other, strict=True)), 2)


def mean(scores: list[float]) -> float:
    """In points."""
    return round(100 * statistics.fmean(scores), 2)


def compare(scores: dict[str, list[float]]) -> dict[str, Any]:
    """Means, and how far the models of two trainings differ."""
    return {
        **{name: mean(own) for name, own in scores.items()},
        "sd_together_alone": spread(scores["together"], scores["alone"]),
        "sd_together_other_seed": spread(scores["together"], scores["other_seed"]),
    }


def main() -> None:
    """Print the lines."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2, help="that train alone, and score")
    parser.add_argument("--out", type=Path, help="file that gets the lines, too")
    options = parser.parse_args()
    ucr = [name.partition("/")[2] for name in available() if name.startswith("ucr/")]
    chosen = [name for name in ucr if fits(load(f"ucr/{name}"))][: options.sets]
    together(chosen[0], 0)  # so that no time has the first captures and compilations in it
    # All that is timed comes first, while nothing else runs.
    trained = {name: [together(name, seed) for seed in (0, 1)] for name in chosen}
    everything: dict[str, list[float]] = {"together": [], "other_seed": [], "alone": []}
    workers = ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn"))
    with workers as pool:
        pending = {
            name: {
                "together": [pool.submit(accuracy, name, *R) for R in first],
                "other_seed": [pool.submit(accuracy, name, *R) for R in second],
                "alone": [pool.submit(alone, name, i) for i in range(len(TAUS))],
            }
            for name, ((first, _), (second, _)) in trained.items()
        }
        for name, ((_, seconds), _) in trained.items():
            scores = {kind: [f.result() for f in own] for kind, own in pending[name].items()}
            for kind, own in scores.items():
                everything[kind] += own
            n, _, t = load(f"ucr/{name}").X_train.shape
            row = {"set": name, "n_train": n, "T": t, "seconds": round(seconds, 2)}
            say(row | compare(scores), options.out)
    total = sum(seconds for (_, seconds), _ in trained.values())
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    row = {"set": "all", "sets": len(chosen), "models": len(TAUS), "steps": STEPS}
    say(row | {"seconds": round(total, 1), "device": device} | compare(everything), options.out)


def say(row: dict[str, Any], out: Path | None) -> None:
    """Print a line and keep it."""
    line = json.dumps(row)
    print(line, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
