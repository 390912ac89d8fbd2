"""Our distance matrices against those of other packages, all in this run: one JSON line a row.

    python benchmarks/distances.py [--quick]

`times_float32` and `times_float64` are the row's time over ours in that precision, measured in
turns so that a busy machine slows both: above 1 we are faster. Every package uses all cores; one
that is not installed has no row. A slow one is timed on the first `series_timed` series, and its
time grows with the number of pairs. Results must agree (float32 at 1e-4), or the run stops.

`share_of_limit` is our rate over that of the same arithmetic, one subtraction, two minima and one
fused multiply-add a cell, on values that never leave the registers, on all cores, in this run.
"""

import argparse
import importlib.util
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.distances import compiled, pairwise_distance, tam_from_path
from softclt.distances.lanes import WIDTH, add_square, load, smaller, store

Array = NDArray[Any]
Rows = Iterator[dict[str, object]]
Work = Callable[[], Any]

CORES = os.cpu_count() or 1
PRECISIONS = {"float32": 1e-4, "float64": 1e-7}  # and how close a peer must come, relatively
PEER_CELLS = 2e8  # a peer other than aeon is timed on so many series that it has no more
LONG = 4.0  # seconds after which nothing is timed again


@dataclass(frozen=True)
class Case:
    """Series ``(D, T_i)`` in float32, and the band to compare them in."""

    name: str
    series: list[Array]
    window: float | None = None

    def __len__(self) -> int:
        return len(self.series)

    def part(self, n: int) -> "Case":
        """The first series."""
        return Case(self.name, self.series[:n], self.window)

    def values(self, precision: str) -> Any:
        """``(N, D, T)``, or a list where the lengths differ."""
        typed = [x.astype(precision) for x in self.series]
        return np.stack(typed) if len({x.shape for x in typed}) == 1 else typed

    def channels_last(self) -> list[Array]:
        """``(T_i, D)`` each, as some peers want them."""
        return [np.ascontiguousarray(x.T, dtype=np.float64) for x in self.series]

    @property
    def band(self) -> int | None:
        """Half-width of the band in steps, for series of one length."""
        return None if self.window is None else int(self.window * self.series[0].shape[1])

    @property
    def pairs(self) -> int:
        """Distances to compute."""
        return len(self) * (len(self) - 1) // 2

    @property
    def cells(self) -> int:
        """Cells of all cost matrices, within the band."""
        if self.band is not None:
            t = int(self.series[0].shape[1])
            row = [min(t, i + self.band + 1) - max(0, i - self.band) for i in range(t)]
            return self.pairs * sum(row)
        lengths = np.array([x.shape[1] for x in self.series])
        return int(lengths.sum() ** 2 - (lengths**2).sum()) // 2

    def about(self) -> dict[str, object]:
        """The columns that all rows of the case share."""
        lengths = [x.shape[1] for x in self.series]
        t = lengths[0] if min(lengths) == max(lengths) else f"{min(lengths)}-{max(lengths)}"
        return {
            "case": self.name,
            "N": len(self),
            "D": len(self.series[0]),
            "T": t,
            "window": self.window,
        }


def ours(case: Case, precision: str) -> Work:
    """The matrix as a user asks for it."""
    X = case.values(precision)
    return lambda: pairwise_distance(X, window=case.window)


def aeon(case: Case) -> Work:
    """Its sums of squares have no root yet."""
    from aeon.distances import dtw_pairwise_distance

    X = case.values("float64")
    return lambda: np.sqrt(dtw_pairwise_distance(X, window=case.window, n_jobs=CORES))


def tslearn(case: Case) -> Work:
    """Threads through joblib."""
    from tslearn.metrics import cdist_dtw
    from tslearn.utils import to_time_series_dataset

    X = to_time_series_dataset(case.channels_last())
    band = {} if case.band is None else {"sakoe_chiba_radius": case.band}
    return lambda: cdist_dtw(X, n_jobs=CORES, **band)


def dtaidistance(case: Case, processes: bool = False) -> Work | None:
    """Its C code with OpenMP, or in processes; its window counts the diagonal."""
    from dtaidistance import dtw, dtw_ndim

    options = {"window": None if case.band is None else case.band + 1, "parallel": True}
    if len(case.series[0]) == 1:
        flat = [x[:, 0] for x in case.channels_last()]
        return lambda: dtw.distance_matrix_fast(flat, use_mp=processes, **options)
    if processes:
        return None
    return lambda: dtw_ndim.distance_matrix_fast(
        case.channels_last(), ndim=len(case.series[0]), **options
    )


