"""Transfer: learn on one data set, classify another, with or without learning from it.

Lengths may differ: encoders take any, and pool over time. Where the numbers of channels differ, the
model learns from single channels, each a series; a probe then reads the target's channels side by
side, and fine-tuning starts from a first layer that is shared by all of them. Every channel of
every set is scaled by its training part. See docs/transfer.md.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from softclt.data import Dataset, ValidatedDataset
from softclt.methods import fit_many
from softclt.methods.channels import one_by_one, transform_channels, with_channels
from softclt.methods.learner import RepresentationLearner
from softclt.probes.classifiers import probes
from softclt.probes.scores import label_metrics
from softclt.tasks.classification import check
from softclt.tasks.evaluation import Outcome, of_several
from softclt.tasks.few_labels import (
    AUTO,
    FINE_TUNE,
    PROBE,
    Shown,
    as_read,
    classifier_for,
    first_phase_of,
    fit_on_labels,
    named_shares,
    needs_labels,
    rows_by_share,
    seed_of,
)
from softclt.tasks.fine_tuning import STEPS, Target, fine_tune
from softclt.tasks.kept import keeping, kept, load_once
from softclt.tasks.scaling import standardise_by_training
from softclt.tasks.together import training_of
from softclt.validation import Floats, Ints, check_choice, check_range

MODES = (FINE_TUNE, "probe", "direct")
_METRICS = {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "f1_macro"}
_SPARED = 5  # one of so many labels of a class chooses, where a set has no part for that

_AT_MOST = 256  # models that are kept for the next target; the oldest go first


@of_several("transfer")
@keeping()
def run(
    models: Sequence[Any],
    data: Dataset,
    *,
    source: str | Sequence[str] = "ucr/FordA",
    mode: str = FINE_TUNE,
    share: float | Sequence[float] = 100,
    rule: str = "stratified",
    classifier: str = AUTO,
    steps: Sequence[int] = STEPS,
    draw: int | None = None,
) -> list[Outcome]:
    """Fit models without labels on a source, then classify the test part of ``data``.

    Metrics: ``accuracy``, and ``precision``, ``recall`` and ``f1`` as means over classes; after
    fine-tuning ``epochs``, what the validation part chose. With several sources their means, and
    before the same names that of each source, e.g. ``HAR-A.accuracy``; with several shares each
    share before these, ``10.accuracy``.

    Args:
        models: Unfitted methods of this library; on a GPU, what can be trained side by side is.
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
    for n_steps in steps:
        check_range(n_steps, "each of steps", 1)
    if mode == FINE_TUNE and classifier != AUTO:
        raise ValueError(
            "classifier is for the modes 'probe' and 'direct'; fine-tuning has its own"
        )
    for model in models:
        _check_model(model, mode)
    classify = {FINE_TUNE: _fine_tuned, "probe": _probed, "direct": _direct}[mode]
    asked = [source] if isinstance(source, str) else list(source)
    sources = {name: load_once(name, "train") for name in asked}
    if len(asked) > 1:
        sources = {n: own for n, own in sources.items() if own.meta["name"] != data.meta["name"]}
    shares = named_shares(share)
    metrics: list[dict[str, float]] = [{} for _ in models]
    seconds: list[dict[str, float]] = [{} for _ in models]
    for share_name, per_cent in shares.items():
        before, scores = share_name if len(shares) > 1 else "", []
        for name, own in sources.items():
            pairs = [
                _Pair(model, own, data, seed_of(model, draw), rule, per_cent, times)
                for model, times in zip(models, seconds, strict=True)
            ]
            scores.append(classify(pairs, classifier, steps))
            if len(sources) > 1:
                for found, score in zip(metrics, scores[-1], strict=True):
                    found |= _named(before, name.rpartition("/")[2], score)
        for found, each in zip(metrics, zip(*scores, strict=True), strict=True):
            mean = {metric: float(np.mean([one[metric] for one in each])) for metric in each[0]}
            found |= _named(before, "", mean)
    readers = {FINE_TUNE: FINE_TUNE, "probe": PROBE if classifier == AUTO else classifier}
    return [
        Outcome(found, times, readers.get(mode) or classifier_for(model, classifier))
        for model, found, times in zip(models, metrics, seconds, strict=True)
    ]


def _check_model(model: Any, mode: str) -> None:
    if not isinstance(model, RepresentationLearner):
        raise TypeError(
            f"{type(model).__name__} is no method of this library; see `softclt.methods`"
        )
    if mode != "direct" and needs_labels(model):
        raise ValueError(
            f"{type(model).__name__} learns nothing without labels, and those of the source are "
            "other classes; use mode='direct', or a method that learns without"
        )


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

    def known(self, y: Ints) -> Ints:
        """Rows of a part whose labels may be looked at."""
        return rows_by_share(y, {"": self.share}, self.rule, self.seed)[""]

    def scores(self, predicted: Ints) -> dict[str, float]:
        """Of labels of the target's test part."""
        assert self.data.y_test is not None
        found = label_metrics(self.data.y_test, predicted)
        return {name: found[own] for name, own in _METRICS.items()}


Pairs = Sequence[_Pair]  # that differ in their models alone


