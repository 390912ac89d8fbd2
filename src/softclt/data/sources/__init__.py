"""Series that are not loaded: files of any size, read when training needs them."""

from softclt.data.sources.arrays import ArraySource as ArraySource
from softclt.data.sources.arrays import NpySource as NpySource
from softclt.data.sources.opening import ChannelSets as ChannelSets
from softclt.data.sources.opening import left_on_disk as left_on_disk
from softclt.data.sources.opening import open_if_large as open_if_large
from softclt.data.sources.opening import open_series as open_series
from softclt.data.sources.opening import open_to_read_once as open_to_read_once
from softclt.data.sources.parquet import ParquetSource as ParquetSource
from softclt.data.sources.source import SeriesSource as SeriesSource
from softclt.data.sources.source import Survey as Survey
