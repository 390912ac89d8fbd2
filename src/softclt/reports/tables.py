"""From results to a table on a terminal: mean and spread over seeds, soft minus hard."""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from softclt.reports.metric import Metric
from softclt.reports.rows import Row, tabulate
from softclt.reports.statistics import Summary, paired
from softclt.tasks.result import Result

if TYPE_CHECKING:
    from rich.table import Table


def comparison_table(
    results: Sequence[Result],
    *,
    columns: Sequence[str] = ("untrained", "hard", "soft"),
    metric: str | None = None,
) -> "Table":
    """A rich table: a row for each data set, a column for each configuration, soft minus hard."""
    from rich import table as rich

    (found,) = tabulate(results, metric)
    rows = {name: found.row(name) or Row(name, name) for name in columns}
    datasets = list(dict.fromkeys(result.dataset for result in results))
    table = rich.Table()
    table.add_column("data set", no_wrap=True)
    for name in (*columns, "soft − hard"):
        table.add_column(name, justify="right", no_wrap=True)
    unit, means = Metric(found.metric), []
    for dataset in datasets:
        seeds = [row.scores.get(dataset, {}) for row in rows.values()]
        difference = paired(
            rows["soft"].scores.get(dataset, {}), rows["hard"].scores.get(dataset, {})
        )
        summaries = [Summary.of(list(s.values())) if s else None for s in (*seeds, difference)]
        means.append([summary and summary.mean for summary in summaries])
        cells = [
            unit.with_spread(summary.mean, summary.spread, sign=i == len(columns))
            if summary
            else ""
            for i, summary in enumerate(summaries)
        ]
        table.add_row(dataset, *cells)
    if len(datasets) > 1:
        table.add_section()
        *totals, last = [_mean(column) for column in zip(*means, strict=True)]
        texts = ["" if total is None else unit.text(total) for total in totals]
        table.add_row("mean", *texts, "" if last is None else unit.difference(last))
    return table


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean over data sets; none unless every data set has a value."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None
