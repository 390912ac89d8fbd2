"""``classify`` where all series have labels: nothing is trained, and each label is tested."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softclt.cli.output import new_table, note, print_table
from softclt.cli.settings import parse_settings, with_bars

if TYPE_CHECKING:
    from softclt.classification import SeriesClassifier
    from softclt.data import SeriesTable
    from softclt.data.partial_labels import PartialLabels
    from softclt.reports.classifying import Classifying

WIDEST = 8  # classes of a confusion that is printed


def new_classifier(
    model: str | None, settings: Sequence[str] | None, seed: int
) -> "SeriesClassifier":
    """An unfitted classifier that reads a pre-trained model, with what ``--set`` says."""
    import inspect

    from softclt.classification import SeriesClassifier
    from softclt.validation import check_known

    given = parse_settings(settings)
    known = list(inspect.signature(SeriesClassifier).parameters)
    of = "all series have labels, so SeriesClassifier learns from them (or name a --method); it"
    check_known(given, known, of, "parameter")
    if model is not None:
        given = {"encoder": model} | given
    asked: SeriesClassifier = with_bars(SeriesClassifier(**{"random_state": seed} | given))
    return asked


def classify(
    model: "SeriesClassifier",
    data: str,
    table: "SeriesTable",
    given: "PartialLabels",
    new: "SeriesTable | None",
    command: str,
) -> "Classifying":
    """Learn from all series and their labels; the classes of new ones, or of these left out."""
    from softclt.few_labels import Predictions
    from softclt.reports.classifying import Classifying

    note(f"learning with SeriesClassifier from {len(table)} series of {data}, all with labels")
    model.fit(table.X, given.codes)
    assert model.left_out_ is not None
    said = model.left_out_.probabilities if new is None else model.predict_proba(new.X)
    return Classifying(
        series=table if new is None else new,
        predictions=Predictions(said),
        given=given,
        trained_on=table,
        left_out=model.left_out_,
        learned=f"SeriesClassifier, features {' + '.join(model.features_)} of {model.encoder}",
        command=command,
    )


def page(found: "Classifying") -> str:
    """The report as one HTML file."""
    from softclt.reports.classifying import classifying_report
    from softclt.reports.page import html

    return html(classifying_report(found))


def facts(found: "Classifying") -> dict[str, Any]:
    """The report in numbers."""
    from softclt.reports.classifying import summary

    left_out, classes = found.left_out, found.given.classes.tolist()
    accuracy, told = left_out.accuracy, left_out.reliability
    margins, said = left_out.margins, left_out.said
    return {
        "series": len(found.series),
        "labels": len(found.given.rows),
        "classes": classes,
        "given": dict(zip(classes, found.given.counts.tolist(), strict=True)),
        "predicted": dict(zip(classes, found.predictions.counts.tolist(), strict=True)),
        "summary": summary(found),
        "accuracy": None
        if accuracy is None
        else vars(accuracy) | {"tested": len(left_out.counted)},
        "calibration_error": None if told is None else told.ece,
        "confusion": left_out.confusion.tolist(),
        "in_doubt": [
            {
                "id": str(found.trained_on.ids[row]),
                "given": classes[left_out.codes[row]],
                "said": classes[said[row]],
                "margin": float(margins[row]),
            }
            for row in left_out.suspects
        ],
    }


def tell(found: "Classifying", out: Path, report: Path | None) -> None:
    """The result for a person."""
    from softclt.reports.classifying import summary

    left_out, names = found.left_out, found.given.classes.tolist()
    counts, predicted = left_out.confusion, found.predictions.counts
    shown = names if len(names) <= WIDEST else []
    table = new_table(
        "class", numbers=("labels", "predicted", "found again", *(f"as {name}" for name in shown))
    )
    for code, name in enumerate(names):
        tested = int(counts[code].sum())
        again = f"{100 * counts[code, code] / tested:.0f} %" if tested else ""
        as_others = [str(n) for n in counts[code]] if shown else []
        table.add_row(name, str(found.given.counts[code]), str(predicted[code]), again, *as_others)
    drawn = "" if report is None else f" The report is {report}."
    print_table(
        table,
        f"{len(found.series)} series classified by {found.learned}",
        *summary(found),
        f"All predictions are in {out}.{drawn}",
    )
