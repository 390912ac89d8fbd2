"""A report on a classifier of labelled series: how good it is, and which labels look wrong."""

from dataclasses import dataclass

import numpy as np

from softclt.classification import LeftOut
from softclt.data import SeriesTable
from softclt.data.partial_labels import PartialLabels
from softclt.few_labels import Predictions
from softclt.reports.classifying_figures import reliability_figure
from softclt.reports.document import Cell, Column, Document, Grid, Line, Section, number, words
from softclt.reports.labelling import predictions_section
from softclt.reports.labelling_figures import channel_words, series_figure

NAMED = 5  # suspects in the summary
LISTED = 20  # suspects on the page
DRAWN = 10
MOST_CLASSES = 40  # of a confusion that is shown in full


@dataclass(frozen=True, eq=False)
class Classifying:
    """What there is to tell.

    Attributes:
        series: The series that were classified, ``N`` of them.
        predictions: For them.
        given: The labels learned from, one for each series of `trained_on`.
        trained_on: The series learned from; ``series`` itself, unless they are new.
        left_out: What was said of the series learned from, each left out.
        learned: How the predictions were made, in a few words.
        command: That makes it all again.
    """

    series: SeriesTable
    predictions: Predictions
    given: PartialLabels
    trained_on: SeriesTable
    left_out: LeftOut
    learned: str
    command: str = ""


def classifying_report(found: Classifying) -> Document:
    """Sections in the order of a person's questions: how good, what is wrong, what came out."""
    given = found.given
    subtitle = (
        f"{len(found.series):,} series, {len(given.rows):,} labels of {len(given.classes)} "
        f"classes; {found.learned}"
    )
    sections = [
        Section("Summary", points=tuple(summary(found))),
        _accuracy_section(found),
        _suspects_section(found),
        predictions_section(found.series, found.predictions, given, _confidence_words(found)),
        Section("Run it again", code=(found.command,)) if found.command else None,
    ]
    title = f"Classes of {found.series.source or 'series'}"
    return Document(title, subtitle, tuple(filter(None, sections)))


def summary(found: Classifying) -> list[str]:
    """The answers, a sentence each."""
    lines = [accuracy_words(found.left_out), *_confusion_words(found)]
    suspects = found.left_out.suspects
    if len(suspects):
        ids = [str(found.trained_on.ids[row]) for row in suspects[:NAMED]]
        if len(suspects) > NAMED:
            ids.append(f"{len(suspects) - NAMED:,} more")
        lines.append(f"Labels to look at again, the most doubtful first: {words(ids)}.")
    return lines


def accuracy_words(left_out: LeftOut) -> str:
    """How good the classifier is, or that the labels cannot tell."""
    found = left_out.accuracy
    if found is None:
        return "Accuracy: too few labels to tell; no class has two of them."
    return (
        f"Accuracy: about {100 * found.value:.1f} %, by leaving out each of "
        f"{len(left_out.counted):,} labelled series in turn (95 % interval "
        f"{100 * found.low:.1f} to {100 * found.high:.1f} %)."
    )


def _confusion_words(found: Classifying) -> list[str]:
    """The most frequent confusion, if there is any."""
    counts, names = found.left_out.confusion, found.given.classes
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    if not wrong.any():
        return []
    given, said = np.unravel_index(int(wrong.argmax()), wrong.shape)
    of, n = int(counts[given].sum()), int(wrong[given, said])
    return [
        f"Most often confused: {n:,} of {of:,} series of {names[given]} look like {names[said]}."
    ]


def _confidence_words(found: Classifying) -> str:
    told = found.left_out.reliability
    own = (
        ""
        if found.series is not found.trained_on
        else ("Each series was classified by what the others say, not by its own label. ")
    )
    if told is None:
        return own + "With one label a class, confidences are no calibrated odds."
    return (
        f"{own}Confidences are calibrated on the series left out, from which they are off by "
        f"{100 * told.ece:.1f} points on average."
    )


