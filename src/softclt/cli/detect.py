"""``detect``: alarms in the series of a file, with a picture of the worst and a page of all."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.output import (
    PICTURE_SUFFIXES,
    TABLE_SUFFIXES,
    Output,
    check_outputs,
    new_table,
    note,
    print_json,
    print_table,
    say,
    tell,
    write_table,
)
from softclt.cli.settings import check_input, check_model, trained_or_new

if TYPE_CHECKING:
    import pandas as pd

    from softclt.anomaly import Alarm, Detection
    from softclt.anomaly.watching import Watch, Watched
    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.reports.alarms import WatchedPanel

SHOWN = 5  # alarms that are printed
HALF = 0.5
WEEK = 7 * 86400  # seconds


@options.reads_tables
def detect(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Table of alarms to write: .csv or .parquet.")],
    train: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.99,
            help="First share of each series to learn from; it is not judged.  [default: 0.5]",
        ),
    ] = None,
    model: options.Trained = None,
    scorer: Annotated[str, typer.Option(help="See 'softclt list scorers'.")] = "patches",
    threshold: Annotated[
        str | None,
        typer.Option(
            help="sigma, conformal, running, spot, dspot; or own: a baseline's decision.  "
            "[default: sigma; running if a scorer takes its model from --model]"
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the worst alarms: .png, .pdf or .svg.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Page with a panel a series to zoom into: .html.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Table of the score of every judged step.")
    ] = None,
    context: Annotated[int, typer.Option(min=1, help="How many steps back a score looks.")] = 200,
    gap: Annotated[
        int, typer.Option(min=0, help="Strange steps at most so far apart are one alarm.")
    ] = 7,
    persist: Annotated[
        str,
        typer.Option(
            metavar="M/N", help="An alarm needs M strange ones of N last steps.", show_default=True
        ),
    ] = "1/1",
    method: options.Method = "ts2vec",
    preset: options.Preset = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You watch machines, loads or sales: find the steps that do not belong, and write alarms.

    Learns from the first half of each series what is normal, and judges the rest. A table without
    an id column is one series. --model base compares patches as that model sees them. With --scorer
    masked or bank, --model learns nothing here: the threshold runs along, and all but the first
    tenth is judged. Severity 1 is just an alarm, 2 is twice as far out.
    """
    check_model(model, preset, settings)
    check_outputs(
        Output(out, TABLE_SUFFIXES),
        Output(plot, PICTURE_SUFFIXES, "--plot"),
        Output(report, (".html",), "--report", needs=["jinja2"]),
        Output(scores, TABLE_SUFFIXES, "--scores"),
        force=force,
        reads=[data],
    )
    check_input(data)
    lasting = _persistence(persist)

    from sklearn.frozen import FrozenEstimator

    from softclt.anomaly.detection import check_threshold
    from softclt.anomaly.scorers import scorers
    from softclt.anomaly.watching import TENTH, Watch, read_watched, worst_first

    cold = model is not None and bool(scorers.tags(scorer).get("model"))
    share = (TENTH if cold else HALF) if train is None else train
    if threshold is None:
        threshold = "running" if cold and train is None else "sigma"
    check_threshold(threshold, scorer)
    table, found, words = read_watched(data, columns)
    for one in words:
        tell(one)
    learner = trained_or_new(model, method, preset, settings, seed, lam=0.0, tau_instance=None)
    how = Watch(
        model=learner if model is None else FrozenEstimator(learner),
        encoder=None if model is None else FrozenEstimator(learner),
        cold=cold,
        share=share,
        scorer=scorer,
        threshold=threshold,
        context=context,
        random_state=None if cold else seed,
    )
    series = _watchable(data, how, found)
    _note_work(how, series, method, data)
    with about(data):
        detections = how.run(series)
    alarms, ranked = worst_first(detections, gap, lasting)
    written = _alarm_table(table, series, detections, alarms)
    write_table(written, out, safe_csv)
    if scores is not None:
        write_table(_score_table(table, series, detections), scores, safe_csv)
    judged = sum(len(detection.scores) for detection in detections)
    weekly = _false_a_week(series, detections, gap, lasting)
    facts = f"{_counted(len(ranked))} in {judged} judged steps. "
    if weekly is not None:
        facts += f"False alarms to expect: at most about {weekly:.3g} a week."
    if plot is not None or report is not None:
        panels = _panels(table, series, detections, alarms)
        _draw(table, panels, plot, report, data, facts)
    if as_json:
        print_json(
            {
                "out": str(out),
                "plot": None if plot is None else str(plot),
                "report": None if report is None else str(report),
                "scores": None if scores is None else str(scores),
                "series": len(series),
                "left_out": len(found) - len(series),
                "judged_steps": judged,
                "false_alarms_a_week": weekly,
                "alarms": written.to_dict("records"),
            }
        )
        return
    _tell(table, series, ranked, judged, out, plot)
    if weekly is not None:
        say(f"False alarms to expect: at most about {weekly:.3g} a week, by the part learned from.")


def _persistence(text: str) -> tuple[int, int]:
    """``3/5`` as two numbers."""
    from softclt.anomaly.events import check_persistence

    least, _, of = text.partition("/")
    try:
        pair = int(least), int(of)
    except ValueError:
        raise ValueError(f"--persist is {text!r}; expected two numbers, e.g. 3/5") from None
    check_persistence(*pair)
    return pair


def _false_a_week(
    series: "list[Watched]",
    detections: "list[Detection]",
    gap: int,
    persist: tuple[int, int],
) -> float | None:
    """Of all series together; None where times are no dates, or nothing was learned."""
    import numpy as np

    total = 0.0
    for one, detection in zip(series, detections, strict=True):
        if one.times.dtype.kind != "M" or len(one.times) < 2:
            return None
        step = float(np.median(np.diff(one.times) / np.timedelta64(1, "s")))
        total += detection.false_alarms_a_step(gap, persist) * WEEK / step
    return None if np.isnan(total) else total


