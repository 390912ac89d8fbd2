"""Numbers from scores: mean and spread, ranks, paired differences, tests. Knows no files."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softclt.validation import Floats64, check_choice

Seeds = Mapping[int, float]
"""Score by seed."""

INTERVALS = ("t", "bootstrap")
EXACT = 50  # data sets up to which Wilcoxon's test counts all signs
DECIMALS = 10  # means of the same scores in another order differ in the last bits: still a tie


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


def overall(scores: Sequence[Seeds]) -> Summary:
    """Mean over data sets, and how much that mean moves from seed to seed.

    The mean is that of the data sets' own means. Its spread is the standard deviation over the
    seeds that every data set has: for each of them the mean over data sets is taken first.

    Args:
        scores: One entry for each data set.

    Example:
        >>> overall([{0: 0.75, 1: 0.8125}, {0: 0.5, 1: 0.5}]).mean
        0.640625
    """
    mean = statistics.fmean(statistics.fmean(seeds.values()) for seeds in scores)
    common = set.intersection(*(set(seeds) for seeds in scores))
    by_seed = [statistics.fmean(seeds[seed] for seeds in scores) for seed in sorted(common)]
    spread = statistics.stdev(by_seed) if len(by_seed) > 1 else math.nan
    return Summary(mean, spread, len(by_seed))


def paired(first: Seeds, second: Seeds) -> dict[int, float]:
    """``first`` minus ``second`` for every seed that both have."""
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def ranks(scores: ArrayLike, lower_is_better: bool = False) -> Floats64:
    """Rank of every column in its row, 1 the best; equal scores share the mean of their ranks.

    Args:
        scores: ``(n_sets, n_rows)``: a row for each data set, a column for each competitor.
        lower_is_better: Errors rather than scores.

    Example:
        >>> ranks([[0.9, 0.8, 0.8]])
        array([[1. , 2.5, 2.5]])
    """
    from scipy.stats import rankdata

    scores = np.round(np.asarray(scores, dtype=np.float64), DECIMALS)
    return np.asarray(rankdata(scores if lower_is_better else -scores, axis=1), dtype=np.float64)


def wins_ties_losses(
    differences: Sequence[float], lower_is_better: bool = False
) -> tuple[int, int, int]:
    """How many differences are for, neither for nor against, and against the first competitor."""
    rounded = np.round(np.asarray(differences, dtype=np.float64), DECIMALS)
    up, down = int((rounded > 0).sum()), int((rounded < 0).sum())
    ties = len(rounded) - up - down
    return (down, ties, up) if lower_is_better else (up, ties, down)


def interval(
    differences: Sequence[float],
    level: float = 0.95,
    method: str = "t",
    seed: int = 0,
    resamples: int = 10_000,
) -> tuple[float, float]:
    """Confidence interval of the mean difference, the data sets being the sample.

    Args:
        differences: One for each data set.
        level: Share of intervals that cover the truth.
        method: ``"t"``: Student's; ``"bootstrap"``: percentiles of the means of data sets drawn
            with replacement.
        seed: Of the bootstrap.
        resamples: Of the bootstrap.

    Returns:
        Lower and upper end; NaN where a single data set has no interval.
    """
    check_choice(method, INTERVALS, "interval")
    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    if method == "bootstrap":
        draws = np.random.default_rng(seed).integers(n, size=(resamples, n))
        ends = np.quantile(values[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
        return float(ends[0]), float(ends[1])
    from scipy.stats import t

    half = float(t.ppf((1 + level) / 2, n - 1)) * float(values.std(ddof=1)) / math.sqrt(n)
    return float(values.mean()) - half, float(values.mean()) + half


def wilcoxon_p(differences: Sequence[float]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test; data sets without difference drop out.

    Exact for up to 50 others, with ties or without; scipy's normal approximation beyond.
    """
    values = np.round(np.asarray(differences, dtype=np.float64), DECIMALS)
    values = values[values != 0]
    if len(values) > EXACT:
        from scipy.stats import wilcoxon

        return float(wilcoxon(values).pvalue)
    return _exact_wilcoxon_p(values)


def _exact_wilcoxon_p(values: Floats64) -> float:
    """Of all ways to choose signs, the share with a sum of ranks as far out, counted by sums."""
    from scipy.stats import rankdata

    ranks = np.rint(2 * rankdata(np.abs(values))).astype(int)  # ties have halves
    ways = np.zeros(ranks.sum() + 1)  # by the sum of the positive ranks; below 2^50, so exact
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] += ways[:-rank]
    positive = ranks[values > 0].sum()
    tail = ways[: min(positive, ranks.sum() - positive) + 1].sum()
    return min(1.0, float(2 * tail / ways.sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being several, by Holm's step-down rule, in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for position, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - position) * p_values[i]))
        corrected[i] = highest
    return corrected


def pairwise_p(scores: ArrayLike) -> Floats64:
    """Wilcoxon's test between all columns, Holm's correction over all pairs.

    Args:
        scores: ``(n_sets, n_rows)``.

    Returns:
        ``(n_rows, n_rows)``, symmetric, ones on the diagonal.
    """
    table = np.asarray(scores, dtype=np.float64)
    first, second = np.triu_indices(table.shape[1], 1)
    found = [
        wilcoxon_p((table[:, i] - table[:, j]).tolist()) for i, j in zip(first, second, strict=True)
    ]
    p_values = np.ones((table.shape[1], table.shape[1]))
    p_values[first, second] = p_values[second, first] = holm(found)
    return p_values
