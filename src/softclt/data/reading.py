"""Any supported file or folder: the suffix chooses the reader, ``_TRAIN`` finds its ``_TEST``."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

from softclt.data.archives import read_ts, read_tsv
from softclt.data.arff import read_arff
from softclt.data.arrays import read_npy, read_npz
from softclt.data.columns import Columns, names_of, refuse_given
from softclt.data.dataset import SeriesTable
from softclt.data.errors import DataError, shorten
from softclt.data.tables import read_table
from softclt.data.text import existing_file

_READERS: dict[str, Callable[[Path], SeriesTable]] = {
    ".tsv": read_tsv,
    ".arff": read_arff,
    ".npy": read_npy,
}
_TABLES = (".csv", ".parquet")
# Forms of a data set in a folder, in the order of preference.
_SPLIT_SUFFIXES = (".ts", ".tsv", ".arff", ".csv", ".parquet")


def suffix_of(path: Path) -> str:
    """The suffix that says the format, in small letters, without ``.gz``."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_file(path: str | Path, **columns: Unpack[Columns]) -> dict[str, SeriesTable]:
    """Tables of one file: ``all``, or ``train`` and ``test`` where the file holds both."""
    path = existing_file(path)
    suffix = suffix_of(path)
    if suffix in _TABLES:
        return {"all": read_table(path, **columns)}
    if suffix == ".ts":
        refuse_given(columns, "CSV and Parquet tables", path, known=("duplicates", "resample"))
        names_of(columns)  # refuses unknown choices
        duplicates, resample = columns.get("duplicates", "error"), columns.get("resample")
        return {"all": read_ts(path, duplicates=duplicates, resample=resample)}
    refuse_given(columns, "CSV and Parquet tables", path)
    if suffix == ".npz":
        return read_npz(path)
    if suffix not in _READERS:
        raise DataError(
            f"unknown suffix {shorten(suffix)}; expected .ts, .tsv, .arff, .npz, .npy, .csv, "
            ".csv.gz or .parquet",
            path,
        )
    return {"all": _READERS[suffix](path)}


def read_splits(
    path: str | Path, *, need_test: bool, **columns: Unpack[Columns]
) -> tuple[SeriesTable, SeriesTable | None]:
    """Training and test part of a file or of a folder with one data set.

    A file of one part, such as a table, is the training part. A file ``<Name>_TRAIN.<suffix>``, or
    an ``.npz`` with ``x_train``, has a test part, which is refused if absent but needed.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        path = _only_set_in(path)
    tables = read_file(path, **columns)
    train = tables["all"] if "all" in tables else tables["train"]
    if not need_test:
        return train, None
    if "train" in tables:
        if "test" not in tables:
            raise DataError("x_train has no x_test beside it; add it, or use split='train'", path)
        return train, tables["test"]
    if "_TRAIN." not in path.name:
        return train, None
    test = path.with_name(path.name.replace("_TRAIN.", "_TEST."))
    if not test.is_file():
        raise DataError(f"{test.name} is not beside it; add it, or use split='train'", path)
    return train, read_file(test, **columns)["all"]


def set_name(path: Path) -> str:
    """Name of the data set that a file holds, or holds a part of."""
    return path.name.split(".")[0].removesuffix("_TRAIN").removesuffix("_TEST")


def find_set(folder: Path, name: str) -> Path | None:
    """The file of data set ``name`` in ``folder`` or in its own folder there: its first part."""
    for home in (folder, folder / name):
        if (home / f"{name}.npz").is_file():
            return home / f"{name}.npz"
        found = [
            path for suffix in _SPLIT_SUFFIXES if (path := home / f"{name}_TRAIN{suffix}").is_file()
        ]
        # aeon's samples, for one, have the test part in one form only.
        found.sort(key=lambda path: not (home / f"{name}_TEST{path.suffix}").is_file())
        if found:
            return found[0]
    return None


def sets_in(folder: Path) -> Iterator[str]:
    """Names of the data sets that :func:`find_set` finds in ``folder``."""
    if not folder.is_dir():
        return
    names = set()
    for path in folder.iterdir():
        if path.is_dir() or suffix_of(path) == ".npz" or "_TRAIN." in path.name:
            names.add(set_name(path))
    yield from sorted(name for name in names if find_set(folder, name) is not None)


def _only_set_in(folder: Path) -> Path:
    """The data set of a folder, which has its name or is the only one there."""
    if own := find_set(folder, folder.name):
        return own
    names = list(sets_in(folder))
    if len(names) == 1 and (found := find_set(folder, names[0])):
        return found
    if not names:
        raise DataError(
            "the folder holds no data set; expected <Name>_TRAIN and <Name>_TEST files "
            "(.ts, .tsv, .arff, .csv, .parquet) or <Name>.npz",
            folder,
        )
    raise DataError(
        f"the folder holds {len(names)} data sets ({', '.join(names[:5])}"
        f"{', ...' if len(names) > 5 else ''}); name one of their files",
        folder,
    )
