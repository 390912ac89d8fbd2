"""Transfer: learn on one data set, classify another, with or without learning from it.

Lengths may differ: encoders take any, and pool over time. Where the numbers of channels differ, the
model learns from single channels, each a series; a probe then reads the target's channels side by
side, and fine-tuning starts from a first layer that is shared by all of them. Every channel of
every set is scaled by its training part. See docs/transfer.md.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from softclt.data import Dataset, ValidatedDataset, load
from softclt.data.labels import Ints
from softclt.methods.base import RepresentationLearner
from softclt.methods.channels import one_by_one, transform_channels, with_channels
from softclt.metrics import label_metrics
from softclt.tasks.base import Outcome, tasks
from softclt.tasks.classification import check
from softclt.tasks.few_labels import (
    AUTO,
    FINE_TUNE,
    PROBE,
    Predict,
    Shown,
    as_read,
    classifier_for,
    fit_on_labels,
    named_shares,
    needs_labels,
    rows_by_share,
    seed_of,
)
from softclt.tasks.fine_tuning import STEPS, Target, fine_tune
from softclt.tasks.probes import probes
from softclt.tasks.scaling import standardise
from softclt.tasks.together import training_of
from softclt.validation import Floats, check_choice, check_range

MODES = (FINE_TUNE, "probe", "direct")
_METRICS = {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "f1_macro"}
_SPARED = 5  # one of so many labels of a class chooses, where a set has no part for that

# What was learned from a source, for the next target; the oldest go first.
_LEARNED: dict[str, Any] = {}
_AT_MOST = 256


@tasks.register("transfer")
def run(
    model: Any,
    data: Dataset,
    *,
    source: str | Sequence[str] = "ucr/FordA",
    mode: str = FINE_TUNE,
    share: float | Sequence[float] = 100,
    rule: str = "stratified",
    classifier: str = AUTO,
    steps: Sequence[int] = STEPS,
    draw: int | None = None,
) -> Outcome:
    """Fit ``model`` without labels on a source, then classify the test part of ``data``.

    Metrics: ``accuracy``, and ``precision``, ``recall`` and ``f1`` as means over classes; after
    fine-tuning ``epochs``, what the validation part chose. With several sources their means, and
    before the same names that of each source, e.g. ``HAR-A.accuracy``; with several shares each
    share before these, ``10.accuracy``.

    Args:
        model: An unfitted method of this library.
        data: The target, with labels in both parts.
        source: A data set's name; or several, of which the target itself is left out.
        mode: ``"fine-tune"``: all weights go on learning from the target's labels. ``"probe"``: a
            classifier reads the frozen embedding. ``"direct"``: nothing is learned from the target;
            a classifier learns from labels of the source, which needs the same channels and
            classes.
        share: Per cent of labels that are known: of the target's training and validation part; in
            the mode ``"direct"`` of the source.
        rule: See `softclt.data.draw_labels`.
        classifier: Of the modes ``"probe"`` and ``"direct"``; see the task semi_supervised.
        steps: Numbers of steps of fine-tuning from which the validation part chooses; a fifth of
            the known labels of each class where the set has no such part.
        draw: Seed of the draws of labels; the model's random_state if None.
    """
    check(data)
    check_choice(mode, MODES, "mode")
    for one in steps:
        check_range(one, "each of steps", 1)
    if not isinstance(model, RepresentationLearner):
        raise TypeError(
            f"{type(model).__name__} is no method of this library; see `softclt.methods`"
        )
    if mode == FINE_TUNE and classifier != AUTO:
        raise ValueError(
            "classifier is for the modes 'probe' and 'direct'; fine-tuning has its own"
        )
    if mode != "direct" and needs_labels(model):
        raise ValueError(
            f"{type(model).__name__} learns nothing without labels, and those of the source are "
            "other classes; use mode='direct', or a method that learns without"
        )
    classify = {FINE_TUNE: _fine_tuned, "probe": _probed, "direct": _direct}[mode]
    asked = [source] if isinstance(source, str) else list(source)
    sources = {name: load(name, split="train") for name in asked}
    if len(asked) > 1:
        sources = {n: own for n, own in sources.items() if own.meta["name"] != data.meta["name"]}
    shares, seed = named_shares(share), seed_of(model, draw)
    metrics: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for share_name, per_cent in shares.items():
        each = []
        for name, own in sources.items():
            pair = _Pair(model, own, data, seed, rule, per_cent, seconds)
            each.append(classify(pair, classifier, steps))
            if len(sources) > 1:
                bare = name.rpartition("/")[2]
                metrics |= _named(share_name if len(shares) > 1 else "", bare, each[-1])
        mean = {metric: float(np.mean([one[metric] for one in each])) for metric in each[0]}
        metrics |= _named(share_name if len(shares) > 1 else "", "", mean)
    readers = {FINE_TUNE: FINE_TUNE, "probe": PROBE if classifier == AUTO else classifier}
    return Outcome(metrics, seconds, readers.get(mode) or classifier_for(model, classifier))


class _Pair:
    """A source and a target, scaled, and a model that learns from the source.

    Args:
        model, source, data, seed, rule: See `run`.
        share: Per cent of labels that are known.
        seconds: Is added to, by phase.
    """

    def __init__(
        self,
        model: RepresentationLearner,
        source: Dataset,
        data: Dataset,
        seed: int,
        rule: str,
        share: float,
        seconds: dict[str, float],
    ) -> None:
        self.model, self.source, self.data = model, source, data
        self.seed, self.share, self.rule, self.seconds = seed, share, rule, seconds
        self.apart = source.X_train.shape[1] != data.X_train.shape[1]

    def pretrained(self) -> Any:
        """The model, fitted on the source without labels."""

        def fit() -> Any:
            (X,) = standardise(self.source.X_train)
            fitted = clone(self.model).fit(one_by_one(X) if self.apart else X)
            vars(fitted).pop("training_state_", None)  # several times the size of the model
            return fitted

        key = f"{self.source.fingerprint} {self.apart} {training_of(self.model)}"
        fitted = self.timed("fit", lambda: _kept(key, fit))
        self.model.device_ = fitted.device_  # results tell it
        return fitted

    def known(self, y: Ints) -> Ints:
        """Rows of a part whose labels may be looked at."""
        return rows_by_share(y, {"": self.share}, self.rule, self.seed)[""]

    def timed(self, name: str, do: Callable[[], Any]) -> Any:
        """What ``do`` gives; its time is added to a phase."""
        start = time.perf_counter()
        result = do()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result

    def scores(self, predicted: Ints) -> dict[str, float]:
        """Of labels of the target's test part."""
        assert self.data.y_test is not None
        found = label_metrics(self.data.y_test, predicted)
        return {name: found[own] for name, own in _METRICS.items()}


