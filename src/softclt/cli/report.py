"""``report``: what results say, as a page, a document or a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softclt.cli import options
from softclt.cli.errors import about, command_line
from softclt.cli.output import Output, check_outputs, note, print_json, say
from softclt.reports.document import FORMATS, pictures_folder

if TYPE_CHECKING:
    from softclt.reports.analysis import Analysis, Difference

RESULTS = Path("results")


def report(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULTS",
            help="Files of JSON lines, or folders of them.  [default: results]",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help=f"What to write: {', '.join(FORMATS)}.")] = Path(
        "report.html"
    ),
    baselines: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="CSV of published scores; give it as often as needed."),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these methods of the baselines."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="As the results call it; what the task looks at first if left out.",
        ),
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only results of these suites.")
    ] = None,
    interval: Annotated[
        Literal["t", "bootstrap"], typer.Option(help="How intervals over data sets are made.")
    ] = "t",
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Add a figure of the gallery; may train small models."),
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw what the results show.")
    ] = True,
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
) -> None:
    """You have results and want to know what they say: means, ranks, intervals, tests, figures.

    Every soft row is set against its own hard control first. Rows whose taus were chosen on the
    test set are marked and never ranked. Failed and missing runs are listed, not averaged.
    """
    pictured = (figures or bool(figure)) and out.suffix != ".csv"
    paths = results or [RESULTS]
    beside = pictured and out.suffix in (".md", ".tex")
    check_outputs(
        Output(out, FORMATS, needs=["matplotlib"] if pictured else []),
        Output(pictures_folder(out) if beside else None, option="--out: its figures in"),
        force=force,
        reads=[*paths, *(baselines or ())],
    )
    if not results and not RESULTS.exists():
        raise ValueError(
            f"there is no {RESULTS}/ here; run 'softclt bench quick' first, or name your results"
        )

    from softclt.bench.asked import read_asked
    from softclt.reports.report import build_report, read_folder, write_report

    found = [result for path in paths for result in read_folder(path)]
    note(f"{len(found)} results in {', '.join(map(str, paths))}; the report goes into {out}")
    asked: dict[str, Any] = {
        "metric": metric,
        "suites": suite or (),
        "baselines": baselines or (),
        "peers": peer or (),
        "interval": interval,
        "command": command_line(),
        "asked": [one for path in paths for one in read_asked(path)],
    }
    pictures: list[Any] = []
    with about(", ".join(map(str, paths))):
        if figure:
            build_report(found, **asked, drawn=False)  # refuses before models are trained
            from softclt.reports.figures import figures_for_page

            pictures = list(figures_for_page(figure))
        drawn = figures and out.suffix != ".csv"
        made = build_report(found, **asked, figures=pictures, drawn=drawn)
    write_report(made, out, safe_csv)
    if as_json:
        print_json({"out": str(out), "parts": [_numbers(part) for part in made.analyses]})
        return
    for section in made.document.sections:
        if section.title.startswith("Summary"):
            say("\n".join([section.title, *section.text, *section.points, ""]))
    say(f"report: {out}")


def _numbers(analysis: "Analysis") -> dict[str, Any]:
    rows = []
    for row in analysis.table.rows:
        summary = analysis.summary(row)
        rows.append(
            {
                "row": row.name,
                "tau_choice": row.tau_choice,
                "published": row.published,
                "mean": summary and summary.mean,
                "spread": summary and summary.spread,
                "rank": analysis.ranks.get(row.name),
                "sets": len(analysis.sets_of(row)),
            }
        )
    return {
        "suite": analysis.table.suite,
        "task": analysis.table.task,
        "metric": analysis.table.metric,
        "common_sets": len(analysis.common),
        "rows": rows,
        "against_control": [_difference(one) for one in analysis.differences],
        "failed": len(analysis.table.failed),
    }


def _difference(one: "Difference") -> dict[str, Any]:
    names = ("mean", "spread", "low", "high", "wins", "ties", "losses", "p")
    numbers = {name: getattr(one, name) for name in names}
    return {"row": one.row.name, "control": one.control.name, "sets": len(one.by_set), **numbers}
