"""Few labels: fit without any on all training series, then classify from one or five per cent.

``shares`` are per cents of the training series; the others' labels are hidden from everything but
the draw. See docs/few-labels.md for the protocol.
"""

import time
from collections.abc import Sequence
from typing import Any

from softclt.data import Dataset
from softclt.data.labels import Ints
from softclt.metrics import label_metrics
from softclt.tasks.base import Outcome, tasks
from softclt.tasks.classification import check
from softclt.tasks.few_labels import (
    AUTO,
    as_read,
    classifier_for,
    fit_on_labels,
    named_shares,
    needs_labels,
    rows_by_share,
    seed_of,
)
from softclt.tasks.scaling import protocol_scaling

METRICS = ("accuracy", "f1_macro", "f1_weighted")


@tasks.register("semi_supervised", metric="1.accuracy")
def run(
    model: Any,
    data: Dataset,
    *,
    shares: Sequence[float] = (1, 5),
    rule: str = "stratified",
    classifier: str = AUTO,
    draw: int | None = None,
    rows: str | None = None,
) -> Outcome:
    """Fit ``model`` on all training series without labels, once; classify from each share of them.

    Metrics: ``1.accuracy``, ``1.f1_macro``, ``1.f1_weighted`` and so on, on the whole test part.

    Args:
        model: An unfitted estimator.
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
    shown = rows_by_share(data.y_train, named, rule, seed_of(model, draw), rows)
    predicted, seconds = predict_from(model, data, shown, classifier)
    metrics: dict[str, float] = {}
    for name, labels in predicted.items():
        found = label_metrics(data.y_test, labels)
        metrics |= {f"{name}.{metric}": found[metric] for metric in METRICS}
    return Outcome(metrics, seconds, probe=classifier_for(model, classifier))


def predict_from(
    model: Any, data: Dataset, shown: dict[str, Ints], classifier: str = AUTO
) -> tuple[dict[str, Ints], dict[str, float]]:
    """Labels of the test series from each set of rows that show theirs, and the time it took.

    The model is fitted in place. No test label and no label of another row is looked at.
    """
    reader = classifier_for(model, classifier)
    X_train, X_test = protocol_scaling(data)
    assert data.y_train is not None
    start = time.perf_counter()
    if not needs_labels(model):
        model.fit(X_train)
    fitted = time.perf_counter()
    read = as_read(model, X_test, reader)  # once for all shares
    seconds = {"fit": fitted - start, "encode": time.perf_counter() - fitted}
    predicted = {}
    for name, rows in shown.items():
        start = time.perf_counter()
        predict = fit_on_labels(model, X_train, data.y_train, rows, reader)
        predicted[name] = predict(read)
        seconds[f"labels {name}"] = time.perf_counter() - start
    return predicted, seconds
