"""NumPy files, ``.npz`` and ``.npy``, and arrays in other layouts."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError
from softclt.data.text import existing_file
from softclt.validation import Floats, check_series

_NPZ_FORMS = "x_train [y_train, x_test, y_test], or X (or x, or data) [y, ids]"


def read_npz(path: str | Path) -> dict[str, SeriesTable]:
    """Tables of an ``.npz`` file by split: ``train`` and ``test``, or ``all``.

    Arrays ``x_train``, ``y_train``, ``x_test`` and ``y_test`` make two splits, of which the second
    may be absent; ``X`` (or ``x``, or ``data``) with ``y`` makes one table. ``ids_train``,
    ``ids_test`` or ``ids`` name the series. Capitals do not matter, other arrays are left out.
    """
    arrays = load_arrays(path)
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


def load_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file by their names in lower case."""
    arrays = _load(path)
    if not isinstance(arrays, dict):
        raise DataError("is one bare array; name it .npy, or save with numpy.savez", path)
    return arrays


def read_npy(path: str | Path) -> SeriesTable:
    """Series of an ``.npy`` file, ``(N, T)`` or ``(N, D, T)``."""
    array = _load(path)
    if isinstance(array, dict):
        raise DataError("holds several arrays; name it .npz", path)
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


def _load(path: str | Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The array of a file, or its arrays by their names in lower case."""
    path = existing_file(path)
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            return {name.lower(): loaded[name] for name in loaded.files}
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes fail inside NumPy and zipfile in a dozen ways
        if "allow_pickle" in str(error) and zipfile.is_zipfile(path):
            raise DataError("holds Python objects; save plain arrays of numbers", path) from None
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
