"""Embedding files of any size: memory and series a second, a JSON line for each file.

    python benchmarks/embedding.py                                  # what files cost
    python benchmarks/embedding.py --model base --kinds parquet --series 5000

Writes random walks of --length steps as one file, embeds it in a process of one thread into a file
of the same kind, and deletes both. With --model, by ``softclt embed``; without, by the same
reader, loop and writer, and a model that gives 240 means, which costs nothing: what is left is the
files. Peak is that process' largest resident memory, imports and all; seconds are all that it
takes, cpu_seconds those on a core, which other work on the machine does not change.
``softclt embed`` reads files of fewer than 67 million values as a whole; without --model all are
read in parts.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
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


class Means:
    """A model that costs nothing."""

    def transform(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """The mean of each series, 240 times."""
        return np.repeat(X.mean(axis=(1, 2))[:, None], 240, axis=1).astype(np.float32)


def embed_by_means(path: Path, out: Path) -> None:
    """What ``softclt embed`` does to a large file, without a network."""
    from softclt.data.sources import open_to_read_once, opening
    from softclt.embedding import Recipe, embedded_blocks, embedding_writer

    opening.IN_MEMORY = 0
    source = open_to_read_once(path)
    assert source is not None
    with embedding_writer(out, len(source)) as write:
        for ids, embeddings in embedded_blocks(Recipe(Means()), source):
            write(ids, embeddings)


def embed(path: Path, out: Path, model: str | None) -> tuple[float, float, float]:
    """Seconds, those on a core, and largest memory, in bytes, of a process."""
    words = [sys.executable, __file__, "--embed", str(path), str(out)]
    if model is not None:
        words = [sys.executable, "-m", "softclt", "embed", model, str(path), "--out", str(out)]
    one_thread = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    start = time.perf_counter()
    process = subprocess.Popen(words, env=os.environ | one_thread)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"it ended with {process.returncode}")
    on_core = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - start, on_core, usage.ru_maxrss * 1024


def measure(kind: str, n: int, options: Namespace) -> dict[str, Any]:
    """One file."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, out = Path(folder) / f"series.{kind}", Path(folder) / f"embeddings.{kind}"
        # Elsewhere: a process begins with the largest memory of the one that starts it.
        words = [sys.executable, __file__, "--write", str(path), "--series", str(n)]
        subprocess.run([*words, "--length", str(options.length)], check=True)
        seconds, on_core, peak = embed(path, out, options.model)
        return {
            "kind": kind,
            "model": options.model,
            "series": n,
            "length": options.length,
            "read_mb": round(path.stat().st_size / 1e6),
            "written_mb": round(out.stat().st_size / 1e6),
            "peak_mb": round(peak / 1e6),
            "seconds": round(seconds, 1),
            "cpu_seconds": round(on_core, 1),
            "series_per_cpu_second": round(n / on_core),
        }


def main() -> None:
    """Each kind in each size."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="name or folder")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--series", nargs="+", type=int, default=[70_000, 210_000])
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the files are written for a while")
    parser.add_argument("--write", type=Path, help=SUPPRESS)
    parser.add_argument("--embed", nargs=2, type=Path, help=SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        write(options.write, options.series[0], options.length)
        return
    if options.embed is not None:
        embed_by_means(*options.embed)
        return
    for kind in options.kinds:
        for n in options.series:
            print(json.dumps(measure(kind, n, options)), flush=True)


if __name__ == "__main__":
    main()
