"""Classifiers from few labels on a model that has learned without any: what two tasks share."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from softclt.data.draws import RULES, draw_labels, load_rows
from softclt.data.labels import UNLABELLED, Ints
from softclt.methods import methods
from softclt.methods.labelled import LabelLearner
from softclt.tasks.base import method_name
from softclt.tasks.probes import probes
from softclt.validation import Floats, check_choice, check_random_state_seed

AUTO, PROBE = "auto", "svm"
FINE_TUNE = "fine-tune"
NETWORKS = (FINE_TUNE, "linear-probe")

Predict = Callable[[Floats], Ints]


def classifier_for(model: Any, classifier: str = AUTO) -> str:
    """The name of what reads a model; ``"auto"`` stays where a method has its own classifier."""
    check_choice(classifier, (AUTO, *probes.names(), *NETWORKS), "classifier")
    if classifier != AUTO or isinstance(model, LabelLearner):
        return classifier
    name = method_name(model)
    own: str = methods.tags(name).get("classifier", PROBE) if name in methods else PROBE
    return own


def needs_labels(model: Any) -> bool:
    """Whether a model cannot learn anything without: then nothing comes before its labels."""
    return bool(get_tags(model).target_tags.required)


def as_read(model: Any, X: Floats, classifier: str) -> Floats:
    """What a classifier looks at: embeddings ``(N, M)`` for a probe, else the series."""
    read_out = classifier in probes and not needs_labels(model)
    return np.asarray(model.transform(X)) if read_out else X


def fit_on_labels(model: Any, X: Floats, y: Ints, rows: Ints, classifier: str) -> Predict:
    """What predicts labels of what `as_read` gives, learned from the labels of some rows.

    The model's own training does not change; labels of other rows are not looked at.

    Args:
        model: Trained without labels; untrained where it needs them.
        X: All training series ``(N, D, T)``.
        y: Their labels.
        rows: Which of them may be looked at.
        classifier: What `classifier_for` gives.
    """
    known = y[rows]
    if len(np.unique(known)) < 2:
        raise ValueError(
            f"the {len(rows)} labels that were drawn are all of one class; use a larger share or "
            "rule='stratified'"
        )
    if classifier in probes and not needs_labels(model):
        probe = probes[classifier](as_read(model, X[rows], classifier), known)
        return lambda R: np.asarray(probe.predict(R))

    from softclt.semi import SemiSupervisedClassifier

    shown = np.full(len(X), UNLABELLED)
    shown[rows] = known
    params = model.get_params(deep=False)
    whole = SemiSupervisedClassifier(
        clone(model),
        classifier=classifier,
        unlabelled=UNLABELLED,
        pretrained=None if needs_labels(model) else model,
        random_state=params.get("random_state"),
        device=params.get("device", "auto"),
    ).fit(X, shown)
    model.device_ = whole.encoder_.device_  # results tell it, also of a model that stays untrained
    return lambda X_new: np.asarray(whole.predict(X_new))


def seed_of(model: Any, draw: int | None) -> int:
    """Of the draw of labels: the model's own, unless another is asked for."""
    if draw is not None:
        return check_random_state_seed(draw)
    own = model.get_params(deep=False).get("random_state")
    return 0 if own is None else int(own)


def rows_by_share(
    y: Ints, shares: Mapping[str, float], rule: str, seed: int, path: str | None = None
) -> dict[str, Ints]:
    """Rows that show their labels, by the name of each share.

    Args:
        y: Labels of the training series.
        shares: Per cent, by name.
        rule: See `draw_labels`. The plain draw is the same for all seeds, as in the older papers.
        seed: Of a stratified draw.
        path: A file of `save_rows`, to take the rows from instead.
    """
    check_choice(rule, RULES, "rule")
    if path is None:
        own = 0 if rule == "plain" else seed
        return {name: draw_labels(y, share, rule, own) for name, share in shares.items()}
    there = load_rows(path, n_series=len(y))
    missing = [name for name, share in shares.items() if share not in there]
    if missing:
        known = ", ".join(f"{share:g}" for share in there)
        raise ValueError(f"{path} has no rows for {missing[0]} per cent; it has {known}")
    return {name: there[share] for name, share in shares.items()}


def named_shares(shares: Any) -> dict[str, float]:
    """Shares in per cent by the names that metrics have for them: 1, 5, 2.5."""
    own = [shares] if isinstance(shares, (int, float)) else list(shares)
    if not own:
        raise ValueError("no share is given; expected per cents such as [1, 5]")
    return {f"{share:g}": float(share) for share in own}
