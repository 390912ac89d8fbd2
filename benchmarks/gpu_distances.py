"""The GPU's DTW: first checked against the CPU, then timed; one JSON line a row.

    python benchmarks/gpu_distances.py

A row counts all cells n x m of the cost matrices, also those outside of a window. `reached` says
whether a goal was met. A difference to the CPU ends the run with an error; a way of cutting the
work that does not run here gets a row with its error, and the run goes on.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor

from softclt.distances import pairwise_distance
from softclt.distances.gpu import (
    DeviceSeries,
    Tuning,
    check_gpu,
    device_series,
    dtw_on_device,
    matrix_on_device,
)
from softclt.distances.measure import Measure
from softclt.distances.registration import Floats64, Ragged

Row = dict[str, object]

# lanes, rows, columns, programs a multiprocessor
UNIVARIATE = [
    Tuning(32, 16, 4, 32),
    Tuning(32, 16, 4, 16),
    Tuning(32, 16, 4, 8),
    Tuning(32, 16, 2, 32),
    Tuning(32, 16, 2, 16),
    Tuning(32, 32, 2, 16),
    Tuning(32, 32, 4, 16),
    Tuning(32, 8, 4, 32),
    Tuning(32, 8, 8, 32),
    Tuning(64, 16, 4, 16),
    Tuning(128, 16, 4, 8),
    Tuning(128, 16, 2, 8),
]
WINDOWED = [
    Tuning(32, 8, 4, 32),
    Tuning(32, 8, 2, 32),
    Tuning(32, 16, 4, 16),
    Tuning(32, 16, 2, 32),
]
MULTIVARIATE = [
    Tuning(32, 8, 2, 32),
    Tuning(32, 8, 4, 32),
    Tuning(32, 4, 4, 32),
    Tuning(32, 4, 2, 32),
    Tuning(32, 16, 2, 32),
]


def random_walks(n: int, d: int, shortest: int, longest: int, seed: int = 0) -> list[Floats64]:
    """Series ``(D, T_i)`` of random length."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, n)
    return [rng.normal(size=(d, t)).cumsum(axis=1) for t in lengths]


def ragged(series: list[Floats64]) -> Ragged:
    """The same as one block of memory."""
    ends = np.cumsum([x.shape[1] for x in series])
    return Ragged(np.concatenate(series, axis=1), np.concatenate([[0], ends]))


