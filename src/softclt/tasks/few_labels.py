"""Classifiers from few labels on a model that has learned without any: what two tasks share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from softclt.data.draws import RULES, draw_labels, load_rows
from softclt.data.labels import UNLABELLED
from softclt.few_labels.classifier import SemiSupervisedClassifier, fit_classifiers
from softclt.identity import settings_key
from softclt.methods import RepresentationLearner, fit_many, methods
from softclt.methods.labelled import LabelLearner
from softclt.probes.classifiers import probes
from softclt.tasks.evaluation import method_name
from softclt.validation import Floats, Ints, check_choice, check_random_state_seed

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


def fit_without_labels(models: Sequence[Any], X: Floats) -> list[Any]:
    """For each model, one that has learned from series what can be learned without labels.

    Models whose first phase is the same share one. A model that needs labels stays as it is.
    """
    first = [first_phase_of(model) for model in models]
    learns = [one for one in first if not needs_labels(one)]
    distinct = {settings_key(one): one for one in reversed(learns)}  # the first of each kind stays
    ours = [one for one in distinct.values() if isinstance(one, RepresentationLearner)]
    fit_many(ours, X)
    for one in distinct.values():
        if not isinstance(one, RepresentationLearner):
            one.fit(X)
    return [one if needs_labels(one) else distinct[settings_key(one)] for one in first]


def first_phase_of(model: Any) -> Any:
    """What is to be trained without labels, unfitted: a model itself, or its first phase."""
    own = model.first_phase() if isinstance(model, LabelLearner) else None
    return model if own is None else own


@dataclass(frozen=True)
class Shown:
    """A model, and rows of the training series whose labels it may look at.

    Attributes:
        model: As it is asked for.
        fitted: Trained without labels, in place of the model's own training without labels; an
            untrained one where the model needs labels.
        rows: Which series show their labels.
        classifier: What `classifier_for` gives.
    """

    model: Any
    fitted: Any
    rows: Ints
    classifier: str


def fit_on_labels(asked: Sequence[Shown], X: Floats, y: Ints) -> list[Predict]:
    """For each, what predicts labels of what `as_read` gives, learned from the labels it is shown.

    Fitted models do not change; labels of other rows are not looked at.

    Args:
        asked: Models with their labels; those that can be trained side by side are.
        X: All training series ``(N, D, T)``.
        y: Their labels.
    """
    predict: dict[int, Predict] = {}
    trained: dict[int, tuple[SemiSupervisedClassifier, Ints]] = {}
    for i, one in enumerate(asked):
        known = y[one.rows]
        if len(np.unique(known)) < 2:
            raise ValueError(
                f"the {len(known)} labels that were drawn are all of one class; use a larger "
                "share or rule='stratified'"
            )
        if one.classifier in probes and not needs_labels(one.model):
            read = as_read(one.fitted, X[one.rows], one.classifier)
            predict[i] = probes[one.classifier](read, known).predict
            continue
        shown = np.full(len(X), UNLABELLED)
        shown[one.rows] = known
        params = one.model.get_params(deep=False)
        whole = SemiSupervisedClassifier(
            clone(one.model),
            classifier=one.classifier,
            unlabelled=UNLABELLED,
            pretrained=None if needs_labels(one.model) else one.fitted,
            random_state=params.get("random_state"),
            device=params.get("device", "auto"),
        )
        trained[i], predict[i] = (whole, shown), whole.predict
    if trained:
        fit_classifiers([own for own, _ in trained.values()], X, [y for _, y in trained.values()])
    return [predict[i] for i in range(len(asked))]


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
