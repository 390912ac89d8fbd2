"""NumPy files, ``.npz`` and ``.npy``, and arrays in other layouts."""

import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError
from softclt.data.text import existing_file
from softclt.files import too_large
from softclt.validation import Floats, check_series

_COPIES = 3  # of an array's bytes that reading takes: unpacked, as numbers, as series
_AT_ONCE = 2**24  # bytes
_NPZ_FORMS = "x_train [y_train, x_test, y_test], or X (or x, or data) [y, ids]"


def read_npz(path: str | Path) -> dict[str, SeriesTable]:
    """Tables of an ``.npz`` file by split: ``train`` and ``test``, or ``all``.

    Arrays ``x_train``, ``y_train``, ``x_test`` and ``y_test`` make two splits, of which the second
    may be absent; ``X`` (or ``x``, or ``data``) with ``y`` makes one table. ``ids_train``,
    ``ids_test`` or ``ids`` name the series. Capitals do not matter, other arrays are left out.
    """
    arrays = Arrays(path)
    splits = {"train": "_train", "test": "_test"} if "x_train" in arrays else {"all": ""}
    tables = {}
    for split, ending in splits.items():
        names = [f"x{ending}"] if ending else ["x", "data"]
        X = next((arrays[name] for name in names if name in arrays), None)
        if X is not None:
            y, ids = arrays.get(f"y{ending}"), arrays.get(f"ids{ending}")
            tables[split] = SeriesTable(
                X,
                None if y is None else _check_labels(y, X, f"y{ending}", path),
                ids=[] if ids is None else ids.tolist(),
                source=str(path),
            )
    if not tables:
        raise DataError(
            f"holds the arrays {', '.join(arrays) or 'none'}; expected {_NPZ_FORMS}", path
        )
    return tables


class Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of an ``.npz`` file by their names in lower case, each read when it is asked for.

    What a header declares is compared with what the file holds, and with the memory that is free,
    before anything is unpacked.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = existing_file(path)
        with damage_told(self.path), self.path.open("rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise DataError("is one bare array; name it .npy, or save with savez", self.path)
            with zipfile.ZipFile(file) as members:
                self._members = {
                    name.removesuffix(".npy").lower(): name for name in members.namelist()
                }

    def __getitem__(self, name: str) -> NDArray[Any]:
        member = self._members[name]
        with damage_told(self.path), zipfile.ZipFile(self.path) as members:
            size = members.getinfo(member).file_size
            with members.open(member) as file:
                return _read(file, size, self.path, f"the array {name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def read_npy(path: str | Path) -> SeriesTable:
    """Series of an ``.npy`` file, ``(N, T)`` or ``(N, D, T)``."""
    path = existing_file(path)
    if zipfile.is_zipfile(path):
        raise DataError("holds several arrays; name it .npz", path)
    with damage_told(path), path.open("rb") as file:
        array = _read(file, os.fstat(file.fileno()).st_size, path, "it")
    return SeriesTable(array, source=str(path))


def from_channels_last(X: Any) -> Floats:
    """Series ``(N, D, T)`` from ``(N, T, D)``, or from a list of ``(T_i, D)``.

    Example:
        >>> from_channels_last(np.zeros((8, 100, 3))).shape
        (8, 3, 100)
    """
    if isinstance(X, Sequence) and not isinstance(X, str):
        return check_series([np.asarray(x).T for x in X])
    if np.ndim(X) != 3:
        raise DataError(
            f"X has shape {np.shape(X)}; expected (N, T, D) or a list of (T_i, D). "
            "(N, T) has one channel and needs no conversion"
        )
    return np.ascontiguousarray(check_series(X).swapaxes(1, 2))


def _read(file: IO[bytes], size: int, path: Path, name: str) -> NDArray[Any]:
    """The array of a stream of so many bytes."""
    layout: Any = np.lib.format
    readers = {(1, 0): layout.read_array_header_1_0, (2, 0): layout.read_array_header_2_0}
    version = layout.read_magic(file)
    if version not in readers:
        raise DataError(f"{name} is of NumPy's format {version}; save plain numbers", path)
    shape, in_columns, dtype = readers[version](file)
    if dtype.hasobject:
        raise DataError("holds Python objects; save plain arrays of numbers", path)
    declared = math.prod(shape) * dtype.itemsize
    if declared > size:
        raise DataError(
            f"{name} declares the shape {shape} of {dtype}, for which the file is too short: it "
            "was cut off, or its header is damaged",
            path,
        )
    if problem := too_large(_COPIES * declared):
        raise DataError(f"{name} has the shape {shape}; reading it {problem}", path)
    array = np.empty(math.prod(shape), dtype)
    raw: Any = array.view(np.uint8) if declared else b""
    rest = memoryview(raw)
    done = 0
    while done < declared:
        part = file.read(min(_AT_ONCE, declared - done))
        if not part:
            raise DataError(f"{name} ends before its last number: the file was cut off", path)
        rest[done : done + len(part)] = part
        done += len(part)
    return array.reshape(shape[::-1]).T if in_columns else array.reshape(shape)


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """What fails in NumPy or zipfile becomes an error of the file."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # damaged bytes fail in a dozen ways
        raise DataError(
            f"is no NumPy file, or a damaged one ({type(error).__name__}); "
            "expected what numpy.save or numpy.savez writes",
            path,
        ) from None


def _check_labels(y: NDArray[Any], X: NDArray[Any], name: str, path: str | Path) -> NDArray[Any]:
    if y.size != len(X):
        raise DataError(
            f"{name} has shape {y.shape} for {len(X)} series; expected one label a series", path
        )
    return y