def _pretrained(pairs: Pairs) -> list[Any]:
    """The models, fitted on the source without labels."""
    source, apart = pairs[0].source, pairs[0].apart
    first = [first_phase_of(pair.model) for pair in pairs]
    keys = [f"{source.fingerprint} {apart} {training_of(own)}" for own in first]
    before = _learned()
    learned = {key: before[key] for key in keys if key in before}
    missing = {key: own for key, own in zip(keys, first, strict=True) if key not in learned}
    with _timed(pairs, "fit"):
        if missing:
            (X,) = standardise_by_training(source.X_train)
            fitted = fit_many(map(clone, missing.values()), one_by_one(X) if apart else X)
            for own in fitted:
                own.leave_training()
            learned |= dict(zip(missing, fitted, strict=True))
    _keep(learned)
    return [learned[key] for key in keys]


def _probed(pairs: Pairs, classifier: str, steps: Sequence[int]) -> list[dict[str, float]]:
    """A probe on the embedding of the target."""
    name = PROBE if classifier == AUTO else classifier
    check_choice(name, probes.names(), "classifier of the mode 'probe'")
    data, apart = pairs[0].data, pairs[0].apart
    assert data.y_train is not None
    assert data.X_test is not None
    X_train, X_test = standardise_by_training(data.X_train, data.X_test)
    found = []
    for pair, fitted in zip(pairs, _pretrained(pairs), strict=True):
        rows = pair.known(data.y_train)
        embed = partial(transform_channels, fitted) if apart else fitted.transform
        with _timed([pair], "probe"):
            probe = probes[name](embed(X_train[rows]), data.y_train[rows])
            found.append(pair.scores(np.asarray(probe.predict(embed(X_test)))))
    return found


def _fine_tuned(pairs: Pairs, classifier: str, steps: Sequence[int]) -> list[dict[str, float]]:
    """All weights, as long as the validation part says."""
    data, apart = pairs[0].data, pairs[0].apart
    starts = _pretrained(pairs)
    if apart:
        starts = [with_channels(own, data.X_train.shape[1]) for own in starts]
    targets = [_target(pair) for pair in pairs]
    with _timed(pairs, "fine-tune"):
        tuned = fine_tune(starts, [target for target, _ in targets], steps)
    found = []
    for pair, (predict, epochs), (_, X_test) in zip(pairs, tuned, targets, strict=True):
        with _timed([pair], "predict"):
            found.append(pair.scores(predict(X_test)) | {"epochs": epochs})
    return found


def _direct(pairs: Pairs, classifier: str, steps: Sequence[int]) -> list[dict[str, float]]:
    """A classifier that has seen the source alone."""
    source, data = pairs[0].source, pairs[0].data
    if source.y_train is None:
        raise ValueError(f"{source.meta['name']} has no labels; the mode 'direct' learns from them")
    if pairs[0].apart or source.meta["classes"] != data.meta["classes"]:
        kinds = [f"{len(own.X_train[0])} channels, {own.meta['classes']}" for own in (source, data)]
        raise ValueError(
            f"the mode 'direct' needs the same channels and classes, but {source.meta['name']} has "
            f"{kinds[0]} and {data.meta['name']} has {kinds[1]}"
        )
    assert data.X_test is not None
    y, (X_train, X_test) = source.y_train, standardise_by_training(source.X_train, data.X_test)
    learns = [pair for pair in pairs if not needs_labels(pair.model)]
    fitted: dict[int, Any] = {id(pair): pair.model for pair in pairs}
    if learns:
        fitted |= {id(p): own for p, own in zip(learns, _pretrained(learns), strict=True)}
    before, learned = _learned(), dict[str, Any]()
    missing: dict[str, Shown] = {}
    keys = []
    for pair in pairs:
        reader, rows = classifier_for(pair.model, classifier), pair.known(y)
        keys.append(f"{source.fingerprint} {training_of(pair.model)} {reader} {rows.tolist()}")
        if keys[-1] in before:
            learned[keys[-1]] = before[keys[-1]]
        else:
            missing[keys[-1]] = Shown(pair.model, fitted[id(pair)], rows, reader)
    with _timed(pairs, "labels"):
        predict = fit_on_labels(list(missing.values()), X_train, y)
    learned |= dict(zip(missing, predict, strict=True))
    _keep(learned)
    found = []
    for pair, key in zip(pairs, keys, strict=True):
        reader = classifier_for(pair.model, classifier)
        with _timed([pair], "predict"):
            found.append(pair.scores(learned[key](as_read(fitted[id(pair)], X_test, reader))))
    return found


def _target(pair: _Pair) -> tuple[Target, Floats]:
    """What fine-tuning learns from and chooses by, and the test series, scaled alike."""
    data = pair.data
    assert data.y_train is not None
    assert data.X_test is not None
    rows = pair.known(data.y_train)
    if isinstance(data, ValidatedDataset) and data.X_val is not None:
        assert data.y_val is not None
        own = pair.known(data.y_val)
        X_train, X_val, X_test = standardise_by_training(data.X_train, data.X_val, data.X_test)
        X_val, y_val = X_val[own], data.y_val[own]
    else:
        X_train, X_test = standardise_by_training(data.X_train, data.X_test)
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


@contextmanager
def _timed(pairs: Pairs, phase: str) -> Iterator[None]:
    """Add the time, in equal shares, to a phase of these."""
    start = time.perf_counter()
    yield
    share = (time.perf_counter() - start) / len(pairs)
    for pair in pairs:
        pair.seconds[phase] = pair.seconds.get(phase, 0.0) + share


def _keep(learned: dict[str, Any]) -> None:
    before = _learned()
    before.update(learned)
    while len(before) > _AT_MOST:
        del before[next(iter(before))]


def _learned() -> dict[str, Any]:
    """What was learned from sources so far."""
    found: dict[str, Any] = kept().setdefault("learned", {})
    return found
