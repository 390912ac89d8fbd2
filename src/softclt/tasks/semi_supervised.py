"""Few labels: fit without any on all training series, then classify from one or five per cent.

``shares`` are per cents of the training series; the others' labels are hidden from everything but
the draw. See docs/few-labels.md for the protocol.
"""

import time
from collections.abc import Sequence
from typing import Any

from softclt.data import Dataset
from softclt.probes.scores import label_metrics
from softclt.tasks.classification import check
from softclt.tasks.evaluation import Outcome, of_several
from softclt.tasks.few_labels import (
    AUTO,
    Shown,
    as_read,
    classifier_for,
    fit_on_labels,
    fit_without_labels,
    named_shares,
    rows_by_share,
    seed_of,
)
from softclt.tasks.scaling import protocol_scaling
from softclt.validation import Ints

METRICS = ("accuracy", "f1_macro", "f1_weighted")


@of_several("semi_supervised", metric="1.accuracy")
def run(
    models: Sequence[Any],
    data: Dataset,
    *,
    shares: Sequence[float] = (1, 5),
    rule: str = "stratified",
    classifier: str = AUTO,
    draw: int | None = None,
    rows: str | None = None,
) -> list[Outcome]:
    """Fit models on all training series without labels, once; classify from each share of them.

    Metrics: ``1.accuracy``, ``1.f1_macro``, ``1.f1_weighted`` and so on, on the whole test part.

    Args:
        models: Unfitted estimators; on a GPU, what can be trained side by side is.
        data: A data set with labels in both parts.
        shares: Per cents of the training series that show their labels.
        rule: ``"stratified"``, by the seed; or ``"plain"``, the one draw of the older papers. See
            `softclt.data.draw_labels`.
        classifier: ``"svm"``, ``"ridge"``, ``"linear"`` or ``"knn"`` read the embedding;
            ``"fine-tune"`` and ``"linear-probe"`` go on training the network. ``"auto"`` is the
            method's own, an SVM for methods without one.
        draw: Seed of the draw; the model's random_state if None.
        rows: A file of `softclt.data.save_rows`, whose rows are taken instead of a draw.
    """
    check(data)
    assert data.y_train is not None
    assert data.y_test is not None
    named = named_shares(shares)
    shown = [
        rows_by_share(data.y_train, named, rule, seed_of(model, draw), rows) for model in models
    ]
    outcomes = []
    for model, (predicted, seconds) in zip(
        models, predict_from(models, data, shown, classifier), strict=True
    ):
        metrics: dict[str, float] = {}
        for name, labels in predicted.items():
            found = label_metrics(data.y_test, labels)
            metrics |= {f"{name}.{metric}": found[metric] for metric in METRICS}
        outcomes.append(Outcome(metrics, seconds, probe=classifier_for(model, classifier)))
    return outcomes


def predict_from(
    models: Sequence[Any],
    data: Dataset,
    shown: Sequence[dict[str, Ints]],
    classifier: str = AUTO,
) -> list[tuple[dict[str, Ints], dict[str, float]]]:
    """For each model, labels of the test series from each set of rows that show theirs, and times.

    No test label and no label of another row is looked at.
    """
    readers = [classifier_for(model, classifier) for model in models]
    X_train, X_test = protocol_scaling(data)
    assert data.y_train is not None
    start = time.perf_counter()
    fitted = fit_without_labels(models, X_train)
    fit_seconds = (time.perf_counter() - start) / len(models)
    asked = [
        Shown(model, before, rows, reader)
        for model, before, reader, own in zip(models, fitted, readers, shown, strict=True)
        for rows in own.values()
    ]
    start = time.perf_counter()
    predict = iter(fit_on_labels(asked, X_train, data.y_train))
    label_seconds = (time.perf_counter() - start) / len(asked)
    found = []
    for before, reader, own in zip(fitted, readers, shown, strict=True):
        start = time.perf_counter()
        read = as_read(before, X_test, reader)  # once for all shares
        predicted = {name: next(predict)(read) for name in own}
        seconds = {"fit": fit_seconds, "encode": time.perf_counter() - start}
        found.append((predicted, seconds | {f"labels {name}": label_seconds for name in own}))
    return found
