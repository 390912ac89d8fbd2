"""A report on labels given, predicted and worth giving next."""

from dataclasses import dataclass

import numpy as np

from softclt.data import SeriesTable
from softclt.data.partial_labels import PartialLabels
from softclt.few_labels import LabelStudy, Predictions
from softclt.few_labels.study import GAIN_TOO_WIDE
from softclt.reports.document import Cell, Column, Document, Grid, Line, Section, number, words
from softclt.reports.labelling_figures import (
    certain_figure,
    channel_words,
    curve_figure,
    series_figure,
)
from softclt.validation import Ints

MORE = 10  # labels whose worth is told
DOUBTED = 20  # given labels that the page names at most


@dataclass(frozen=True, eq=False)
class Labelling:
    """What there is to tell.

    Attributes:
        series: The series that were labelled, ``N`` of them.
        predictions: For them.
        given: The labels learned from.
        trained_on: The series that `given` is about; ``series`` itself, unless they are new.
        study: Of the given labels; None where they are too few for any.
        next_rows: Rows of ``series`` to label next.
        learned: How the predictions were made, in a few words.
        saw_labels: Whether the network that predicts has been trained with the labels, too.
        command: That makes it all again.
    """

    series: SeriesTable
    predictions: Predictions
    given: PartialLabels
    trained_on: SeriesTable
    study: LabelStudy | None
    next_rows: Ints
    learned: str
    saw_labels: bool = False
    command: str = ""


def labelling_report(found: Labelling) -> Document:
    """Sections in the order of a person's questions: how good, what next, what came out."""
    n, given = len(found.series), found.given
    subtitle = (
        f"{n:,} series, {len(given.rows):,} labels of {len(given.classes)} classes; {found.learned}"
    )
    sections = [
        Section("Summary", points=tuple(summary(found))),
        _accuracy_section(found),
        _next_section(found),
        predictions_section(
            found.series,
            found.predictions,
            found.given,
            "Confidences rank series by certainty; with few labels they are no calibrated odds.",
        ),
        _doubted_section(found),
        Section("Run it again", code=(found.command,)) if found.command else None,
    ]
    title = f"Labels for {found.series.source or 'series'}"
    return Document(title, subtitle, tuple(filter(None, sections)))


def summary(found: Labelling) -> list[str]:
    """The answers, a sentence each."""
    ids = [str(found.series.ids[row]) for row in found.next_rows]
    lines = [accuracy_words(found.study), gain_words(found.study)]
    if ids:
        shown = ids if len(ids) <= MORE else [*ids[:MORE], f"{len(ids) - MORE} more"]
        lines.append(f"Worth labelling next, the first first: {words(shown)}.")
    return lines


def accuracy_words(study: LabelStudy | None) -> str:
    """How good the labels let predictions be, or that they cannot tell."""
    if study is None:
        return "Accuracy: too few labels to tell; no class has two of them."
    found, n = study.accuracy, len(study.rows)
    ends = f"95 % interval {_percent(found.low)} to {_percent(found.high)} %"
    if not study.tells:
        return (
            f"Accuracy: too few labels to tell. Of {n} labelled series, {_percent(found.value)} % "
            f"were right when held out ({ends})."
        )
    return (
        f"Accuracy: about {_percent(found.value)} %, by cross-validation on {n} labelled series "
        f"({ends}; ± {_percent(study.spread)} from division to division)."
    )


def gain_words(study: LabelStudy | None, more: int = MORE) -> str:
    """How much more labels would help, or that the labels cannot tell."""
    gain = None if study is None else study.gain(more)
    if gain is None:
        return f"{more} more labels: too few labels to tell how much they would help."
    ends = f"{_points(gain.low)} to {_points(gain.high)}"
    if gain.width > GAIN_TOO_WIDE:
        return (
            f"{more} more labels: too few labels to tell how much they would help; anything from "
            f"{ends} points of accuracy is possible."
        )
    if gain.high < 0.01:
        return f"{more} more labels would help by less than 1 point of accuracy."
    return (
        f"{more} more labels, of series drawn at random, would add about {_points(gain.value)} "
        f"points of accuracy (95 % interval {ends})."
    )


def _accuracy_section(found: Labelling) -> Section:
    study, given = found.study, found.given
    if study is None:
        return Section("How good is it?", (accuracy_words(None),))
    names = [given.classes[c] for c in study.untested]
    text = [
        f"The {study.n_labels} labels were divided into {study.folds} parts, "
        f"{study.right.shape[1]} times, at random and with the shares of the classes. Each part "
        "was predicted from the others. The embedding stayed as it is: it was learned without "
        "any label. A little fewer labels are learned from than there are, so the truth may be "
        "slightly better. It holds for series like those that were labelled: if the labelled "
        "ones were picked because they are clear cases, the others are harder.",
    ]
    if found.saw_labels:
        text.append(
            "The network that makes the predictions has learned from the labels as well. What is "
            "measured here is an SVM on its embedding from before it saw any, since every label "
            "held out would be known to the network otherwise."
        )
    if names:
        text.append(f"Not tested, for want of a second label: {words(names)}.")
    caption = (
        "Mean accuracy of held-out labels against the number of labels learned from; the band "
        "is the standard deviation from division to division. It may dip where some classes have "
        "a label more than others."
    )
    gain = study.gain(MORE)
    if gain is not None:
        caption += f" Right: what {MORE} more would give, with its 95 % interval."
    curve = ("Learning curve", caption, curve_figure(study, MORE))
    return Section(
        "How good is it?",
        tuple(text),
        grids=(_recall_grid(found, study),),
        pictures=(curve,),
    )


