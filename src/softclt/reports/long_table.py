"""A report as one long CSV: a line for each row and data set, and one for each row overall."""

import csv
import io
import math
from collections.abc import Iterable, Mapping

from softclt.plaintext import no_formula
from softclt.reports.analysis import Analysis, Difference, in_order
from softclt.reports.rows import Row
from softclt.reports.statistics import Summary
from softclt.reports.wording import tau_text

COLUMNS = (
    *("suite", "task", "metric", "method", "dataset", "value", "spread", "seeds", "sets"),
    *("tau_choice", "probe", "published", "source", "control", "difference", "low", "high"),
    *("wins", "ties", "losses", "p", "rank"),
)


def long_csv(analyses: Iterable[Analysis], safe: bool = False) -> str:
    """The text of the file; scores as they were measured, shares not in per cent.

    Lines without a data set are overall: over the sets that all compared rows have; differences
    over those that a row shares with its control. The file can be given as baselines again.
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for analysis in analyses:
        points = [row for row in analysis.table.rows if row.point]
        tested = [*analysis.differences, *analysis.against_control(points)]
        against = {one.row.name: one for one in tested}
        for row in in_order(analysis.table.rows, analysis) + points:
            for line in _lines(analysis, row, against.get(row.name)):
                cells = {key: _text(value) for key, value in line.items()}
                writer.writerow({k: no_formula(c) for k, c in cells.items()} if safe else cells)
    return buffer.getvalue()


def _lines(
    analysis: Analysis, row: Row, against: Difference | None
) -> Iterable[Mapping[str, object]]:
    table = analysis.table
    common = {
        "suite": table.suite,
        "task": table.task,
        "metric": table.metric,
        "method": row.name,
        "tau_choice": tau_text(row),
        "probe": row.probe,
        "published": "yes" if row.published else "no",
        "source": row.source or "softclt",
        "control": row.control,
    }
    for dataset in (name for name in table.datasets if name in row.scores):
        found = Summary.of(list(row.scores[dataset].values()))
        line = {"dataset": dataset, "value": found.mean, "spread": found.spread, "seeds": found.n}
        if against is not None and dataset in against.by_set:
            line["difference"] = against.by_set[dataset]
        yield common | line
    summary = analysis.summary(row)
    overall: dict[str, object] = {"sets": len(analysis.sets_of(row))}
    if summary is not None:
        overall |= {"value": summary.mean, "spread": summary.spread, "seeds": summary.n}
    if row.name in analysis.ranks:
        overall["rank"] = analysis.ranks[row.name]
    if against is not None:
        overall |= {"difference": against.mean, "low": against.low, "high": against.high}
        overall |= {"wins": against.wins, "ties": against.ties, "losses": against.losses}
        overall["p"] = against.p
    yield common | overall


def _text(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