def tsdistances(case: Case) -> Work | None:
    """One channel and one length only; sums of squares without a root."""
    from tsdistances import dtw_distance  # type: ignore[import-not-found]

    X = case.values("float64")
    if isinstance(X, list) or X.shape[1] > 1:
        return None
    flat, band = X[:, 0].copy(), 1.0 if case.window is None else case.window
    return lambda: np.sqrt(dtw_distance(flat, band=band, par=True))


PEERS: dict[str, Callable[[Case], Work | None]] = {
    "aeon": aeon,
    "tslearn": tslearn,
    "dtaidistance": dtaidistance,
    "dtaidistance, processes": lambda case: dtaidistance(case, processes=True),
    "tsdistances": tsdistances,
}


def in_turns(works: list[Work], repeats: int) -> tuple[list[Any], list[float]]:
    """Last results and median seconds; what takes long is done once."""
    results: list[Any] = [None] * len(works)
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for k, work in enumerate(works):
            if not seconds[k] or seconds[k][0] < LONG:
                time.sleep(0.1)  # until the threads of the work before are asleep
                start = time.perf_counter()
                results[k] = work()
                seconds[k].append(time.perf_counter() - start)
    return results, [statistics.median(own) for own in seconds]


def compare(case: Case, limits: dict[str, float], repeats: int) -> Rows:
    """A row for each of our precisions, then one per package."""
    own = [ours(case, precision) for precision in PRECISIONS]
    in_turns(own, 1)  # compiles
    _, seconds = in_turns(own, 2 * repeats + 1)
    for precision, duration in zip(PRECISIONS, seconds, strict=True):
        rate = case.cells / duration / 1e9
        row = case.about() | {"package": f"softclt {precision}", "seconds": round(duration, 4)}
        row |= {"gigacells_per_second": round(rate, 2)}
        if len(case.series[0]) == 1:
            row |= {"share_of_limit": round(rate / limits[precision], 2)}
        yield row | machine()
    for package, peer in PEERS.items():
        if not importlib.util.find_spec(package.partition(",")[0]):
            continue
        share = 1.0 if package == "aeon" else math.sqrt(PEER_CELLS / case.cells)
        part = case.part(min(len(case), math.ceil(share * len(case))))
        work, first = peer(part), peer(case.part(4))
        if work is None or first is None:
            continue
        first()  # compiles
        results, times = in_turns([*own, work], repeats)
        n = len(part)
        for matrix, tolerance in zip(results, PRECISIONS.values(), strict=False):
            agree = np.triu_indices(n, 1)  # some leave the rest empty
            np.testing.assert_allclose(
                results[-1][agree], matrix[:n, :n][agree], rtol=tolerance, err_msg=package
            )
        scaled = times[-1] * case.pairs / part.pairs
        yield (
            case.about()
            | {
                "package": package,
                "seconds": round(scaled, 3),
                "series_timed": n,
                "gigacells_per_second": round(case.cells / scaled / 1e9, 4),
                "times_float32": round(scaled / times[0], 1),
                "times_float64": round(scaled / times[1], 1),
            }
            | machine()
        )