def _recall_grid(found: Labelling, study: LabelStudy) -> Grid:
    y = found.given.codes[found.given.rows][study.rows]
    right = study.right[-1].mean(axis=0)  # (n,)
    lines = []
    for code, name in enumerate(found.given.classes):
        own = y == code
        share = float(right[own].mean()) if own.any() else np.nan
        count = int(found.given.counts[code])
        cells = (Cell(name), number(str(count), count), number(f"{100 * share:.0f}", share))
        lines.append(Line(cells))
    columns = (Column("class", numeric=False), Column("labels"), Column("found again", below="%"))
    note = "Found again: labels of the class that were right when held out."
    return Grid("By class", columns, tuple(lines), (note,))


def _next_section(found: Labelling) -> Section | None:
    rows, ids = found.next_rows, found.series.ids
    if not len(rows):
        return None
    likely = np.argsort(-found.predictions.probabilities, axis=1, kind="stable")[:, :2]
    names = found.given.classes
    lines = []
    for rank, row in enumerate(rows, 1):
        p = found.predictions.probabilities[row, likely[row]]
        first, second = (names[c] for c in likely[row])
        lines.append(
            Line(
                (
                    Cell(str(ids[row])),
                    number(str(rank), rank),
                    Cell(first),
                    number(f"{p[0]:.2f}", p[0]),
                    Cell(second),
                    number(f"{p[1]:.2f}", p[1]),
                )
            )
        )
    columns = (
        Column("id", numeric=False),
        Column("rank"),
        Column("label now", numeric=False),
        Column("confidence"),
        Column("or", numeric=False),
        Column("its confidence"),
    )
    text = (
        "Series that stand for many others about which little is known: in the midst of their "
        "neighbours, uncertain, and far from what is labelled. Each counts those before it as "
        "labelled, so take them in this order.",
    )
    titles = [f"{rank}. {ids[row]}" for rank, row in enumerate(rows, 1)]
    picture = (
        "Series to label next",
        f"In the order of the table{channel_words(found.series.X)}.",
        series_figure(found.series.X[rows], titles),
    )
    grid = Grid("To label next", columns, tuple(lines))
    return Section("What to label next", text, grids=(grid,), pictures=(picture,))


def predictions_section(
    series: SeriesTable, predictions: Predictions, given: PartialLabels, note: str
) -> Section:
    """How many series of each class there are, how sure that is, and pictures of some.

    Args:
        series: Those that were labelled.
        predictions: For them.
        given: Labels that were learned from.
        note: What confidences are worth.
    """
    predicted, n = predictions.codes, len(series)
    confidence = predictions.confidence
    lines = []
    for code, name in enumerate(given.classes):
        own = predicted == code
        count, labels = int(own.sum()), int(given.counts[code])
        mean = float(confidence[own].mean()) if count else np.nan
        cells = (
            Cell(name),
            number(str(labels), labels),
            number(f"{count:,}", count),
            number(f"{100 * count / n:.1f}", count / n),
            number(f"{mean:.2f}", mean),
        )
        lines.append(Line(cells))
    columns = (
        Column("class", numeric=False),
        Column("labels given"),
        Column("predicted"),
        Column("share", below="%"),
        Column("mean confidence"),
    )
    picture = (
        "Most and least certain series of each class",
        "A row for each class: left its surest series, right its least sure, with id and "
        f"confidence{channel_words(series.X)}.",
        certain_figure(series, predictions, given.classes.tolist()),
    )
    grid = Grid("Classes of the predictions", columns, tuple(lines), (note,))
    return Section("What came out", grids=(grid,), pictures=(picture,))


def _doubted_section(found: Labelling) -> Section | None:
    """Given labels that no division could find again: slips, or rare kinds of their class."""
    if found.study is None:
        return None
    wrong = 1 - found.study.right[-1].mean(axis=0)
    rows = found.study.rows[np.argsort(-wrong, kind="stable")]
    doubted = [int(row) for row in rows[: int((wrong == 1).sum())]][:DOUBTED]
    if not doubted or not found.study.tells:
        return None
    known = found.given.rows
    lines = tuple(
        Line(
            (
                Cell(str(found.trained_on.ids[known[row]])),
                Cell(found.given.classes[found.given.codes[known[row]]]),
            )
        )
        for row in doubted
    )
    columns = (Column("id", numeric=False), Column("label given", numeric=False))
    text = (
        "These labels were never found again when held out: a slip of the hand, or a kind of "
        "series that its class has only once.",
    )
    return Section(
        "Labels to look at again", text, grids=(Grid("Never found again", columns, lines),)
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "−")
