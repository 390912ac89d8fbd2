"""A server under load: requests a second, waiting times, memory; then bodies that are no series.

    python benchmarks/serving.py
    python benchmarks/serving.py --seconds 10 --path /embed --path /search

Server and client run on this machine and share its cores. Every connection asks anew as soon as it
has its answer. The models are made here: the pre-trained `base`, a classifier of its embeddings, an
index of 10,000 made-up series and a detector with a small TS2Vec.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from softclt import AnomalyDetector, SeriesClassifier, SeriesIndex, TS2Vec, load_pretrained
from softclt.data.synthetic import waves

PATHS = ("/embed", "/search", "/classify", "/detect")
JSON = "application/json"


def make_models(folder: Path, n_index: int) -> list[str]:
    """Names and folders to serve."""
    rng = np.random.default_rng(0)
    data = waves(n_per_class=20, length=128, random_state=0)
    SeriesClassifier(random_state=0).fit(data.X_train, data.y_train).save(folder / "classifier")
    normal = np.sin(np.arange(1000) / 5) + 0.1 * rng.normal(size=(1, 1000))
    small = TS2Vec(output_dims=16, hidden_dims=16, depth=5, tau_instance=None, max_iter=50)
    AnomalyDetector(small, scorer="masked", random_state=0).fit(normal).save(folder / "detector")
    X = rng.normal(size=(n_index, 1, 128)).cumsum(axis=-1)
    SeriesIndex(load_pretrained("base")).add(X).save(folder / "index")
    return ["base", *(str(folder / name) for name in ("classifier", "detector", "index"))]


class Server:
    """A process that serves, and what it takes."""

    def __init__(self, models: list[str]) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "softclt", "serve", *models, "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]
        self.seconds_to_start = time.perf_counter() - began

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else float("nan")

    def processor(self) -> float:
        """Seconds of processor time that it has taken so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> int:
        """Stop it; its exit code."""
        self.process.terminate()
        return self.process.wait(300)


async def load(server: Server, paths: list[str], seconds: float, connections: int) -> Any:
    """Waiting times and statuses of requests, and the memory each second."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(64, 128)).cumsum(axis=-1)
    bodies = [json.dumps({"series": [x.round(6).tolist()]}) for x in X]
    times: list[float] = []
    statuses, memory, before = Counter[int](), [server.memory()], server.processor()
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(base_url=server.address, limits=limits, timeout=60) as client:
        end = time.perf_counter() + seconds

        async def ask(first: int) -> None:
            k = first
            while (began := time.perf_counter()) < end:
                reply = await client.post(
                    paths[k % len(paths)],
                    content=bodies[k % len(bodies)],
                    headers={"content-type": JSON},
                )
                times.append(time.perf_counter() - began)
                statuses[reply.status_code] += 1
                k += 1

        async def watch() -> None:
            while time.perf_counter() < end:
                await asyncio.sleep(1)
                memory.append(server.memory())

        await asyncio.gather(watch(), *(ask(i) for i in range(connections)))
        series = await mean_batch(client)
    done = sorted(times)
    quarter = len(memory) // 4
    return {
        "paths": paths,
        "seconds": seconds,
        "connections": connections,
        "requests": len(done),
        "requests_a_second": round(len(done) / seconds, 1),
        "p50_ms": round(1e3 * statistics.median(done), 1),
        "p99_ms": round(1e3 * done[int(0.99 * (len(done) - 1))], 1),
        "processor_ms_a_request": round(1e3 * (server.processor() - before) / len(done), 2),
        "errors": sum(n for status, n in statuses.items() if status != 200),
        "series_in_a_batch": series,
        "megabytes_after_a_quarter": round(memory[quarter]),
        "megabytes_at_the_end": round(memory[-1]),
    }


async def mean_batch(client: httpx.AsyncClient) -> float:
    """Series in a batch, on average, as the server counts them."""
    text = (await client.get("/metrics")).text
    total, count = (
        float(re.search(rf"^softclt_batch_series_{name} (\S+)", text, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("sum", "count")
    )
    return round(total / count, 2)


def malformed(n: int) -> list[tuple[str, bytes]]:
    """Bodies of all kinds that are damaged, each with its content type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = random.Random(0)
    table = pa.table({"id": ["a", "b"], "series": [[1.0, 2.0, 3.0], [4.0, 5.0]]})
    stream, file = pa.BufferOutputStream(), pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, file)
    whole = {
        JSON: json.dumps(
            {"series": [[1.0, 2.5, None, 3.0], [2.0, 1.0]], "ids": ["a", "b"]}
        ).encode(),
        "text/csv": b"id,time,x\na,0,1.5\na,1,3\nb,0,2\nb,1,\n",
        "application/vnd.apache.arrow.stream": stream.getvalue().to_pybytes(),
        "application/vnd.apache.parquet": file.getvalue().to_pybytes(),
    }
    found: list[tuple[str, bytes]] = []
    while len(found) < n:
        kind, good = rng.choice(list(whole.items()))
        body = bytearray(good[: rng.randrange(1, len(good))] if rng.random() < 0.5 else good)
        for _ in range(rng.randrange(1, 8)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        found.append((kind, bytes(body)))
    return found


def statuses_of(server: Server, bodies: list[tuple[str, bytes]]) -> dict[str, int]:
    """How a server answers bodies, by status; a damaged body may still be series."""
    counts = Counter[str]()
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for k, (kind, body) in enumerate(bodies):
            reply = client.post(PATHS[k % len(PATHS)], content=body, headers={"content-type": kind})
            counts[str(reply.status_code)] += 1
    return dict(sorted(counts.items()))


def main() -> None:
    """Print a JSON line for each measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--path", action="append", choices=PATHS)
    parser.add_argument("--index", type=int, default=10_000, help="series in the index")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(make_models(Path(folder), asked.index))
        try:
            print(json.dumps({"seconds_to_start": round(server.seconds_to_start, 1)}), flush=True)
            for paths in [asked.path] if asked.path else [["/embed"], list(PATHS)]:
                asyncio.run(load(server, paths, 2, asked.connections))  # warm
                found = asyncio.run(load(server, paths, asked.seconds, asked.connections))
                print(json.dumps(found), flush=True)
            print(json.dumps({"malformed": statuses_of(server, malformed(200))}), flush=True)
        finally:
            code = server.end()
        print(json.dumps({"exit_code": code}))


if __name__ == "__main__":
    main()
