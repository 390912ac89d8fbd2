"""Training without the matrix of distances: memory, time and their share; one JSON line each.

    python benchmarks/lazy.py [--series 371055] [--length 200] [--steps 100] [--device cpu]

The first line is a data set whose matrix would be 1.1 TB in float64: peak memory of this process
(data and libraries included) and what distances cost of a training step. The second compares a step
without distances, with those of a matrix and with those of each batch, in turns, so that a busy
machine slows all three.
"""

import argparse
import json
import resource
import statistics
import sys
from typing import Any

import numpy as np

from softclt import TS2Vec
from softclt.validation import Floats32

SMALL, SMALL_LENGTH = 500, 150
MODES: dict[str, dict[str, Any]] = {
    "hard": {"tau_instance": None},
    "dense": {"distance_mode": "dense"},
    "lazy": {"distance_mode": "lazy"},
}


def walks(n: int, length: int) -> Floats32:
    """Random walks ``(N, 1, T)``, made in place."""
    X = np.random.default_rng(0).standard_normal((n, 1, length), dtype=np.float32)
    return np.cumsum(X, axis=-1, out=X)


def peak_gib() -> float:
    """The most memory that this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def large(n: int, length: int, steps: int, device: str) -> dict[str, Any]:
    """Train on data that has no matrix."""
    model = TS2Vec(distance_mode="lazy", max_iter=steps, random_state=0, device=device)
    history = model.fit(walks(n, length)).history_
    seconds, facts = history["seconds"], history["distances"]
    in_training = facts.pop("seconds_in_training")
    share = None if in_training is None else round(in_training / seconds["training"], 4)
    return {
        "benchmark": "TS2Vec without a matrix",
        **about(n, length, device),
        "steps": steps,
        "peak_gib": round(peak_gib(), 2),
        "seconds_before": round(seconds["distances"], 2),
        "ms_a_step": round(1e3 * seconds["training"] / steps, 2),
        "share_of_distances": share,
        **facts,
    }


def modes(steps: int, device: str, repeats: int) -> dict[str, Any]:
    """The same steps without distances, from a matrix and from each batch."""
    X = walks(SMALL, SMALL_LENGTH)
    times: dict[str, list[float]] = {name: [] for name in MODES}
    for turn in range(repeats + 1):
        for name, settings in MODES.items():
            model = TS2Vec(**settings, max_iter=steps, random_state=0, device=device).fit(X)
            if turn:  # the first compiles
                times[name].append(1e3 * model.history_["seconds"]["training"] / steps)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "benchmark": "TS2Vec training step by distance mode",
        **about(SMALL, SMALL_LENGTH, device),
        "steps": steps,
        **{f"{name}_ms": round(value, 2) for name, value in medians.items()},
        "dense_over_hard": round(medians["dense"] / medians["hard"], 3),
        "lazy_over_dense": round(medians["lazy"] / medians["dense"], 3),
    }


def about(n: int, length: int, device: str) -> dict[str, Any]:
    """What a line is about."""
    return {"N": n, "D": 1, "T": length, "B": TS2Vec().batch_size, "device": device}


def main() -> None:
    """Print both lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--series", type=int, default=371_055)
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    line = large(options.series, options.length, options.steps, options.device)
    print(json.dumps(line), flush=True)
    print(json.dumps(modes(options.steps, options.device, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
