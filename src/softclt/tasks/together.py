"""Many models on one data set: what trains alike is trained once, and all of it in one go."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from softclt.data import Dataset, load
from softclt.identity import settings_key
from softclt.methods import EmbeddingEnsemble, fit_many
from softclt.methods.learner import RepresentationLearner
from softclt.tasks.evaluation import (
    Outcome,
    Reading,
    Together,
    announce,
    describe,
    device_of,
    evaluate,
    filled,
    fit_and_embed,
    seeded_clone,
    tasks,
)
from softclt.tasks.result import Result
from softclt.validation import Floats

# How a fitted model is read; the training of a model does not depend on it.
_READ_OUT = {"pooling": "max", "layers": "last"}
_SILENT = {"progress": False}


@dataclass(frozen=True)
class Embedded:
    """What a fitted model makes of the series, and what it took.

    Attributes:
        R_train: Training series ``(N, M)``.
        R_test: Test series ``(N_test, M)``.
        seconds: ``fit`` (this model's share of the time of all) and ``encode``.
        trained_together: Models that were fitted in the same go.
        device: Where.
    """

    R_train: Floats
    R_test: Floats
    seconds: dict[str, float]
    trained_together: int
    device: str

    @property
    def n_bytes(self) -> int:
        """Memory that the embeddings take."""
        return int(self.R_train.nbytes + self.R_test.nbytes)

    def result(self, blank: Result, outcome: Outcome) -> Result:
        """The line of a run in which a probe has read these embeddings."""
        whole = replace(outcome, seconds=self.seconds | outcome.seconds)
        return filled(blank, whole, self.device, self.trained_together)


def evaluate_many(
    task: str,
    models: Sequence[Any],
    data: Dataset | str,
    seeds: Iterable[int] = (0,),
    *,
    tau_choice: str | None = None,
    **options: Any,
) -> list[Result]:
    """What `evaluate` finds for every model with every seed, trained in one `softclt.fit_many`.

    Members of ensembles take part. Models that differ in ``pooling`` and ``layers`` alone are
    trained once, and one pass of the encoder serves them all. A task that does more than read
    embeddings, and a model that is not of this library, are run one by one.

    Args:
        task, models, data, tau_choice, options: See `evaluate`.
        seeds: Every model is run with each of them.

    Returns:
        The results of the first model, seed after seed, then those of the second, ...

    Example:
        >>> from softclt import TS2Vec
        >>> tiny = {"output_dims": 8, "hidden_dims": 4, "depth": 2, "max_iter": 1}
        >>> models = [TS2Vec(**tiny), TS2Vec(layers="all", **tiny)]
        >>> results = evaluate_many("classification", models, "synthetic/waves", seeds=[0, 1])
        >>> [(result.params["layers"], result.seed) for result in results]
        [('last', 0), ('last', 1), ('all', 0), ('all', 1)]
        >>> results[0].trained_together  # the two read-outs of a seed share a model
        2
    """
    seeds = list(seeds)
    if isinstance(data, str):
        data = load(data)
    pairs = [(model, seed) for model in models for seed in seeds]
    reading: Reading | None = tasks.tags(task).get("reading")
    together: Together | None = tasks.tags(task).get("together")
    if together is not None:
        own = [seeded_clone(model, seed) for model, seed in pairs]
        outcomes = together(own, data, **options)
        return [
            filled(
                describe(task, model, data, seed, tau_choice=tau_choice, **options),
                outcome,
                device_of(fitted),
                len(pairs),
            )
            for (model, seed), fitted, outcome in zip(pairs, own, outcomes, strict=True)
        ]
    if reading is None:
        return [evaluate(task, m, data, s, tau_choice=tau_choice, **options) for m, s in pairs]
    name, digest = str(data.meta["name"]), data.fingerprint
    blanks = [
        announce(task, model, name, digest, seed, tau_choice=tau_choice, **options)
        for model, seed in pairs
    ]
    reading.check(data, **options)
    clones = [seeded_clone(model, seed) for model, seed in pairs]
    results = []
    for blank, embedded in zip(blanks, embed(clones, *reading.series(data)), strict=True):
        y_train, y_test = data.y_train, data.y_test
        outcome = reading.score(embedded.R_train, embedded.R_test, y_train, y_test, **options)
        results.append(embedded.result(blank, outcome))
    return results


def embed(models: Sequence[Any], X_train: Floats, X_test: Floats) -> list[Embedded]:
    """Fit models on training series, and embed both; the models themselves are not changed.

    Args:
        models: Unfitted, seeded.
        X_train: Series to fit on, and to embed.
        X_test: Series to embed.
    """
    parts = [_learners(model) for model in models]
    trained, together, seconds = _trained([m for own in parts if own for m in own], X_train)
    wanted: dict[str, set[tuple[str, str]]] = {}
    for own in parts:
        for learner in own or ():
            wanted.setdefault(training_of(learner), set()).add(learner.read_out())
    seen: dict[str, Any] = {}
    for key, read_outs in wanted.items():
        start = time.perf_counter()
        embeddings = [trained[key].read_outs(X, read_outs) for X in (X_train, X_test)]
        seen[key] = (embeddings, (time.perf_counter() - start) / len(read_outs))
    results = []
    for model, own in zip(models, parts, strict=True):
        if own is None:
            results.append(_embed_alone(model, X_train, X_test))
            continue
        keys = [training_of(learner) for learner in own]
        pairs = zip(keys, own, strict=True)
        read = [[part[m.read_out()] for part in seen[k][0]] for k, m in pairs]
        R_train, R_test = map(_side_by_side, zip(*read, strict=True))
        shares = {
            "fit": len(own) * seconds / together,
            "encode": sum(seen[key][1] for key in keys),
        }
        results.append(Embedded(R_train, R_test, shares, together, trained[keys[0]].device_))
    return results


def _side_by_side(embeddings: Sequence[Floats]) -> Floats:
    return embeddings[0] if len(embeddings) == 1 else np.concatenate(embeddings, axis=-1)


def _learners(model: Any) -> list[RepresentationLearner] | None:
    """The models of this library that a model consists of; None for another kind of model."""
    if isinstance(model, EmbeddingEnsemble):
        return model.new_members()
    return [model] if isinstance(model, RepresentationLearner) else None


def trainings(model: Any) -> set[str]:
    """All trainings that a model consists of; two models may share one."""
    return {training_of(learner) for learner in _learners(model) or ()}


def training_of(learner: RepresentationLearner) -> str:
    """Equal for models whose training is the same."""
    params = learner.get_params(deep=False) | _READ_OUT | _SILENT
    return f"{type(learner).__qualname__} {settings_key(params)}"


def _trained(
    learners: Sequence[RepresentationLearner], X: Floats
) -> tuple[dict[str, RepresentationLearner], int, float]:
    """A fitted model for each training that is asked for, their number, and the time of all."""
    distinct: dict[str, RepresentationLearner] = {}
    for learner in learners:
        plain = _READ_OUT | _SILENT  # so that no read-out keeps models from being stacked
        distinct.setdefault(training_of(learner), clone(learner).set_params(**plain))
    start = time.perf_counter()
    fit_many(distinct.values(), X)
    return distinct, len(distinct), time.perf_counter() - start


def _embed_alone(model: Any, X_train: Floats, X_test: Floats) -> Embedded:
    model = clone(model)
    return Embedded(*fit_and_embed(model, X_train, X_test), 1, device_of(model))
