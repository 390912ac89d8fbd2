"""Series from archives, tables, arrays and generators, all as ``(N, D, T)``."""

from softclt.data import synthetic
from softclt.data.anomaly import AnomalyData, AnomalySeries, read_kpi, read_nab, read_yahoo
from softclt.data.archives import read_ts, read_tsv
from softclt.data.arff import read_arff
from softclt.data.arrays import from_channels_last, read_npy, read_npz
from softclt.data.catalog import available, datasets, load, read_series
from softclt.data.dataset import Dataset, SeriesTable, fingerprint
from softclt.data.draws import draw_labels, load_rows, save_rows
from softclt.data.errors import DataError
from softclt.data.few_labels import ValidatedDataset, read_epilepsy, read_har, read_parts
from softclt.data.forecasting import read_electricity, read_forecasting_csv
from softclt.data.labels import encode_labels
from softclt.data.sources import ChannelSets, SeriesSource, open_series
from softclt.data.synthetic import ragged, waves
from softclt.data.tables import from_frame, read_table

__all__ = [
    "AnomalyData",
    "AnomalySeries",
    "ChannelSets",
    "DataError",
    "Dataset",
    "SeriesSource",
    "SeriesTable",
    "ValidatedDataset",
    "available",
    "datasets",
    "draw_labels",
    "encode_labels",
    "fingerprint",
    "from_channels_last",
    "from_frame",
    "load",
    "load_rows",
    "open_series",
    "ragged",
    "read_arff",
    "read_electricity",
    "read_epilepsy",
    "read_forecasting_csv",
    "read_har",
    "read_kpi",
    "read_nab",
    "read_npy",
    "read_npz",
    "read_parts",
    "read_series",
    "read_table",
    "read_ts",
    "read_tsv",
    "read_yahoo",
    "save_rows",
    "synthetic",
    "waves",
]
