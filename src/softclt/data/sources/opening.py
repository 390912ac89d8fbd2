"""From what a user has to a source."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from softclt.data.columns import Columns, refuse_given
from softclt.data.errors import DataError
from softclt.data.sources.arrays import ArraySource, NpySource
from softclt.data.sources.parquet import ParquetSource, n_values
from softclt.data.sources.places import is_url
from softclt.data.sources.source import SeriesSource
from softclt.data.sources.unpacked import unpack_if_large

IN_MEMORY = 2**26  # values; what has no more is simply read, unless it was opened as a source


class ChannelSets:
    """Several data sets of any length and number of channels, for a model of single channels.

    Every channel of every series becomes a series of its own. A batch comes from one set, so that
    nothing is padded.

    Attributes:
        sets: Sources of one channel each.
    """

    def __init__(self, sources: Sequence[SeriesSource]) -> None:
        if not sources:
            raise DataError("the list of data sets is empty; expected at least one")
        self.sets = [source.by_channel() for source in sources]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels of all series, one, and the steps of the longest."""
        return sum(map(len, self.sets)), 1, max(source.shape[-1] for source in self.sets)

    def __repr__(self) -> str:
        n, _, t = self.shape
        return f"ChannelSets({len(self.sets)} sets, {n} channels, up to {t} steps)"


def open_series(data: Any, **columns: Unpack[Columns]) -> SeriesSource | ChannelSets:
    """Series that stay where they are, for ``fit`` and ``transform``: read when they are needed.

    Args:
        data: A ``.npy`` file, or what ``numpy.load(path, mmap_mode="r")`` gives; a folder of
            Parquet files, or one of them, also by a URL; or a list of these and of arrays
            ``(N, D, T)``, whose lengths and numbers of channels may differ: their channels become
            series of their own.
        **columns: How to read Parquet tables; see :func:`softclt.data.read_table`.

    Returns:
        A `SeriesSource`, or `ChannelSets` for a list.

    Example:
        >>> open_series([np.zeros((5, 2, 30)), np.zeros((4, 1, 50))])
        ChannelSets(2 sets, 14 channels, up to 50 steps)
    """
    if isinstance(data, (SeriesSource, ChannelSets)):
        return data
    if isinstance(data, (list, tuple)):
        sources = []
        for one in data:
            source = open_series(one, **columns)
            if isinstance(source, ChannelSets):
                raise DataError("a data set of the list is a list itself; give one list of all")
            sources.append(source)
        return ChannelSets(sources)
    if is_mapped(data):
        return NpySource(data)
    if not isinstance(data, (str, Path)):
        return ArraySource(data)
    if is_url(data):
        return ParquetSource(data, **columns)
    path = Path(data).expanduser()
    if path.suffix.lower() == ".npy":
        refuse_given(columns, "CSV and Parquet tables", path)
        return NpySource.open(path)
    if path.is_dir() or path.suffix.lower() == ".parquet":
        return ParquetSource(path, **columns)
    raise DataError(
        "cannot be read piece by piece; expected a .npy file, a folder of Parquet files, or one "
        "of them",
        path,
    )


def left_on_disk(X: Any) -> SeriesSource | ChannelSets | None:
    """What ``fit`` and ``transform`` read piece by piece: a source, or a large mapped array."""
    if isinstance(X, (SeriesSource, ChannelSets)):
        return X
    return NpySource(X) if is_mapped(X) and X.size > IN_MEMORY else None


def open_if_large(name: str | Path, **columns: Unpack[Columns]) -> SeriesSource | None:
    """The source of a file that is too large to be read, of a folder of Parquet files or a URL."""
    if is_url(name):
        return ParquetSource(name, **columns)
    path = Path(name).expanduser()
    suffix = path.suffix.lower()
    if path.is_dir():
        parts = list(path.glob("*.parquet"))
        named = any("_TRAIN." in part.name for part in path.iterdir())
        return ParquetSource(path, **columns) if parts and not named else None
    if path.is_file() and suffix == ".npy" and path.stat().st_size > 4 * IN_MEMORY:
        refuse_given(columns, "CSV and Parquet tables", path)
        return NpySource.open(path)
    if path.is_file() and suffix == ".parquet" and n_values(path) > IN_MEMORY:
        return ParquetSource(path, **columns)
    return None


def open_to_read_once(name: str | Path, **columns: Unpack[Columns]) -> SeriesSource | None:
    """The same, also for a large CSV or .npz file: its series are written to a temporary file."""
    source = open_if_large(name, **columns)
    if source is None:
        path = Path(name).expanduser()
        source = unpack_if_large(path, 4 * IN_MEMORY, progress=True, **columns)
    return source


def is_mapped(X: Any) -> bool:
    """Whether an array is memory of a file, and not only of the class that such arrays have."""
    return isinstance(X, np.memmap) and X.filename is not None
