"""The table of tasks, and `evaluate`, which turns what a task finds into a `Result`."""

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from sklearn.base import clone

from softclt.classification import classifiers
from softclt.data import Dataset, load
from softclt.methods import EmbeddingEnsemble, RepresentationLearner, methods
from softclt.persistence import json_safe, utc_now, versions
from softclt.registry import Registry
from softclt.tasks.result import Result
from softclt.validation import Floats, check_choice, check_random_state_seed, did_you_mean


@dataclass(frozen=True)
class Outcome:
    """What a task hands to `evaluate`: scores, wall time by phase, and what read the model."""

    metrics: dict[str, float]
    seconds: dict[str, float]
    probe: str = ""


class Clock:
    """Wall time by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Give the time since the last lap a name."""
        now = time.perf_counter()
        self.seconds[name], self._last = now - self._last, now


@dataclass(frozen=True)
class Reading:
    """The parts of a task that fits a model without labels and then reads its embeddings only.

    A task that is registered with the tag ``reading`` lets `evaluate_many` and suites fit many
    models in one go, and score embeddings in other processes.

    Attributes:
        check: ``(data, **options)``: refuses what cannot be scored, before anything is fitted.
        series: ``data -> (X_train, X_test)``: what is fitted on the first, and embeds both.
        score: ``(R_train, R_test, y_train, y_test, **options) -> Outcome``; can be pickled.
    """

    check: Callable[..., None]
    series: Callable[[Dataset], tuple[Floats, Floats]]
    score: Callable[..., Outcome]

    def run(self, model: Any, data: Dataset, **options: Any) -> Outcome:
        """The whole task on one unfitted model."""
        self.check(data, **options)
        R_train, R_test, seconds = fit_and_embed(model, *self.series(data))
        outcome = self.score(R_train, R_test, data.y_train, data.y_test, **options)
        return replace(outcome, seconds=seconds | outcome.seconds)


def fit_and_embed(
    model: Any, X_train: Floats, X_test: Floats
) -> tuple[Floats, Floats, dict[str, float]]:
    """Embeddings ``(N, M)`` by a model that learns from the training series, and what it took."""
    clock = Clock()
    model.fit(X_train)
    clock.lap("fit")
    R_train, R_test = model.transform(X_train), model.transform(X_test)
    clock.lap("encode")
    return R_train, R_test, clock.seconds


#: Functions ``(model, data, **options) -> Outcome``; they fit the unfitted model themselves. Tag
#: ``reading``: the `Reading` that the task consists of, where it does. Tag ``metric``: what reports
#: look at first; accuracy if there is none. Tag ``together``: a `Together` of the same task, which
#: suites take on a GPU. Tag ``models``: the table that its models are named in, and ``model``: the
#: one where none is named; see `models_of`. Tag ``beside``: what else every run scores, for readers
#: to see whether learning helped: the beginning of its metrics' names, and what to call it.
tasks: Registry[Callable[..., Outcome]] = Registry("task")


def models_of(task: str) -> tuple[Registry[Any], str]:
    """The table that names the models of a task, and the name of the one to begin with."""
    tags = tasks.tags(task)
    return tags.get("models", methods), tags.get("model", "ts2vec")


#: ``(models, data, **options)``: the outcomes of a task on several unfitted models.
Together = Callable[..., list[Outcome]]


def of_several(name: str, **tags: Any) -> Callable[[Together], Together]:
    """Decorator that registers a task which is written for several models at once.

    Of one model, it is the same with a list of one.
    """

    def enter(together: Together) -> Together:
        @wraps(together)  # options and their defaults are read off the function for several
        def run(model: Any, data: Dataset, **options: Any) -> Outcome:
            (outcome,) = together([model], data, **options)
            return outcome

        tasks.register(name, together=together, **tags)(run)
        return together

    return enter


TAU_CHOICES = ("default", "hard", "fixed", "train", "unlabelled", "oracle", "none")
_TAUS = ("tau_instance", "tau_temporal")


