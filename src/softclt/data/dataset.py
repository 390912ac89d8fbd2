"""What loaders return: a table of series, and a data set of a training and a test part."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softclt.data.errors import DataError
from softclt.data.labels import encode_labels
from softclt.validation import Floats, Ints, check_series, series_lengths

Split = Literal["train", "test", "all"]

_BLOCK = 100_000  # values that a fingerprint takes at a time


@dataclass(eq=False, repr=False)
class SeriesTable:
    """Series of one file, with what the file says about each.

    Attributes:
        X: Series ``(N, D, T)``, short ones NaN-padded at the end.
        y: Labels 0..L-1, or None. Labels of any other kind are encoded when ``classes`` is empty.
        ids: One id a series; the row numbers when the file has none.
        classes: Name of each label as the file writes it.
        channels: Names of the D channels, when known.
        times: Time of each step ``(N, T)``, numbers or ``datetime64`` (in UTC), when known.
        source: The file or name that the series came from.
        has_ids: Whether ``ids`` come from the file.
        time_format: How the file writes its dates, as for ``strftime``; empty where unknown.
        unsorted_at: First place in the file that is earlier than the step before it; empty where
            the steps of each series came in order. Here they are in order anyway.
    """

    X: Floats
    y: Ints | None = None
    ids: list[Any] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    channels: list[str] | None = None
    times: NDArray[Any] | None = None
    source: str = ""
    time_format: str = ""
    unsorted_at: str = ""
    has_ids: bool = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.X = check_series(self.X, name="the data")
            if self.y is not None and not self.classes:
                self.y, _, self.classes = encode_labels(self.y)
        except (TypeError, ValueError) as error:
            raise DataError(str(error), self.source or None) from None
        n = len(self.X)
        if self.y is not None:
            self.y = check_labels(self.y, n, "y", self.source)
        self.has_ids = bool(self.ids)
        if not self.has_ids:
            self.ids = [str(i) for i in range(n)]
        if len(self.ids) != n:
            raise DataError(f"{len(self.ids)} ids for {n} series", self.source or None)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def labels(self) -> list[str] | None:
        """Name of each series' class."""
        return None if self.y is None else [self.classes[i] for i in self.y]

    def as_written(self, times: NDArray[Any]) -> list[Any]:
        """Times ``(T,)``, also others than the table's, in the form of the file.

        Dates have its format, in UTC where it names zones; numbers are whole if all of its are.
        """
        if times.dtype.kind == "M":
            import pandas as pd

            dates = pd.DatetimeIndex(times)
            if not self.time_format:
                return [date.isoformat(sep=" ") for date in dates]
            zoned = dates.tz_localize("UTC") if "%z" in self.time_format else dates
            return list(zoned.strftime(self.time_format))
        own = np.empty(0) if self.times is None else self.times[np.isfinite(self.times)]
        whole = (own % 1 == 0).all() and (times % 1 == 0).all()
        return [int(time) if whole else float(time) for time in times]

    def __repr__(self) -> str:
        words = _in_words([self.X], len(self.classes))
        return f"SeriesTable({self.source or 'arrays'}: {len(self)} series, {words})"


