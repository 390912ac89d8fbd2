"""Distances of the pairs that a batch really uses: from the whole matrix, or made when needed."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt.data.sources import SeriesSource
from softclt.distances.cache import cached_matrix
from softclt.distances.engine import in_threads
from softclt.distances.gpu import gpu_is_ready
from softclt.distances.measure import Measure, Metric
from softclt.distances.normalize import normalize_distances, off_diagonal
from softclt.distances.of_sets import StreamedPairs, check_streamed, samples
from softclt.distances.pair_engines import PairEngine, pair_engine
from softclt.distances.registration import Floats, Ints, Ragged
from softclt.distances.store import matrix_of
from softclt.parallel import worker_count
from softclt.progress import progress_bar
from softclt.validation import check_choice, check_distances, check_random_state_seed, check_series

MODES = ("auto", "dense", "lazy")
NORMALIZATIONS = ("minmax", "max", "column", "local")
_OF_ALL = ("column", "local")  # need the whole matrix

# A sample of s pairs has, with probability 1 - (1 - TAIL)^s, one among the share TAIL of the most
# distant pairs: at most that share then lies above the sample's maximum. So for the minimum.
TAIL, DOUBT = 0.001, 0.01
SAMPLE_SIZE = math.ceil(math.log(DOUBT) / math.log(1 - TAIL))  # 4603
_CHUNK = 256  # pairs of the sample that a thread computes at a time

FEW_CELLS = 1e10  # a matrix of so few is there in seconds on two cores
MOST_SERIES = 16_384  # whose matrix is 1 GiB in float32


class BatchDistances:
    """Distances in [0, 1] between the series of a batch, as `SoftContrastiveLoss` expects them.

    Dense mode computes the whole matrix once; what takes long is kept in the user's cache. Lazy
    mode computes the pairs of each batch when it comes, in the calling thread. Its cost grows with
    the number of batches, not with N^2, and it keeps nothing but the series. Where X has one
    channel and misses nothing, that is X itself and not a copy: leave it unchanged.

    What the normalisation needs to know of all pairs, lazy mode takes from a random sample of 4603
    of them. With probability 0.99 its maximum is exceeded by at most 0.1 % of all pairs. With the
    same probability at most 0.1 % are below its minimum. Those are clipped to 1 and 0. If there are
    no more pairs than that, all are taken, and both modes agree.

    On a GPU with Triton, lazy DTW is computed there and nothing waits for it, and so are matrices
    of more than 1e10 cells. Any other metric, and DTW with ``per_step`` or ``bound``, is computed
    on the CPU and copied; `facts` says which it was. Objects without a GPU engine can be pickled
    and used in worker processes.

    Args:
        X: ``(N, D, T)``, ``(N, T)``, or a list of ``(D, T_i)`` or ``(T_i,)``; NaN is missing. Or a
            source (`softclt.data.open_series`), which is read batch by batch: always lazy.
        metric: See `pairwise_distance`; so for ``window``, ``n_jobs``, ``unequal``, ``params``.
        mode: ``"dense"``, ``"lazy"``, or ``"auto"``, which counts and never measures, so that the
            same call does the same everywhere. It is dense if the matrix has at most 1e10 cells of
            cost matrices, or no more pairs than the ``steps`` and the sample together, but lazy for
            more than 16,384 series. ``"column"`` and ``"local"`` need the matrix: dense.
        normalize: ``"minmax"``, ``"max"``, ``"column"`` or ``"local"``, see `normalize_distances`.
        steps: Batches that will be asked for, if known; only auto looks at it.
        batch_size: Series in each of them.
        distances: Raw ``(N, N)``, or a `DistanceStore` or its folder, to save computing them.
        random_state: Seed of the sample, which depends on it and N alone.
        device: Where the result is wanted; None is the CPU.
        progress: Show a bar while the matrix or the sample is computed.

    Attributes:
        mode: ``"dense"`` or ``"lazy"``: what auto chose.
        engine: ``"cpu"`` or ``"cuda"``: what computes the distances; None if they were given.
        low, high: Distances that become 0 and 1. With ``"column"`` each column has a high of its
            own; this is the largest.
        matrix: Normalised distances of all series ``(N, N)`` in dense mode, else None.

    Example:
        >>> X = [[0, 1, 2, 3], [0, 2, 3], [5, 5]]
        >>> distances = BatchDistances(X, mode="lazy")
        >>> distances([0, 2, 1])
        tensor([[0.0000, 1.0000, 0.0000],
                [1.0000, 0.0000, 0.8135],
                [0.0000, 0.8135, 0.0000]])
    """

    def __init__(
        self,
        X: Any,
        metric: Metric = "dtw",
        *,
        mode: str = "auto",
        normalize: str = "minmax",
        window: float | None = None,
        steps: int | None = None,
        batch_size: int = 8,
        distances: Any = None,
        random_state: Any = 0,
        device: str | torch.device | None = None,
        n_jobs: int | None = -1,
        progress: bool = False,
        unequal: str = "error",
        **params: Any,
    ) -> None:
        check_choice(mode, MODES, "mode")
        check_choice(normalize, NORMALIZATIONS, "normalize")
        if mode == "lazy":
            _check_lazy(normalize, distances)
        measure = Measure(metric, window, params, unequal)
        self.device = torch.device("cpu" if device is None else device)
        self.engine: str | None = "cpu"
        self.matrix: Tensor | None = None
        self._engine: PairEngine
        self._title, self._symmetric = measure.title, bool(measure.tags["symmetric"])
        if isinstance(X, SeriesSource):
            check_streamed(X, measure, mode, distances)
            _check_lazy(normalize, distances)
        else:
            X = check_series(X)
        self._n_series = len(X)
        self._pairs_before, self._pairs_in_batches = _n_pairs(len(X), self._symmetric), 0
        if distances is not None:
            self.mode, self.engine, self._pairs_before = "dense", None, 0
            self._keep_matrix(check_distances(matrix_of(distances), len(X)), normalize)
            return
        workers = worker_count(n_jobs) if isinstance(metric, str) else 1
        pairs = sample_pairs(len(X), self._symmetric, check_random_state_seed(random_state))
        if isinstance(X, SeriesSource):
            self.mode = "lazy"
            self._sample(samples(X, *pairs, measure), measure, workers, progress)
            self._engine = StreamedPairs(X, measure, self.device)
        else:
            series, _ = measure.prepare(X)
            cells = measure.cells(series, series)
            self.mode = mode
            if mode == "auto":
                n_pairs = self._pairs_before
                self.mode = choose_mode(len(X), n_pairs, cells, normalize, steps, batch_size)
            if self.mode == "dense":
                # To compile for the GPU takes longer than a small matrix on the CPU.
                many = self._pairs_before * cells > FEW_CELLS
                gpu = self.device if many and gpu_is_ready(measure, self.device) else None
                self.engine = "cpu" if gpu is None else "cuda"
                raw = cached_matrix(measure, series, workers=workers, device=gpu, progress=progress)
                self._keep_matrix(raw, normalize)
                return
            self._sample([(series, *pairs)], measure, workers, progress)
        if normalize == "max":
            self.low = 0.0

    def __call__(self, rows: Any, cols: Any = None) -> Tensor:
        """Distances of a batch ``(B, B)`` in float32, or of some of its rows to all of it.

        Args:
            rows: Indices into X ``(B,)``: a tensor, an array or a list.
            cols: Indices ``(B_cols,)``, for a process that has a part of a larger batch. None
                takes the rows, and each pair is then computed once.
        """
        rows = self._indices(rows)
        others = rows if cols is None else self._indices(cols)
        if self.matrix is not None:
            return self.matrix[rows[:, None], others]
        n, m = len(rows), len(others)
        if cols is None and self._symmetric:
            first, second = torch.triu_indices(n, n, 1, device=rows.device)  # (B (B - 1) / 2,) each
        else:
            first = torch.arange(n, device=rows.device).repeat_interleave(m)
            second = torch.arange(m, device=rows.device).repeat(n)  # (B B_cols,)
        series, offset = (rows, 0) if cols is None else (torch.cat([rows, others]), n)
        values = self._normalized(self._raw(series, first, second + offset))
        self._pairs_in_batches += len(values)
        first, second = first.to(values.device), second.to(values.device)
        rows, others = rows.to(values.device), others.to(values.device)
        block = values.new_zeros(n, m)
        block[first, second] = values
        if cols is None and self._symmetric:
            block[second, first] = values
        block.masked_fill_(rows[:, None] == others, 0.0)
        return block.to(self.device)

    @property
    def facts(self) -> dict[str, Any]:
        """What was done so far, for JSON: the engine, the pairs it computed, the normalisation."""
        return {
            "engine": self.engine,
            "pairs_before": self._pairs_before,
            "pairs_in_batches": self._pairs_in_batches,
            "low": self.low,
            "high": self.high,
        }

    def __repr__(self) -> str:
        return f"BatchDistances({self._title}, {self.mode}, {self._n_series} series)"

    def _keep_matrix(self, raw: Floats, normalize: str) -> None:
        beside = off_diagonal(raw)
        self.high = float(beside.max(initial=0.0))
        self.low = 0.0 if normalize == "max" else float(beside.min(initial=self.high))
        normal = normalize_distances(raw, normalize).astype(np.float32)
        self.matrix = torch.from_numpy(normal).to(self.device)

    def _sample(
        self,
        parts: Iterable[tuple[Ragged, Ints, Ints]],
        measure: Measure,
        workers: int,
        progress: bool,
    ) -> None:
        """Find the extremes of pairs of some series: the series, then both sides of the pairs."""
        self.engine = "cuda" if gpu_is_ready(measure, self.device) else "cpu"
        ranges = [(math.inf, 0.0)]
        self._pairs_before = 0
        for series, first, second in parts:
            self._engine = pair_engine(series, measure, self.device)
            n_threads = 1 if self.engine == "cuda" else workers
            ranges.append(self._range_of(first, second, n_threads, progress))
            self._pairs_before += len(first)
        lows, highs = zip(*ranges, strict=True)
        self.high = max(highs)
        self.low = min(min(lows), self.high)

    def _range_of(
        self, first: Ints, second: Ints, workers: int, progress: bool
    ) -> tuple[float, float]:
        """The smallest and the largest distance of some pairs of different series."""

        def extremes(start: int) -> tuple[float, float]:
            chunk = slice(start, start + _CHUNK)
            pairs = np.concatenate([first[chunk], second[chunk]])
            series, positions = np.unique(pairs, return_inverse=True)
            left, right = torch.from_numpy(positions.reshape(2, -1)).to(home)
            values = self._raw(torch.from_numpy(series).to(home), left, right)
            return float(values.min()), float(values.max())

        if len(first) == 0:
            return 0.0, 0.0
        home = self._engine.device
        lows, highs = [], []
        with progress_bar(f"{self._title} distances", len(first), progress) as advance:
            for low, high in in_threads(extremes, list(range(0, len(first), _CHUNK)), workers):
                lows.append(low)
                highs.append(high)
                advance(_CHUNK)
        if not math.isfinite(max(highs)):
            raise ValueError(
                f"the largest {self._title} distance is infinite, so none can be normalised; "
                "leave `bound` out"
            )
        return min(lows), max(highs)

    def _raw(self, series: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Distances of ``series[first[k]]`` and ``series[second[k]]``, ``(P,)``."""
        if self._symmetric:  # by their rows in X, so that a pair has one value in any batch
            swapped = series[first] > series[second]
            first, second = torch.where(swapped, second, first), torch.where(swapped, first, second)
        if len(first) == 0:
            return torch.zeros(0, device=series.device)
        return self._engine.pairs(series, first, second)

    def _normalized(self, raw: Tensor) -> Tensor:
        span = self.high - self.low
        scaled = (raw - self.low) / span if span > 0 else torch.zeros_like(raw)
        return scaled.clamp_(0.0, 1.0).to(torch.float32)

    def _indices(self, given: Any) -> Tensor:
        index = torch.as_tensor(given)
        if index.ndim != 1 or index.dtype == torch.bool or index.dtype.is_floating_point:
            raise ValueError(
                f"a batch has shape {tuple(index.shape)} and type {index.dtype}; "
                "expected whole numbers (B,), the rows of its series in X"
            )
        n = self._n_series
        # On a GPU this look would stall every step; there the contract is the caller's.
        if index.device.type == "cpu" and ((index < 0) | (index >= n)).any():
            wrong = int(index[(index < 0) | (index >= n)][0])
            raise IndexError(f"a batch asks for series {wrong}; X has 0 to {n - 1}")
        home = self.device if self.matrix is not None else self._engine.device
        return index.to(home, torch.int64)


