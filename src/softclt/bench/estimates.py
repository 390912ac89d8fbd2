"""How long work may take: a rule of thumb, put right by what was measured.

The rule counts, for each model: steps of training (TS2Vec's 200 or 600, unless a configuration
says otherwise) times steps of a series, distances, steps of series to embed, and what its probes
cost. Its constants are from our measurements: 2 CPU cores, and an NVIDIA H200 that trains stacks of
models. Where results of a suite are there, the rule is multiplied by what they took over what it
says; else by what a second of training takes on this machine, as busy as it is, over what it says.
"""

import math
import statistics
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from softclt.bench.running import Plan
from softclt.bench.sets import SetFacts
from softclt.methods import EmbeddingEnsemble, RepresentationLearner, TS2Vec
from softclt.methods.learner import find_device
from softclt.progress import time_in_words
from softclt.tasks.together import training_of

# Seconds for a step of training and for an embedded step, by each step of a series.
TRAIN_STEP = {"cpu": 7e-4, "cuda": 2e-6}
EMBED_STEP = {"cpu": 4e-6, "cuda": 1e-7}
SVM_PAIR, RIDGE_PRODUCT = 1.5e-6, 2e-10  # seconds by N^2, and by N M min(N, M)
# Seconds for a cell of an elastic distance, docs/numbers.md.
CELL = {"cpu": 6e-11, "cuda": 1.6e-13}
_CAP = 3000  # longer series are cut
_WORTH = 10.0  # seconds of a rule that are worth a second to measure


def estimate(
    plan: Plan, device: str = "cpu", workers: int = 1, measured: bool = False
) -> tuple[float, str]:
    """Seconds that the missing runs may take, and by what, in words.

    Args:
        plan: What is to be run.
        device: Where.
        workers: Processes.
        measured: Whether a second of training may be measured where there are no results.
    """
    kind = "cuda" if device.startswith("cuda") else "cpu"
    facts = {one.fingerprint: one for one in plan.sets}
    models = {row.name: row.model for row in plan.suite.rows}
    factors = [
        sum(result.seconds.values()) / expected
        for result in plan.done
        if result.configuration in models
        and (expected := _of_a_line(models[result.configuration], facts[result.fingerprint], kind))
    ]
    train = read = 0.0
    for unit in plan.units:
        trained: dict[str, Any] = {}
        for base, seed in unit.embedded():
            model = next(row.model for row in unit.rows if row.base == base)
            trained |= {f"{training_of(m)} {seed}": m for m in _members(model)}
        train += sum(_training(model, unit.facts, kind) for model in trained.values())
        for name, _ in unit.todo:
            row = models.get(name)
            read += _reading(
                unit.facts, _probe(plan, name), 1 if row is None else len(_members(row))
            )
    seconds = max(train, read / workers) if kind == "cuda" else (train + read) / workers
    if factors:
        return statistics.median(factors) * seconds, "by results that are there"
    if measured and seconds > _WORTH and kind == "cpu":
        return slowness(kind, workers > 1) * seconds, "by a second of training here"
    return seconds, "by a rule of thumb"


@lru_cache
def slowness(kind: str, one_core: bool = False) -> float:
    """What a second of training takes here and now, over what the rule says; 1 on a GPU.

    Args:
        kind: ``"cpu"`` or ``"cuda"``.
        one_core: Whether to measure with one thread, as each of several processes has.
    """
    if kind != "cpu":
        return 1.0
    import torch

    threads = torch.get_num_threads()
    X = np.random.default_rng(0).normal(size=(8, 1, 128))

    def of_a_step(steps: int) -> float:
        model = TS2Vec(tau_instance=None, tau_temporal=None, max_iter=steps, device="cpu")
        start = time.perf_counter()
        model.set_params(random_state=0).fit(X)
        return (time.perf_counter() - start) / steps

    try:
        if one_core:
            torch.set_num_threads(1)
        of_a_step(1)  # what is only done the first time
        seconds = of_a_step(2)
        if seconds < 0.25:
            seconds = of_a_step(min(200, round(1 / seconds)))
        return float(seconds / (X.shape[-1] * TRAIN_STEP["cpu"]))
    finally:
        torch.set_num_threads(threads)


def training_words(model: Any, shape: tuple[int, ...]) -> str:
    """How many steps of training a fit takes, and how long: the end of a sentence, or nothing."""
    n, d, t = shape
    if not hasattr(model, "max_iter"):
        return ""
    facts = SetFacts(
        asked="",
        name="",
        fingerprint="",
        n_train=n,
        n_test=0,
        n_channels=d,
        length=t,
        varying=False,
        groups={},
    )
    kind = find_device(getattr(model, "device", "auto")).type
    seconds = _training(model, facts, kind)
    if seconds > _WORTH:
        seconds *= slowness(kind)
    return f": {_steps(model, facts)} steps on {kind}, about {time_in_words(max(1, seconds))}"


def embedding_words(model: Any, shape: tuple[int, ...]) -> str:
    """How long embedding may take: the end of a sentence."""
    n, _, t = shape
    kind = str(getattr(model, "device_", None) or find_device(getattr(model, "device", "auto")))
    seconds = n * t * EMBED_STEP["cuda" if kind.startswith("cuda") else "cpu"]
    return f": about {time_in_words(max(1, seconds))}"


def _of_a_line(model: Any, facts: SetFacts, kind: str) -> float:
    members = _members(model)
    return sum(_training(m, facts, kind) for m in members) + _reading(facts, "", len(members))


def _members(model: Any) -> list[Any]:
    return [model.estimator] * model.n_members if isinstance(model, EmbeddingEnsemble) else [model]


def _steps(model: Any, facts: SetFacts) -> int:
    """Of training; what is not ours has none that we know of."""
    if not isinstance(model, RepresentationLearner):
        return 0
    steps, epochs = getattr(model, "max_iter", None), getattr(model, "max_epochs", None)
    if steps is not None:
        return int(steps)
    if epochs is not None:
        return int(epochs) * math.ceil(facts.n_train / getattr(model, "batch_size", 8))
    size = facts.n_train * facts.n_channels * facts.length
    return 200 if size <= 100_000 else 600


def _training(model: Any, facts: SetFacts, kind: str) -> float:
    steps, length = _steps(model, facts), min(facts.length, _CAP)
    series = facts.n_train + facts.n_test
    trained = steps * length * TRAIN_STEP[kind] + series * facts.length * EMBED_STEP[kind]
    if not steps or getattr(model, "tau_instance", None) is None:
        return trained
    pairs, batch = facts.n_train * (facts.n_train - 1) / 2, getattr(model, "batch_size", 8)
    return trained + min(pairs, steps * batch**2 / 2) * length**2 * CELL[kind]


def _probe(plan: Plan, name: str) -> str:
    rows: Iterable[Any] = (*plan.suite.rows, *plan.suite.choices)
    return next((str(row.options.get("probe", "")) for row in rows if row.name == name), "")


def _reading(facts: SetFacts, probe: str, n_members: int) -> float:
    n, m = facts.n_train, 320 * n_members
    if probe == "svm":
        return 0.1 + SVM_PAIR * n * n
    return 0.1 + RIDGE_PRODUCT * n * m * min(n, m)