def _accuracy_section(found: Classifying) -> Section:
    left_out = found.left_out
    if left_out.accuracy is None:
        return Section("How good is it?", (accuracy_words(left_out),))
    names = [str(name) for name in found.given.classes]
    alone = [name for name, n in zip(names, found.given.counts, strict=True) if n == 1]
    text = [
        "Each labelled series was classified as if the classifier had learned from all the others. "
        "This is what to expect of new series from where these came from. If the labelled ones "
        "were picked because they are clear cases, or if new ones come from another source "
        "(another person, another machine), these are harder."
    ]
    if alone:
        text.append(f"Not tested, for want of a second label: {words(alone)}.")
    grids = [_class_grid(left_out, names)]
    if len(names) <= MOST_CLASSES:
        grids.insert(0, _confusion_grid(left_out, names))
    told = left_out.reliability
    assert told is not None
    picture = (
        "Do the confidences hold?",
        "Series left out, in bins of the confidence of their classification; the area of a dot is "
        "their number. On the line, classifications are as often right as they say. Expected "
        f"calibration error {100 * told.ece:.1f} points; a little better than on new series, since "
        "the same decisions have calibrated it.",
        reliability_figure(told),
    )
    return Section("How good is it?", tuple(text), grids=tuple(grids), pictures=(picture,))


def _confusion_grid(left_out: LeftOut, names: list[str]) -> Grid:
    counts = left_out.confusion
    of_class = np.maximum(counts.sum(axis=1), 1)
    lines = []
    for code, name in enumerate(names):
        cells = [Cell(name)]
        for other, n in enumerate(counts[code].tolist()):
            share = n / of_class[code]
            heat = share if other == code else -share
            cells.append(number(f"{n:,}" if n else "", n, heat=heat, strong=other == code))
        lines.append(Line(tuple(cells)))
    columns = (Column("given", numeric=False), *(Column(name, below="said") for name in names))
    note = "A row for each class that was given, a column for each that the others say."
    return Grid("Confusion", columns, tuple(lines), (note,))


def _class_grid(left_out: LeftOut, names: list[str]) -> Grid:
    counts = left_out.confusion
    lines = []
    for code, name in enumerate(names):
        given, said, right = counts[code].sum(), counts[:, code].sum(), counts[code, code]
        recall, precision = (right / n if n else np.nan for n in (given, said))
        cells = (
            Cell(name),
            number(f"{given:,}", float(given)),
            number(f"{100 * recall:.0f}", float(recall)),
            number(f"{100 * precision:.0f}", float(precision)),
        )
        lines.append(Line(cells))
    columns = (
        Column("class", numeric=False),
        Column("series"),
        Column("found again", below="%", about="of the series of the class"),
        Column("right", below="%", about="of the series that were called so"),
    )
    return Grid("By class", columns, tuple(lines))


def _suspects_section(found: Classifying) -> Section | None:
    """Given labels that the other series speak against: slips, or rare kinds of their class."""
    left_out, ids = found.left_out, found.trained_on.ids
    rows = left_out.suspects
    if not len(rows):
        return None
    names, said, margins = found.given.classes, left_out.said, left_out.margins
    lines = []
    for row in rows[:LISTED]:
        given = int(left_out.codes[row])
        p, q = left_out.probabilities[row, given], left_out.probabilities[row, said[row]]
        lines.append(
            Line(
                (
                    Cell(str(ids[row])),
                    Cell(str(names[given])),
                    number(f"{p:.2f}", float(p)),
                    Cell(str(names[said[row]])),
                    number(f"{q:.2f}", float(q)),
                    number(f"{margins[row]:.2f}".replace("-", "−"), float(margins[row])),
                )
            )
        )
    columns = (
        Column("id", numeric=False),
        Column("label given", numeric=False),
        Column("its probability"),
        Column("the others say", numeric=False),
        Column("its probability"),
        Column("margin", about="the first probability less the second"),
    )
    n, tested = len(rows), len(left_out.counted)
    more = f" The {LISTED} most doubtful are listed." if n > LISTED else ""
    text = (
        f"{n:,} of {tested:,} series look more like another class than like their own, judged by "
        f"the others. Some of these labels may be slips, other series are unlike the rest of their "
        f"class.{more}",
    )
    drawn = rows[:DRAWN]
    titles = [f"{ids[row]}: {names[left_out.codes[row]]}" for row in drawn]
    X = found.trained_on.X
    picture = (
        "The most doubtful labels",
        f"In the order of the table{channel_words(X)}.",
        series_figure(X[drawn], titles),
    )
    grid = Grid("Labels in doubt", columns, tuple(lines))
    return Section("Labels to look at again", text, grids=(grid,), pictures=(picture,))