def choose_mode(
    n_series: int, n_pairs: int, cells: float, normalize: str, steps: int | None, batch_size: int
) -> str:
    """``"dense"`` or ``"lazy"``, by counting what each would compute.

    Args:
        n_series: Series of the data set.
        n_pairs: Pairs of the whole matrix.
        cells: What a pair costs.
        normalize: How distances are brought into [0, 1].
        steps: Batches that will be asked for; None: unknown.
        batch_size: Series in each of them.

    Example:
        >>> small, large = 500, 371_055
        >>> choose_mode(small, small * (small - 1) // 2, 150**2, "minmax", 200, 8)
        'dense'
        >>> choose_mode(large, large * (large - 1) // 2, 200**2, "minmax", 600, 8)
        'lazy'
    """
    if normalize in _OF_ALL:
        return "dense"
    b = min(batch_size, n_series)
    lazily = 0 if steps is None else steps * b * (b - 1) // 2 + min(SAMPLE_SIZE, n_pairs)
    worth_it = n_pairs * cells <= FEW_CELLS or n_pairs <= lazily
    return "dense" if worth_it and n_series <= MOST_SERIES else "lazy"


def sample_pairs(n: int, symmetric: bool, seed: int) -> tuple[Ints, Ints]:
    """Pairs of different series out of n, each as likely as any other; all if they are few."""
    if _n_pairs(n, symmetric) <= SAMPLE_SIZE:
        every = ~np.eye(n, dtype=bool)
        first, second = np.nonzero(np.triu(every) if symmetric else every)
        return first, second
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, n])))
    first = rng.integers(n, size=SAMPLE_SIZE)
    second = rng.integers(n - 1, size=SAMPLE_SIZE)
    return first, second + (second >= first)  # one of the n - 1 others


def _n_pairs(n: int, symmetric: bool) -> int:
    return n * (n - 1) // (2 if symmetric else 1)


def _check_lazy(normalize: str, distances: Any) -> None:
    if distances is not None:
        raise ValueError(
            "distances are given and the mode is 'lazy', which would not look at them; "
            "use 'auto' or 'dense', or leave them out"
        )
    if normalize in _OF_ALL:
        raise ValueError(
            "normalising each 'column' needs the whole matrix, which the mode 'lazy' never has; "
            "normalise by 'minmax' or 'max', or use the mode 'dense'"
        )
