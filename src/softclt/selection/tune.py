"""Search of ranges with optuna, several configurations of a round trained side by side."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from softclt.optional import needed
from softclt.selection.comparison import Comparison, Member, Parameters

#: What is searched if nothing is said.
DEFAULT_RANGES: dict[str, Any] = {"tau_instance": (1.0, 100.0), "tau_temporal": (0.1, 10.0)}

_ROUND = 8  # configurations that are trained before the next are proposed


def tuned(comparison: Comparison, ranges: Any, n_trials: int) -> list[Member]:
    """What optuna's TPE tries, in its order; the model's own values first if they are in range."""
    ranges = DEFAULT_RANGES if ranges is None else ranges
    if not isinstance(ranges, Mapping) or not ranges:
        raise ValueError(
            "with search='optuna' the grid is a mapping from parameters to (low, high) or a list "
            f"of choices; got {ranges!r}"
        )
    with needed("search='optuna' needs optuna: pip install 'softclt[tune]', or leave `search` out"):
        optuna = import_module("optuna")
    space = {name: _distribution(optuna, name, values) for name, values in ranges.items()}
    own = comparison.model.get_params(deep=False)
    sampler = optuna.samplers.TPESampler(seed=comparison.seeds[0])
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(direction="maximize", sampler=sampler)
        if all(_holds(values, own.get(name)) for name, values in ranges.items()):
            study.enqueue_trial({name: own[name] for name in ranges})
        members: list[Member] = []
        while len(members) < n_trials:
            asked = [study.ask(space) for _ in range(min(_ROUND, n_trials - len(members)))]
            proposed: list[Parameters] = [dict(one.params) for one in asked]
            found = comparison.members(proposed)
            for one, member in zip(asked, found, strict=True):
                study.tell(one, member.score)
            members += found
    finally:
        optuna.logging.set_verbosity(verbosity)
    return members


def _distribution(optuna: Any, name: str, values: Any) -> Any:
    if isinstance(values, list) and values:
        return optuna.distributions.CategoricalDistribution(values)
    if not (isinstance(values, tuple) and len(values) == 2 and 0 < values[0] < values[1]):
        raise ValueError(
            f"the range of {name} is {values!r}; expected (low, high) with 0 < low < high, or a "
            "list of choices"
        )
    return optuna.distributions.FloatDistribution(*values, log=True)


def _holds(values: Any, own: Any) -> bool:
    if isinstance(values, list):
        return own in values
    return isinstance(own, (int, float)) and bool(values[0] <= own <= values[1])