def check(device: torch.device) -> Iterator[Row]:
    """Differences to the CPU on random data, relative to the distance."""
    ragged_and_whole = [(60, d, *ends) for d in (1, 2, 4, 6, 12) for ends in ((1, 200), (128, 128))]
    for n, d, shortest, longest in [*ragged_and_whole, (6, 1, 2900, 3100)]:
        x = random_walks(n, d, shortest, longest, seed=d)
        own = ragged(x)
        for window in (None, 0.0, 0.1, 0.5, 1.0):
            got = matrix_on_device(Measure("dtw", window), own, own, device=device, half=True)
            expected = pairwise_distance(x, window=window)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
            error = np.abs(got - expected) / np.maximum(expected, 1e-3)
            yield {
                "case": "parity",
                "D": d,
                "T": [shortest, longest],
                "window": window,
                "largest_relative_error": float(f"{error.max():.1e}"),
            }


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    """Median on the device's clock; one call before, which compiles, is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)))
    return statistics.median(times)


def sorted_pairs(
    n: int, d: int, shortest: int, longest: int, device: torch.device
) -> tuple[DeviceSeries, Tensor, Tensor, float]:
    """Series in the order of their lengths, their pairs i < j, and how many cells those have."""
    x = ragged(sorted(random_walks(n, d, shortest, longest), key=lambda own: own.shape[1]))
    rows, cols = torch.triu_indices(n, n, 1, device=device)
    cells = (x.lengths.sum() ** 2 - (x.lengths**2).sum()) / 2
    return device_series(x, device, x.values.mean(axis=1)), rows, cols, float(cells)


def rates(
    case: str,
    shape: tuple[int, int, int, int],
    window: float | None,
    tunings: list[Tuning],
    device: torch.device,
) -> Iterator[Row]:
    """A row for the tuning that the library takes, and one for each of ``tunings``."""
    n, d, shortest, longest = shape
    x, rows, cols, cells = sorted_pairs(n, d, shortest, longest, device)
    expected = dtw_on_device(x, x, rows, cols, window=window)
    for tuning in (None, *tunings):
        row: Row = {
            "case": case,
            "pairs": len(rows),
            "D": d,
            "T": longest if shortest == longest else [shortest, longest],
            "window": window,
            "tuning": "default" if tuning is None else asdict(tuning),
        }

        def run(tuning: Tuning | None = tuning) -> Tensor:
            return dtw_on_device(x, x, rows, cols, window=window, tuning=tuning)

        try:
            torch.testing.assert_close(run(), expected, rtol=1e-5, atol=1e-5)
            duration = milliseconds(run, repeats=5)
        except Exception as error:  # whatever a compiler may say: the other rows are worth having
            yield {**row, "error": f"{type(error).__name__}: {str(error)[:200]}"}
            continue
        rate = cells / duration / 1e6
        goal = {"reached": rate >= 300} if (case, tuning) == ("univariate", None) else {}
        yield {
            **row,
            "milliseconds": round(duration, 3),
            "gigacells_per_second": round(rate, 1),
            **goal,
        }


def latency(batch: int, length: int, device: torch.device) -> Row:
    """The distances within a batch of a large data set, from its indices to a finished block."""
    x, _, _, _ = sorted_pairs(2000, 1, length, length, device)
    index = torch.arange(0, 2000, 2000 // batch, device=device)[:batch]
    rows, cols = torch.triu_indices(batch, batch, 1, device=device)

    def run() -> Tensor:
        block = x.take(index)
        return dtw_on_device(block, block, rows, cols)

    def finished() -> None:
        run()
        torch.cuda.synchronize(device)

    finished()
    times = []
    for _ in range(50):
        start = time.perf_counter()
        finished()
        times.append(time.perf_counter() - start)
    return {
        "case": "batch",
        "B": batch,
        "T": length,
        "pairs": len(rows),
        "microseconds": round(1e6 * statistics.median(times), 1),
        "device_microseconds": round(1e3 * milliseconds(run, repeats=50), 1),
    }


def whole_matrix(n: int, length: int, device: torch.device) -> Row:
    """The time from series to matrix, both in the host's memory."""
    series = random_walks(n, 1, length, length)
    x = ragged(series)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        matrix = matrix_on_device(Measure("dtw"), x, x, device=device, half=True)
        times.append(time.perf_counter() - start)
    some = np.linspace(0, n - 1, 25).astype(int)
    expected = pairwise_distance([series[i] for i in some])
    np.testing.assert_allclose(matrix[np.ix_(some, some)], expected, rtol=1e-4, atol=1e-5)
    cells = n * (n - 1) / 2 * length**2
    return {
        "case": "matrix of FordB's size",
        "N": n,
        "T": length,
        "seconds": round(min(times), 3),
        "seconds_first": round(times[0], 3),
        "gigacells_per_second": round(cells / min(times) / 1e9, 1),
        "reached": min(times) < 10,
    }


def main() -> None:
    """Check, then time."""
    device = check_gpu("cuda")
    print(json.dumps({"device": torch.cuda.get_device_name(device), "torch": torch.__version__}))
    began = time.perf_counter()
    for row in check(device):
        print(json.dumps(row), flush=True)
    print(json.dumps(whole_matrix(3636, 500, device)), flush=True)
    for batch in (8, 64):
        print(json.dumps(latency(batch, 200, device)), flush=True)
    fastest: dict[str, float] = {}
    for case, shape, window, tunings in (
        ("univariate", (1024, 1, 512, 512), None, UNIVARIATE),
        ("short", (2048, 1, 150, 150), None, UNIVARIATE[:5]),
        ("window", (2048, 1, 512, 512), 0.1, WINDOWED),
        ("multivariate", (1024, 6, 150, 150), None, MULTIVARIATE),
        ("ragged", (2048, 1, 50, 150), None, UNIVARIATE[:5]),
        ("many channels", (512, 32, 150, 150), None, []),
    ):
        for row in rates(case, shape, window, tunings, device):
            print(json.dumps(row), flush=True)
            rate = row.get("gigacells_per_second")
            if isinstance(rate, float):
                fastest[case] = max(fastest.get(case, 0.0), rate)
    print(json.dumps({"fastest": fastest}))
    print(json.dumps({"seconds_of_all": round(time.perf_counter() - began, 1)}))


if __name__ == "__main__":
    main()