def evaluate(
    task: str,
    model: Any,
    data: Dataset | str,
    seed: int = 0,
    *,
    tau_choice: str | None = None,
    **options: Any,
) -> Result:
    """Fit a clone of ``model`` on the training series of ``data`` and score it on its test series.

    Args:
        task: A registered task, e.g. ``"classification"``.
        model: An estimator with ``fit`` and ``transform``; it is cloned, not changed.
        data: A data set, or a name or path that `softclt.load` knows.
        seed: Becomes the ``random_state`` of the clone.
        tau_choice: How the taus were chosen, where the parameters cannot tell: ``"train"``,
            ``"unlabelled"`` or ``"oracle"``. Otherwise it is read off the parameters.
        options: Go to the task, e.g. ``probe=["svm", "knn"]``.

    Example:
        >>> from softclt import TS2Vec
        >>> model = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=1)
        >>> result = evaluate("classification", model, "synthetic/waves", seed=1)
        >>> result.tau_choice, result.probe, sorted(result.metrics)
        ('default', 'svm', ['accuracy', 'auprc', 'f1_macro'])
    """
    blank = describe(task, model, data, seed, tau_choice=tau_choice, **options)
    model = seeded_clone(model, blank.seed)
    outcome = tasks[task](model, load(data) if isinstance(data, str) else data, **options)
    return filled(blank, outcome, device_of(model))


def filled(blank: Result, outcome: Outcome, device: str, trained_together: int = 1) -> Result:
    """The result of a run that `describe` announced."""
    return replace(
        blank,
        metrics=outcome.metrics,
        seconds=outcome.seconds,
        probe=outcome.probe,
        device=device,
        trained_together=trained_together,
        created=utc_now(),
    )


def device_of(model: Any) -> str:
    """Where a model trains, whether a task has fitted itself or a copy of it."""
    if isinstance(model, RepresentationLearner):
        return str(model._torch_device())
    return str(getattr(model, "device_", "cpu"))


def describe(
    task: str,
    model: Any,
    data: Dataset | str,
    seed: int = 0,
    *,
    tau_choice: str | None = None,
    **options: Any,
) -> Result:
    """What `evaluate` with the same arguments is going to run: a `Result` without scores."""
    if isinstance(data, str):
        data = load(data)
    name, digest = str(data.meta["name"]), data.fingerprint
    return announce(task, model, name, digest, seed, tau_choice=tau_choice, **options)


def announce(
    task: str,
    model: Any,
    dataset: str,
    fingerprint: str,
    seed: int = 0,
    *,
    tau_choice: str | None = None,
    **options: Any,
) -> Result:
    """As `describe`, of a data set whose name and fingerprint are known."""
    options = _with_defaults(task, options)
    seed = check_random_state_seed(seed)
    model = seeded_clone(model, seed)
    if tau_choice is None:
        tau_choice = tau_choice_of(model)
    check_choice(tau_choice, TAU_CHOICES, "tau_choice")
    return Result(
        task=task,
        dataset=dataset,
        fingerprint=fingerprint,
        method=method_name(model),
        params=parameters(model),
        tau_choice=tau_choice,
        seed=seed,
        metrics={},
        options=json_safe(options),
        versions=versions(),
    )


def method_name(model: Any) -> str:
    """Registered name of a model's class; the class' own name where it is not ours."""
    for registry in (methods, classifiers):
        try:
            return registry.name_of(type(model))
        except ValueError:
            continue
    return type(model).__name__


def parameters(model: Any) -> dict[str, Any]:
    """Every parameter of a model; those of an ensemble's estimator beside its own, as one table."""
    params: dict[str, Any] = model.get_params(deep=False)
    if isinstance(model, EmbeddingEnsemble) and model.estimator is not None:
        params |= parameters(model.estimator) | {"estimator": method_name(model.estimator)}
    safe: dict[str, Any] = json_safe(params)
    return safe


def seeded_clone(model: Any, seed: int) -> Any:
    """A clone whose every ``random_state``, also inside a pipeline, is ``seed``."""
    model = clone(model)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def tau_choice_of(model: Any) -> str:
    """How the taus were chosen, as far as the parameters show it."""
    if isinstance(model, EmbeddingEnsemble) and model.estimator is not None:
        varied = {name for own in model.param_list or () for name in own}
        return "fixed" if varied & set(_TAUS) else tau_choice_of(model.estimator)
    params = model.get_params(deep=False)
    taus = {name: params[name] for name in _TAUS if name in params}
    if not taus:
        return "none"
    if all(value is None for value in taus.values()):
        return "hard"
    defaults = inspect.signature(type(model)).parameters
    own = all(value == defaults[name].default for name, value in taus.items())
    return "default" if own else "fixed"


def _with_defaults(task: str, options: dict[str, Any]) -> dict[str, Any]:
    """All options of a task; one that it does not have is refused before anything is fitted."""
    declared = list(inspect.signature(tasks[task]).parameters.values())[2:]  # after model and data
    known = {parameter.name: parameter.default for parameter in declared}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(
            f"the task {task!r} has no option {', '.join(map(repr, unknown))}; "
            f"known: {', '.join(known)}{did_you_mean(unknown[0], known)}"
        )
    return known | options
