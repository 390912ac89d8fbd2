"""What each command would do with a table, as far as one can say without doing it."""

import numpy as np

from softclt.anomaly.watching import read_watched, why_not
from softclt.data.columns import Columns
from softclt.data.dataset import SeriesTable
from softclt.data.inspection import Findings, mixed_up
from softclt.forecasting.forecaster import Forecaster
from softclt.forecasting.samples import divide
from softclt.methods import TS2Vec
from softclt.reports.document import counted
from softclt.validation import Ints

WATCHED_SHARE, CONTEXT, HORIZON = 0.5, 200, 24  # what `detect` and `forecast` begin with


def prospects(data: str, columns: Columns, table: SeriesTable, found: Findings) -> dict[str, str]:
    """A sentence for each command, with its settings left as they are.

    Args:
        data: The file or name that the table is of.
        columns: How it was read.
        table: Its series.
        found: What a look at them showed.
    """
    return {
        "fit": _fit(found),
        "embed": _embed(found),
        "classify": _classify(found),
        "detect": _detect(data, columns),
        "forecast": _forecast(table, columns),
        "distances": _distances(found),
        "explore": _explore(found),
    }


def _fit(found: Findings) -> str:
    longest, n = int(found.lengths.max()), int((found.lengths > 0).sum())
    if longest < 2:
        return "refuses: no series has two steps"
    most = TS2Vec().max_train_length
    words = [f"learns from {n} series"]
    if longest >= 2 * most:
        sections = longest // most
        words.append(f"cut into {sections} sections each, as they are long")
    if found.empty:
        words.append(f"{counted(len(found.empty), 'empty one')} left out")
    if n == 1:
        words.append("which has no others to be compared with: only its steps teach")
    return ", ".join(words)


def _embed(found: Findings) -> str:
    n = len(found.lengths)
    return f"writes {counted(n, 'row')}, one for each series, or with --level for each step"


def _classify(found: Findings) -> str:
    if not found.labels:
        return "needs labels: a column (--label) or a table of ids and labels (--labels)"
    if len(found.labels) < 2:
        return "refuses: all labels are the same"
    rarest = min(found.labels, key=lambda name: found.labels[name])
    return f"learns {len(found.labels)} classes; the rarest, {rarest}, has {found.labels[rarest]}"


def _detect(data: str, columns: Columns) -> str:
    try:
        _, series, done = read_watched(data, columns)
    except ValueError as error:
        return f"refuses: {error}"
    reasons, words = [], done
    for one in series:
        title = f"series {one.name}" if one.name else "the series"
        start = int(WATCHED_SHARE * one.values.shape[1])
        if reason := why_not(one, start, 0):
            reasons.append(f"{title} {reason}")
        elif one.words:
            words.append(f"{title}: {one.words}")
    kept = len(series) - len(reasons)
    if not kept:
        return f"refuses: {reasons[0]}"
    told = f"judges the second half of {kept} series"
    if reasons:
        told += f", leaves {len(reasons)} out ({reasons[0]})"
    return f"{told}; {words[0]}" if words else told


def _forecast(table: SeriesTable, columns: Columns) -> str:
    if reason := mixed_up(table, columns):
        return f"refuses: {reason}"
    X = np.asarray(table.X, np.float64)
    for i, series in enumerate(X):
        known = series[~np.isnan(series)]
        if not known.size or known.min() == known.max():
            came = "never changes" if known.size else "has no values"
            return f"refuses: series {table.ids[i]} {came}; leave it out"
    try:
        division = divide(X, HORIZON, CONTEXT, Forecaster().valid_share)
    except ValueError as error:
        return f"refuses with --horizon {HORIZON}: {error}"
    return f"learns from {len(division.fit_rows)} steps to forecast {HORIZON} after the last"


def _distances(found: Findings) -> str:
    n = len(found.lengths)
    pairs, cells = n * (n - 1) // 2, _cells(found.lengths)
    return f"{counted(pairs, 'distance')}; with dtw {cells:.2g} cells to fill"


def _explore(found: Findings) -> str:
    n = len(found.lengths)
    return f"draws a map of {n} series" if n > 2 else f"refuses: a map needs 3 series, not {n}"


def _cells(lengths: Ints) -> float:
    """Cells of all pairs: the product of two lengths each."""
    own = lengths.astype(np.float64)
    return float((own.sum() ** 2 - (own**2).sum()) / 2)
