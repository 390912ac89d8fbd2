"""What does a search cost, and what does it find?

    python benchmarks/search.py series [--n 100000] [--queries 200] [--folder DIR]
    python benchmarks/search.py vectors [--n 1000000] [--kind groups|noise] [--folder DIR]

`series`: synthetic series of 128 steps are embedded by `base` and indexed, as SeriesIndex.add does;
others of the same families are looked for. Beside it the search by DTW of raw series, in a band of
a tenth, with the bound of Keogh: which of its neighbours the index finds, and what both take.
`vectors`: the index alone, of random unit vectors with 240 numbers: in 10,000 groups, or noise,
which has no structure that any index could use.

Recall is the share of the 10 nearest rows, by comparing all, that a search finds. Memory is the
largest of the process. On a busy machine look at CPU times: `cpu_ms` is the time of all threads a
query; `load` is how many processes wanted to run. A line of JSON each.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softclt import SeriesIndex, load_pretrained, pairwise_distance
from softclt.data.generator import synthetic_series
from softclt.data.preparation import standardised
from softclt.search.store import DISTANCE, VECTOR, RowStore
from softclt.validation import Floats, Floats32, Floats64

LENGTH = 128
WIDTH = 240
BAND = 0.1
K = 10
CANDIDATES = 100
BY_DTW = "index, 100 by DTW"
AGAIN = {"rerank": "dtw", "candidates": CANDIDATES}
SAMPLE = 2000  # series by which the speed of the encoder is measured
_BLOCK = 50_000
_PAIRS = 256  # that DTW measures at once, in the order of their bounds


def main() -> None:
    """Run one of the two and print its lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["series", "vectors"])
    parser.add_argument("--n", type=int)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--kind", choices=["groups", "noise"], default="groups")
    parser.add_argument("--folder", type=Path, help="Where the temporary index is made.")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.what == "series":
            of_series(options.n or 100_000, options.queries, Path(folder))
        else:
            of_vectors(options.n or 1_000_000, options.queries, options.kind, Path(folder))


def of_series(n: int, n_queries: int, folder: Path) -> None:
    """Embed, index, search; then by DTW."""
    X = synthetic_series(n + n_queries, LENGTH, siblings=4, random_state=1)
    order = np.random.default_rng(0).permutation(len(X))
    Q, X = X[order[:n_queries]], X[order[n_queries:]]
    encoder = load_pretrained("base")
    with Clock() as embedding:
        encoder.transform(X[:SAMPLE])
    sample = min(n, SAMPLE)
    with Clock() as building:
        index = SeriesIndex(encoder, scratch=folder).add(X)
    facts = index.facts()
    tell(
        "series indexed",
        n=n,
        embedded_per_second=round(sample / embedding.seconds),
        embedded_per_cpu_second=round(sample / embedding.cpu),
        build_seconds=round(building.seconds, 1),
        build_cpu_seconds=round(building.cpu, 1),
        megabytes=round(facts["bytes"] / 1e6, 1),
        raw_megabytes=round(X.nbytes / 1e6, 1),
        search=facts["search"],
        peak_megabytes=peak(),
    )
    exact = [index.search(q[None], K, exact=True) for q in Q]
    ways: dict[str, dict[str, Any]] = {"index": {}, "all rows": {"exact": True}, BY_DTW: AGAIN}
    for name, options in ways.items():
        search = partial(index.search, k=K, **options)
        times, hits = timed([partial(search, q[None]) for q in Q])
        last = np.array([own["distance"].max() for own in exact])
        near = np.mean(
            [(own["distance"] <= d + 1e-6).mean() for own, d in zip(hits, last, strict=True)]
        )
        recall = None if name == BY_DTW else round(float(near), 4)
        tell("search", how=name, n=n, k=K, recall_at_10=recall, **times, peak_megabytes=peak())
    with_dtw(X, Q, index)


def with_dtw(X: Floats32, Q: Floats32, index: SeriesIndex) -> None:
    """The neighbours by DTW, and how many of them the index finds."""
    Z, queries = standardised(X), standardised(Q)
    pairwise_distance(queries[:1], Z[:2], window=BAND)  # compiled
    times, found = timed([partial(nearest_by_dtw, q, Z) for q in queries])
    tell("search", how="raw series by DTW", n=len(X), k=1, **times)
    true = [own for own, _ in found]
    measured = float(np.mean([share for _, share in found]))
    for name, k in (("index", 1), ("index", K), ("index", CANDIDATES), (BY_DTW, 1)):
        options: dict[str, Any] = AGAIN if name == BY_DTW else {}
        hits = index.search(Q, k, **options)
        own = [set(part["id"]) for _, part in hits.groupby("query")]
        share = np.mean([one in ids for one, ids in zip(true, own, strict=True)])
        tell("nearest by DTW found", how=name, among=k, share=round(float(share), 4))
    tell("DTW measured after the bound of Keogh", share_of_pairs=round(measured, 4))


