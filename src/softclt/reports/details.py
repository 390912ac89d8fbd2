"""The rest of a report: every data set, groups, all pairs, what failed, how to run it again."""

import math
from collections.abc import Iterable, Sequence

from softclt.reports.analysis import LEVEL, Analysis, in_order
from softclt.reports.document import Cell, Column, Grid, Line, Section, number, words
from softclt.reports.rows import Row
from softclt.reports.statistics import Summary
from softclt.reports.wording import (
    INTERVAL_WORDS,
    mean_cell,
    oracle_notes,
    p_text,
    row_kind,
    row_name,
    tau_text,
)
from softclt.tasks.result import Result

MOST_PUBLISHED = 12  # columns of other people's methods that a table of all data sets can bear
MOST_PAIRED = 25
_FULL_HEAT = 0.05  # a difference of 5 points has the strongest tint


def every_set_section(analysis: Analysis, name: str) -> Section:
    """A line for each data set: all rows, then soft minus control."""
    metric, table = analysis.metric, analysis.table
    shown = in_order(table.rows, analysis)
    published = [row for row in shown if row.published]
    if hidden := len(published) > MOST_PUBLISHED:
        shown = [row for row in shown if not row.published]
    honest = [one for one in analysis.differences if not one.row.oracle]
    lines = [_set_line(analysis, dataset, shown) for dataset in table.datasets]
    total: list[Cell] = [Cell(f"mean of {len(analysis.common)} common sets")]
    for row in shown:
        summary = analysis.summary(row)
        whole = summary is not None and len(analysis.sets_of(row)) == len(analysis.common)
        mean = summary.mean if summary is not None and whole else math.nan
        total.append(number(metric.text(mean), mean))
    total += [number(metric.difference(one.mean), one.mean) for one in honest]
    lines.append(Line(tuple(total), "total"))
    columns = [Column("data set", numeric=False)]
    columns += [
        Column(row_name(row), below=f"tau {tau_text(row)}", kind=row_kind(row)) for row in shown
    ]
    columns += [
        Column(f"Δ {one.row.name}", below=f"− {one.control.name}", about="soft minus its control")
        for one in honest
    ]
    notes = ["Mean ± standard deviation over seeds. A gap is a run that is missing."]
    if honest:
        notes.append("Δ is paired by seed; its mean is over the sets that the two rows share.")
    if hidden:
        notes.append(
            f"{len(published)} published methods are left out here; the .csv has them, and "
            "--peer picks some."
        )
    notes += oracle_notes(shown)
    grid = Grid(f"Every data set: {metric.about}", tuple(columns), tuple(lines), tuple(notes))
    return Section(f"Every data set{name}", grids=(grid,))


def _set_line(analysis: Analysis, dataset: str, shown: Sequence[Row]) -> Line:
    metric = analysis.metric
    means = {row.name: row.mean(dataset) for row in shown if dataset in row.scores}
    own = [v for n, v in means.items() if n not in analysis.alone]
    best = (min if metric.lower_is_better else max)(own) if len(own) > 1 else math.nan
    cells = [Cell(dataset)]
    for row in shown:
        if dataset not in row.scores:
            cells.append(Cell(""))
            continue
        mean, spread = means[row.name], Summary.of(list(row.scores[dataset].values())).spread
        strong = abs(mean - best) < 1e-9 and row.name not in analysis.alone
        cells.append(number(metric.with_spread(mean, spread), mean, strong=strong))
    for one in analysis.differences:
        if one.row.oracle:
            continue
        value = one.by_set.get(dataset, math.nan)
        sign = -1 if metric.lower_is_better else 1
        heat = sign * max(-1.0, min(1.0, value / _FULL_HEAT)) if metric.percent else math.nan
        cells.append(number(metric.difference(value), value, heat=heat))
    return Line(tuple(cells))


def groups_section(analysis: Analysis, name: str) -> Section | None:
    """Means by kind of data set, and what softness adds in each."""
    metric = analysis.metric
    grids = []
    for kind, groups in analysis.groups.items():
        columns = [Column("row", numeric=False), Column("tau", numeric=False)]
        columns += [
            Column(group, below=f"{len([n for n in names if n in analysis.common])} sets")
            for group, names in groups.items()
        ]
        columns += [Column(f"Δ {group}", below="minus control") for group in groups]
        lines = []
        for row in in_order(analysis.table.rows, analysis):
            cells = [Cell(row_name(row)), Cell(tau_text(row))]
            cells += [mean_cell(analysis, row, names) for names in groups.values()]
            control = analysis.table.row(row.control) if row.control else None
            for names in groups.values():
                one = analysis.difference(row, control, names) if control else None
                if one is None:
                    cells.append(Cell(""))
                    continue
                around = f" ({metric.difference(one.low)} to {metric.difference(one.high)})"
                around = "" if math.isnan(one.low) else around
                cells.append(number(metric.difference(one.mean) + around, one.mean))
            lines.append(Line(tuple(cells), row_kind(row)))
        notes = [
            "Means over the common sets of each group. Δ: soft minus its control, with its "
            f"{100 * LEVEL:.0f} % interval, {INTERVAL_WORDS[analysis.interval_method]}; groups "
            "were not tested against each other."
        ]
        notes += oracle_notes(analysis.table.rows)
        grids.append(Grid(f"By {kind}", tuple(columns), tuple(lines), tuple(notes)))
    return Section(f"Kinds of data sets{name}", grids=tuple(grids)) if grids else None


