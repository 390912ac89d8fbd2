"""Series with a label at every step, as anomaly detection papers use them: KPI, Yahoo, NAB.

A data set is the whole series: which part trains is up to the task.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.arrays import Arrays
from softclt.data.catalog import archives
from softclt.data.dataset import Dataset, fingerprint, stack_times
from softclt.data.errors import DataError
from softclt.data.tables import csv_frame
from softclt.validation import Flags, Floats, check_series

if TYPE_CHECKING:
    import pandas as pd


KPI_DELAY, YAHOO_DELAY = 7, 3  # steps within which an alarm is in time, by the published protocol
_KPI_FILES = {"_t1": "phase2_train", "_t2": "phase2_ground_truth"}
_KPI_ARRAYS = ("id", "length", "timestamp_delta", "value", "label")
_YAHOO_FOLDERS = ("A1Benchmark", "A2Benchmark", "A3Benchmark", "A4Benchmark")
_HOUR = 3600


@dataclass(frozen=True, eq=False)
class AnomalySeries:
    """One series, its times and which of its steps are anomalies, in the order of time.

    Attributes:
        name: Its name in the data set.
        values: ``(D, T)``, NaN where missing.
        times: ``(T,)`` numbers or ``datetime64``.
        labels: ``(T,)``, True at anomalies.
    """

    name: str
    values: Floats
    times: NDArray[Any]
    labels: Flags

    def __post_init__(self) -> None:
        values = check_series(np.atleast_2d(self.values)[None], name=f"series {self.name!r}")[0]
        steps = values.shape[-1]
        times, labels = np.asarray(self.times), np.asarray(self.labels).astype(bool)
        if times.shape != (steps,) or labels.shape != (steps,):
            raise DataError(
                f"series {self.name!r} has {steps} steps, times of shape {times.shape} and labels "
                f"of shape {labels.shape}; expected one of each a step"
            )
        order = np.argsort(times, kind="stable")
        ordered = {"values": values[:, order], "times": times[order], "labels": labels[order]}
        for key, value in ordered.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return len(self.times)


@dataclass(eq=False, repr=False)
class AnomalyData(Dataset):
    """Series with a label at every step; ``X_train`` has them all, ``(N, D, T)``.

    Attributes:
        series: The series. ``meta["delay"]`` is the number of steps within which an alarm is in
            time; None counts an alarm anywhere in the segment.
    """

    series: tuple[AnomalySeries, ...] = ()

    @classmethod
    def of(cls, series: Iterable[AnomalySeries], **meta: Any) -> "AnomalyData":
        """The data set of some series; ``meta`` as for `Dataset`, and ``delay``."""
        series = tuple(series)
        if not series:
            raise DataError("there is no series in it", meta.get("source"))
        meta = {"delay": KPI_DELAY, "archive": "anomaly", **meta}
        meta["ids_train"] = [one.name for one in series]
        kinds = {one.times.dtype for one in series}
        if len(kinds) == 1:
            meta["times_train"] = stack_times([_paddable(one.times) for one in series])
        X: Any = [one.values for one in series]
        return cls(X, meta=meta, series=series)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when a shape, a value or a label does."""
        return fingerprint(self.X_train, *(one.labels for one in self.series))

    def __repr__(self) -> str:
        steps = sum(len(one) for one in self.series)
        share = sum(int(one.labels.sum()) for one in self.series) / max(1, steps)
        name = self.meta["name"] or "arrays"
        return f"AnomalyData({name}: {len(self.series)} series, {steps} steps, {share:.1%} strange)"


def read_kpi(path: str | Path) -> AnomalyData:
    """The KPI set of the AIOps challenge 2018.

    Args:
        path: ``phase2_train.csv`` (also zipped or gzipped), ``phase2_ground_truth.hdf``, a folder
            with one or both, whose series are then called ``<id>_t1`` and ``<id>_t2``, or an
            ``.npz`` with ``id``, ``length``, ``timestamp_delta`` (first of each series absolute),
            ``value`` and ``label`` in one row.
    """
    path = Path(path).expanduser()
    if path.suffix == ".npz":
        series = _kpi_of_npz(path)
    else:
        files = _kpi_files(path) if path.is_dir() else {"": path}
        if not files:
            raise DataError(f"none of {', '.join(_KPI_FILES.values())} is in the folder", path)
        series = [one for end, file in files.items() for one in _kpi_of_table(file, end)]
    return AnomalyData.of(series, name="anomaly/KPI", source=str(path), delay=KPI_DELAY)


def read_yahoo(folder: str | Path) -> AnomalyData:
    """Yahoo's S5 as published: folders ``A1Benchmark`` to ``A4Benchmark`` of CSV files.

    The hours of A1, whose files count steps, are rebuilt; files with all series of a folder
    (``..._all.csv``) are left out.
    """
    folder = Path(folder).expanduser()
    series = []
    for name in _YAHOO_FOLDERS:
        files = sorted((folder / name).glob("*.csv"), key=_by_number)
        for file in (file for file in files if not file.stem.endswith("_all")):
            table = csv_frame(file)
            time, label = (
                next((own for own in names if own in table), names[0])
                for names in (("timestamp", "timestamps"), ("is_anomaly", "anomaly"))
            )
            _check_columns(table, (time, "value", label), file)
            times = table[time].to_numpy(dtype=np.int64)
            if name == _YAHOO_FOLDERS[0]:
                times = np.arange(len(table)) * _HOUR
            values = table["value"].to_numpy(dtype=np.float64)
            labels = table[label].to_numpy() == 1
            series.append(AnomalySeries(f"{name}/{file.stem}", values, times, labels))
    if not series:
        raise DataError(f"has no CSV files in {', '.join(_YAHOO_FOLDERS)}", folder)
    return AnomalyData.of(series, name="anomaly/Yahoo", source=str(folder), delay=YAHOO_DELAY)