def nearest_by_dtw(q: Floats64, Z: Floats64) -> tuple[int, float]:
    """The nearest series by DTW in a band, and the share of all that had to be measured."""
    bounds = keogh(q, Z)
    order = np.argsort(bounds)
    best, nearest, measured = np.inf, -1, 0
    for start in range(0, len(order), _PAIRS):
        some = order[start : start + _PAIRS]
        if bounds[some[0]] >= best:
            break
        distances = pairwise_distance(q[None], Z[some], window=BAND)[0]
        measured += len(some)
        if distances.min() < best:
            best, nearest = float(distances.min()), int(some[distances.argmin()])
    return nearest, measured / len(Z)


def keogh(q: Floats64, Z: Floats64) -> Floats64:
    """Lower bound of DTW in the band: how far each series leaves the envelope of the query."""
    reach = int(BAND * q.shape[-1])
    padded = np.pad(q, ((0, 0), (reach, reach)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=-1)  # (D, T, W)
    beyond = np.maximum(Z - around.max(axis=-1), 0) + np.maximum(around.min(axis=-1) - Z, 0)
    return np.asarray(np.sqrt((beyond**2).sum(axis=(1, 2))))


def of_vectors(n: int, n_queries: int, kind: str, folder: Path) -> None:
    """The index alone."""
    import pyarrow as pa

    schema = pa.schema(
        [("id", pa.int64()), ("start", pa.int64()), (VECTOR, pa.list_(pa.float32(), WIDTH))]
    )
    store = RowStore.create(folder, "rows", schema)

    def batches() -> Iterator[Any]:
        for start in range(0, n, _BLOCK):
            V = vectors(min(_BLOCK, n - start), kind, 1 + start)
            ids = pa.array(np.arange(start, start + len(V)))
            flat = pa.FixedSizeListArray.from_arrays(pa.array(V.ravel()), WIDTH)
            yield pa.record_batch([ids, pa.array(np.zeros(len(V), np.int64)), flat], schema=schema)

    with Clock() as writing:
        store.add(pa.RecordBatchReader.from_batches(schema, batches()))
    with Clock() as building:
        how = store.tend({})
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    tell(
        "vectors indexed",
        kind=kind,
        n=n,
        write_seconds=round(writing.seconds, 1),
        build_seconds=round(building.seconds, 1),
        build_cpu_seconds=round(building.cpu, 1),
        megabytes=round(size / 1e6),
        raw_megabytes=round(n * WIDTH * 4 / 1e6),
        search=how,
        peak_megabytes=peak(),
    )
    Q = vectors(n_queries, kind, 0)
    last = exact_distances(Q, n, kind)
    for name, probes in {"index": how.get("probes"), "all rows": None}.items():
        asked = n_queries if probes else min(20, n_queries)
        search = partial(store.nearest, k=K, columns=["id"], probes=probes)
        times, found = timed([partial(search, q[None]) for q in Q[:asked]])
        near = [
            (own[DISTANCE].to_numpy() <= d + 1e-6).mean()
            for own, d in zip(found, last[: len(found)], strict=True)
        ]
        recall = round(float(np.mean(near)), 4)
        tell("search", how=name, kind=kind, n=n, k=K, recall_at_10=recall, **times)
    tell("memory", peak_megabytes=peak())


def vectors(n: int, kind: str, seed: int) -> Floats32:
    """Random unit vectors."""
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, WIDTH), dtype=np.float32)
    if kind == "groups":
        centres = np.random.default_rng(12345).standard_normal((10_000, WIDTH), dtype=np.float32)
        V = centres[rng.integers(0, len(centres), n)] + np.float32(0.5) * V
    return np.asarray(V / np.linalg.norm(V, axis=1, keepdims=True))


def exact_distances(Q: Floats32, n: int, kind: str) -> Floats:
    """From each query to its tenth nearest vector, made again block by block."""
    best = np.full((len(Q), K), np.inf, np.float32)
    for start in range(0, n, _BLOCK):
        distances = 1 - Q @ vectors(min(_BLOCK, n - start), kind, 1 + start).T
        best = np.partition(np.concatenate([best, distances], axis=1), K - 1, axis=1)[:, :K]
    return np.asarray(best.max(axis=1))


class Clock:
    """Seconds of the wall and of all threads of the process."""

    seconds: float
    cpu: float

    def __enter__(self) -> "Clock":
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start[0]
        self.cpu = time.process_time() - self._start[1]


def timed(searches: Sequence[Callable[[], Any]]) -> tuple[dict[str, float], list[Any]]:
    """Times of one search after the other, and what they found; the first is done before."""
    searches[0]()
    walls, found = [], []
    with Clock() as all_of_them:
        for search in searches:
            start = time.perf_counter()
            found.append(search())
            walls.append(1000 * (time.perf_counter() - start))
    return {
        "queries": len(walls),
        "median_ms": round(float(np.median(walls)), 2),
        "p99_ms": round(float(np.quantile(walls, 0.99)), 2),
        "cpu_ms": round(1000 * all_of_them.cpu / len(walls), 2),
    }, found


def peak() -> int:
    """Largest memory of the process so far."""
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def tell(what: str, **facts: Any) -> None:
    """Print a line."""
    load = round(os.getloadavg()[0], 1)
    print(json.dumps({"what": what, **facts, "cores": os.cpu_count(), "load": load}), flush=True)


if __name__ == "__main__":
    main()
