"""The first screen of a report: what was compared, what softness adds, who is ahead."""

import math
from collections import Counter
from collections.abc import Sequence

from softclt.reports.analysis import LEVEL, NOTHING_SHOWN, Analysis, Difference
from softclt.reports.document import Cell, Column, Grid, Line, Section, counted, number, words
from softclt.reports.metric import Metric
from softclt.reports.wording import (
    INTERVAL_WORDS,
    TAU_WORDS,
    oracle_notes,
    p_text,
    row_kind,
    row_name,
    tau_text,
)

MOST_SENTENCES = 12  # of a summary; a grid has more rows than anybody reads


def summary_section(analysis: Analysis, name: str) -> Section:
    """What was compared on what, how taus were chosen, and soft minus control in words."""
    grids = (softness_grid(analysis),) if analysis.differences else ()
    text = [_what_was_compared(analysis), _how_taus_were_chosen(analysis)]
    points = _all_in_words(analysis.differences, analysis.metric)
    if rows := analysis.without_control:
        points.append(
            f"No hard control is known for {words([row.name for row in rows])}, so nothing is "
            "said about what softness adds there."
        )
    return Section(f"Summary{name}", tuple(filter(None, text)), tuple(points), grids)


def softness_grid(analysis: Analysis) -> Grid:
    """Every soft row beside its control, with an interval: the main result."""
    metric, differences = analysis.metric, analysis.differences
    # An interval of two data sets can be so wide that all others would be drawn as dots beside it.
    drawn = [one for one in differences if not one.of_too_few_sets]
    scale = max([abs(end) for one in drawn for end in (one.low, one.high)], default=1.0) or 1.0
    lines = []
    for one in differences:
        ends_text = f"{metric.difference(one.low, 1)} to {metric.difference(one.high, 1)}"
        span = None
        if not one.of_too_few_sets:
            span = (one.low / scale, one.mean / scale, one.high / scale)
        cells = (
            Cell(row_name(one.row)),
            Cell(tau_text(one.row)),
            Cell(one.control.name),
            number(metric.difference(one.mean, 1), one.mean, strong=True),
            number(ends_text, one.low, span=span),
            Cell("upper bound" if one.row.oracle else one.verdict(metric.lower_is_better)),
            number(metric.text(one.own_mean), one.own_mean),
            number(metric.text(one.control_mean), one.control_mean),
            number(metric.text(one.spread, 1), one.spread),
            Cell(f"{one.wins} / {one.ties} / {one.losses}", one.wins - one.losses),
            number(p_text(one.p), one.p),
            number(str(len(one.by_set)), len(one.by_set)),
        )
        lines.append(Line(cells, row_kind(one.row)))
    tested = sum(not math.isnan(one.p) for one in differences)
    unit = ", in points of per cent" if metric.percent else ""
    notes = [
        f"Difference: soft minus control, paired by data set and seed{unit}. Interval: "
        f"{100 * LEVEL:.0f} %, {INTERVAL_WORDS[analysis.interval_method]}. Seeds: standard "
        "deviation of the mean difference from seed to seed.",
    ]
    if tested:
        notes.append(
            "p: two-sided Wilcoxon signed-rank test over data sets, with Holm's correction for "
            f"{counted(tested, 'comparison')}."
        )
    return Grid(
        "What softness adds: each soft row against its own hard control",
        (
            Column("row", numeric=False),
            Column("tau", numeric=False, about="how the taus were chosen"),
            Column("control", numeric=False, about="the row that differs in softness alone"),
            Column("difference"),
            Column(f"{100 * LEVEL:.0f} % interval", about="of the mean difference, over data sets"),
            Column("verdict", numeric=False),
            Column("mean"),
            Column("control's mean"),
            Column("seeds ±", about="of the mean difference, over seeds"),
            Column("won / tied / lost", about="data sets"),
            Column("p"),
            Column("sets"),
        ),
        tuple(lines),
        (*notes, *oracle_notes(analysis.table.rows)),
    )


