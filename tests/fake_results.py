"""Results that nobody ran, from a seed: a suite with every kind of row, a gap and a failed run."""

import numpy as np

from softclt.tasks import Result

DATASETS = [f"ucr/Set{letter}" for letter in "ABCDEFGHIJKL"]
ROWS = {  # name -> (tau_choice, control, gain over the data set's level)
    "untrained": ("hard", "", -0.08),
    "hard": ("hard", "", 0.0),
    "soft": ("default", "hard", 0.02),
    "soft train": ("train", "hard", 0.03),
    "soft oracle": ("oracle", "hard", 0.05),
}


def result(dataset, row, seed, accuracy, *, suite="", error="", **more):
    tau_choice, control, _ = ROWS.get(row, ("default", "", 0.0))
    values = {
        "task": "classification",
        "dataset": dataset,
        "fingerprint": f"print of {dataset}",
        "method": "ts2vec",
        "params": {"max_iter": 0 if row == "untrained" else None, "random_state": seed},
        "tau_choice": tau_choice,
        "seed": seed,
        "metrics": {} if error else {"accuracy": accuracy},
        "probe": "svm",
        "versions": {"softclt": "0.1.0"},
        "device": "cpu",
        "created": "2026-01-01T00:00:00+00:00",
        "suite": suite,
        "configuration": row,
        "control": control,
        "groups": {"length": "short" if dataset < "ucr/SetG" else "long"},
        "error": error,
    }
    return Result(**values | more)


def fake_results(suite="ucr", seeds=3, rng_seed=0):
    """Every combination, but SetL of the soft row failed."""
    rng = np.random.default_rng(rng_seed)
    found = []
    for dataset in DATASETS:
        level = rng.uniform(0.6, 0.9)
        for row, (_, _, gain) in ROWS.items():
            for seed in range(seeds):
                accuracy = float(np.clip(level + gain + rng.normal(0, 0.01), 0, 1))
                failed = row == "soft" and dataset == "ucr/SetL"
                error = "ValueError: the loss is no number" if failed else ""
                found.append(result(dataset, row, seed, accuracy, suite=suite, error=error))
    return found
