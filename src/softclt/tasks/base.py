"""The table of tasks, and `evaluate`, which turns what a task finds into a `Result`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from softclt.data import Dataset, load
from softclt.methods import methods
from softclt.persistence import json_safe, versions
from softclt.registry import Registry
from softclt.tasks.result import Result, utc_now
from softclt.validation import check_choice, check_random_state_seed


@dataclass(frozen=True)
class Outcome:
    """What a task hands to `evaluate`: scores, wall time by phase, and what read the model."""

    metrics: dict[str, float]
    seconds: dict[str, float]
    probe: str = ""


#: Functions ``(model, data, **options) -> Outcome``; they fit the unfitted model themselves.
tasks: Registry[Callable[..., Outcome]] = Registry("task")

TAU_CHOICES = ("default", "hard", "fixed", "train", "oracle", "none")


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
        tau_choice: How the taus were chosen, where the parameters cannot tell: ``"train"`` or
            ``"oracle"``. Otherwise it is read off the parameters.
        options: Go to the task, e.g. ``probe=["svm", "knn"]``.

    Example:
        >>> from softclt import TS2Vec
        >>> model = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=1)
        >>> result = evaluate("classification", model, "synthetic/waves", seed=1)
        >>> result.tau_choice, result.probe, sorted(result.metrics)
        ('default', 'svm', ['accuracy', 'auprc', 'f1_macro'])
    """
    blank = describe(task, model, data, seed, tau_choice=tau_choice, **options)
    model = _seeded_clone(model, blank.seed)
    outcome = tasks[task](model, load(data) if isinstance(data, str) else data, **options)
    return replace(
        blank,
        metrics=outcome.metrics,
        seconds=outcome.seconds,
        probe=outcome.probe,
        device=str(getattr(model, "device_", "cpu")),
        created=utc_now(),
    )


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
    options = _with_defaults(task, options)
    seed = check_random_state_seed(seed)
    model = _seeded_clone(model, seed)
    if tau_choice is None:
        tau_choice = _tau_choice(model)
    check_choice(tau_choice, TAU_CHOICES, "tau_choice")
    if isinstance(data, str):
        data = load(data)
    return Result(
        task=task,
        dataset=str(data.meta["name"]),
        fingerprint=data.fingerprint,
        method=method_name(model),
        params=json_safe(model.get_params(deep=False)),
        tau_choice=tau_choice,
        seed=seed,
        metrics={},
        options=json_safe(options),
        versions=versions(),
    )


def method_name(model: Any) -> str:
    """Registered name of a model's class; the class' own name where it is not ours."""
    try:
        return methods.name_of(type(model))
    except ValueError:
        return type(model).__name__


def _seeded_clone(model: Any, seed: int) -> Any:
    """A clone whose every ``random_state``, also inside a pipeline, is ``seed``."""
    model = clone(model)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def _tau_choice(model: Any) -> str:
    """How the taus were chosen, as far as the parameters show it."""
    params = model.get_params(deep=False)
    taus = {name: params[name] for name in ("tau_instance", "tau_temporal") if name in params}
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
    unknown = ", ".join(repr(name) for name in options if name not in known)
    if unknown:
        raise TypeError(f"the task {task!r} has no option {unknown}; known: {', '.join(known)}")
    return known | options
