"""Sets that few-label and transfer papers use: HAR, Epilepsy, SleepEEG, FD, Gesture, EMG.

Values are as the file has them. The older papers scale Epilepsy to [0, 1] column by column, over
all rows: that looks at test series and moves each step of a series by another amount, so here the
task scales by the training series, as it does for HAR.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.arrays import Arrays
from softclt.data.catalog import archives
from softclt.data.dataset import Dataset, check_labels, check_part, fingerprint
from softclt.data.errors import DataError
from softclt.data.labels import encode_labels
from softclt.data.torchfile import read_torch_arrays
from softclt.validation import Floats, Ints, check_choice

ARCHIVE = "few_labels"
PARTS = ("train", "val", "test")

#: Sets that are published as a folder with a file for each part.
PUBLISHED = ("SleepEEG", "Epilepsy", "FD-A", "FD-B", "FD-C", "FD-D", "HAR", "Gesture", "EMG")

#: HAR's people as four domains. The last two of each group are its test part, so that no window of
#: a person is on both sides.
HAR_GROUPS = {"A": range(1, 9), "B": range(9, 17), "C": range(17, 24), "D": range(24, 31)}
_TEST_PEOPLE = 2

HAR_CLASSES = ("walking", "upstairs", "downstairs", "sitting", "standing", "lying")
EPILEPSY_CLASSES = ("no seizure", "seizure")
_SEIZURE = 1  # of the labels 1-5 of the file

_HAR_ARRAYS = ("x_train", "y_train", "subject_train", "x_test", "y_test", "subject_test")
_EPILEPSY_ARRAYS = ("x", "y", "tstcc_test_rows", "tfc_train_rows", "tfc_val_rows")


@dataclass(eq=False, repr=False)
class ValidatedDataset(Dataset):
    """A data set with a third part, to choose by.

    Attributes:
        X_val: Series ``(N, D, T)``, or None where the file has no such part.
        y_val: Their labels.
    """

    X_val: Floats | None = None
    y_val: Ints | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.X_val is None) != (self.y_val is None):
            raise DataError("a validation part needs series and labels, X_val and y_val")
        if self.X_val is not None and self.y_val is not None:
            self.X_val = check_part(self.X_val, self.X_train, "X_val")
            self.y_val = check_labels(self.y_val, len(self.X_val), "y_val")

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when a shape, a value or a label does."""
        if self.X_val is None:
            return super().fingerprint
        parts = (self.X_train, self.y_train, self.X_test, self.y_test, self.X_val, self.y_val)
        return fingerprint(*parts)


def read_har(path: str | Path, group: str | None = None) -> Dataset:
    """Human activity recognition with nine channels of a phone's sensors, split by people.

    ``meta["subjects_train"]`` and ``meta["subjects_test"]`` say who did each series.

    Args:
        path: An ``.npz`` with ``x_train`` ``(N, 9, 128)``, ``y_train`` 0-5, ``subject_train`` 1-30
            and the same for the official test part.
        group: ``"A"`` to ``"D"``: only these people, as `HAR_GROUPS` has them, of both parts; the
            last two of them are the test part.
    """
    own = _wanted(path, _HAR_ARRAYS)
    for part in ("train", "test"):
        _check_rows(path, own[f"x_{part}"], own[f"y_{part}"], own[f"subject_{part}"])
    X, y, subjects = (
        np.concatenate([own[f"{kind}_train"], own[f"{kind}_test"]])
        for kind in ("x", "y", "subject")
    )
    if group is None:
        n_train = len(own["x_train"])
        rows = {"train": np.arange(n_train), "test": np.arange(n_train, len(X))}
    else:
        check_choice(group, tuple(HAR_GROUPS), "group")
        people = HAR_GROUPS[group]
        parts = {"train": people[:-_TEST_PEOPLE], "test": people[-_TEST_PEOPLE:]}
        rows = {part: np.flatnonzero(np.isin(subjects, ids)) for part, ids in parts.items()}
        for part, found in rows.items():
            if not len(found):
                raise DataError(f"has no series of the people {[*parts[part]]}", path)
    return Dataset(
        X[rows["train"]].astype(np.float32),
        y[rows["train"]],
        X[rows["test"]].astype(np.float32),
        y[rows["test"]],
        _meta("HAR" if group is None else f"HAR-{group}", path)
        | {"classes": list(HAR_CLASSES)}
        | {f"subjects_{part}": subjects[own_rows] for part, own_rows in rows.items()},
    )


def read_epilepsy(path: str | Path, split: str = "tstcc") -> ValidatedDataset:
    """Epileptic seizures: one channel of EEG, label 1 for a seizure and 0 for the other four kinds.

    Args:
        path: An ``.npz`` with ``x`` ``(N, 178)``, ``y`` 1-5 (1 = seizure) and the rows of the two
            splits.
        split: ``"tstcc"``: the 2300 test rows of TS-TCC, all others train. ``"tfc"``: TF-C's 60
            training and 20 validation rows, all others are the test part.
    """
    own = _wanted(path, _EPILEPSY_ARRAYS)
    X, y = own["x"], (own["y"] == _SEIZURE).astype(np.int64)
    _check_rows(path, X, y)
    check_choice(split, ("tstcc", "tfc"), "split")
    if split == "tstcc":
        rows = {"test": own["tstcc_test_rows"]}
        rows["train"] = _others(len(X), rows["test"])
    else:
        rows = {"train": own["tfc_train_rows"], "val": own["tfc_val_rows"]}
        rows["test"] = _others(len(X), rows["train"], rows["val"])
    parts = {part: X[own_rows].astype(np.float32) for part, own_rows in rows.items()}
    labels = {part: y[own_rows] for part, own_rows in rows.items()}
    name = "Epilepsy" if split == "tstcc" else "Epilepsy-TFC"
    return _validated(parts, labels, _meta(name, path) | {"classes": list(EPILEPSY_CLASSES)})


