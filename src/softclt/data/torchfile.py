"""Files of `torch.save` that hold arrays, read without running what else they may carry."""

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.errors import DataError
from softclt.data.text import existing_file
from softclt.files import too_large

_COPIES = 3  # of a tensor's bytes that reading takes: as it is, as numbers, as series
_NUMBERS = "?bBhHiIlLqQefd"  # NumPy's letters of the types that an array may have
_OLD_MODULE, _NEW_MODULE = "numpy.core.multiarray", "numpy._core.multiarray"


def read_torch_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of a dictionary that `torch.save` wrote, by their names.

    Tensors and NumPy arrays of numbers are read; a file that asks for anything else to be made, as
    a harmful one would, is refused before it is.
    """
    import torch

    path = existing_file(path)
    if problem := too_large(_unpacked_size(path)):
        raise DataError(f"{problem}", path)
    try:
        with torch.serialization.safe_globals(_array_makers()):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DataError(
            f"holds something else than arrays, and is not opened ({_first_line(error)})", path
        ) from None
    except Exception as error:  # damaged bytes fail inside torch and zipfile in a dozen ways
        raise DataError(
            f"is no file of torch.save, or a damaged one ({type(error).__name__})", path
        ) from None
    if not isinstance(content, Mapping):
        kind = type(content).__name__
        raise DataError(f"holds a {kind}; expected a dictionary of arrays", path)
    arrays = {}
    for name, value in content.items():
        if isinstance(value, torch.Tensor):
            if problem := too_large(_COPIES * value.numel() * value.element_size()):
                shape = tuple(value.shape)
                raise DataError(f"{name} declares the shape {shape}; it {problem}", path)
            value = value.detach().resolve_conj().resolve_neg()
            value = value.float() if value.dtype is torch.bfloat16 else value
        if isinstance(value, (torch.Tensor, np.ndarray, list)):
            arrays[str(name)] = np.asarray(value)
    return arrays


def _unpacked_size(path: Path) -> int:
    """Bytes of all that is in a file, which new ones hold as an archive."""
    try:
        with zipfile.ZipFile(path) as members:
            return sum(member.file_size for member in members.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return path.stat().st_size


def _array_makers() -> list[Any]:
    """What pickles of NumPy arrays call, by the names that old and new versions have for it."""
    rebuild = np.empty(0).__reduce__()[0]
    assert callable(rebuild)
    kinds = {type(np.dtype(letter)) for letter in _NUMBERS}
    named = [(rebuild, f"{module}._reconstruct") for module in (_OLD_MODULE, _NEW_MODULE)]
    return [*named, np.ndarray, np.dtype, *kinds]


def _first_line(error: Exception) -> str:
    """What torch says of the place, without its advice to open the file anyway."""
    found = [
        line.strip() for line in str(error).splitlines() if "GLOBAL" in line or "global" in line
    ]
    return " ".join((found or str(error).splitlines())[0].split())[:120]
