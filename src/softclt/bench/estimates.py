"""How long a suite may take: a rule of thumb, put right by what results already took.

The rule counts, for each model: steps of training (TS2Vec's 200 or 600, unless a configuration
says otherwise) times steps of a series, steps of series to embed, and what its probes cost. Its
constants are from our measurements: 2 CPU cores, and an NVIDIA H200 that trains stacks of models.
Where results of the suite are there, the rule is multiplied by what they took over what it says.
"""

import statistics
from collections.abc import Iterable
from typing import Any

from softclt.bench.running import Plan
from softclt.bench.sets import SetFacts
from softclt.methods import EmbeddingEnsemble
from softclt.tasks.together import training_of

# Seconds for a step of training and for an embedded step, by each step of a series.
TRAIN_STEP = {"cpu": 7e-4, "cuda": 2e-6}
EMBED_STEP = {"cpu": 4e-6, "cuda": 1e-7}
SVM_PAIR, RIDGE_PRODUCT = 1.5e-6, 2e-10  # seconds by N^2, and by N M min(N, M)
_CAP = 3000  # longer series are cut


def estimate(plan: Plan, device: str = "cpu", workers: int = 1) -> tuple[float, bool]:
    """Seconds that the missing runs may take, and whether results put the rule right."""
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
    factor = statistics.median(factors) if factors else 1.0
    parallel = max(train, read / workers) if kind == "cuda" else (train + read) / workers
    return factor * parallel, bool(factors)


def _of_a_line(model: Any, facts: SetFacts, kind: str) -> float:
    members = _members(model)
    return sum(_training(m, facts, kind) for m in members) + _reading(facts, "", len(members))


def _members(model: Any) -> list[Any]:
    return [model.estimator] * model.n_members if isinstance(model, EmbeddingEnsemble) else [model]


def _training(model: Any, facts: SetFacts, kind: str) -> float:
    size = facts.n_train * facts.n_channels * facts.length
    steps = getattr(model, "max_iter", None)
    steps = (200 if size <= 100_000 else 600) if steps is None else steps
    length = min(facts.length, _CAP)
    series = facts.n_train + facts.n_test
    return steps * length * TRAIN_STEP[kind] + series * facts.length * EMBED_STEP[kind]


def _probe(plan: Plan, name: str) -> str:
    rows: Iterable[Any] = (*plan.suite.rows, *plan.suite.choices)
    return next((str(row.options.get("probe", "")) for row in rows if row.name == name), "")


def _reading(facts: SetFacts, probe: str, n_members: int) -> float:
    n, m = facts.n_train, 320 * n_members
    if probe == "svm":
        return 0.1 + SVM_PAIR * n * n
    return 0.1 + RIDGE_PRODUCT * n * m * min(n, m)