def _watchable(data: str, how: "Watch", found: "list[Watched]") -> "list[Watched]":
    """The series that can be watched; others are named on stderr, or refused if none is left."""
    kept, reasons = [], []
    for one in found:
        title = f"series {one.name!r}" if one.name else "the series"
        if reason := how.refusal(one):
            reasons.append(f"{title} {reason}")
            continue
        kept.append(one)
        if one.words:
            tell(f"{title}: {one.words}")
    if not kept:
        more = f" ({len(reasons) - 1} more cannot be watched, either)" if len(reasons) > 1 else ""
        raise ValueError(f"{data}: {reasons[0]}{more}")
    for reason in reasons:
        tell(f"left out: {reason}")
    return kept


def _note_work(how: "Watch", series: "list[Watched]", method: str, data: str) -> None:
    from softclt.bench.estimates import training_words

    steps = sum(one.values.shape[1] for one in series)
    words = f"scoring {steps} steps of {len(series)} series of {data} with {how.scorer}"
    if how.reads_model and not how.cold:
        longest = max(int(how.share * one.values.shape[1]) for one in series)
        shape = (len(series), len(series[0].values), longest)
        words += f", after fitting {method} on the first {how.share:.0%}"
        words += training_words(how.model, shape)
    note(words)


def _alarm_table(
    table: "SeriesTable",
    series: "list[Watched]",
    detections: "list[Detection]",
    alarms: "list[list[Alarm]]",
) -> "pd.DataFrame":
    """A row for each alarm, in the order of series and time; of several channels, which it is."""
    import pandas as pd

    rows = []
    names_of = table.channels or ()
    explained = any(detection.channels is not None for detection in detections)
    for one, detection, own in zip(series, detections, alarms, strict=True):
        for alarm in own:
            start, end = table.as_written(one.times[[alarm.start, alarm.end]])
            row = {"id": one.name} if table.has_ids else {}
            rows.append(row | {"start": start, "end": end, "severity": round(alarm.severity, 4)})
            rows[-1]["steps"] = alarm.end - alarm.start + 1
            if explained:
                found = detection.explained_by(alarm)
                rows[-1]["channels"] = " ".join(names_of[d] if names_of else str(d) for d in found)
    names = [*(["id"] if table.has_ids else []), "start", "end", "severity", "steps"]
    names += ["channels"] if explained else []
    return pd.DataFrame(rows, columns=names)


def _score_table(
    table: "SeriesTable", series: "list[Watched]", detections: "list[Detection]"
) -> "pd.DataFrame":
    import pandas as pd

    parts = []
    for one, detection in zip(series, detections, strict=True):
        times = table.as_written(one.times[detection.start :])
        part = pd.DataFrame({"time": times, "score": detection.scores, "level": detection.levels})
        part["alarm"] = detection.flags().astype(int)
        if table.has_ids:
            part.insert(0, "id", one.name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _panels(
    table: "SeriesTable",
    series: "list[Watched]",
    detections: "list[Detection]",
    alarms: "list[list[Alarm]]",
) -> "list[WatchedPanel]":
    import numpy as np

    from softclt.reports.alarms import WatchedPanel

    panels = []
    for one, detection, own in zip(series, detections, alarms, strict=True):
        before = np.full(detection.start, np.nan)
        panels.append(
            WatchedPanel(
                title=one.name,
                times=one.times,
                values=one.values,
                scores=np.concatenate([before, detection.scores]),
                levels=np.concatenate([before, detection.levels]),
                start=detection.start,
                alarms=[(alarm.start, alarm.end, alarm.severity) for alarm in own],
                channels=table.channels or (),
            )
        )
    return panels


def _draw(
    table: "SeriesTable",
    panels: "list[WatchedPanel]",
    plot: Path | None,
    report: Path | None,
    data: str,
    facts: str,
) -> None:
    from softclt.files import whole_file
    from softclt.reports.alarms import alarms_figure
    from softclt.reports.alarms_page import alarms_page
    from softclt.reports.figures import save_figure

    note("drawing")
    if plot is not None:
        save_figure(alarms_figure(panels, Path(data).name), plot)
    if report is not None:
        page = alarms_page(panels, Path(data).name, table.as_written, facts)
        with whole_file(report) as temporary:
            temporary.write_text(page, encoding="utf-8")


def _counted(n: int) -> str:
    return f"{n} alarm{'' if n == 1 else 's'}"


def _tell(
    table: "SeriesTable",
    series: "list[Watched]",
    ranked: "list[tuple[int, Alarm]]",
    judged: int,
    out: Path,
    plot: Path | None,
) -> None:
    drawn = "" if plot is None else f", drawn in {plot}"
    words = f"{_counted(len(ranked))} in {judged} steps"
    if not ranked:
        say(f"{words}: nothing is strange here; an empty table is in {out}{drawn}")
        return
    series_column = ["series"] if table.has_ids else []
    worst = new_table(*series_column, "start", "end", numbers=["severity"])
    for i, alarm in ranked[:SHOWN]:
        times = table.as_written(series[i].times[[alarm.start, alarm.end]])
        name = [series[i].name] if table.has_ids else []
        worst.add_row(*name, *map(str, times), f"{alarm.severity:.2f}")
    shown = "the worst first" if len(ranked) <= SHOWN else f"the worst {SHOWN}"
    print_table(worst, f"{words}, {shown}", f"All are in {out}{drawn}.")
