"""A tile as a file: ``.npy``, and behind it four bytes with the CRC-32 of all before."""

import io
import time
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from softclt.files import whole_file
from softclt.validation import Floats32

_CHECKSUM_BYTES = 4
_ABANDONED_SECONDS = 3600  # a file takes its name moments after it is begun


def write_tile(path: Path, block: Floats32) -> None:
    """Write a tile whole; one that is there is replaced."""
    buffer = io.BytesIO()
    np.save(buffer, block)
    content = buffer.getvalue()
    with whole_file(path) as temporary:
        temporary.write_bytes(content + _checksum(content))


def read_tile(path: Path, shape: tuple[int, int]) -> Floats32 | None:
    """The distances in a tile, or None if they are not what was written."""
    data = path.read_bytes()
    content, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if _checksum(content) != checksum:
        return None
    block: Floats32 = np.load(io.BytesIO(content), allow_pickle=False)
    return block if block.shape == shape and block.dtype == np.float32 else None


def map_tile(path: Path) -> Floats32:
    """The distances in a tile, not checked, and read from the disk only where they are used."""
    mapped: Floats32 = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def remove_abandoned(folder: Path) -> None:
    """Remove what processes that were killed long ago had begun to write."""
    for path in folder.glob(".*-*.*"):  # the names that `whole_file` gives
        with suppress(FileNotFoundError):  # another process may clean up, too
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little")