def read_nab(folder: str | Path, category: str = "*") -> AnomalyData:
    """The Numenta Anomaly Benchmark as published: folders ``data`` and ``labels``.

    Steps inside the windows of ``combined_windows.json`` are anomalies; an alarm anywhere in a
    window finds it, as its authors count.

    Args:
        folder: The repository, or a copy of the two folders.
        category: A folder of ``data``, such as ``realKnownCause``; all of them if left out.
    """
    folder = Path(folder).expanduser()
    file = folder / "labels" / "combined_windows.json"
    try:
        windows = json.loads(file.read_text("utf-8"))
    except OSError:
        raise DataError("is not there; expected the labels of NAB", file) from None
    except ValueError as error:
        raise DataError(f"is no JSON ({error})", file) from None
    series = []
    for path in sorted((folder / "data").glob(f"{category}/*.csv")):
        name = f"{path.parent.name}/{path.stem}"
        table = csv_frame(path)
        _check_columns(table, ("timestamp", "value"), path)
        times = table["timestamp"].to_numpy(dtype="datetime64[s]")
        labels = np.zeros(len(times), dtype=bool)
        for start, end in windows.get(f"{name}.csv", ()):
            first, last = (np.datetime64(str(one).split(".")[0], "s") for one in (start, end))
            labels |= (times >= first) & (times <= last)
        series.append(AnomalySeries(name, table["value"].to_numpy(dtype=float), times, labels))
    if not series:
        raise DataError(f"has no CSV files in data/{category}", folder)
    end = "" if category == "*" else f"-{category}"
    return AnomalyData.of(series, name=f"anomaly/NAB{end}", source=str(folder), delay=None)


@archives.register("anomaly")
def sets_in(folder: Path) -> dict[str, Callable[[], Dataset]]:
    """The anomaly sets of a folder by name, and what loads each."""
    found: dict[str, Callable[[], Dataset]] = {}
    if (path := folder / "KPI.npz").is_file():
        found["KPI"] = partial(read_kpi, path)
    elif _kpi_files(folder / "KPI"):
        found["KPI"] = partial(read_kpi, folder / "KPI")
    if any((folder / "Yahoo" / name).is_dir() for name in _YAHOO_FOLDERS):
        found["Yahoo"] = partial(read_yahoo, folder / "Yahoo")
    if (nab := folder / "NAB").is_dir() and (nab / "labels").is_dir():
        found["NAB"] = partial(read_nab, nab)
        for path in sorted(nab.glob("data/*/")):
            found[f"NAB-{path.name}"] = partial(read_nab, nab, path.name)
    return found


def _kpi_of_npz(path: Path) -> list[AnomalySeries]:
    file = Arrays(path)
    if missing := [key for key in _KPI_ARRAYS if key not in file]:
        raise DataError(
            f"is no file of KPI series: it has no array {missing[0]!r}; expected "
            f"{', '.join(_KPI_ARRAYS)}",
            path,
        )
    arrays = {key: file[key] for key in _KPI_ARRAYS}
    ends = np.cumsum(arrays["length"])
    if len({len(arrays[key]) for key in _KPI_ARRAYS[2:]} | {int(ends[-1])}) > 1:
        raise DataError("its arrays do not have as many steps as `length` says", path)
    series = []
    for id, end, length in zip(arrays["id"], ends, arrays["length"], strict=True):
        own = slice(end - length, end)
        times = np.cumsum(arrays["timestamp_delta"][own])
        series.append(AnomalySeries(str(id), arrays["value"][own], times, arrays["label"][own]))
    return series


def _kpi_of_table(path: Path, end: str) -> list[AnomalySeries]:
    import pandas as pd

    if path.name.endswith((".hdf", ".h5")):
        try:
            table: Any = pd.read_hdf(path)
        except ImportError:
            raise ModuleNotFoundError(
                f"{path.name} needs PyTables: pip install tables, or write it as .csv"
            ) from None
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"is no HDF5 table ({error})", path) from None
    else:
        table = csv_frame(path)
    _check_columns(table, ("timestamp", "value", "label", "KPI ID"), path)
    return [
        AnomalySeries(
            f"{id}{end}",
            own["value"].to_numpy(dtype=float),
            own["timestamp"].to_numpy(dtype=np.int64),
            own["label"] == 1,
        )
        for id, own in table.groupby(table["KPI ID"].astype(str))
    ]


def _kpi_files(folder: Path) -> dict[str, Path]:
    """The published files of a folder; names of series end differently where both are there."""
    found = {}
    for end, stem in _KPI_FILES.items():
        for suffix in (".csv", ".csv.zip", ".csv.gz", ".hdf", ".h5"):
            if (path := folder / f"{stem}{suffix}").is_file():
                found[end] = path
                break
    return found if len(found) > 1 else dict(zip([""], found.values(), strict=False))


def _check_columns(table: "pd.DataFrame", names: Sequence[str], path: Path) -> None:
    missing = [name for name in names if name not in table]
    if missing:
        there = ", ".join(map(str, table.columns))
        raise DataError(f"has no column {missing[0]!r}; there are {there}", path)


def _by_number(path: Path) -> tuple[str, int]:
    """``real_2`` before ``real_10``."""
    digits = path.stem[len(path.stem.rstrip("0123456789")) :]
    return path.stem.rstrip("0123456789"), int(digits or -1)


def _paddable(times: NDArray[Any]) -> NDArray[Any]:
    """Times that can be missing behind the end of a short series."""
    return times if times.dtype.kind in "Mf" else times.astype(np.float64)
