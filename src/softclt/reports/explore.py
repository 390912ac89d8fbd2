"""A page to look around in an embedding: one HTML file that opens from disk with no network."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softclt.data import SeriesTable
from softclt.data.catalog import is_path
from softclt.optional import needed
from softclt.plaintext import visible
from softclt.reports.packing import PackedSeries, pack_series, to_base64
from softclt.reports.projection import kept_neighbours, nearest_neighbours, place, standardise
from softclt.validation import Floats, series_lengths

if TYPE_CHECKING:
    import pandas as pd

FEW_NUMBERS = 12  # a column of numbers with no more different ones is coloured by category
LARGEST_POINT = 65_535


@dataclass(frozen=True)
class ExplorePage:
    """The page as text, and what it shows."""

    html: str
    series: int
    projection: str
    kept: float
    columns: list[str]


def explore_page(
    series: SeriesTable,
    embeddings: Floats,
    columns: "pd.DataFrame",
    *,
    model: str,
    projection: str = "auto",
    n_neighbors: int = 8,
    max_points: int = 200,
    seed: int = 0,
) -> ExplorePage:
    """A page with a map of the embeddings, where a dot shows its series and its neighbours.

    Args:
        series: The N series.
        embeddings: One for each of them, ``(N, M)``; finite, at least 3.
        columns: What dots may be coloured by, a row a series; the first one is shown first.
        model: What made the embeddings, in a few words.
        projection: See `softclt.reports.projection.place`.
        n_neighbors: Nearest series to draw, by Euclidean distance of standardised embeddings.
        max_points: Points of each series and channel that the page keeps.
        seed: Of the projection.
    """
    n, d, t = series.X.shape
    R = standardise(embeddings)
    plane = place(R, projection, seed)
    rows, distances = nearest_neighbours(R, n_neighbors)
    packed = pack_series(series.X, max_points)
    kept = kept_neighbours(rows, plane.points)
    data = {
        "ids": [str(i) for i in series.ids],
        "points": to_base64(_on_a_grid(plane.points), "<u2"),
        "neighbors": to_base64(rows, "<u4"),
        "distances": to_base64(distances, "<f4"),
        "series": _series_data(packed, series.channels) | _times_data(series),
        "columns": [_column_data(str(name), columns[name]) for name in columns.columns],
    }
    facts = {
        "title": _title(series.source),
        "source": series.source or "arrays",
        "model": model,
        "n": n,
        "channels": d,
        "shown_channels": packed.codes.shape[1],
        "steps": t,
        "dimensions": embeddings.shape[1],
        "projection": plane.words,
        "k": rows.shape[1],
        "kept": round(100 * kept),
    }
    html = _render(facts, data)
    return ExplorePage(html, n, plane.words, kept, [str(name) for name in columns.columns])


def _title(source: str | None) -> str:
    """The name of a file without its folders; the whole name of a data set."""
    if not source:
        return "arrays"
    return Path(source).name if is_path(source) else source


def _on_a_grid(points: Floats) -> Floats:
    """Points as whole numbers, both axes on one scale, in the middle."""
    low, high = points.min(axis=0), points.max(axis=0)
    width = float((high - low).max()) or 1.0
    shares = 0.5 + (points - (low + high) / 2) / width
    return np.asarray(np.rint(np.clip(shares, 0.0, 1.0) * LARGEST_POINT))


def _series_data(packed: PackedSeries, channels: list[str] | None) -> dict[str, Any]:
    n_shown = packed.codes.shape[1]
    names = channels if channels is not None else [f"channel {i + 1}" for i in range(n_shown)]
    return {
        "channels": [str(name) for name in names[:n_shown]],
        "points": packed.codes.shape[2],
        "steps": packed.steps,
        "codes": to_base64(packed.codes, "u1"),
        "low": to_base64(packed.low, "<f8"),
        "high": to_base64(packed.high, "<f8"),
    }


def _times_data(series: SeriesTable) -> dict[str, Any]:
    """First and last time of each series, and where that is on the axis; nothing without times."""
    if series.times is None:
        return {}
    n, t = series.times.shape
    last = np.maximum(series_lengths(series.X), 1) - 1  # (N,)
    ends = np.concatenate([series.times[:, 0], series.times[np.arange(n), last]])
    codes, texts = _codes(series, ends)
    return {
        "times": {
            "texts": texts,
            "first": to_base64(codes[:n], "<u4"),
            "last": to_base64(codes[n:], "<u4"),
            "end": to_base64(last / max(1, t - 1), "<f4"),
        }
    }


def _codes(series: SeriesTable, times: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """Times as numbers of texts, each of which is kept once."""
    different, codes = np.unique(times, return_inverse=True)
    return codes, [str(text) for text in series.as_written(different)]


def _column_data(name: str, column: "pd.Series[Any]") -> dict[str, Any]:
    """Numbers, or the names of categories and their numbers from 1, with 0 where missing."""
    import pandas as pd

    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if is_number and column.nunique() > FEW_NUMBERS:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        values = np.where(np.isfinite(values), values, np.nan)
        return {"name": name, "kind": "number", "values": to_base64(values, "<f8")}
    codes, names = pd.factorize(column, sort=True)
    texts = [f"{v:g}" if isinstance(v, float) else str(v) for v in names]
    return {"name": name, "kind": "category", "names": texts, "codes": to_base64(codes + 1, "<u4")}


def _render(facts: dict[str, Any], data: dict[str, Any]) -> str:
    with needed("the page needs jinja2: pip install 'softclt[report]'"):
        from jinja2 import Environment, FileSystemLoader
    templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    # Inside a script element "<" could end it; as an escape it is the same JSON.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return visible(templates.get_template("explore.html.j2").render(facts=facts, data=text))
