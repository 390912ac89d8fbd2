"""Words that all tables of a report share."""

import math
from collections.abc import Iterable

from softclt.reports.analysis import Analysis
from softclt.reports.document import DAGGER, Cell, number
from softclt.reports.rows import PUBLISHED, Row

TAU_WORDS = {
    "default": "the library's default, the same for all data sets",
    "fixed": "given beforehand",
    "train": "chosen for each data set by its training series and their labels",
    "unlabelled": "chosen for each data set by its training series, without labels",
    "oracle": "chosen on the test set: an upper bound, never a score to claim",
}
ORACLE_NOTE = (
    f"{DAGGER} oracle: the taus were chosen on the test set. An upper bound, not a score to claim: "
    "shown apart, and left out of ranks, tests and the CD diagram."
)
INTERVAL_WORDS = {
    "t": "Student's t over data sets",
    "bootstrap": "bootstrap of the data sets, 10,000 draws, seed 0",
}


def row_name(row: Row) -> str:
    """The name with the mark of an oracle."""
    return f"{row.name} {DAGGER}" if row.oracle else row.name


def row_kind(row: Row) -> str:
    """The kind of line that a row makes."""
    return PUBLISHED if row.published else "oracle" if row.oracle else ""


def tau_text(row: Row) -> str:
    """How a row's taus were chosen, in a word."""
    if row.published or row.kind == "soft":
        return row.tau_choice
    return "none"


def p_text(p: float) -> str:
    """A p-value.

    Example:
        >>> p_text(0.00012), p_text(0.0312), p_text(1.0)
        ('<0.001', '0.031', '1.000')
    """
    return "" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def mean_cell(
    analysis: Analysis, row: Row, among: Iterable[str] | None = None, strong: bool = False
) -> Cell:
    """A row's mean and spread over the common sets, or those among them; empty without any."""
    summary = analysis.summary(row, among)
    if summary is None:
        return Cell("")
    text = analysis.metric.with_spread(summary.mean, summary.spread)
    return number(text, summary.mean, strong=strong)


def oracle_notes(rows: Iterable[Row]) -> list[str]:
    """What must stand under a table with an oracle in it."""
    return [ORACLE_NOTE] if any(row.oracle for row in rows) else []