def pairs_section(analysis: Analysis, name: str) -> Section | None:
    """p-values between all compared rows."""
    rows = in_order(analysis.compared, analysis)
    if len(rows) < 3 or len(rows) > MOST_PAIRED or len(analysis.common) < 2:
        return None
    at = {row.name: i for i, row in enumerate(analysis.compared)}
    lines = []
    for row in rows:
        cells = [Cell(row.name), Cell(tau_text(row))]
        for other in rows:
            p = math.nan if other is row else float(analysis.p_values[at[row.name], at[other.name]])
            cells.append(number(p_text(p), p, strong=p < 1 - LEVEL))
        lines.append(Line(tuple(cells), row_kind(row)))
    n_pairs = len(rows) * (len(rows) - 1) // 2
    grid = Grid(
        "p-values of all pairs",
        (
            Column("row", numeric=False),
            Column("tau", numeric=False),
            *(Column(row.name) for row in rows),
        ),
        tuple(lines),
        (
            f"Two-sided Wilcoxon signed-rank test over {len(analysis.common)} data sets, with "
            f"Holm's correction over all {n_pairs} pairs. Below {1 - LEVEL:.2f} in bold.",
        ),
        folded=True,
    )
    return Section(f"All pairs{name}", grids=(grid,))


def failures_section(analyses: Sequence[Analysis], never_ran: Sequence[str]) -> Section | None:
    """Runs without a score, combinations that are missing, and sentences on what never ran."""
    failed = [result for analysis in analyses for result in analysis.table.failed]
    points = list(never_ran)
    for analysis in analyses:
        points += _gaps(analysis)
        if analysis.table.replaced:
            points.append(
                f"{analysis.table.replaced} results were run again later with the same row, data "
                "set and seed: the later one counts."
            )
        points += _changed_data(analysis.table.results)
    grids = []
    if failed:
        columns = ("suite", "row", "data set", "tau", "seed", "why")
        lines = [
            Line(
                (
                    Cell(result.suite),
                    Cell(result.configuration or result.method),
                    Cell(result.dataset),
                    Cell(result.tau_choice),
                    Cell(str(result.seed), result.seed),
                    Cell(result.error or "no finite score"),
                )
            )
            for result in failed
        ]
        grids.append(
            Grid(
                f"{len(failed)} failed runs: in no mean",
                tuple(Column(name, numeric=name == "seed") for name in columns),
                tuple(lines),
            )
        )
    if not (grids or points):
        return None
    return Section("Failed and missing runs", points=tuple(points), grids=tuple(grids))


def _gaps(analysis: Analysis) -> list[str]:
    """Sentences on rows that lack data sets or seeds which other rows of ours have."""
    own = [row for row in analysis.table.rows if not row.published]
    seeds = {s for row in own for found in row.scores.values() for s in found}
    sentences = []
    for row in own:
        missing = [name for name in analysis.table.datasets if name not in row.scores]
        thin = [name for name, found in row.scores.items() if len(found) < len(seeds)]
        if missing:
            sentences.append(f"{row.name} lacks {_some(missing)}.")
        if thin:
            sentences.append(f"{row.name} has fewer than {len(seeds)} seeds on {_some(thin)}.")
    return sentences


def _some(names: Sequence[str], most: int = 8) -> str:
    if len(names) <= most:
        return words(list(names))
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def _changed_data(results: Iterable[Result]) -> list[str]:
    """A warning for each data set that is not the same in all runs."""
    prints: dict[str, set[str]] = {}
    for result in results:
        if result.fingerprint:
            prints.setdefault(result.dataset, set()).add(result.fingerprint)
    return [
        f"Warning: {name} was not the same data in all runs (fingerprints "
        f"{words(sorted(found))}), so its scores cannot be compared."
        for name, found in prints.items()
        if len(found) > 1
    ]


def again_section(results: Sequence[Result], commands: Sequence[str]) -> Section:
    """Commands that were typed, versions, devices, seeds and fingerprints."""
    seeds = sorted({result.seed for result in results})
    versions: dict[str, set[str]] = {}
    for result in results:
        for package, version in result.versions.items():
            versions.setdefault(package, set()).add(version)
    dates = sorted(result.created for result in results)
    devices = sorted({result.device for result in results if result.device})
    facts = [
        ("runs", str(len(results))),
        ("seeds", ", ".join(map(str, seeds))),
        ("devices", ", ".join(devices)),
        *((package, ", ".join(sorted(found))) for package, found in sorted(versions.items())),
        ("first run", dates[0] if dates else ""),
        ("last run", dates[-1] if dates else ""),
    ]
    facts_grid = Grid(
        "What the runs say about themselves",
        (Column("what", numeric=False), Column("value", numeric=False)),
        tuple(Line((Cell(key), Cell(value))) for key, value in facts if value),
    )
    prints = {(result.dataset, result.fingerprint) for result in results if result.fingerprint}
    prints_grid = Grid(
        f"Fingerprints of {len(prints)} data sets",
        (Column("data set", numeric=False), Column("fingerprint", numeric=False)),
        tuple(Line((Cell(name), Cell(text))) for name, text in sorted(prints)),
        folded=True,
    )
    grids = (facts_grid, prints_grid) if prints else (facts_grid,)
    text = (
        "Every line of the results holds all parameters, the seed, the seconds and the versions "
        "of its run.",
    )
    return Section(
        "How to run it again", text, grids=grids, code=tuple(dict.fromkeys(filter(None, commands)))
    )
