"""What rows of scores say: who is compared on which sets, ranks, and soft against its control."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from softclt.reports.document import counted
from softclt.reports.metric import Metric
from softclt.reports.rows import Row, Table
from softclt.reports.statistics import (
    DECIMALS,
    Summary,
    holm,
    interval,
    overall,
    paired,
    pairwise_p,
    ranks,
    wilcoxon_p,
    wins_ties_losses,
)
from softclt.validation import Floats64

LEVEL = 0.95
FEWEST = 3  # data sets for a verdict: two that happen to differ alike have an interval of no width
NOTHING_SHOWN = "no difference shown"
COVERAGE = 0.8
"""Share of the fullest row's data sets that a row needs to be compared: below it, it would cost
all others too many sets."""


@dataclass(frozen=True)
class Difference:
    """A row minus its control, on the data sets and seeds that both have.

    Attributes:
        by_set: Mean over seeds, by data set.
        spread: Of the mean over data sets, from seed to seed.
        low: Of the confidence interval over data sets; NaN with a single one, as is ``high``.
        p: Wilcoxon's, with Holm's correction over all rows that were tested together; NaN for an
            oracle and for too few data sets, which are not tested.
    """

    row: Row
    control: Row
    by_set: dict[str, float]
    mean: float
    spread: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    own_mean: float
    control_mean: float
    p: float = math.nan

    @property
    def of_too_few_sets(self) -> bool:
        """Whether nothing can be said, whatever the interval is."""
        return len(self.by_set) < FEWEST

    def verdict(self, lower_is_better: bool = False) -> str:
        """What the interval allows to say."""
        if self.of_too_few_sets:
            count = "one data set shows" if len(self.by_set) == 1 else "two data sets show"
            return f"{count} nothing"
        if self.low <= 0 <= self.high:
            return NOTHING_SHOWN
        return "better" if (self.low > 0) != lower_is_better else "worse"


@dataclass
class Analysis:
    """One table, looked at.

    Attributes:
        interval_method: See `softclt.reports.statistics.interval`.
    """

    table: Table
    metric: Metric
    interval_method: str = "t"
    alone: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.alone = {}  # name -> why the row is shown, but not ranked
        fullest = max((len(row.scores) for row in self.table.rows if not row.published), default=0)
        for row in self.table.rows:
            if row.oracle:
                self.alone[row.name] = "chosen on the test set"
            elif row.point:
                self.alone[row.name] = "a point of a grid"
            elif len(row.scores) < COVERAGE * fullest:
                self.alone[row.name] = f"has {len(row.scores)} of {counted(fullest, 'data set')}"

    @cached_property
    def compared(self) -> list[Row]:
        """The rows that are ranked and tested against each other."""
        return [row for row in self.table.rows if row.name not in self.alone]

    @cached_property
    def common(self) -> list[str]:
        """The data sets that all compared rows have."""
        own = [set(row.scores) for row in self.compared]
        shared = set.intersection(*own) if own else set()
        return [name for name in self.table.datasets if name in shared]

    @cached_property
    def scores(self) -> Floats64:
        """Means over seeds of the compared rows, ``(n_sets, n_rows)``; equal ones are equal."""
        means = [[row.mean(name) for row in self.compared] for name in self.common]
        rounded = np.round(means, DECIMALS)  # aeon's ranks know no ties but equal bits
        return rounded.reshape(len(self.common), len(self.compared))

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Average rank by name."""
        if not self.common:
            return {}
        found = ranks(self.scores, self.metric.lower_is_better).mean(axis=0)
        return {row.name: float(rank) for row, rank in zip(self.compared, found, strict=True)}

    @cached_property
    def best_on(self) -> dict[str, int]:
        """On how many of the common sets a row is best, alone or with others."""
        if not self.common:
            return {}
        first = ranks(self.scores, self.metric.lower_is_better)
        best = (first == first.min(axis=1, keepdims=True)).sum(axis=0)
        return {row.name: int(n) for row, n in zip(self.compared, best, strict=True)}

    @cached_property
    def p_values(self) -> Floats64:
        """Between all compared rows; Holm over all pairs."""
        return pairwise_p(self.scores)

    def sets_of(self, row: Row) -> list[str]:
        """The data sets that a row's mean is taken over: the common ones, as far as it has them."""
        return [name for name in self.common if name in row.scores]

    def summary(self, row: Row, among: Iterable[str] | None = None) -> Summary | None:
        """Mean and spread over the common sets, or those among them."""
        names = self.sets_of(row)
        if among is not None:
            wanted = set(among)
            names = [name for name in names if name in wanted]
        return overall([row.scores[name] for name in names]) if names else None

    @cached_property
    def differences(self) -> list[Difference]:
        """Every row against its control, honest ones first; without the points of grids."""
        rows = sorted(self.table.rows, key=lambda row: row.oracle)
        found = self.against_control(row for row in rows if not row.point)
        tested = [one for one in found if not one.row.oracle and not one.of_too_few_sets]
        corrected = holm([wilcoxon_p(list(one.by_set.values())) for one in tested])
        with_p = dict(zip((one.row.name for one in tested), corrected, strict=True))
        return [replace(one, p=with_p.get(one.row.name, math.nan)) for one in found]

    def against_control(self, rows: Iterable[Row]) -> list[Difference]:
        """Those of the rows that have a control, minus it; not tested yet."""
        found = []
        for row in rows:
            control = self.table.row(row.control) if row.control else None
            if control is not None and (one := self.difference(row, control)) is not None:
                found.append(one)
        return found

    @property
    def without_control(self) -> list[Row]:
        """Soft rows for which nobody says what softness adds."""
        found = {one.row.name for one in self.differences}
        soft = (row for row in self.table.rows if row.kind == "soft" and not row.point)
        return [row for row in soft if row.name not in found]

    def difference(
        self, row: Row, control: Row, among: Iterable[str] | None = None
    ) -> Difference | None:
        """``row`` minus ``control``, paired by data set and seed; None if they share nothing."""
        wanted = set(self.table.datasets if among is None else among)
        pairs = {
            name: seeds
            for name in self.table.datasets
            if name in wanted and name in row.scores and name in control.scores
            if (seeds := paired(row.scores[name], control.scores[name]))
        }
        if not pairs:
            return None
        by_set = {name: sum(seeds.values()) / len(seeds) for name, seeds in pairs.items()}
        values = list(by_set.values())
        low, high = interval(values, LEVEL, self.interval_method)
        whole = overall(list(pairs.values()))
        wins, ties, losses = wins_ties_losses(values, self.metric.lower_is_better)
        return Difference(
            row=row,
            control=control,
            by_set=by_set,
            mean=whole.mean,
            spread=whole.spread,
            low=low,
            high=high,
            wins=wins,
            ties=ties,
            losses=losses,
            own_mean=_mean_of_pairs(row, pairs),
            control_mean=_mean_of_pairs(control, pairs),
        )

    @cached_property
    def groups(self) -> dict[str, dict[str, list[str]]]:
        """Kind of group -> group -> data sets, for kinds that split them."""
        found: dict[str, dict[str, list[str]]] = {}
        for name in self.table.datasets:
            labels: dict[str, str] = {}
            for row in self.table.rows:
                labels |= row.groups.get(name, {})
            for kind, group in labels.items():
                found.setdefault(kind, {}).setdefault(group, []).append(name)
        return {kind: dict(sorted(groups.items())) for kind, groups in found.items()}


def _mean_of_pairs(row: Row, pairs: dict[str, dict[int, float]]) -> float:
    means = [sum(row.scores[name][s] for s in seeds) / len(seeds) for name, seeds in pairs.items()]
    return sum(means) / len(means)


def in_order(rows: Sequence[Row], analysis: Analysis) -> list[Row]:
    """Our rows as they came, then oracles, then published ones from good to bad; no grid points."""
    mean = {row.name: s.mean if (s := analysis.summary(row)) else -math.inf for row in rows}
    sign = 1 if analysis.metric.lower_is_better else -1
    published = sorted((r for r in rows if r.published), key=lambda r: sign * mean[r.name])
    own = [row for row in rows if not row.published and not row.point]
    return [r for r in own if not r.oracle] + [r for r in own if r.oracle] + published
