"""Arrays as sources: in memory, or in a .npy file of any size."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.errors import DataError
from softclt.data.sources.source import SeriesSource
from softclt.data.text import existing_file
from softclt.validation import Floats, Ints, check_series


class ArraySource(SeriesSource):
    """Series in memory, as one of several sets."""

    def __init__(self, X: Any, name: str = "X") -> None:
        self.X, self.name = check_series(X, name=name), name
        self.shape, self.dtype = self.X.shape, self.X.dtype

    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats:
        """See `SeriesSource`."""
        return self.X[rows, :, start:stop]

    def by_channel(self) -> SeriesSource:
        """See `SeriesSource`; no value is copied."""
        return ArraySource(self.X.reshape(-1, 1, self.shape[-1]), self.name)


class NpySource(SeriesSource):
    """Series of a memory-mapped array, ``(N, T)`` or ``(N, D, T)``.

    Rows are read from the file, not through the map: pages of a map that were once touched count as
    memory of the process.

    Args:
        array: As ``numpy.load(path, mmap_mode="r")`` gives it, or a part of that.
    """

    def __init__(self, array: "np.memmap[Any, Any]") -> None:
        self.path = Path(str(array.filename))
        self.name = str(self.path)
        if array.dtype.kind not in "fiub":
            raise DataError(f"has dtype {array.dtype}; expected real numbers", self.path)
        if array.ndim not in (2, 3) or array.size == 0:
            raise DataError(
                f"has shape {array.shape}; expected series as (N, D, T), or (N, T) for one channel",
                self.path,
            )
        if array.mode == "c":
            raise DataError("is mapped with mode 'c', which may hide the file; use 'r'", self.path)
        series: Any = array if array.ndim == 3 else array[:, None, :]  # (N, D, T)
        self.shape = series.shape
        self.stored = series.dtype
        self.dtype = np.dtype(np.float32 if series.dtype == np.float32 else np.float64)
        self._strides = _strides(series)
        self._offset = _place_in_file(series)
        self._row_bytes = self._extent(1, self.shape[1], self.shape[2])
        if min(self._strides[1:]) <= 0 or (len(self) > 1 and self._strides[0] < self._row_bytes):
            raise DataError(
                "the values of a series do not lie together in the file (Fortran order?); "
                "save it with the series as the first axis, in C order",
                self.path,
            )

    @classmethod
    def open(cls, path: str | Path) -> "NpySource":
        """The source of a .npy file."""
        path = existing_file(path)
        try:
            return cls(np.lib.format.open_memmap(path, mode="r"))  # type: ignore[no-untyped-call]
        except DataError:
            raise
        except Exception as error:  # damaged bytes fail inside NumPy in several ways
            reason = " ".join(str(error).split())[:80]
            raise DataError(
                f"is no .npy file of numbers, or a truncated one ({reason}); "
                "expected what numpy.save writes",
                path,
            ) from None

    def take(self, rows: Ints, start: int = 0, stop: int | None = None) -> Floats:
        """See `SeriesSource`; one read for each series, or for all of a run."""
        d, length = self.shape[1], len(range(*slice(start, stop).indices(self.shape[2])))
        in_a_row = len(rows) > 1 and bool((np.diff(rows) == 1).all())
        channel_stride, step_stride = self._strides[1:]
        # A part of each channel is read by itself where channels lie one behind the other.
        apart = length < self.shape[2] and d > 1 and channel_stride > step_stride
        with self.path.open("rb", buffering=0) as file:
            if in_a_row and length == self.shape[2]:
                return self._read(file, int(rows[0]), 0, 0, (len(rows), d, length))
            taken = np.empty((len(rows), d, length), self.dtype)
            for out, row in zip(taken, rows.tolist(), strict=True):
                if apart:
                    for c in range(d):
                        out[c] = self._read(file, row, c, start, (1, 1, length))[0, 0]
                else:
                    out[:] = self._read(file, row, 0, start, (1, d, length))[0]
        return taken

    def by_channel(self) -> SeriesSource:
        """See `SeriesSource`; no value is copied."""
        n, d, t = self.shape
        if d == 1 or self._strides[0] != d * self._strides[1]:
            return super().by_channel()
        flat = object.__new__(NpySource)
        flat.__dict__.update(self.__dict__)
        flat._survey = None
        flat.shape = n * d, 1, t
        flat._strides = self._strides[1], self._strides[1], self._strides[2]
        return flat

    def _extent(self, n: int, d: int, t: int) -> int:
        """Bytes from the first to the last value of a part of this shape."""
        ends = zip((n, d, t), self._strides, strict=True)
        return int(self.stored.itemsize) + sum((size - 1) * stride for size, stride in ends)

    def _read(
        self, file: Any, row: int, channel: int, step: int, shape: tuple[int, int, int]
    ) -> Floats:
        place = zip((row, channel, step), self._strides, strict=True)
        file.seek(self._offset + sum(i * stride for i, stride in place))
        raw = bytearray(self._extent(*shape))
        view, done = memoryview(raw), 0
        while done < len(raw):
            count = file.readinto(view[done:])
            if not count:
                raise DataError("ends before its last series: it was truncated", self.path)
            done += count
        values = np.ndarray(shape, self.stored, raw, strides=self._strides)
        return values.astype(self.dtype, order="C", copy=False)


def _strides(array: "np.memmap[Any, Any]") -> tuple[int, int, int]:
    """Bytes from one series, channel and step to the next, also where there is one only."""
    n, d, t = array.shape
    series, channel, step = array.strides
    step = step if t > 1 else array.itemsize
    channel = channel if d > 1 else step * t
    return series if n > 1 else channel * d, channel, step


def _place_in_file(array: "np.memmap[Any, Any]") -> int:
    """The byte at which an array, which may be a part of a map, begins in its file."""
    whole: Any = array._mmap  # type: ignore[attr-defined]
    map_begins = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    first = np.frombuffer(whole, np.uint8, count=1).__array_interface__["data"][0]
    return int(map_begins + array.__array_interface__["data"][0] - first)
