"""From results to tables: mean and spread over seeds, by data set and configuration."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softclt.tasks.result import Result

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Summary:
    """Mean of some scores and their standard deviation; NaN where one score has no spread."""

    mean: float
    spread: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Summary":
        """Summary of at least one score."""
        spread = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), spread, len(values))

    def text(self, sign: bool = False) -> str:
        """As per cent, e.g. ``98.2 ± 0.4``."""
        mean = f"{100 * self.mean:{'+' if sign else ''}.1f}"
        return mean if math.isnan(self.spread) else f"{mean} ± {100 * self.spread:.1f}"


def configuration(result: Result) -> str:
    """The kind of model a result belongs to: ``"untrained"``, ``"hard"`` or ``"soft"``."""
    if result.params.get("max_iter") == 0:
        return "untrained"
    return "hard" if result.tau_choice == "hard" else "soft"


def mean_and_spread(
    results: Iterable[Result],
    metric: str = "accuracy",
    by: Callable[[Result], str] = configuration,
) -> dict[tuple[str, str], Summary]:
    """Summary over seeds for every data set and configuration, in the order of the results."""
    groups: dict[tuple[str, str], list[float]] = {}
    for result in results:
        groups.setdefault((result.dataset, by(result)), []).append(_score(result, metric))
    return {key: Summary.of(values) for key, values in groups.items()}


def paired_difference(
    results: Iterable[Result],
    first: str,
    second: str,
    metric: str = "accuracy",
    by: Callable[[Result], str] = configuration,
) -> dict[str, Summary]:
    """Summary over seeds of ``first`` minus ``second`` with the same seed, for every data set."""
    scores: dict[str, dict[tuple[str, int], float]] = {}
    for result in results:
        scores.setdefault(result.dataset, {})[by(result), result.seed] = _score(result, metric)
    differences = {}
    for dataset, found in scores.items():
        pairs = [
            score - found[second, seed]
            for (name, seed), score in found.items()
            if name == first and (second, seed) in found
        ]
        if pairs:
            differences[dataset] = Summary.of(pairs)
    return differences


def comparison_table(
    results: Sequence[Result],
    *,
    columns: Sequence[str] = ("untrained", "hard", "soft"),
    metric: str = "accuracy",
) -> "Table":
    """A rich table: a row for each data set, a column for each configuration, soft minus hard."""
    from rich.table import Table

    cells = mean_and_spread(results, metric)
    differences = paired_difference(results, "soft", "hard", metric)
    datasets = list(dict.fromkeys(dataset for dataset, _ in cells))
    table = Table()
    table.add_column("data set", no_wrap=True)
    for name in (*columns, "soft − hard"):
        table.add_column(name, justify="right", no_wrap=True)
    for dataset in datasets:
        found = [cells.get((dataset, name)) for name in columns]
        row = [summary.text() if summary else "" for summary in found]
        difference = differences.get(dataset)
        table.add_row(dataset, *row, difference.text(sign=True) if difference else "")
    if len(datasets) > 1:
        table.add_section()
        means = [_mean([cells.get((dataset, name)) for dataset in datasets]) for name in columns]
        difference_mean = _mean([differences.get(dataset) for dataset in datasets], sign=True)
        table.add_row("mean", *means, difference_mean)
    return table


def _score(result: Result, metric: str) -> float:
    if metric not in result.metrics:
        raise ValueError(
            f"a result of {result.dataset} has no metric {metric!r}; "
            f"it has {', '.join(result.metrics)}"
        )
    return result.metrics[metric]


def _mean(summaries: Sequence[Summary | None], sign: bool = False) -> str:
    """Mean over data sets; empty unless every data set has a value."""
    means = [summary.mean for summary in summaries if summary]
    if len(means) < len(summaries):
        return ""
    return Summary(statistics.fmean(means), math.nan, len(means)).text(sign)
