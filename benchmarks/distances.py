"""Our DTW matrix against those of other packages, all in this run: one JSON line a row.

    python benchmarks/distances.py [--series 60] [--length 150] [--repeats 3]

`ratio` is the peer's time over ours: above 1 we are faster. Every package uses all cores where it
can; a package that is not installed has no row. Results must agree, or the run stops.
"""

import argparse
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from softclt.distances import pairwise_distance
from softclt.distances.base import Floats64

Matrix = Callable[[], Floats64]


def peers(X: Floats64, window: float | None) -> Iterator[tuple[str, Matrix]]:
    """Every installed package that computes the same matrix of X ``(N, D, T)``."""
    _, d, t = X.shape
    band = None if window is None else int(window * t)
    if importlib.util.find_spec("aeon"):
        from aeon.distances import dtw_pairwise_distance

        yield "aeon", lambda: np.sqrt(dtw_pairwise_distance(X, window=window, n_jobs=-1))
    channels_last = X.swapaxes(1, 2).copy()  # (N, T, D)
    if importlib.util.find_spec("tslearn"):
        from tslearn.metrics import cdist_dtw

        constraint = {} if band is None else {"sakoe_chiba_radius": band}
        yield "tslearn", lambda: cdist_dtw(channels_last, n_jobs=-1, **constraint)
    if importlib.util.find_spec("dtaidistance"):
        from dtaidistance import dtw, dtw_ndim

        width = None if band is None else band + 1  # theirs counts the diagonal
        if d == 1:
            yield "dtaidistance", lambda: dtw.distance_matrix_fast(X[:, 0].copy(), window=width)
        else:
            series = list(channels_last)
            yield (
                "dtaidistance",
                lambda: dtw_ndim.distance_matrix_fast(series, ndim=d, window=width),
            )


def seconds(matrix: Matrix, repeats: int) -> float:
    """Median wall time; one call before, which compiles, is not counted."""
    matrix()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        matrix()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compare(X: Floats64, window: float | None, repeats: int) -> Iterator[dict[str, object]]:
    """One row per package, ours first."""
    n, d, t = X.shape

    def own() -> Floats64:
        return pairwise_distance(X, window=window)

    expected, ours = own(), seconds(own, repeats)
    case = {"N": n, "D": d, "T": t, "window": window, "cores": os.cpu_count()}
    cells = n * (n - 1) / 2 * t * t  # of the full matrices, also with a window

    def row(package: str, duration: float) -> dict[str, object]:
        rate = round(cells / duration / 1e9, 4)
        return {
            **case,
            "package": package,
            "seconds": round(duration, 5),
            "gigacells_per_second": rate,
            "ratio": round(duration / ours, 2),
        }

    yield row("softclt", ours)
    for package, matrix in peers(X, window):
        np.testing.assert_allclose(matrix(), expected, atol=1e-5, err_msg=package)
        yield row(package, seconds(matrix, repeats))


def main() -> None:
    """Compare univariate, windowed and multivariate matrices."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--series", type=int, default=60)
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    for channels, window in ((1, None), (1, 0.1), (6, None)):
        X = rng.normal(size=(arguments.series, channels, arguments.length)).cumsum(axis=-1)
        for row in compare(X, window, arguments.repeats):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
