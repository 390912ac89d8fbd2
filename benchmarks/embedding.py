"""Embedding files of any size: memory and series a second, a JSON line for each file.

    python benchmarks/embedding.py                                  # base, two sizes, three kinds
    python benchmarks/embedding.py --kinds parquet --series 70000
    python benchmarks/embedding.py --model model/ --series 70000 210000

Writes random walks of --length steps as one file, runs ``softclt embed`` on it in a process of one
thread, and deletes both. Peak is that process' largest resident memory, imports and all; seconds
are those of the whole command. Files of fewer than 67 million values are read as a whole.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("parquet", "csv", "npz")
AT_ONCE = 2**22  # values that are written at a time


def walks(n: int, t: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Random walks ``(N, T)``."""
    steps = rng.standard_normal((n, t), dtype=np.float32)
    return np.cumsum(steps, axis=-1, out=steps) / np.float32(t**0.5)


def write(path: Path, n: int, t: int) -> None:
    """A file of so many series, with ids where its kind has them."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, rows = np.random.default_rng(0), AT_ONCE // t
    if path.suffix == ".npz":
        np.savez(path, X=np.concatenate([walks(m, t, rng) for m in sizes(n, rows)]))
        return
    writer: Any = None
    for i, m in enumerate(sizes(n, rows)):
        frame = pd.DataFrame(walks(m, t, rng)).rename(columns=lambda step: f"t{step}")
        frame.insert(0, "id", [f"series-{i * rows + j}" for j in range(m)])
        if path.suffix == ".csv":
            frame.to_csv(path, mode="a", header=i == 0, index=False, float_format="%.5g")
            continue
        table = pa.Table.from_pandas(frame, preserve_index=False)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def sizes(n: int, rows: int) -> list[int]:
    """Of blocks of so many rows."""
    return [min(rows, n - start) for start in range(0, n, rows)]


def embed(path: Path, out: Path, model: str) -> tuple[float, float]:
    """Seconds and largest memory, in bytes, of the command."""
    words = [sys.executable, "-m", "softclt", "embed", model, str(path), "--out", str(out)]
    one_thread = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    start = time.perf_counter()
    process = subprocess.Popen(words, env=os.environ | one_thread)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"softclt embed ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def measure(kind: str, n: int, options: Namespace) -> dict[str, Any]:
    """One file."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, out = Path(folder) / f"series.{kind}", Path(folder) / f"embeddings.{kind}"
        write(path, n, options.length)
        seconds, peak = embed(path, out, options.model)
        return {
            "kind": kind,
            "model": Path(options.model).name,
            "series": n,
            "length": options.length,
            "read_mb": round(path.stat().st_size / 1e6),
            "written_mb": round(out.stat().st_size / 1e6),
            "peak_mb": round(peak / 1e6),
            "seconds": round(seconds, 1),
            "series_per_second": round(n / seconds),
        }


def main() -> None:
    """Each kind in each size."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="base")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--series", nargs="+", type=int, default=[70_000, 140_000])
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the files are written for a while")
    options = parser.parse_args()
    for kind in options.kinds:
        for n in options.series:
            print(json.dumps(measure(kind, n, options)), flush=True)


if __name__ == "__main__":
    main()
