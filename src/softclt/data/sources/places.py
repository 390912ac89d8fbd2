"""Where Parquet files lie: in a folder, or behind a URL that pyarrow or fsspec reads."""

from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from softclt.data.errors import DataError
from softclt.optional import needed

Place = str | Path  # a text is a URL where it has "://"


def is_url(place: Place) -> bool:
    """Whether a name is one of something elsewhere: ``s3://bucket/folder``."""
    return "://" in str(place)


def existing_place(place: Place) -> Place:
    """A URL as it is, or a path with ``~`` as the home folder."""
    return str(place) if is_url(place) else Path(place).expanduser()


def name_of(place: Place) -> str:
    """The last part of a path or URL."""
    return PurePosixPath(_bare(str(place))).name if is_url(place) else Path(place).name


def relative_name(place: Place, folder: Place) -> str:
    """What a file is called within the folder that was read, with slashes; or its own name."""
    if str(place) == str(folder):
        return name_of(place)
    if is_url(place):
        return _bare(str(place))[len(_bare(str(folder))) :].lstrip("/")
    return Path(place).relative_to(folder).as_posix()


def parquet_files(place: Place) -> list[Place]:
    """The Parquet files of a folder and its subfolders in the order of their names, or the file."""
    if is_url(place):
        return _remote_files(str(place))
    folder = Path(place)
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise DataError("no such file or folder; check the name", folder)
    found = [path for path in folder.rglob("*.parquet") if _counts(path.name)]
    if not found:
        raise DataError(_NOTHING, folder)
    return sorted(found)


def opened(place: Place) -> Any:
    """What pyarrow's Parquet reader takes: a path, or a file of a file system."""
    if not is_url(place):
        return place
    system, path = _system(str(place))
    return system.open_input_file(path)


def n_bytes(place: Place) -> int:
    """Size of a file."""
    if not is_url(place):
        return Path(place).stat().st_size
    system, path = _system(str(place))
    return int(system.get_file_info(path).size)


_NOTHING = "the folder holds no .parquet file; expected tables of series"


def _counts(name: str) -> bool:
    return not name.startswith(("_", "."))


def _remote_files(url: str) -> list[Place]:
    from pyarrow.fs import FileSelector, FileType

    system, path = _system(url)
    try:
        kind = system.get_file_info(path).type
        if kind == FileType.NotFound:
            raise DataError("no such file or folder; check the name", url)
        if kind == FileType.File:
            return [url]
        found = system.get_file_info(FileSelector(path, recursive=True))
    except OSError as error:
        raise DataError(_failed(error), url) from None
    bare, _, options = url.partition("?")
    start, ending = len(path.rstrip("/")), f"?{options}" if options else ""
    urls: list[Place] = [
        f"{bare.rstrip('/')}{one.path[start:]}{ending}"
        for one in sorted(found, key=lambda one: one.path)
        if one.type == FileType.File and one.path.endswith(".parquet") and _counts(one.base_name)
    ]
    if not urls:
        raise DataError(_NOTHING, url)
    return urls


@lru_cache(maxsize=64)
def _system(url: str) -> tuple[Any, str]:
    """The file system behind a URL, and the path there: pyarrow's own, else one of fsspec."""
    with needed("reading from a URL needs pyarrow: pip install 'softclt[data]'"):
        import pyarrow as pa
        from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem
    try:
        found: tuple[Any, str] = FileSystem.from_uri(url)
        return found
    except pa.ArrowInvalid:
        pass  # not one that pyarrow knows
    except OSError as error:
        raise DataError(_failed(error), url) from None
    with needed(f"{url} is read by fsspec: pip install fsspec, and what it needs there"):
        from fsspec.core import url_to_fs
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise DataError(f"cannot be read: {' '.join(str(error).split())}", url) from None
    return PyFileSystem(FSSpecHandler(system)), path


def _bare(url: str) -> str:
    return url.partition("?")[0]


def _failed(error: OSError) -> str:
    return f"cannot be read ({' '.join(str(error).split())[:120]})"
