"""DTW on the GPU: one pair of series a thread, strips of its cost matrix in registers."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softclt.distances.engine import Tile, tiles
from softclt.distances.measure import Measure
from softclt.distances.registration import Floats64, Ragged
from softclt.progress import progress_bar
from softclt.validation import Floats32

# Behind the end of a series. Its square is inf, so no path leaves two series before the end of
# both; from there on FILLER meets FILLER at no cost, and the far corner of a grid that is too
# large for a pair holds that pair's result.
FILLER = 1e30
_LARGEST = 1e16  # sums of squares of larger numbers may leave the range of float32

_RESIDENT_CHANNELS = 8  # of a strip stay in registers; of more, all are read again and again
_SCRATCH_BYTES = 1 << 30
_TILE_CELLS = 1e12  # between two moves of the progress bar
_TILE_SIDES = (512, 2048)  # enough pairs for all multiprocessors; few enough to bound the memory


@dataclass(frozen=True)
class DeviceSeries:
    """Series of any length on a GPU, as the kernel reads them.

    Attributes:
        values: ``(T_max + 1, D, N)`` in float32: neighbouring series are neighbours in memory.
            Behind its end a series holds ``FILLER``; the last step is all ``FILLER``.
        lengths: Steps of each series, ``(N,)`` in int32.
    """

    values: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Tensor) -> "DeviceSeries":
        """Some series in the order given; a batch on its own is read faster than within all."""
        return DeviceSeries(self.values.index_select(2, rows), self.lengths.index_select(0, rows))


@dataclass(frozen=True)
class Tuning:
    """How the kernel cuts its work; the result does not depend on it. Defaults: quick on an H200.

    Attributes:
        lanes: Pairs of a program, one a thread: a power of 2, at least 32.
        rows: Of a cost matrix that are kept in registers.
        columns: Computed between two trips to memory; divides ``rows``.
        programs: At work at once on each multiprocessor.
    """

    lanes: int = 32
    rows: int = 32
    columns: int = 4
    programs: int = 16


def runs_on_gpu(measure: Measure) -> bool:
    """Whether there is a GPU kernel for a metric with its parameters."""
    return measure.metric == "dtw" and measure.params.keys() <= {"squared"}


def gpu_is_ready(measure: Measure, device: torch.device) -> bool:
    """Whether a device is a GPU that can compute the measure, for callers that have a choice."""
    if device.type != "cuda" or not torch.cuda.is_available() or not runs_on_gpu(measure):
        return False
    from softclt.distances import gpu_kernel

    return gpu_kernel.AVAILABLE


def gpu_for(measure: Measure, device: Any) -> torch.device:
    """The GPU of that name, if it is there and can compute the measure."""
    gpu = check_gpu(device)
    if not runs_on_gpu(measure):
        given = ", ".join(measure.params)
        raise ValueError(
            f"{measure.title}{f' with {given}' if given else ''} has no GPU kernel; dtw has one "
            "(with window and squared). Use device=None or 'cpu'"
        )
    return gpu


def check_gpu(device: str | torch.device) -> torch.device:
    """The device, if it is a GPU of this machine on which distances can run."""
    elsewhere = "use device=None or 'cpu' to compute the distances on the CPU"
    try:
        gpu = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device is {device!r}; expected 'cpu' or 'cuda'; {elsewhere}") from None
    if gpu.type != "cuda":
        raise ValueError(
            f"device is {str(device)!r}; distances run on the CPU and on 'cuda'; {elsewhere}"
        )
    if not torch.cuda.is_available():
        raise ValueError(f"device is {str(device)!r}, but torch sees no GPU here; {elsewhere}")
    if gpu.index is not None and gpu.index >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ValueError(f"device is {str(device)!r}, but torch sees {count} GPU(s) here")
    from softclt.distances import gpu_kernel

    if not gpu_kernel.AVAILABLE:
        raise ValueError(
            f"device is {str(device)!r}, but Triton 3.3 or newer, which comes with torch 2.7 for "
            f"GPUs, is not installed: pip install -U torch triton; or {elsewhere}"
        )
    return gpu


def device_series(x: Ragged, device: torch.device, centre: Floats64) -> DeviceSeries:
    """Copy series without missing steps to a GPU.

    Args:
        x: The series.
        device: See `check_gpu`.
        centre: ``(D,)``, removed in float64 before the values become float32. DTW does not see
            it, if it is the same for all series that are compared, but large values then keep
            their digits.
    """
    lengths = x.lengths
    longest = int(lengths.max(initial=0))
    inside = np.arange(longest + 1) < lengths[:, None]  # (N, T + 1)
    padded = np.full((len(x), len(x.values), longest + 1), FILLER, np.float32)  # (N, D, T + 1)
    for c, own in enumerate(x.values):
        centred = own.astype(np.float64) - centre[c]
        largest = float(np.abs(centred).max(initial=0.0))
        if not largest <= _LARGEST:
            raise ValueError(
                f"channel {c} holds values up to {largest:g} from its centre; the GPU computes in "
                f"float32, whose sums of squares end before {_LARGEST:g}: scale the series"
            )
        padded[:, c][inside] = centred
    on_device = torch.from_numpy(padded).to(device).permute(2, 1, 0).contiguous()
    return DeviceSeries(on_device, torch.from_numpy(lengths.astype(np.int32)).to(device))


def dtw_on_device(
    x: DeviceSeries,
    y: DeviceSeries,
    rows: Tensor,
    cols: Tensor,
    *,
    window: float | None = None,
    squared: bool = False,
    tuning: Tuning | None = None,
) -> Tensor:
    """DTW of x[rows[k]] and y[cols[k]], ``(P,)`` in float32 on their device; see `elastic.dtw`.

    Nothing waits for the device. Fast where neighbouring pairs are of about the same lengths and
    share x[rows[k]] while cols[k] runs on.

    Args:
        x, y: Series on one device, with the same centre removed.
        rows, cols: The pairs to compare, ``(P,)`` each, on that device; not checked for their
            range, which would have to wait.
        window: Half-width of the Sakoe-Chiba band as a share of the longer series.
        squared: Without the square root.
        tuning: For benchmarks; ``None`` is the library's own choice.
    """
    from softclt.distances.gpu_kernel import dtw_of_pairs

    channels = x.values.shape[1]
    if y.values.shape[1] != channels:
        raise ValueError(f"x has {channels} channel(s) and y has {y.values.shape[1]}")
    if rows.ndim != 1 or rows.shape != cols.shape:
        raise ValueError(
            f"rows have shape {tuple(rows.shape)} and cols {tuple(cols.shape)}; "
            "expected (P,) each, a pair a position"
        )
    tuning = tuning or _fast_tuning(channels, window is not None)
    device, pairs = x.values.device, len(rows)
    distances = torch.empty(pairs, dtype=torch.float32, device=device)
    if pairs == 0:
        return distances
    steps = max(len(x.values), len(y.values)) + tuning.rows + tuning.columns
    programs = min(
        -(-pairs // tuning.lanes),
        tuning.programs * _multiprocessors(device),
        max(1, _SCRATCH_BYTES // (4 * steps * tuning.lanes)),
    )
    scratch = torch.empty(programs * steps * tuning.lanes, dtype=torch.float32, device=device)
    with torch.cuda.device_of(x.values):  # type: ignore[no-untyped-call]
        dtw_of_pairs[(programs,)](
            x.values,
            y.values,
            x.lengths,
            y.lengths,
            rows.contiguous(),
            cols.contiguous(),
            # As a tensor, since a number would reach the kernel in float32.
            torch.full((1,), window or 0.0, dtype=torch.float64, device=device),
            scratch,
            torch.zeros(1, dtype=torch.int64, device=device),
            distances,
            len(x),
            len(y),
            len(x.values) - 1,
            len(y.values) - 1,
            pairs,
            steps,
            D=channels,
            R=tuning.rows,
            C=tuning.columns,
            LANES=tuning.lanes,
            RESIDENT=channels <= _RESIDENT_CHANNELS,
            BANDED=window is not None,
            SQUARED=squared,
            num_warps=tuning.lanes // 32,  # one pair a thread: no thread needs another's scratch
            num_stages=1,
        )
    return distances


def tile_on_device(
    device: torch.device, measure: Measure, x: Ragged, tile: Tile, half: bool
) -> Floats32:
    """As `engine.tile_distances`, on a GPU."""
    mirrored = half and tile.rows == tile.cols
    rows = x.part(tile.rows)
    cols = rows if mirrored else x.part(tile.cols)
    return matrix_on_device(measure, rows, cols, device=device, half=mirrored)


def matrix_on_device(
    measure: Measure,
    x: Ragged,
    y: Ragged,
    *,
    device: torch.device,
    half: bool,
    workers: int = 1,
    progress: bool = False,
) -> Floats32:
    """All distances between x and y, ``(N, N_Y)``, computed in tiles on a GPU.

    The GPU holds the series and a tile or two, whatever N is, and works on one tile while the
    host puts the last one in its place.

    Args:
        measure: See `gpu_for`.
        x, y: Series without missing steps; the same where ``half``.
        device: See `gpu_for`.
        half: Compute the pairs i < j, mirror them, and leave the diagonal 0.
        workers: Not used: one thread keeps the GPU busy.
        progress: Show a bar on standard error, which counts pairs.
    """
    matrix = np.zeros((len(x), len(y)), np.float32)
    if not matrix.size:
        return matrix
    centre = x.values.mean(axis=1, dtype=np.float64)
    # Sorted by length, so that the pairs of a program have cost matrices of about one size.
    row_order, col_order = (np.argsort(series.lengths, kind="stable") for series in (x, y))
    left = device_series(x, device, centre).take(torch.from_numpy(row_order).to(device))
    right = left
    if not half:
        right = device_series(y, device, centre).take(torch.from_numpy(col_order).to(device))

    def place(begun: _Begun) -> int:
        begun.wait()
        tile, values = begun.tile, begun.values.numpy()
        rows, cols = row_order[tile.rows], col_order[tile.cols]
        matrix[np.ix_(rows, cols)] = values
        if half:
            matrix[np.ix_(cols, rows)] = values.T
        return tile.n_pairs(half)

    side = int(np.clip(np.sqrt(_TILE_CELLS / (x.lengths.mean() * y.lengths.mean())), *_TILE_SIDES))
    buffers = [torch.empty(side * side, pin_memory=device.type == "cuda") for _ in range(2)]
    total = len(x) * (len(x) - 1) // 2 if half else matrix.size
    with progress_bar(f"{measure.title} distances", total, progress) as advance:
        under_way: deque[_Begun] = deque()
        for k, tile in enumerate(tiles(len(x), len(y), side, half)):
            under_way.append(_begin(measure, left, right, tile, half, buffers[k % 2]))
            if len(under_way) == len(buffers):
                advance(place(under_way.popleft()))
        for begun in under_way:
            advance(place(begun))
    return matrix


@dataclass(frozen=True)
class _Begun:
    """A tile under way; its values are there after ``wait()``."""

    tile: Tile
    values: Tensor
    wait: Callable[[], None]


def _begin(
    measure: Measure, x: DeviceSeries, y: DeviceSeries, tile: Tile, half: bool, buffer: Tensor
) -> _Begun:
    """Have a tile computed and copied to ``buffer``, and do not wait for either."""
    device = x.values.device
    (top, bottom), (left, right) = ((part.start, part.stop) for part in tile)
    height, breadth = bottom - top, right - left
    mirrored = half and tile.rows == tile.cols
    if mirrored:
        i, j = torch.triu_indices(height, breadth, 1, device=device)  # (P,) each
    else:
        i = torch.arange(height, device=device).repeat_interleave(breadth)
        j = torch.arange(breadth, device=device).repeat(height)
    squared = bool(measure.params.get("squared", False))
    distances = dtw_on_device(x, y, i + top, j + left, window=measure.window, squared=squared)
    if mirrored:
        block = distances.new_zeros(height, breadth)
        block[i, j] = block[j, i] = distances
    else:
        block = distances.view(height, breadth)
    values = buffer[: block.numel()].view(height, breadth)
    values.copy_(block, non_blocking=True)
    wait: Callable[[], None] = lambda: None  # noqa: E731 - a copy that is done already
    if device.type == "cuda":
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record(torch.cuda.current_stream(device))
        wait = copied.synchronize
    return _Begun(tile, values, wait)


def _fast_tuning(channels: int, banded: bool) -> Tuning:
    """Registers hold rows x channels values of x; a strip is wider than its bands by its rows."""
    if channels == 1:
        return Tuning(rows=16) if banded else Tuning()
    if channels <= _RESIDENT_CHANNELS:
        return Tuning(rows=16, columns=2, programs=32)
    return Tuning(rows=8, programs=32)


def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":  # Triton's interpreter
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
