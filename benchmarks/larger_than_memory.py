"""Training from files larger than memory; one JSON line.

    python benchmarks/larger_than_memory.py                            # 2 GB as .npy
    python benchmarks/larger_than_memory.py --gigabytes 20
    python benchmarks/larger_than_memory.py --gigabytes 20 --kind parquet

Writes random walks (N, 1, T) in float32, trains the default model on them for some steps in a fresh
process of one thread, and deletes them. Peak is that process' largest resident memory, imports and
all. A second process trains as many steps on a slice of 50 MB that it has in memory: steps per
second without what comes before the first step. read_seconds is the look at all series before
training, distance_seconds the sample of pairs (and numba's compilation, unless it is cached).
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 2**24  # values that are written at a time
SLICE = 50_000_000  # bytes


def walks(n: int, t: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Random walks ``(N, T)``."""
    steps = rng.standard_normal((n, t), dtype=np.float32)
    return np.cumsum(steps, axis=-1, out=steps) / np.float32(t**0.5)


def write(folder: Path, options: Namespace) -> Path:
    """Series of the size asked for, in a file or in files."""
    t, rng = options.length, np.random.default_rng(0)
    n, rows = int(options.gigabytes * 1e9 / (4 * t)), AT_ONCE // t
    parts = range(0, n, rows)
    if options.kind == "parquet":
        import pandas as pd

        (folder / "parts").mkdir()
        for i, start in enumerate(parts):
            frame = pd.DataFrame(walks(min(rows, n - start), t, rng)).rename(columns=str)
            frame.to_parquet(folder / "parts" / f"{i:05}.parquet", row_group_size=rows // 4)
        return folder / "parts"
    path = folder / "series.npy"
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, 1, t)}
        np.lib.format.write_array_header_2_0(file, header)  # type: ignore[no-untyped-call]
        for start in parts:
            walks(min(rows, n - start), t, rng).tofile(file)
    return path


def train(path: Path, options: Namespace) -> dict[str, Any]:
    """What a fresh process measures of itself."""
    from softclt import TS2Vec
    from softclt.data import open_series

    X: Any = open_series(path)
    n_series = len(X)
    start = time.perf_counter()
    if options.in_memory:
        X = X.take(np.arange(min(n_series, SLICE // (4 * options.length))))
    else:
        X.look()
    read = time.perf_counter() - start
    model = TS2Vec(
        max_iter=options.steps, distance_mode="lazy", random_state=0, device=options.device
    )
    model.fit(X)
    seconds = model.history_["seconds"]
    return {
        "series": n_series,
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
        "steps_per_second": round(options.steps / seconds["training"], 2),
        "read_seconds": round(read, 1),
        "distance_seconds": round(seconds["distances"], 1),
    }


def in_fresh_process(path: Path, options: Namespace, *more: str) -> dict[str, Any]:
    """Results of `train` in a process of one thread."""
    words = [sys.executable, __file__, "--train", str(path), *more]
    for name in ("length", "steps", "device"):
        words += [f"--{name}", str(getattr(options, name))]
    one_thread = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(words, env=os.environ | one_thread, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Write, train twice, delete, print."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--kind", choices=("npy", "parquet"), default="npy")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, help="where the data are written for a while")
    parser.add_argument("--train", type=Path, help=SUPPRESS)
    parser.add_argument("--in-memory", action="store_true", help=SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        print(json.dumps(train(options.train, options)))
        return
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free
    if free < 1.1e9 * options.gigabytes:
        raise SystemExit(f"{free / 1e9:.0f} GB are free; choose fewer --gigabytes or a --folder")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = write(Path(folder), options)
        files = [path] if path.is_file() else list(path.iterdir())
        on_disk = sum(file.stat().st_size for file in files) / 1e9
        streamed = in_fresh_process(path, options)
        in_memory = in_fresh_process(path, options, "--in-memory")
    row = {"kind": options.kind, "gb_on_disk": round(on_disk, 2), "length": options.length}
    ratio = streamed["steps_per_second"] / in_memory["steps_per_second"]
    row |= streamed | {
        "steps_per_second_in_memory": in_memory["steps_per_second"],
        "speed_over_in_memory": round(ratio, 3),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
