"""From files of results to a report: `softclt report`."""

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from softclt.bench.asked import Asked, never_ran
from softclt.files import whole_file
from softclt.reports.analysis import Analysis
from softclt.reports.baselines import read_baselines
from softclt.reports.comparison import figures_section
from softclt.reports.details import (
    again_section,
    every_set_section,
    failures_section,
    groups_section,
    pairs_section,
)
from softclt.reports.document import FORMATS, Document, Picture, Section
from softclt.reports.long_table import long_csv
from softclt.reports.metric import Metric
from softclt.reports.page import html
from softclt.reports.pictures import save_pictures
from softclt.reports.plain import latex, markdown
from softclt.reports.rows import tabulate
from softclt.reports.standings import overall_section
from softclt.reports.statistics import INTERVALS
from softclt.reports.summary import summary_section
from softclt.tasks.result import Result, open_lines, read_results
from softclt.validation import check_choice

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """A document and the numbers behind it."""

    document: Document
    analyses: tuple[Analysis, ...]


def read_folder(path: str | os.PathLike[str]) -> list[Result]:
    """All results of a file, or of the ``.jsonl`` and ``.jsonl.gz`` files in a folder and below.

    In a folder a file whose first line is no result is passed over with a warning.
    """
    path = Path(path)
    if not path.is_dir():
        return read_results(path)
    results = []
    for file in sorted([*path.rglob("*.jsonl"), *path.rglob("*.jsonl.gz")]):
        with open_lines(file) as lines:
            first = lines.readline()
        try:
            Result.from_json(first.decode())
        except ValueError:
            log.warning("%s holds no results; passed over", file)
            continue
        results += read_results(file)
    return results


def build_report(
    results: Iterable[Result],
    *,
    metric: str | None = None,
    suites: Sequence[str] = (),
    baselines: Iterable[str | os.PathLike[str]] = (),
    peers: Sequence[str] = (),
    interval: str = "t",
    command: str = "",
    asked: Sequence[Asked] = (),
    figures: Sequence[Picture] = (),
    drawn: bool = True,
) -> Report:
    """Tables, statistics and figures of results.

    Args:
        results: Of one or several suites; each suite and task gets its own sections.
        metric: None is what each task looks at first. With ``<probe>.<metric>`` for several probes,
            every probe is a row of its own.
        suites: Only these, where given.
        baselines: CSV files with published scores, see `read_baselines`.
        peers: Only these methods of the baselines.
        interval: ``"t"`` or ``"bootstrap"``.
        command: How to make this report again.
        asked: What benches were asked for, see `read_asked`: rows and sets that never ran are told.
        figures: More pictures: title, caption, and a figure or the text of an SVG.
        drawn: Whether the critical-difference diagram and the scatter plots are made.
    """
    check_choice(interval, INTERVALS, "interval")
    results = list(results)
    if suites:
        known = sorted({result.suite for result in results})
        if unknown := [suite for suite in suites if suite not in known]:
            raise ValueError(
                f"no result belongs to the suite {', '.join(unknown)}; "
                f"there are {', '.join(name or '(none)' for name in known)}"
            )
        results = [result for result in results if result.suite in suites]
    if not results:
        raise ValueError("there are no results; run 'softclt bench' or 'softclt evaluate' first")
    baselines = list(baselines)
    analyses = []
    for table in tabulate(results, metric):
        unit = Metric(table.metric)
        own = {row.name for row in table.rows}
        for row in read_baselines(baselines, table.datasets, unit, peers):
            if row.name in own:
                row.name = f"{row.name} ({row.source})"
            table.rows.append(row)
        analyses.append(Analysis(table, unit, interval))
    sections: list[Section | None] = []
    for analysis in analyses:
        suite, task = analysis.table.suite or "no suite", analysis.table.task
        name = f": {suite}, {task}" if len(analyses) > 1 else ""
        sections += _sections(analysis, name, drawn)
    if figures:
        sections.append(Section("More figures", pictures=tuple(figures)))
    of_these = [one for one in asked if not suites or one.suite in suites]
    gaps = never_ran(of_these, results)
    commands = [one.command for one in of_these]
    sections += [failures_section(analyses, gaps), again_section(results, [*commands, command])]
    return Report(
        Document(_title(analyses), _subtitle(results, analyses), tuple(filter(None, sections))),
        tuple(analyses),
    )


def write_report(report: Report, path: str | os.PathLike[str], safe_csv: bool = False) -> None:
    """Write a report whole or not at all; the suffix decides the format.

    Markdown and LaTeX get their figures in a folder beside them, ``<name>-figures``.

    Args:
        report: What to write.
        path: The file.
        safe_csv: Whether texts of a CSV that a spreadsheet would compute get an apostrophe.
    """
    path = Path(path)
    check_choice(path.suffix, FORMATS, "the suffix of the report")
    if path.suffix == ".html":
        text = html(report.document)
    elif path.suffix == ".csv":
        text = long_csv(report.analyses, safe_csv)
    else:
        suffix, write = (".svg", markdown) if path.suffix == ".md" else (".pdf", latex)
        text = write(report.document, save_pictures(report.document, path, suffix))
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _sections(analysis: Analysis, name: str, drawn: bool) -> list[Section | None]:
    if not analysis.table.datasets:
        return [Section(f"Summary{name}", ("Every run failed; see below.",))]
    pictures: Section | None = None
    if drawn:
        pictures = figures_section(analysis, name)
    return [
        summary_section(analysis, name),
        overall_section(analysis, name),
        pictures,
        groups_section(analysis, name),
        every_set_section(analysis, name),
        pairs_section(analysis, name),
    ]


def _title(analyses: Sequence[Analysis]) -> str:
    suites = [analysis.table.suite for analysis in analyses if analysis.table.suite]
    tasks = [analysis.table.task for analysis in analyses]
    return "Report on " + ", ".join(dict.fromkeys(suites or tasks))


def _subtitle(results: Sequence[Result], analyses: Sequence[Analysis]) -> str:
    sets = {name for analysis in analyses for name in analysis.table.datasets}
    newest = max(result.created for result in results)[:10]
    return (
        f"{len(results):,} runs on {len(sets)} data sets, {analyses[0].metric.about}; "
        f"last run {newest}"
    )