def _what_was_compared(analysis: Analysis) -> str:
    table = analysis.table
    own = [row for row in table.rows if row.method]
    others = [row for row in table.rows if row.published]
    seeds = sorted({len(found) for row in own for found in row.scores.values()})
    seeds_text = words([str(n) for n in seeds], " or ") + (" seed" if seeds == [1] else " seeds")
    probes = sorted({row.probe for row in own if row.probe})
    parts = [
        f"{counted(len(own), 'configuration')} of {words(sorted({row.method for row in own}))} on "
        f"{counted(len(table.datasets), 'data set')} with {seeds_text} each"
        + (f", read by {words(probes)}" if probes else "")
        + f"; {analysis.metric.about}."
    ]
    if others:
        sources = words(list(dict.fromkeys(row.source for row in others)))
        parts.append(
            f"Beside them {counted(len(others), 'published method')} ({sources}); their scores "
            "were not run again here."
        )
    if len(analysis.common) < len(table.datasets):
        parts.append(
            f"Means and ranks use the {counted(len(analysis.common), 'data set')} that all "
            "compared rows have."
        )
    return " ".join(parts)


def _how_taus_were_chosen(analysis: Analysis) -> str:
    by_choice: dict[str, list[str]] = {}
    for row in analysis.table.rows:
        if row.kind == "soft":
            choice = TAU_WORDS.get(row.tau_choice, row.tau_choice)
            if row.criteria:
                choice += f", by {words(sorted(row.criteria))}"
            by_choice.setdefault(choice, []).append(row.name)
    if not by_choice:
        return ""
    return (
        "How the taus were chosen: "
        + "; ".join(f"{words(_grids_in_short(n))}: {choice}" for choice, n in by_choice.items())
        + "."
    )


def _grids_in_short(names: Sequence[str]) -> list[str]:
    """Names of rows; those of a grid, such as tau(5, 1) and tau(20, 1), are only counted."""
    grid_of = {name: name.partition("(")[0] for name in names if "(" in name}
    sizes = Counter(grid_of.values())
    short = {name: f"{sizes[grid]} rows of {grid}" for name, grid in grid_of.items()}
    return list(dict.fromkeys(short[n] if sizes[grid_of.get(n, "")] > 2 else n for n in names))


def _all_in_words(differences: Sequence[Difference], metric: Metric) -> list[str]:
    """A sentence a row; of many rows, those where nothing is shown have one together.

    Then upper bounds come last: the first that is read should be something to claim.
    """
    told, gains, bounds = [], [], []
    for one in differences:
        if one.row.oracle:
            bounds.append(_in_words(one, metric))
        elif one.verdict() == NOTHING_SHOWN:
            gains.append(one.mean)
        else:
            told.append(_in_words(one, metric))
    if len(differences) <= MOST_SENTENCES or len(gains) < 2:
        return [_in_words(one, metric) for one in differences]
    low, high = (metric.difference(end, 1) for end in (min(gains), max(gains)))
    together = (
        f"{len(gains)} soft rows lie {low} to {high}{metric.unit} from their hard controls, and "
        "the interval of each holds 0: no difference is shown."
    )
    return [*told, together, *bounds]


def _in_words(one: Difference, metric: Metric) -> str:
    """One soft row in a sentence for somebody who only reads this."""
    low, high = metric.difference(one.low, 1), metric.difference(one.high, 1)
    around = "" if math.isnan(one.low) else f" ({100 * LEVEL:.0f} % interval {low} to {high})"
    verdict = one.verdict(metric.lower_is_better)
    sets = counted(len(one.by_set), "data set")
    text = (
        f"{row_name(one.row)}: {metric.text(one.own_mean)} against {metric.text(one.control_mean)} "
        f"of {one.control.name}, {metric.difference(one.mean, 1)}{metric.unit}{around} on {sets}: "
    )
    if one.row.oracle:
        return f"{text}an upper bound, since the test set chose the taus."
    said = {
        "better": "softness helps.",
        "worse": "softness hurts.",
        NOTHING_SHOWN: "the interval holds 0, so no difference is shown.",
    }
    return text + said.get(verdict, f"{verdict}.")
