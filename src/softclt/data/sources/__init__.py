"""Series that are not loaded: files of any size, read when training needs them."""

from softclt.data.sources.arrays import ArraySource, NpySource
from softclt.data.sources.opening import ChannelSets, left_on_disk, open_if_large, open_series
from softclt.data.sources.parquet import ParquetSource
from softclt.data.sources.source import SeriesSource, Survey

__all__ = [
    "ArraySource",
    "ChannelSets",
    "NpySource",
    "ParquetSource",
    "SeriesSource",
    "Survey",
    "left_on_disk",
    "open_if_large",
    "open_series",
]
