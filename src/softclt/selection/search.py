"""`select`: train configurations on the same series, and keep the one that looks best."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.methods import RepresentationLearner
from softclt.selection.comparison import Comparison, Member, Parameters
from softclt.selection.scores import choose
from softclt.selection.tune import tuned
from softclt.validation import check_choice, check_random_state_seed, check_range, check_series

if TYPE_CHECKING:
    from pandas import DataFrame

#: Nine pairs of taus, and hard losses.
DEFAULT_GRID: tuple[Parameters, ...] = (
    *(
        {"tau_instance": instance, "tau_temporal": temporal}
        for instance in (5.0, 20.0, 40.0)
        for temporal in (0.5, 1.0, 2.5)
    ),
    {"tau_instance": None, "tau_temporal": None},
)

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class Selection:
    """What was tried, how it scored on the training series, and what was chosen.

    Attributes:
        strategy: How it was chosen.
        criterion: What gave the scores; None for the default, which is not compared.
        members: All configurations, in the order of the grid.
        best: Position of the chosen one among them.
    """

    strategy: str
    criterion: str | None
    members: tuple[Member, ...]
    best: int

    @property
    def best_params(self) -> Parameters:
        """What the chosen one changes: ``model.set_params(**best_params)``."""
        return dict(self.members[self.best].params)

    @property
    def best_score(self) -> float:
        """Of the chosen one, on the training series: the best of many, so no estimate."""
        return self.members[self.best].score

    @property
    def best_model(self) -> RepresentationLearner:
        """The chosen one, fitted, under the first seed."""
        return self.members[self.best].model

    @property
    def table(self) -> "DataFrame":
        """A row a configuration: parameters, mean score, score by seed, and which was chosen."""
        from pandas import DataFrame, Series

        names = dict.fromkeys(name for member in self.members for name in member.params)
        columns: dict[str, Any] = {
            name: Series([getattr(member.model, name) for member in self.members], dtype=object)
            for name in names  # as objects, so that None stays None
        }
        columns["score"] = [member.score for member in self.members]
        for k, scores in enumerate(zip(*(m.scores for m in self.members), strict=True)):
            columns[f"score_{k}"] = scores
        columns["chosen"] = [i == self.best for i in range(len(self.members))]
        return DataFrame(columns)

    def __repr__(self) -> str:
        how = f"by {self.criterion}" if self.criterion else "not compared"
        return (
            f"Selection(strategy={self.strategy!r} ({how}), best_params={self.best_params}, "
            f"best_score={self.best_score:.4g}, of {len(self.members)})"
        )


def select(
    model: RepresentationLearner,
    X: Any,
    y: Any = None,
    grid: Grid | None = None,
    strategy: str = "train",
    *,
    probe: str = "ridge",
    seeds: int | Sequence[int] = 1,
    distances: Any = None,
    random_state: Any = None,
    search: str = "grid",
    n_trials: int = 24,
    progress: bool = False,
) -> Selection:
    """Choose parameters by the training series alone, and return the fitted model with them.

    All configurations are trained by one `fit_many`. Among equal scores the model's own parameters
    win, if they are in the grid, else the first in its order.

    Args:
        model: What the configurations are copies of; it is not changed.
        X: Training series, as for ``fit``.
        y: Their labels; only ``"train"`` looks at them.
        grid: Lists of values by parameter, of which all combinations are taken, or the
            configurations themselves as a list of mappings. None: tau_instance 5, 20, 40 with
            tau_temporal 0.5, 1, 2.5, and hard.
        strategy: ``"train"``: accuracy of a probe on the embedding, cross-validated.
            ``"unlabelled"``: how well a ridge reads clusters of data space off the embedding, the
            criterion without labels that chose best on UCR sets.
            ``"default"``: the model as it is; nothing is compared. Or any of
            `softclt.selection.criteria` by name.
        probe: For ``"train"``: ``"ridge"``, by leave-one-out, or another registered probe, by five
            folds.
        seeds: How many, or which; a score is the mean over them. They are random_state,
            random_state + 1, ...; the first is that of the returned model.
        distances: Raw distances ``(N, N)``, see ``fit``.
        random_state: The first seed; None takes that of the model.
        search: ``"grid"``, or ``"optuna"``: the grid is then of ranges, see below.
        n_trials: Configurations that optuna tries. A pair ``(low, high)`` of the grid is a range,
            searched on a logarithmic scale; a list holds choices.
        progress: Show bars.

    Example:
        >>> from softclt import TS2Vec
        >>> from softclt.data import waves
        >>> data = waves(n_per_class=4, length=30, random_state=0)
        >>> model = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=2, random_state=0)
        >>> found = select(model, data.X_train, data.y_train, {"tau_instance": [5.0, None]})
        >>> found.criterion, len(found.members), found.best_model.transform(data.X_test).shape[1]
        ('loo', 2, 8)
    """
    if not isinstance(model, RepresentationLearner):
        raise TypeError(
            f"model is a {type(model).__name__}; expected one of our methods, e.g. TS2Vec(). For "
            "an ensemble choose its member, then EmbeddingEnsemble(selection.best_model)"
        )
    check_choice(search, ("grid", "optuna"), "search")
    comparison = Comparison(
        model=model,
        X=check_series(X, min_length=2),
        y=y,
        strategy=strategy,
        probe=probe,
        seeds=_seeds(seeds, model.random_state if random_state is None else random_state),
        distances=distances,
        progress=progress,
    )
    comparison.check()
    if strategy == "default":
        members = comparison.members([{}])
    elif search == "optuna":
        check_range(n_trials, "n_trials", 1)
        members = tuned(comparison, grid, n_trials)
    else:
        members = comparison.members(configurations(DEFAULT_GRID if grid is None else grid))
    own = model.get_params(deep=False)
    like_model = [i for i, m in enumerate(members) if m.params == {k: own[k] for k in m.params}]
    best = choose([m.score for m in members], like_model[0] if like_model else None)
    return Selection(strategy, comparison.criterion, tuple(members), best)


def configurations(grid: Grid) -> list[Parameters]:
    """All members of a grid in their order; the last parameter changes first.

    Example:
        >>> configurations({"tau_instance": [5, None], "alpha": [0.5]})
        [{'tau_instance': 5, 'alpha': 0.5}, {'tau_instance': None, 'alpha': 0.5}]
    """
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, (str, bytes)) or not isinstance(values, Sequence | np.ndarray):
                raise ValueError(f"the grid has {name}={values!r}; expected a list of values")
        members = [
            dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
        ]
    else:
        members = [dict(member) for member in grid]
    if not members or not grid:
        raise ValueError("the grid is empty; leave it out, or give values to choose from")
    return members


def _seeds(seeds: int | Sequence[int], random_state: Any) -> list[int]:
    if isinstance(seeds, (int, np.integer)):
        check_range(seeds, "seeds", 1)
        first = check_random_state_seed(random_state)
        return [first + k for k in range(seeds)]
    if not seeds:
        raise ValueError("seeds is empty; expected a number, or a list of seeds")
    return [check_random_state_seed(seed) for seed in seeds]
