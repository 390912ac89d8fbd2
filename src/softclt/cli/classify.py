"""``classify``: labels for series, from labels of all of those learned from, or of a few."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import classify_by_all as by_all
from softclt.cli import options
from softclt.cli.output import (
    TABLE_SUFFIXES,
    Output,
    check_outputs,
    new_table,
    note,
    print_json,
    print_table,
    tell,
    write_table,
)
from softclt.cli.settings import build_model, check_input, with_bars
from softclt.files import whole_file

if TYPE_CHECKING:
    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.data.dataset import Split
    from softclt.data.partial_labels import PartialLabels
    from softclt.few_labels.learning import Learned
    from softclt.reports.classifying import Classifying
    from softclt.reports.labelling import Labelling

FEW = "ts2vec"  # the method where labels are missing


@options.reads_tables
def classify(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Series, some or all of them with labels: a file or a name."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Table of predictions to write: .csv or .parquet.")],
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="Other series to label, instead of those of DATA."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Labels of some ids of DATA: .csv or .parquet with an id and a label column. "
            "Without it, the label column of DATA, which may have empty cells.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="See 'softclt list methods'. By default ts2vec where labels are missing; where "
            "all series have one, SeriesClassifier, unless a classifier, preset or checkpoint is "
            "named."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A pre-trained model instead of a method, e.g. base: nothing is trained but the "
            "classifier; where all series have labels, SeriesClassifier reads it."
        ),
    ] = None,
    classifier: Annotated[
        str,
        typer.Option(
            "--classifier",
            "--probe",
            help="auto; svm, ridge or linear on the embedding; fine-tune or linear-probe in the "
            "network.",
        ),
    ] = "auto",
    preset: options.Preset = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any parameter of the method, or of SeriesClassifier; give it as often as needed.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Page to write: how good it is, labels in doubt or to give next, pictures: .html."
        ),
    ] = None,
    advise: Annotated[
        int,
        typer.Option(
            "--next", min=0, help="With few labels, how many ids to name that are worth a label."
        ),
    ] = 10,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps training; if killed, the same command goes on. With other "
            "labels it starts from what was learned without any."
        ),
    ] = None,
    seed: options.Seed = 0,
    split: options.Split = "train",
    force: options.Force = False,
    safe_csv: options.SafeCsv = False,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """Write a label for each series, and how sure it is: from labels of all others, or of a few.

    With labels of some series of DATA, it learns from all of them without labels, then from the
    labels. Says how accurate that is, by holding labels out, how much ten more would help, and
    which series to label next.

    With a label for each series of DATA, a pre-trained encoder is read by a ridge. Says how
    accurate that is, by leaving each series out, what is confused, and which labels look wrong.
    """
    check_outputs(
        Output(out, TABLE_SUFFIXES),
        Output(report, (".html",), "--report", needs=["matplotlib"]),
        Output(checkpoint, option="--checkpoint", goes_on=True),
        force=force,
        reads=[data, new, labels],
    )
    check_input(data)
    if model is not None and (method is not None or preset is not None):
        raise ValueError("--model comes trained; leave --method and --preset out")
    of_few = classifier != "auto" or any(one is not None for one in (method, preset, checkpoint))
    learner = _learner(method, model, preset, settings, seed) if of_few else None

    from softclt.few_labels.classifier import CLASSIFIERS
    from softclt.validation import check_choice

    check_choice(classifier, CLASSIFIERS, "classifier")
    table, given = _read_labelled(data, labels, columns, split)
    others = None if new is None else _read_new(new, columns, table.channels)
    _warn_of_single_labels(given)
    command = shlex.join(["softclt", *sys.argv[1:]])
    if learner is None and len(given.rows) == len(table):
        reader = by_all.new_classifier(model, settings, seed)
        whole = by_all.classify(reader, data, table, given, others, command)
        page = None if report is None else by_all.page(whole)
        _write(whole, None if new is not None else given, page, out, report, safe_csv)
        if as_json:
            _print_facts(by_all.facts(whole), out, report)
        else:
            by_all.tell(whole, out, report)
        return
    if learner is None:
        learner = _learner(method, model, preset, settings, seed)
    learned = _learn(learner, data, table, given, classifier, checkpoint)
    found = _labelling(learned, table, given, others, advise, seed, command)
    page = None if report is None else _page(found)
    _write(found, None if new is not None else given, page, out, report, safe_csv)
    if as_json:
        _print_facts(_facts(found), out, report)
    else:
        _tell(found, out, report)


def _learner(
    method: str | None,
    model: str | None,
    preset: str | None,
    settings: Sequence[str] | None,
    seed: int,
) -> Any:
    """The method that learns without labels; unfitted."""
    if model is not None:
        method, settings = "pretrained", [f"weights={model}", *(settings or [])]
    return with_bars(build_model(method or FEW, preset, settings, random_state=seed))


def _learn(
    learner: Any,
    data: str,
    table: "SeriesTable",
    given: "PartialLabels",
    classifier: str,
    checkpoint: Path | None,
) -> "Learned":
    from softclt.bench.estimates import training_words
    from softclt.few_labels.learning import learn

    note(
        f"learning with {_name_of(learner)} from {len(table)} series of {data}, then from "
        f"{len(given.rows)} labels{training_words(learner, table.X.shape)}"
    )
    try:
        return learn(
            learner, table.X, given, classifier=classifier, checkpoint=checkpoint, progress=True
        )
    except KeyboardInterrupt as interruption:
        if interruption.args:  # how to go on
            tell(interruption)
        raise


def _labelling(
    learned: "Learned",
    table: "SeriesTable",
    given: "PartialLabels",
    others: "SeriesTable | None",
    advise: int,
    seed: int,
    command: str,
) -> "Labelling":
    """What there is to tell."""
    from softclt.few_labels import Predictions
    from softclt.reports.labelling import Labelling

    shown = table if others is None else others
    predictions = Predictions(learned.model.predict_proba(shown.X))
    return Labelling(
        series=shown,
        predictions=predictions,
        given=given,
        trained_on=table,
        study=learned.study(seed, True),
        next_rows=learned.next_rows(predictions, advise, None if others is None else others.X),
        learned=_words(learned),
        saw_labels=learned.saw_labels,
        command=command,
    )


def _write(
    found: "Labelling | Classifying",
    given: "PartialLabels | None",
    page: str | None,
    out: Path,
    report: Path | None,
    safe_csv: bool,
) -> None:
    """The table of predictions, with the labels of the same series where there are any; a page."""
    classes: list[str] = found.given.classes.tolist()
    names = None
    if given is not None:
        names = [classes[code] if code >= 0 else None for code in given.codes]
    write_table(found.predictions.table(found.series.ids, classes, names), out, safe_csv)
    if report is not None and page is not None:
        with whole_file(report) as temporary:
            temporary.write_text(page, encoding="utf-8")


def _print_facts(facts: dict[str, Any], out: Path, report: Path | None) -> None:
    print_json({"out": str(out), "report": None if report is None else str(report), **facts})


def _read_labelled(
    data: str, labels: Path | None, columns: "Columns", split: "Split"
) -> tuple["SeriesTable", "PartialLabels"]:
    """The series, and the labels that a table of their own or a column of theirs gives."""
    from softclt.data import DataError
    from softclt.data.label_tables import labels_by_id, labels_of, read_partly_labelled

    if labels is None:
        table, own = read_partly_labelled(data, split=split, **columns)
        if own is None:
            raise ValueError(
                f"{data} has no labels; give them with --labels, or name their column with --label"
            )
        return table, labels_of(own, data)
    try:
        table, _ = read_partly_labelled(data, split=split, **columns)
    except DataError:
        if not columns["label"]:
            raise
        unnamed: Columns = {**columns, "label": None}  # the label column is that of --labels
        table, _ = read_partly_labelled(data, split=split, **unnamed)
    found = labels_by_id(labels, table.ids, id=columns["id"], label=columns["label"])
    return table, labels_of(found, str(labels))


def _read_new(new: str, columns: "Columns", channels: list[str] | None) -> "SeriesTable":
    """Series to label: the channels of the training table, whether or not labels are there, too."""
    from softclt.data import DataError
    from softclt.data.label_tables import read_partly_labelled

    columns = columns.copy()
    if channels is not None:
        columns["values"] = channels
    try:
        return read_partly_labelled(new, split="test", **columns)[0]
    except DataError:
        if columns["label"] is None:
            raise
        columns["label"] = None
        return read_partly_labelled(new, split="test", **columns)[0]


def _warn_of_single_labels(given: "PartialLabels") -> None:
    alone = [name for name, n in zip(given.classes, given.counts, strict=True) if n == 1]
    if alone:
        named = ", ".join(map(repr, alone[:5])) + (", ..." if len(alone) > 5 else "")
        tell(f"one label only for {named}; a second one makes a class testable, too")


def _name_of(learner: Any) -> str:
    from softclt.methods import methods

    return methods.name_of(type(learner))


def _words(learned: "Learned") -> str:
    model, method = learned.model, _name_of(learned.first)
    if model.classifier != "auto":
        return f"{method} with {model.classifier}"
    return method if learned.saw_labels else f"{method} with {learned.reader}"


def _page(found: "Labelling") -> str:
    from softclt.reports.labelling import labelling_report
    from softclt.reports.page import html

    return html(labelling_report(found))


def _facts(found: "Labelling") -> dict[str, Any]:
    """The report in numbers."""
    from softclt.reports.labelling import MORE, summary

    study, classes = found.study, found.given.classes
    facts: dict[str, Any] = {
        "series": len(found.series),
        "labels": len(found.given.rows),
        "classes": classes,
        "given": dict(zip(classes, found.given.counts.tolist(), strict=True)),
        "predicted": dict(zip(classes, found.predictions.counts.tolist(), strict=True)),
        "label_next": [str(found.series.ids[row]) for row in found.next_rows],
        "summary": summary(found),
        "accuracy": None,
        "learning_curve": [],
        "more_labels": None,
    }
    if study is not None:
        held_out = study.accuracy
        facts["accuracy"] = vars(held_out) | {
            "spread": study.spread,
            "tells": study.tells,
            "folds": study.folds,
            "repeats": study.right.shape[1],
            "tested": len(study.rows),
        }
        facts["learning_curve"] = [
            {"labels": int(size), "accuracy": float(own.mean()), "spread": float(own.std())}
            for size, own in zip(study.sizes, study.accuracies, strict=True)
        ]
        gain = study.gain(MORE)
        facts["more_labels"] = None if gain is None else {"labels": MORE, **vars(gain)}
    return facts


def _tell(found: "Labelling", out: Path, report: Path | None) -> None:
    from softclt.reports.labelling import summary

    table = new_table("class", numbers=("labels", "predicted", "confidence"))
    codes, confidence = found.predictions.codes, found.predictions.confidence
    for code, name in enumerate(found.given.classes):
        own = codes == code
        mean = f"{confidence[own].mean():.2f}" if own.any() else ""
        table.add_row(name, str(found.given.counts[code]), str(own.sum()), mean)
    drawn = "" if report is None else f" The report is {report}."
    print_table(
        table,
        f"{len(found.series)} series labelled by {found.learned}",
        *summary(found),
        f"All predictions are in {out}.{drawn}",
    )