def read_parts(folder: str | Path) -> ValidatedDataset:
    """A set in the published form: ``train``, ``val`` and ``test`` as ``.pt`` or ``.npz``.

    Each holds ``samples``, ``(N, D, T)``, ``(N, T, D)`` or ``(N, T)``, and ``labels``. Of two last
    axes the shorter one is the channels, as in the published loaders. A ``.pt`` is read without
    running anything that it may carry. ``val`` may be absent.
    """
    folder = Path(folder).expanduser()
    files = {part: _part_file(folder, part) for part in PARTS}
    for part in ("train", "test"):
        if files[part] is None:
            raise DataError(f"has no {part}.pt and no {part}.npz", folder)
    parts, labels = {}, {}
    for part, file in files.items():
        if file is not None:
            parts[part], labels[part] = _read_part(file)
    n_channels = {part: X.shape[1] for part, X in parts.items()}
    if len(set(n_channels.values())) > 1:
        raise DataError(f"its parts differ in channels: {n_channels}", folder)
    known = [labels[part] for part in PARTS if part in labels]
    _, _, classes = encode_labels(np.concatenate(known))
    encoded = {part: _as_indices(y, classes) for part, y in labels.items()}
    return _validated(parts, encoded, _meta(folder.name, folder) | {"classes": classes})


@archives.register(ARCHIVE)
def sets_in(folder: Path) -> dict[str, Callable[[], Dataset]]:
    """The sets of a folder by name, and what loads each; a published folder comes first."""
    found: dict[str, Callable[[], Dataset]] = {}
    if (path := folder / "HAR.npz").is_file():
        found["HAR"] = partial(read_har, path)
        found |= {f"HAR-{group}": partial(read_har, path, group) for group in HAR_GROUPS}
    if (path := folder / "Epilepsy.npz").is_file():
        found["Epilepsy"] = partial(read_epilepsy, path)
        found["Epilepsy-TFC"] = partial(read_epilepsy, path, "tfc")
    for name in PUBLISHED:
        if _part_file(folder / name, "train") is not None:
            found[name] = partial(read_parts, folder / name)
    return found


def _validated(
    parts: Mapping[str, NDArray[Any]], labels: Mapping[str, Ints], meta: dict[str, Any]
) -> ValidatedDataset:
    return ValidatedDataset(
        parts["train"],
        labels["train"],
        parts["test"],
        labels["test"],
        meta,
        X_val=parts.get("val"),
        y_val=labels.get("val"),
    )


def _meta(name: str, path: str | Path) -> dict[str, Any]:
    return {"name": f"{ARCHIVE}/{name}", "archive": ARCHIVE, "source": str(path)}


def _wanted(path: str | Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    arrays = Arrays(path)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise DataError(
            f"has no array {missing[0]!r}; expected {', '.join(names)}, "
            f"there are {', '.join(arrays) or 'none'}",
            path,
        )
    return {name: arrays[name] for name in names}


def _check_rows(path: str | Path, X: NDArray[Any], *beside: NDArray[Any]) -> None:
    for one in beside:
        if one.shape != (len(X),):
            raise DataError(
                f"series of shape {X.shape} with labels or subjects of shape {one.shape}; "
                "expected one a series",
                path,
            )


def _others(n: int, *rows: NDArray[Any]) -> NDArray[np.intp]:
    """All rows but these."""
    return np.flatnonzero(~np.isin(np.arange(n), np.concatenate(rows)))


def _part_file(folder: Path, part: str) -> Path | None:
    paths = (folder / f"{part}.pt", folder / f"{part}.npz")
    return next((path for path in paths if path.is_file()), None)


def _read_part(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    arrays: Mapping[str, NDArray[Any]]
    arrays = Arrays(path) if path.suffix == ".npz" else read_torch_arrays(path)
    for key in ("samples", "labels"):
        if key not in arrays:
            there = ", ".join(arrays) or "nothing"
            raise DataError(f"has no {key!r}; expected samples and labels, there are {there}", path)
    X, y = arrays["samples"], arrays["labels"]
    for name, array in (("samples", X), ("labels", y)):
        if array.dtype.kind not in "biuf":
            raise DataError(f"{name} are of type {array.dtype}; expected numbers", path)
    if X.ndim == 2:
        X = X[:, None]
    if X.ndim != 3:
        raise DataError(f"samples have shape {X.shape}; expected (N, D, T) or (N, T)", path)
    if X.shape[1] > X.shape[2]:
        X = X.swapaxes(1, 2)
    if y.size != len(X):
        raise DataError(
            f"labels have shape {y.shape} for {len(X)} samples; expected one each", path
        )
    return X, y.ravel()


def _as_indices(labels: NDArray[Any], classes: list[str]) -> Ints:
    numbers = [float(name) for name in classes]
    return np.searchsorted(numbers, labels.astype(np.float64)).astype(np.int64)
