"""Data by name: registered ones, the archives in your own folders, and aeon's samples."""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Unpack

from softclt.data.columns import Columns, refuse_given
from softclt.data.dataset import Dataset, SeriesTable, Split
from softclt.data.errors import DataError, UnknownDataError
from softclt.data.reading import find_set, read_file, read_splits, set_name, sets_in
from softclt.registry import Registry
from softclt.validation import check_choice

ROOTS_VARIABLE = "SOFTCLT_DATA"

# What aeon carries inside its package; series keep their own lengths.
AEON_SAMPLES = {
    "ucr": (
        "ACSF1",
        "ArrowHead",
        "GunPoint",
        "ItalyPowerDemand",
        "OSULeaf",
        "PickupGestureWiimoteZ",
    ),
    "uea": ("BasicMotions", "JapaneseVowels"),
}

datasets: Registry[Callable[..., Dataset]] = Registry("data set")

#: Archives with files of their own kind: functions from a folder to what loads each set in it, by
#: its name there.
archives: Registry[Callable[[Path], Mapping[str, Callable[[], Dataset]]]] = Registry("archive")


def load(
    name_or_path: str | Path,
    *,
    split: Literal["both", "train"] = "both",
    **columns: Unpack[Columns],
) -> Dataset:
    """A data set by its name, or from a file or folder.

    Names are registered ones (``"synthetic/waves"``) and those of the archives: ``"ucr/GunPoint"``,
    ``"uea/BasicMotions"``, or just ``"GunPoint"``. An archive's set is looked for in the folders of
    the environment variable ``SOFTCLT_DATA`` (several, with ``os.pathsep`` between) and in their
    subfolders ``ucr`` and ``uea``. It may be ``<Name>.npz``, or files ``<Name>_TRAIN`` and
    ``<Name>_TEST``, also in a folder ``<Name>``. Then come the samples inside the installed aeon
    package. Archives with files of their own kind, such as ``"forecasting/ETTh1"``, lie in a
    subfolder of that name.

    Values are as the file has them: normalisation belongs to the task.

    Args:
        name_or_path: The name, or a path. What starts like a path or has a suffix is a path.
        split: ``"train"`` asks for no test part.
        **columns: How to read a table; see :func:`read_table`.

    Example:
        >>> load("synthetic/waves")
        Dataset(synthetic/waves: train 60, test 60, 1 channel, 96 steps, 3 classes)
    """
    if split not in ("both", "train"):
        raise DataError(
            f"split is {split!r}; expected 'both' or 'train' (read_series has 'test' and 'all')"
        )
    name = str(name_or_path)
    if not is_path(name_or_path):
        if name in datasets:
            refuse_given(columns, "files of tables", name)
            data = datasets[name]()
            return data if split == "both" else replace(data, X_test=None, y_test=None)
        if own := _find_own_kind(name):
            refuse_given(columns, "files of tables", name)
            return own()
        if found := _find(name):
            archive, path, source = found
            return _load_files(path, split, columns, archive=archive, source=source)
        if not Path(name).exists():
            raise UnknownDataError(_unknown(name))
    return _load_files(Path(name_or_path).expanduser(), split, columns, archive="file")


def read_series(
    path_or_name: str | Path, *, split: Split = "train", **columns: Unpack[Columns]
) -> SeriesTable:
    """Series with ids and labels, from any file that :func:`load` reads or by name.

    Args:
        path_or_name: A file is read as it stands, whatever its name says; of an ``.npz`` with
            two splits, a folder or a name, ``split`` is read.
        split: ``"train"``, ``"test"`` or ``"all"`` (training part first).
        **columns: As in :func:`read_table`, for tables.
    """
    check_choice(split, ("train", "test", "all"), "split")
    if is_path(path_or_name) and not Path(path_or_name).expanduser().is_dir():
        tables = read_file(path_or_name, **columns)
        if "all" in tables:
            return tables["all"]
    return load(path_or_name, split="train" if split == "train" else "both", **columns).table(split)


