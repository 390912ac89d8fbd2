"""The standings: mean, spread and rank of every row, the paper's values, the points of grids."""

import math

from softclt.reports.analysis import LEVEL, Analysis, in_order
from softclt.reports.document import Cell, Column, Grid, Line, Section, counted, number, words
from softclt.reports.paper_grid import paper_grid, values_beside
from softclt.reports.wording import mean_cell, oracle_notes, row_kind, row_name, tau_text


def overall_section(analysis: Analysis, name: str) -> Section:
    """Mean, spread, rank of every row, and the paper's values."""
    metric, n = analysis.metric, len(analysis.common)
    beside = values_beside(analysis)
    shown = in_order(analysis.table.rows, analysis)
    best = _best(analysis)
    lines = []
    for row in shown:
        rank = analysis.ranks.get(row.name, math.nan)
        first = analysis.best_on.get(row.name, math.nan)
        cells = [
            Cell(row_name(row)),
            Cell(tau_text(row)),
            Cell(row.probe),
            mean_cell(analysis, row, strong=row.name == best),
            number(f"{rank:.2f}", rank),
            number(f"{first:.0f}", first),
            Cell(str(len(analysis.sets_of(row))), len(analysis.sets_of(row))),
        ]
        if beside:
            entry = beside.get(row.name)
            cells.append(number(metric.text(entry.value), entry.value) if entry else Cell(""))
        if any(row.published for row in shown):
            cells.append(Cell(row.source if row.published else "this run"))
        lines.append(Line(tuple(cells), row_kind(row)))
    columns = [
        Column("row", numeric=False),
        Column("tau", numeric=False, about="how the taus were chosen"),
        Column("probe", numeric=False, about="what reads the representation"),
        Column("mean ± seeds"),
        Column("rank", about="average over data sets; ties share"),
        Column("best on", about="data sets, alone or with others"),
        Column("sets"),
    ]
    if beside:
        columns.append(Column("paper", about="mean printed in the paper"))
    if any(row.published for row in shown):
        columns.append(Column("source", numeric=False))
    notes = [
        f"Means over the {counted(n, 'data set')} that all {len(analysis.compared)} compared rows "
        "have; ± is the standard deviation over seeds of the mean over data sets. Ranks among the "
        "compared rows, 1 the best.",
        *_alone_notes(analysis),
        *oracle_notes(shown),
        *dict.fromkeys(
            f"Paper: {entry.table}, mean of {counted(entry.sets, 'data set')}; tau {entry.tau}."
            for entry in beside.values()
        ),
    ]
    grid = Grid(f"All rows: {metric.about}", tuple(columns), tuple(lines), tuple(notes))
    grids = [grid, paper_grid(analysis), points_grid(analysis)]
    return Section(f"All rows{name}", grids=tuple(filter(None, grids)))


def points_grid(analysis: Analysis) -> Grid | None:
    """The points of grids, apart: many of them, and none was chosen beforehand."""
    metric = analysis.metric
    points = [row for row in analysis.table.rows if row.point]
    against = {one.row.name: one for one in analysis.against_control(points)}
    lines = []
    for row in points:
        one = against.get(row.name)
        cells = [
            Cell(row.name),
            Cell(tau_text(row)),
            Cell(row.probe),
            mean_cell(analysis, row),
            Cell(str(len(analysis.sets_of(row))), len(analysis.sets_of(row))),
        ]
        if one:
            ends = f"{metric.difference(one.low, 1)} to {metric.difference(one.high, 1)}"
            cells += [number(metric.difference(one.mean, 1), one.mean), number(ends, one.low)]
        lines.append(Line((*cells, *[Cell("")] * (7 - len(cells)))))
    if not lines:
        return None
    columns = (
        Column("point", numeric=False),
        Column("tau", numeric=False),
        Column("probe", numeric=False),
        Column("mean ± seeds"),
        Column("sets"),
        Column("difference", about="minus its control"),
        Column(f"{100 * LEVEL:.0f} % interval", about="not corrected for their number"),
    )
    note = (
        "Not ranked and not tested: to take the best of these by its score would be an oracle. "
        "Intervals are not corrected for their number."
    )
    return Grid("Points of grids", columns, tuple(lines), (note,), folded=True)


def _alone_notes(analysis: Analysis) -> list[str]:
    lonely = [
        f"{name} ({why})"
        for name, why in analysis.alone.items()
        if (row := analysis.table.row(name)) and not row.oracle and not row.point
    ]
    return [f"Not ranked, means over the common sets they have: {words(lonely)}."] if lonely else []


def _best(analysis: Analysis) -> str:
    means = {row.name: s.mean for row in analysis.compared if (s := analysis.summary(row))}
    if len(means) < 2:
        return ""
    pick = min if analysis.metric.lower_is_better else max
    return pick(means, key=lambda name: means[name])
