"""From the nearest rows of each query to a table of hits: measured again, one a place, by rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from softclt.data.preparation import standardised
from softclt.distances import pairwise_distance
from softclt.search.store import DISTANCE, QUERY
from softclt.search.windows import without_overlaps
from softclt.validation import Floats, Floats64

SERIES = "_series"
"""Column with the values of a row, channel after channel."""

FIRST = ["query", "rank", "id", "distance"]


def hits_table(rows: Any, queries: Sequence[Any], k: int, windows: bool) -> pd.DataFrame:
    """A row for each hit: queries in their order, the nearest of each first, ranks from 1.

    Args:
        rows: Of the index, an Arrow table.
        queries: What to call each query.
        k: Hits of each, at most.
        windows: Whether rows are windows, of which those in one place are one hit.
    """
    table = rows.to_pandas().rename(columns={DISTANCE: "distance"})
    table = table.sort_values([QUERY, "distance", "id", "start"], kind="stable")
    if windows and len(table):
        table = pd.concat(without_overlaps(own) for _, own in table.groupby(QUERY, sort=True))
    places = table.groupby(QUERY).cumcount()
    table = table[places < k].reset_index(drop=True)
    table["rank"] = table.groupby(QUERY).cumcount() + 1
    names = np.empty(len(queries), dtype=object)
    names[:] = list(queries)
    table["query"] = pd.Series(names[table[QUERY].to_numpy()], dtype=object).infer_objects()
    first = [*FIRST, *(["start", "end"] if windows else [])]
    others = [c for c in table if c not in (*first, "start", "end") and c[0] != "_" and c != QUERY]
    return table[[*first, *others]]


def measured_again(rows: Any, queries: Floats, metric: str) -> Any:
    """The same rows with distances of another metric, each channel standardised by itself.

    Args:
        rows: Of the index, an Arrow table with their values.
        queries: ``(Q, D, T)``.
        metric: See `softclt.pairwise_distance`.
    """
    import pyarrow as pa

    of_query = rows[QUERY].to_numpy()
    distance = np.empty(rows.num_rows)
    for i in np.unique(of_query):
        own = np.flatnonzero(of_query == i)
        series = [_standardised(x) for x in values_of(rows.take(own), queries.shape[1])]
        query = _standardised(queries[i])
        distance[own] = pairwise_distance([query], series, metric=metric)[0]
    place = rows.schema.get_field_index(DISTANCE)
    return rows.set_column(place, DISTANCE, pa.array(distance)).drop_columns([SERIES])


def values_of(rows: Any, n_channels: int) -> list[Floats64]:
    """Values ``(D, T_i)`` of rows."""
    return [
        np.asarray(one.values.to_numpy(zero_copy_only=False)).reshape(n_channels, -1)
        for one in rows[SERIES]
    ]


def _standardised(x: Floats) -> Floats64:
    return standardised(x[None])[0]