def available() -> list[str]:
    """Names that :func:`load` finds here and now."""
    names = set(datasets.names())
    for root in data_roots():
        names.update(sets_in(root))
        for archive in AEON_SAMPLES:
            names.update(f"{archive}/{name}" for name in sets_in(root / archive))
        for archive in archives:
            names.update(f"{archive}/{name}" for name in archives[archive](root / archive))
    if (samples := _aeon_samples()) is not None:
        for archive, known in AEON_SAMPLES.items():
            names.update(f"{archive}/{name}" for name in known if find_set(samples, name))
    return sorted(names)


def _load_files(
    path: Path,
    split: str,
    columns: Columns,
    *,
    archive: str | None,
    source: str | None = None,
) -> Dataset:
    train, test = read_splits(path, need_test=split == "both", **columns)
    if archive is None:
        archive = "ucr" if train.X.shape[1] == 1 else "uea"
    name = set_name(Path(train.source))
    return Dataset.from_tables(
        train,
        test,
        name=name if archive == "file" else f"{archive}/{name}",
        archive=archive,
        source=source or str(path),
    )


def is_path(name: str | Path) -> bool:
    """Whether a file or folder is meant, not the name of a data set."""
    return (
        isinstance(name, Path)
        or name.startswith((".", "~"))
        or Path(name).is_absolute()
        or Path(name).suffix != ""
    )


def data_roots() -> list[Path]:
    """Folders of the environment variable ``SOFTCLT_DATA``, whether or not they are there."""
    listed = os.environ.get(ROOTS_VARIABLE, "").split(os.pathsep)
    return [Path(root).expanduser() for root in listed if root]


def _aeon_samples() -> Path | None:
    """The folder inside the installed aeon; found without importing it, which takes seconds."""
    spec = find_spec("aeon")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "datasets" / "data"


def _find_own_kind(name: str) -> Callable[[], Dataset] | None:
    """What loads ``name`` from an archive with files of its own kind."""
    archive, _, bare = name.partition("/")
    for root in data_roots() if archive in archives.names() else ():
        for folder in (root / archive, root):
            if (own := archives[archive](folder).get(bare)) is not None:
                return own
    return None


def _find(name: str) -> tuple[str | None, Path, str | None] | None:
    """Archive (None if its folder does not say), file and source of an archive's set."""
    asked, _, bare = name.rpartition("/")
    if asked not in ("", *AEON_SAMPLES) or not bare:
        return None
    archives = [asked] if asked else list(AEON_SAMPLES)
    for root in data_roots():
        for archive in archives:
            if path := find_set(root / archive, bare):
                return archive, path, None
        if path := find_set(root, bare):
            return asked or None, path, None
    samples = _aeon_samples()
    for archive in archives:
        if samples and bare in AEON_SAMPLES[archive] and (path := find_set(samples, bare)):
            return archive, path, "aeon"
    return None


def _unknown(name: str) -> str:
    """What to tell somebody whose data set is nowhere."""
    roots = [f"{root}{'' if root.is_dir() else ' (no such folder)'}" for root in data_roots()]
    places = f"${ROOTS_VARIABLE} = {', '.join(roots)}" if roots else f"${ROOTS_VARIABLE} (not set)"
    bare = name.rpartition("/")[2]
    shipped = {f"{archive}/{known}" for archive in AEON_SAMPLES for known in AEON_SAMPLES[archive]}
    if _aeon_samples() is None:
        aeon = 'aeon (not installed; its samples come with pip install "softclt[data]")'
    else:
        aeon = "aeon's samples"
    known = {full.rpartition("/")[2].lower(): full for full in shipped.union(available())}
    close = [known[match] for match in difflib.get_close_matches(bare.lower(), known, n=3)]
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    if {name, f"ucr/{name}", f"uea/{name}"} & shipped:
        hint = "it is one of aeon's samples; "
    return (
        f"unknown data set {name!r}, and no such file or folder; looked in {places} and {aeon}; "
        f"{hint}`softclt list data` shows what is there"
    )
