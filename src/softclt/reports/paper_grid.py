"""The paper's printed values beside our rows."""

import math

from softclt.reports.analysis import Analysis
from softclt.reports.document import Cell, Column, Grid, Line, number
from softclt.reports.paper import Printed, printed
from softclt.reports.rows import Row
from softclt.reports.wording import mean_cell, row_kind, row_name, tau_text

PROBE = "svm"  # the paper's; another one stands beside it only where this one is not there


def values_beside(analysis: Analysis) -> dict[str, Printed]:
    """Row -> the first value that the paper prints for it over all data sets."""
    found: dict[str, Printed] = {}
    for entry in _entries(analysis):
        for row in _rows(analysis, entry):
            if entry.group is None:
                found.setdefault(row.name, entry)
    return found


def paper_grid(analysis: Analysis) -> Grid | None:
    """All that the paper prints for this suite, with ours where we have it."""
    lines = []
    for entry in _entries(analysis):
        beside: list[Row | None] = [*_rows(analysis, entry)]
        lines += [_line(analysis, entry, row) for row in beside or [None]]
    if not lines:
        return None
    columns = (
        Column("paper's table", numeric=False),
        Column("paper's row", numeric=False),
        Column("printed"),
        Column("sets"),
        Column("tau in the paper", numeric=False),
        Column("our row", numeric=False),
        Column("our probe", numeric=False),
        Column("ours"),
        Column("our sets"),
        Column("our tau", numeric=False),
    )
    note = (
        "The data sets may differ in number, so compare differences within a column rather than "
        "values across."
    )
    if analysis.table.task == "classification":
        note = f"The paper reads representations with an SVM. {note}"
    return Grid("Printed in the paper, and ours", columns, tuple(lines), (note,))


def _entries(analysis: Analysis) -> tuple[Printed, ...]:
    return printed(analysis.table.suite, analysis.table.metric)


def _rows(analysis: Analysis, entry: Printed) -> list[Row]:
    found = []
    for name in entry.ours:
        rows = [
            row
            for row in analysis.table.rows
            if not row.published and row.name.removesuffix(f" · {row.probe}") == name
        ]
        found += sorted(rows, key=lambda row: row.probe != PROBE)[:1]
    return found


def _line(analysis: Analysis, entry: Printed, row: Row | None) -> Line:
    metric = analysis.metric
    cells = [
        Cell(entry.table),
        Cell(entry.row),
        number(metric.text(entry.value), entry.value),
        number(str(entry.sets), entry.sets or math.nan),
        Cell(entry.tau),
    ]
    if row is None:
        return Line((*cells, *[Cell("")] * 5))
    among = None
    if entry.group is not None:
        kind, group = entry.group
        among = analysis.groups.get(kind, {}).get(group, [])
    sets = [name for name in analysis.sets_of(row) if among is None or name in among]
    cells += [
        Cell(row_name(row)),
        Cell(row.probe),
        mean_cell(analysis, row, among),
        number(str(len(sets)), len(sets) or math.nan),
        Cell(tau_text(row)),
    ]
    return Line(tuple(cells), row_kind(row))
