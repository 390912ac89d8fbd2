"""Text files, before any format: opening, decoding, and rows of numbers."""

import gzip
import io
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np

from softclt.data.errors import DataError, shorten
from softclt.files import too_large
from softclt.validation import Floats64

_COPIES = 4  # of a text's bytes that reading takes: as read, as characters, lines and cells
_AT_ONCE = 2**24  # bytes

# Makes the error of one place in a file out of a message.
Fail = Callable[[str], DataError]


def existing_file(path: str | Path) -> Path:
    """``path`` if there is a file to read, with ``~`` as the home folder."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise DataError("is a folder; expected a file", path)
    if not path.exists():
        raise DataError("no such file; check the name, and the folder it is relative to", path)
    return path


def read_text(path: str | Path) -> str:
    r"""The text of a UTF-8 file, plain or gzipped, with ``\n`` at the ends of its lines."""
    path = existing_file(path)
    try:
        if problem := too_large(_COPIES * path.stat().st_size):
            raise DataError(f"is too large to read as text: it {problem}", path)
        raw = path.read_bytes()
        if raw.startswith(b"\x1f\x8b"):
            raw = _unpacked(raw, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"is a damaged gzip file ({error}); copy it again", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    if not raw.strip():
        raise DataError("the file is empty; expected series: write the file again", path, 1)
    if b"\0" in raw[:4096]:
        raise DataError("is binary; expected text: export it as text in UTF-8", path, 1)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8", path, line
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def text_stream(path: str | Path) -> Iterator[IO[str]]:
    """The same text, line by line: for files that memory may not hold."""
    path = existing_file(path)
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw
            with io.TextIOWrapper(file, encoding="utf-8-sig") as stream:  # any kind of newline
                yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"is a damaged gzip file ({error}); copy it again", path) from None
    except UnicodeDecodeError as error:
        came = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise DataError(f"{came}; save the file as UTF-8", path) from None


def _unpacked(packed: bytes, path: Path) -> bytes:
    """What gzip has packed, as long as memory holds it."""
    raw = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        while part := file.read(_AT_ONCE):
            raw += part
            if problem := too_large((_COPIES - 1) * len(raw)):
                raise DataError(f"is too large to read as text: unpacked, it {problem}", path)
    return bytes(raw)


def parse_numbers(cells: Sequence[str], fail: Fail) -> Floats64:
    """Numbers of one row of cells; ``?`` and ``NaN`` are missing, infinity is refused.

    Args:
        cells: Text of each number.
        fail: Makes the error of this row from a message; it knows file and line.
    """
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        numbers = np.array([_parse_number(c, i, fail) for i, c in enumerate(cells, 1)])
    if np.isinf(numbers).any():
        raise fail("a value is infinite; write ? or NaN for a missing value")
    return numbers


def _parse_number(cell: str, position: int, fail: Fail) -> float:
    cell = cell.strip()
    if cell == "?":
        return np.nan
    try:
        return float(cell)
    except ValueError:
        came = f"{shorten(cell)} is no number" if cell else "is empty"
        raise fail(f"value {position} {came}; write ? or NaN for a missing value") from None


def numbered_lines(path: str | Path, comments: str = "#%") -> Iterator[tuple[int, str]]:
    """Lines that say something, stripped, each with its number in the file."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        line = line.strip(" \r")
        if line.strip() and not line.startswith(tuple(comments)):
            yield number, line


def parse_label(text: str, classes: Container[str] | None, fail: Fail) -> str:
    """The label of one series, which the header lists when it lists any."""
    label = text.strip().strip("'\"")
    if label in ("", "?"):
        raise fail("the label is empty; every series of a labelled file needs one")
    if classes is not None and label not in classes:
        raise fail(
            f"the label {shorten(label)} is none of the header's; correct it, or list it there"
        )
    return label
