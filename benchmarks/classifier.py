"""How do time and memory of classifiers grow with the number of series and with their length?

    python benchmarks/classifier.py [--n 100 1000 10000] [--t 50 500 5000] [--rows ROW ...]

Random walks of one channel, two classes that drift apart. N grows at 100 steps, T at 100 series.
Every fit has a process of its own with one thread, and is measured by the seconds of that thread,
which others on the machine hardly change; loading and compiling are not counted. Each line has what
a row took, and over what MiniRocket took where both were run. Gigabytes are the most of the
process, with its libraries.
"""

import argparse
import json
import multiprocessing
import resource
import time
import warnings
from typing import Any

import numpy as np

ROWS = {
    "minirocket": "minirocket",
    "softclt": "series-classifier",
    "multirocket-hydra": "multirocket-hydra",
    "quant": "quant",
    "catch22": "catch22",
    "dtw-1nn": "dtw-1nn",
}
_LENGTH, _SERIES = 100, 100


def main() -> None:
    """Print a line for each size and row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--t", type=int, nargs="*", default=[50, 500, 5000])
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=["minirocket", "softclt"])
    options = parser.parse_args()
    sizes = [(n, _LENGTH) for n in options.n] + [(_SERIES, t) for t in options.t]
    for n, length in sizes:
        found: dict[str, dict[str, float]] = {}
        for row in (row for row in ROWS if row in options.rows):  # minirocket first
            with multiprocessing.get_context("spawn").Pool(1) as process:
                own = found[row] = process.apply(measure, (row, n, length))
            line = {"benchmark": "classifier", "row": row, "n": n, "length": length, **own}
            if row != "minirocket" and "minirocket" in found:
                peer = found["minirocket"]
                line |= {f"{k}_over_minirocket": round(own[k] / peer[k], 2) for k in own}
            print(json.dumps(line), flush=True)


def measure(row: str, n: int, length: int) -> dict[str, float]:
    """Seconds of fitting, and of predicting 100 series; gigabytes of the process."""
    import torch

    from softclt.classification import classifiers

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 1, length), dtype=np.float32)
    X = np.cumsum(X + 0.1 * y[:, None, None].astype(np.float32), axis=-1)
    classifiers[ROWS[row]](random_state=0).fit(X[:20], y[:20]).predict(X[:20])  # compiles
    times: list[float] = [time.process_time()]
    model: Any = classifiers[ROWS[row]](random_state=0).fit(X, y)
    times.append(time.process_time())
    model.predict(X[:100])
    times.append(time.process_time())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    seconds = {"fit_seconds": times[1] - times[0], "predict_seconds": times[2] - times[1]}
    return {name: round(value, 3) for name, value in seconds.items()} | {
        "gigabytes": round(memory, 2)
    }


if __name__ == "__main__":
    main()
