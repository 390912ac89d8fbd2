"""Files that are there whole or not at all, and lines of files."""

import errno
import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_MEMORY = Path("/proc/meminfo")
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_GROUPS = Path("/sys/fs/cgroup")  # limits of the container, in either version of the interface
_LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)

_log = logging.getLogger(__name__)


@contextmanager
def whole_file(path: str | os.PathLike[str], durable: bool = False) -> Iterator[Path]:
    """A temporary path beside ``path``, with its suffix, that takes its place at the end.

    An error in between leaves what was there before; folders that are missing are made. A process
    that is killed in between leaves the temporary file: its name begins with a dot. ``durable``:
    wait until the disk has it, so that it is also there after the machine went down.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        yield temporary
        if durable:
            to_disk(temporary)
        os.replace(temporary, path)
        if durable:
            to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def to_disk(path: Path) -> None:
    """Wait until the disk has what a file holds, or which files a folder has."""
    if path.is_dir() and os.name == "nt":  # which does not open folders
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def held(path: str | os.PathLike[str], wait: bool = True) -> Iterator[None]:
    """Keep all others, processes and threads, from what a file stands for; it is gone afterwards.

    Whoever is killed lets go of it, and leaves the file. Where a file system knows no locks, and on
    Windows, nobody is kept out.

    Args:
        path: Made if needed, and its folder.
        wait: Until the others let go; False raises BlockingIOError at once.
    """
    path = Path(path)
    try:
        import fcntl
    except ImportError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(descriptor)
                raise
            _log.warning("%s: this file system has no locks; write from one process", path.parent)
            break
        if _is_at(path, descriptor):
            break
        os.close(descriptor)  # who held it before has taken the file away: there may be a new one
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def available_memory() -> int | None:
    """Bytes that this process may still take; None where the system does not say."""
    free = []
    with suppress(OSError, ValueError, IndexError, StopIteration):
        lines = _MEMORY.read_text().splitlines()
        own = next(line for line in lines if line.startswith("MemAvailable:"))
        free.append(int(own.split()[1]) * 1024)
    for most, used in _LIMITS:
        with suppress(OSError, ValueError):  # no limit is a word
            limit = int((_GROUPS / most).read_text())
            free.append(max(0, limit - int((_GROUPS / used).read_text())))
    return min(free, default=None)


def too_large(n_bytes: int) -> str:
    """What to say of so many bytes that memory cannot hold them; nothing if it can."""
    free = available_memory()
    if free is None or n_bytes <= free:
        return ""
    return f"takes {_in_words(n_bytes)} of memory, of which {_in_words(free)} are free"


def _in_words(n_bytes: int) -> str:
    size, units = float(n_bytes), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}"


def json_lines(values: Iterable[dict[str, Any]]) -> str:
    """Each value on a line of its own."""
    return "".join(json.dumps(value, allow_nan=False) + "\n" for value in values)


def append_lines(path: str | os.PathLike[str], lines: str) -> None:
    """Add lines of JSON, each with its end, to a file in one write; processes may share the file.

    What a killed process left of its last line is cut off first. Folders that are missing are made.
    """
    new = lines.encode()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o644)
    try:
        with _locked(descriptor):
            tail = _unfinished_line(descriptor)
            if tail and _is_whole(tail):  # only the line's end is missing
                new = b"\n" + new
            elif tail:
                _log.warning("%s: dropped a torn last line of %d bytes", path, len(tail))
                os.truncate(descriptor, os.fstat(descriptor).st_size - len(tail))
            if os.write(descriptor, new) != len(new):
                raise OSError(errno.ENOSPC, "the disk took only a part of the lines", str(path))
    finally:
        os.close(descriptor)


def _is_whole(line: bytes) -> bool:
    """Whether a JSON object is all there; no beginning of one is."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _unfinished_line(descriptor: int) -> bytes:
    """The bytes behind the last newline of a file, nothing when it ends with one."""
    tail, position = b"", os.fstat(descriptor).st_size
    while position > 0 and b"\n" not in tail:
        step = min(position, 65536)
        position -= step
        os.lseek(descriptor, position, os.SEEK_SET)
        tail = os.read(descriptor, step) + tail
    return tail.rpartition(b"\n")[2]


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Keep other processes out, so that none cuts off a line that another one just wrote."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there one process should write a file
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