def _probed(pair: _Pair, classifier: str, steps: Sequence[int]) -> dict[str, float]:
    """A probe on the embedding of the target."""
    name = PROBE if classifier == AUTO else classifier
    check_choice(name, probes.names(), "classifier of the mode 'probe'")
    fitted, data = pair.pretrained(), pair.data
    assert data.y_train is not None
    assert data.X_test is not None
    X_train, X_test = standardise(data.X_train, data.X_test)
    rows = pair.known(data.y_train)
    shown = data.y_train[rows]

    def embed(X: Floats) -> Floats:
        return transform_channels(fitted, X) if pair.apart else fitted.transform(X)

    def predict() -> Ints:
        probe = probes[name](embed(X_train[rows]), shown)
        return np.asarray(probe.predict(embed(X_test)))

    return pair.scores(pair.timed("probe", predict))


def _fine_tuned(pair: _Pair, classifier: str, steps: Sequence[int]) -> dict[str, float]:
    """All weights, as long as the validation part says."""
    fitted, data = pair.pretrained(), pair.data
    assert data.X_test is not None
    start = with_channels(fitted, data.X_train.shape[1]) if pair.apart else fitted
    target, X_test = _target(pair)
    predict, epochs = pair.timed("fine-tune", lambda: fine_tune(start, target, steps))
    return pair.scores(pair.timed("predict", lambda: predict(X_test))) | {"epochs": epochs}


def _direct(pair: _Pair, classifier: str, steps: Sequence[int]) -> dict[str, float]:
    """A classifier that has seen the source alone."""
    source, data = pair.source, pair.data
    if source.y_train is None:
        raise ValueError(f"{source.meta['name']} has no labels; the mode 'direct' learns from them")
    if pair.apart or source.meta["classes"] != data.meta["classes"]:
        kinds = [f"{len(own.X_train[0])} channels, {own.meta['classes']}" for own in (source, data)]
        raise ValueError(
            f"the mode 'direct' needs the same channels and classes, but {source.meta['name']} has "
            f"{kinds[0]} and {data.meta['name']} has {kinds[1]}"
        )
    assert data.X_test is not None
    y, rows = source.y_train, pair.known(source.y_train)
    reader = classifier_for(pair.model, classifier)
    X_train, X_test = standardise(source.X_train, data.X_test)

    fitted = pair.model if needs_labels(pair.model) else pair.pretrained()

    def fit() -> Predict:
        (predict,) = fit_on_labels([Shown(pair.model, fitted, rows, reader)], X_train, y)
        return predict

    key = f"{source.fingerprint} {training_of(pair.model)} {reader} {rows.tolist()}"
    predict = pair.timed("labels", lambda: _kept(key, fit))
    return pair.scores(pair.timed("predict", lambda: predict(as_read(fitted, X_test, reader))))


def _target(pair: _Pair) -> tuple[Target, Floats]:
    """What fine-tuning learns from and chooses by, and the test series, scaled alike."""
    data = pair.data
    assert data.y_train is not None
    assert data.X_test is not None
    rows = pair.known(data.y_train)
    if isinstance(data, ValidatedDataset) and data.X_val is not None:
        assert data.y_val is not None
        own = pair.known(data.y_val)
        X_train, X_val, X_test = standardise(data.X_train, data.X_val, data.X_test)
        X_val, y_val = X_val[own], data.y_val[own]
    else:
        X_train, X_test = standardise(data.X_train, data.X_test)
        spared = _spared(data.y_train, rows, pair.seed)
        X_val, y_val = X_train[spared], data.y_train[spared]
        rows = np.setdiff1d(rows, spared)
    return Target(X_train[rows], data.y_train[rows], X_val, y_val), X_test


def _spared(y: Ints, rows: Ints, seed: int) -> Ints:
    """A fifth of the known rows of each class, rounded: none of one or two."""
    rng = np.random.default_rng(seed)
    own = [rng.permutation(rows[y[rows] == label]) for label in np.unique(y[rows])]
    return np.sort(np.concatenate([some[: round(len(some) / _SPARED)] for some in own]))


def _named(share: str, source: str, scores: dict[str, float]) -> dict[str, float]:
    before = "".join(f"{part}." for part in (share, source) if part)
    return {before + metric: value for metric, value in scores.items()}


def _kept(key: str, make: Callable[[], Any]) -> Any:
    if key not in _LEARNED:
        made = make()
        while len(_LEARNED) >= _AT_MOST:
            del _LEARNED[next(iter(_LEARNED))]
        _LEARNED[key] = made
    return _LEARNED[key]