def compare_tam(case: Case, pairs_timed: int, repeats: int) -> Rows:
    """Ours for all pairs, and tslearn's path pair by pair for some."""
    X = case.values("float64")
    series = case.channels_last()
    few = slice(0, None, case.pairs // pairs_timed)
    pairs = list(
        zip(*(index[few].tolist() for index in np.triu_indices(len(case), 1)), strict=True)
    )
    works: list[Work] = [lambda: pairwise_distance(X, metric="tam")]
    if importlib.util.find_spec("tslearn"):
        from tslearn.metrics import dtw_path

        works.append(lambda: [tam_from_path(dtw_path(series[i], series[j])[0]) for i, j in pairs])
    in_turns(works, 1)
    results, times = in_turns(works, repeats)
    rate = round(case.cells / times[0] / 1e9, 2)
    row = {"package": "softclt tam", "seconds": round(times[0], 4), "gigacells_per_second": rate}
    yield case.about() | row | machine()
    if len(works) > 1:
        expected = [results[0][pair] for pair in pairs]
        np.testing.assert_allclose(results[1], expected, rtol=0, atol=1e-12)
        scaled = times[1] * case.pairs / len(pairs)
        yield (
            case.about()
            | {
                "package": "tslearn dtw_path",
                "seconds": round(scaled, 2),
                "pairs_timed": len(pairs),
                "times_float64": round(scaled / times[0], 1),
            }
            | machine()
        )


def compare_fastdtw(case: Case, repeats: int) -> Rows:
    """FastDTW beside the exact kernel: its time over that of exact DTW, and its excess."""
    X = case.values("float64")
    above = np.triu_indices(len(case), 1)
    works: dict[str, Work] = {"exact": lambda: pairwise_distance(X)}
    for radius in (1, 10):
        work = partial(pairwise_distance, X, metric="fastdtw", radius=radius)
        works[f"softclt fastdtw, radius {radius}"] = work
    few = slice(None)
    in_turns(list(works.values()), 1)
    if importlib.util.find_spec("fastdtw"):
        from fastdtw import fastdtw  # type: ignore[import-not-found]

        few = slice(0, case.pairs, case.pairs // 5)
        pairs = list(zip(*(index[few].tolist() for index in above), strict=True))
        works["fastdtw, radius 1"] = lambda: np.sqrt(
            [fastdtw(X[i, 0], X[j, 0], 1, lambda a, b: (a - b) ** 2)[0] for i, j in pairs]
        )
    results, times = in_turns(list(works.values()), repeats)
    exact = results[0][above]
    for name, result, duration in list(zip(works, results, times, strict=True))[1:]:
        own = result.ndim == 2
        excess = result[above] / exact - 1 if own else result / exact[few] - 1
        scaled = duration if own else duration * case.pairs / len(result)
        yield (
            case.about()
            | {
                "package": name,
                "seconds": round(scaled, 4),
                "pairs_timed": len(excess),
                "times_exact_float64": round(scaled / times[0], 1),
                "mean_error": round(float(excess.mean()), 4),
                "largest_error": round(float(excess.max()), 4),
            }
            | machine()
        )


@compiled
def _arithmetic_of_cells(state: Array, steps: int) -> None:
    """Eight chains of cells in registers; ``state`` holds them, and what never changes."""
    lanes = WIDTH // state.itemsize
    a, b, c, d = load(state, 0), load(state, lanes), load(state, 2 * lanes), load(state, 3 * lanes)
    e, f, g = load(state, 4 * lanes), load(state, 5 * lanes), load(state, 6 * lanes)
    h, u, v = load(state, 7 * lanes), load(state, 8 * lanes), load(state, 9 * lanes)
    for _ in range(steps):
        a = add_square(smaller(smaller(a, u), v), a - u)
        b = add_square(smaller(smaller(b, u), v), b - u)
        c = add_square(smaller(smaller(c, u), v), c - u)
        d = add_square(smaller(smaller(d, u), v), d - u)
        e = add_square(smaller(smaller(e, u), v), e - u)
        f = add_square(smaller(smaller(f, u), v), f - u)
        g = add_square(smaller(smaller(g, u), v), g - u)
        h = add_square(smaller(smaller(h, u), v), h - u)
    store(state, 0, a + b + c + d + e + f + g + h)


def limit(precision: str, steps: int = 3_000_000) -> float:
    """Gigacells a second of the arithmetic alone, all cores; the best of twenty."""
    lanes = WIDTH // np.dtype(precision).itemsize

    def work(_: int) -> None:
        _arithmetic_of_cells(np.ones(10 * lanes, precision), steps)

    work(0)  # compiles
    with ThreadPoolExecutor(CORES) as pool:
        seconds = [in_turns([lambda: list(pool.map(work, range(CORES)))], 1)[1] for _ in range(20)]
    return CORES * 8 * lanes * steps / min(seconds)[0] / 1e9


def machine() -> dict[str, object]:
    """What else a time depends on."""
    load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {"cores": CORES, "load": round(load_before, 1)}


def rows(quick: bool, repeats: int) -> Rows:
    """All rows of the run."""
    rng = np.random.default_rng(0)

    def walks(n: int, d: int, *lengths: int) -> list[Array]:
        own = rng.choice(lengths, n // 4 if quick else n)
        return [rng.normal(size=(d, t)).cumsum(axis=1).astype(np.float32) for t in own]

    limits = {precision: limit(precision) for precision in PRECISIONS}
    for precision, rate in limits.items():
        row: dict[str, object] = {"case": "limit", "package": f"arithmetic {precision}"}
        yield row | {"gigacells_per_second": round(rate, 2)} | machine()
    for case in (
        Case("univariate", walks(400, 1, 150)),
        Case("univariate, long", walks(200, 1, 500)),
        Case("six channels", walks(200, 6, 150)),
        Case("window", walks(400, 1, 150), window=0.1),
        Case("varying length", walks(400, 1, *range(50, 151))),
    ):
        yield from compare(case, limits, repeats)
    yield from compare_tam(Case("tam", walks(200, 1, 150)), 150, repeats)
    yield from compare_fastdtw(Case("fastdtw", walks(100, 1, 500)), repeats)


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a quarter of the series")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for row in rows(options.quick, options.repeats):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
