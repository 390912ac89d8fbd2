"""Steps a second of the scorer of patches, batch and stream, beside stumpy and scikit-learn's kNN.

Ratios above 1 say how many times as long the others take. A JSON line each.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.neighbors import NearestNeighbors

from softclt.anomaly.patches import PatchScorer
from softclt.anomaly.scorers import new_scorer


def seconds(work: Callable[[], object]) -> float:
    """Wall time of a call; it was called once before, on something small."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def neighbours(train: np.ndarray, x: np.ndarray, width: int = 64) -> np.ndarray:
    """Of all training windows, none left out: what PyOD's KNN does with windows."""
    windows = np.lib.stride_tricks.sliding_window_view
    found = NearestNeighbors(n_neighbors=3).fit(windows(train, width))
    far: np.ndarray = found.kneighbors(windows(x, width))[0]
    return far


def main() -> None:
    """Score a long series by each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--peers", action="store_true", help="Also stumpy and all neighbours.")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    t = np.arange(2 * args.steps)
    series = np.sin(t / 40) + 0.2 * rng.normal(size=len(t))
    train, x = series[: args.steps], series[args.steps :]

    def tell(what: str, took: float, steps: int, ours: float | None = None) -> None:
        line = {"what": what, "steps": steps, "seconds": round(took, 2)}
        line["steps_a_second"] = round(steps / took)
        if ours is not None:
            line["times_ours"] = round(took / ours, 1)
        line["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps(line), flush=True)

    new_scorer("patches").fit([train[None, :1000]]).score(x[None, :1000])
    scorer = PatchScorer(random_state=0)
    tell("patches, fit", seconds(lambda: scorer.fit([train[None]])), args.steps)
    for part in (args.steps // 10, args.steps):
        ours = seconds(partial(scorer.score, x[None, :part]))
        tell("patches, score", ours, part)
    stream, n = scorer.stream(), min(5000, args.steps)
    tell("patches, stream", seconds(lambda: [stream(v) for v in x[:n, None]]), n)
    if args.peers:
        few = 2000
        neighbours(train[:few], x[:few])
        tell("all neighbours", seconds(lambda: neighbours(train, x)), args.steps, ours)
        profile = new_scorer("matrix-profile").fit([train[None, :few]])
        profile.score(x[None, :few])
        profile.fit([train[None]])
        tell("stumpy", seconds(lambda: profile.score(x[None])), args.steps, ours)


if __name__ == "__main__":
    main()