@dataclass(eq=False, repr=False)
class Dataset:
    """Training and test series with their labels.

    Arrays of your own work too: series as :func:`softclt.validation.check_series` takes them,
    labels of any kind. When ``meta`` has no ``"classes"``, labels are encoded by
    :func:`softclt.data.encode_labels`.

    Attributes:
        X_train: Series ``(N, D, T)``, short ones NaN-padded at the end.
        y_train: Labels 0..L-1, or None.
        X_test: Test series, or None.
        y_test: Test labels, or None.
        meta: ``name``; ``archive`` (ucr, uea, file, synthetic); ``source`` (a path or "aeon");
            ``classes`` (name of each label); ``ragged`` (lengths differ); when known
            ``channels``, ``ids_train``, ``ids_test``, ``times_train`` and ``times_test``.

    Example:
        >>> data = Dataset([[1.0, 2.0], [3.0, 4.0]], ["low", "high"], meta={"name": "mine"})
        >>> data, data.y_train, data.meta["classes"]
        (Dataset(mine: train 2, 1 channel, 2 steps, 2 classes), array([1, 0]), ['high', 'low'])
    """

    X_train: Floats
    y_train: Ints | None = None
    X_test: Floats | None = None
    y_test: Ints | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.meta = {"name": "", "archive": "file", "source": "", "classes": [], **self.meta}
        self.X_train = check_series(self.X_train, name="X_train")
        if self.X_test is not None:
            self.X_test = check_part(self.X_test, self.X_train, "X_test")
        self._encode()
        lengths = np.concatenate([series_lengths(X) for X in self._parts])
        self.meta["ragged"] = bool(lengths.min() != lengths.max())

    @property
    def _parts(self) -> list[Floats]:
        return [self.X_train] if self.X_test is None else [self.X_train, self.X_test]

    def _encode(self) -> None:
        if not self.meta["classes"]:
            train = () if self.y_train is None else self.y_train
            y_train, y_test, self.meta["classes"] = encode_labels(
                train, () if self.y_test is None else self.y_test
            )
            self.y_train = None if self.y_train is None else y_train
            self.y_test = None if self.y_test is None else y_test
        if self.y_train is not None:
            self.y_train = check_labels(self.y_train, len(self.X_train), "y_train")
        if self.y_test is not None:
            n_test = 0 if self.X_test is None else len(self.X_test)
            self.y_test = check_labels(self.y_test, n_test, "y_test")

    @classmethod
    def from_tables(cls, train: SeriesTable, test: SeriesTable | None, **meta: Any) -> "Dataset":
        """Both splits on one time axis, labelled by the classes of the training table."""
        if test is not None and test.X.shape[1] != train.X.shape[1]:
            raise DataError(
                f"has {test.X.shape[1]} channel(s), but the training part {train.source} has "
                f"{train.X.shape[1]}; both splits need the same channels",
                test.source,
            )
        longest = max(table.X.shape[-1] for table in (train, test) if table is not None)
        for split, table in (("train", train), ("test", test)):
            if table is not None and table.has_ids:
                meta[f"ids_{split}"] = table.ids
            if table is not None and table.times is not None:
                meta[f"times_{split}"] = _pad(table.times, longest)
        if train.channels is not None:
            meta["channels"] = train.channels
        y_train: Any = train.labels
        y_test: Any = None if test is None else test.labels
        X_test = None if test is None else _pad(test.X, longest)
        return cls(_pad(train.X, longest), y_train, X_test, y_test, meta)

    def table(self, split: Split = "train") -> SeriesTable:
        """One split, or all series with the training part first, as a table."""
        if split != "train" and self.X_test is None:
            raise DataError(f"{self.meta['name']} has no test part; use split='train'")
        splits = ["train", "test"] if split == "all" else [split]
        X = [getattr(self, f"X_{s}") for s in splits]
        y = [getattr(self, f"y_{s}") for s in splits]
        ids = [self.meta.get(f"ids_{s}") for s in splits]
        times = [self.meta.get(f"times_{s}") for s in splits]
        return SeriesTable(
            X[0] if len(X) == 1 else check_series([series for part in X for series in part]),
            None if any(part is None for part in y) else np.concatenate(y),
            ids=[] if None in ids else [i for part in ids if part is not None for i in part],
            classes=list(self.meta["classes"]),
            channels=self.meta.get("channels"),
            times=times[0] if len(times) == 1 else None,
            source=self.meta["name"] or self.meta["source"],
        )

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when a shape, a value or a label does."""
        return fingerprint(self.X_train, self.y_train, self.X_test, self.y_test)

    def __repr__(self) -> str:
        test = "" if self.X_test is None else f", test {len(self.X_test)}"
        words = _in_words(self._parts, len(self.meta["classes"]))
        return f"Dataset({self.meta['name'] or 'arrays'}: train {len(self.X_train)}{test}, {words})"


def fingerprint(*arrays: NDArray[Any] | None) -> str:
    """Sixteen hex digits of a SHA-256 over shapes and values.

    float32 and float64 arrays of equal values have one fingerprint, in any memory layout, and so
    have all kinds of NaN and both zeros.
    """
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none;")
            continue
        digest.update(f"{array.shape};".encode())
        add_values(digest, array)
    return digest.hexdigest()[:16]


def add_values(digest: Any, array: NDArray[Any]) -> None:
    """Add values to a hash as :func:`fingerprint` does, also a part of the rows at a time."""
    rows = max(1, _BLOCK * len(array) // max(1, array.size))
    for start in range(0, len(array), rows):  # so that no second copy of the data is made
        numbers = np.array(array[start : start + rows], dtype="<f8", order="C") + 0.0  # no -0.0
        digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())


def stack_times(times: list[NDArray[Any]]) -> NDArray[Any]:
    """Times of each series side by side ``(N, T)``, NaN or NaT behind the short ones."""
    longest = max(len(time) for time in times)
    return np.stack([_pad(time, longest) for time in times])


def check_part(X: Any, X_train: Floats, name: str) -> Floats:
    """Series of another part than the one for training, which have its channels."""
    own = check_series(X, name=name)
    if own.shape[1] != X_train.shape[1]:
        raise DataError(
            f"X_train has shape {X_train.shape}, {name} {own.shape}; "
            "both splits need the same channels (axis 1)"
        )
    return own


def check_labels(y: Any, n: int, name: str, source: str = "") -> Ints:
    """Labels of n series, one each."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise DataError(
            f"{name} has shape {labels.shape} for {n} series; expected one label a series",
            source or None,
        )
    return labels.astype(np.int64)


def _pad(array: NDArray[Any], length: int) -> NDArray[Any]:
    """``array`` with ``length`` steps on its last axis, NaN or NaT behind."""
    if array.shape[-1] == length:
        return array
    padded = np.full((*array.shape[:-1], length), np.nan).astype(array.dtype)
    padded[..., : array.shape[-1]] = array
    return padded


def _in_words(parts: list[Floats], n_classes: int) -> str:
    d = parts[0].shape[1]
    lengths = np.concatenate([series_lengths(X) for X in parts])
    low, high = lengths.min(), lengths.max()
    steps = f"{low}" if low == high else f"{low}-{high}"
    classes = f", {n_classes} classes" if n_classes else ""
    return f"{d} channel{'s' if d != 1 else ''}, {steps} steps{classes}"
