"""Long series with real timestamps, as forecasting papers use them: ETT, WTH, weather, electricity.

A data set is the whole series: ``X_train`` is ``(1, D, T)`` and ``meta["times_train"]`` has its
times; where the parts for training, validation and test begin is up to the task. Each has a twin of
one channel, e.g. ``forecasting/ETTh1-univariate``.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softclt.data.catalog import archives
from softclt.data.dataset import Dataset
from softclt.data.errors import DataError, shorten
from softclt.data.tables import csv_frame
from softclt.data.text import existing_file
from softclt.data.times import in_nanoseconds

if TYPE_CHECKING:
    import pandas as pd

#: Sets of one CSV file each, and the column that is forecast where one is forecast alone.
CHANNELS = {
    "ETTh1": "OT",
    "ETTh2": "OT",
    "ETTm1": "OT",
    "ETTm2": "OT",
    "WTH": "WetBulbCelsius",
    "weather": "OT",
}
ELECTRICITY, ELECTRICITY_FILE, ELECTRICITY_ALONE = "electricity", "LD2011_2014.txt", "MT_001"
UNIVARIATE = "-univariate"

_FIRST_USED_BY = 8920  # hour by which a client must have used anything, as TS2Vec has it
_FROM = "2012"


def read_forecasting_csv(path: str | Path, channel: str | None = None) -> Dataset:
    """One series of a CSV (also ``.csv.gz``) with the time in its first column.

    The values are as the file has them, in its order: weather has one time twice, and -9999 for
    some of its winds.

    Args:
        path: The file; UTF-8 or, as weather, Latin-1.
        channel: Keep this column alone.
    """
    path = existing_file(path)
    frame = csv_frame(path, encoding="latin-1")
    time, *names = frame.columns
    if not names:
        raise DataError("has one column only; expected the time and one or more of values", path)
    times = _times(frame[time], path)
    if channel is not None:
        if channel not in names:
            raise DataError(f"no column {shorten(channel)}; there are {', '.join(names)}", path)
        names = [channel]
    try:
        X = frame[names].to_numpy(dtype=np.float64).T[None]  # (1, D, T)
    except (TypeError, ValueError) as error:
        raise DataError(f"a value is no number ({error})", path) from None
    return _dataset(path.name.split(".")[0], X, times, path, names, channel is not None)


def read_electricity(path: str | Path, client: str | None = None) -> Dataset:
    """Electricity of 370 clients in its published form, ``LD2011_2014.txt``, by the hour.

    As in TS2Vec and its sources: quarters of an hour are added up, clients that used nothing up to
    hour 8920 are left out (321 stay), and so is what is before 2012. Every client is a series of
    one channel, ``(321, 1, T)``.

    Args:
        path: The file: semicolons between cells, commas in decimals, the time first.
        client: Keep this one alone, e.g. ``"MT_001"``.
    """
    import pandas as pd

    path = existing_file(path)
    try:
        frame = pd.read_csv(path, sep=";", decimal=",", index_col=0)
        quarters = frame.set_axis(pd.DatetimeIndex(_times(frame.index.to_series(), path)), axis=0)
        # 00:15 holds what was used since 00:00, so 01:00 still belongs to the hour that began then.
        hours = quarters.resample("1h", label="left", closed="right").sum()
    except (ValueError, TypeError, OSError) as error:
        raise DataError(
            f"is not the published file ({' '.join(str(error).split())[:80]}); expected "
            "semicolons between cells, commas in decimals and the time in the first column",
            path,
        ) from None
    early = hours.iloc[: _FIRST_USED_BY + 1]
    hours = hours.loc[_FROM:, (early != 0).any(axis=0)]
    if hours.empty:
        raise DataError(
            f"nothing is left: expected hours from {_FROM} on, of clients that used anything "
            f"before hour {_FIRST_USED_BY}",
            path,
        )
    if client is not None:
        if client not in hours.columns:
            raise DataError(f"no client {shorten(client)} with early consumption", path)
        hours = hours[[client]]
    X = hours.to_numpy(dtype=np.float64).T[:, None]  # (N, 1, T)
    times = hours.index.to_numpy("datetime64[ns]")
    ids = [str(name) for name in hours.columns]
    return _dataset(ELECTRICITY, X, times, path, None, client is not None, ids)


@archives.register("forecasting")
def sets_in(folder: Path) -> dict[str, Callable[[], Dataset]]:
    """The forecasting sets of a folder by name, and what loads each."""
    found: dict[str, Callable[[], Dataset]] = {}
    for name, channel in CHANNELS.items():
        for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz"):
            if path.is_file():
                found[name] = partial(read_forecasting_csv, path)
                found[name + UNIVARIATE] = partial(read_forecasting_csv, path, channel)
                break
    if (path := folder / ELECTRICITY_FILE).is_file():
        found[ELECTRICITY] = partial(read_electricity, path)
        found[ELECTRICITY + UNIVARIATE] = partial(read_electricity, path, ELECTRICITY_ALONE)
    return found


def _dataset(
    name: str,
    X: NDArray[np.float64],
    times: NDArray[Any],
    path: Path,
    channels: list[str] | None,
    alone: bool,
    ids: list[str] | None = None,
) -> Dataset:
    meta: dict[str, Any] = {
        "name": f"forecasting/{name}{UNIVARIATE if alone else ''}",
        "archive": "forecasting",
        "source": str(path),
        "times_train": np.broadcast_to(times, (len(X), len(times))),
    }
    if channels is not None:
        meta["channels"] = channels
    if ids is not None:
        meta["ids_train"] = ids
    return Dataset(X, meta=meta)


def _times(column: "pd.Series[Any]", path: Path) -> NDArray[Any]:
    import pandas as pd

    try:
        return in_nanoseconds(pd.to_datetime(column).to_numpy())
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:80]
        raise DataError(f"the first column is no time ({reason})", path) from None
