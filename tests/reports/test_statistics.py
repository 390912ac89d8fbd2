"""Statistics against scipy, statsmodels and plain loops."""

import math
import statistics as plain

import numpy as np
import pytest
from scipy import stats

import naive
from softclt.reports.statistics import (
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


@pytest.fixture
def table(rng):
    """Scores of five rows on 20 sets, with ties: ``(20, 5)``."""
    return np.round(rng.uniform(0.7, 0.9, (20, 5)) + np.linspace(0, 0.05, 5), 2)


def test_one_score_has_no_spread():
    assert math.isnan(Summary.of([0.75]).spread)
    assert Summary.of([0.8, 0.9]).spread == pytest.approx(math.sqrt(0.005))


def test_the_spread_of_the_mean_is_taken_over_seeds_after_the_mean_over_sets(rng):
    scores = rng.uniform(size=(7, 3))  # sets, seeds
    found = overall([dict(enumerate(row)) for row in scores])
    by_seed = [plain.fmean(scores[:, seed]) for seed in range(3)]
    assert found.mean == pytest.approx(plain.fmean(by_seed))
    assert found.spread == pytest.approx(plain.stdev(by_seed))
    assert found.n == 3


def test_a_seed_that_one_set_lacks_counts_in_means_but_not_in_the_spread():
    found = overall([{0: 0.5, 1: 0.7, 2: 0.9}, {0: 0.5, 1: 0.5}])
    assert found.mean == pytest.approx((0.7 + 0.5) / 2)
    assert found.spread == pytest.approx(plain.stdev([0.5, 0.6]))
    assert found.n == 2


def test_differences_are_paired_by_seed():
    assert paired({0: 3.0, 1: 5.0, 7: 1.0}, {0: 1.0, 1: 4.0, 2: 9.0}) == {0: 2.0, 1: 1.0}


def naive_ranks(row, lower_is_better):
    found = []
    for own in row:
        better = sum((other < own) if lower_is_better else (other > own) for other in row)
        equal = sum(other == own for other in row)
        found.append(better + (equal + 1) / 2)
    return found


@pytest.mark.parametrize("lower", [False, True])
def test_ranks_are_those_of_a_plain_count(table, lower):
    expected = [naive_ranks(row, lower) for row in table]
    np.testing.assert_allclose(ranks(table, lower), expected)


def test_rounding_errors_are_ties():
    assert ranks([[0.1 + 0.2, 0.3]]).tolist() == [[1.5, 1.5]]
    assert wins_ties_losses([0.1 + 0.2 - 0.3, 1.0, -2.0, -1.0]) == (1, 1, 2)
    assert wins_ties_losses([1.0, -2.0, -1.0], lower_is_better=True) == (2, 0, 1)


def test_the_t_interval_is_scipys(table):
    differences = table[:, 1] - table[:, 0]
    expected = stats.ttest_rel(table[:, 1], table[:, 0]).confidence_interval(0.9)
    assert interval(differences, 0.9) == pytest.approx((expected.low, expected.high))


def test_the_bootstrap_interval_is_near_scipys_and_the_same_each_time(table):
    differences = table[:, 1] - table[:, 0]
    found = interval(differences, method="bootstrap", seed=3)
    assert found == interval(differences, method="bootstrap", seed=3)
    expected = stats.bootstrap(
        (differences,), np.mean, method="percentile", n_resamples=9999
    ).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=2e-3)


def test_one_set_has_no_interval_and_another_method_is_refused():
    assert all(map(math.isnan, interval([0.5])))
    with pytest.raises(ValueError, match="expected one of 't', 'bootstrap'"):
        interval([0.5, 0.6], method="normal")


@pytest.mark.parametrize(
    "differences",
    [
        [1.0],
        [-2.0, 2.0],
        [1.0, 1.0, 1.0, 1.0],
        [1.0, -1.0, 2.0, 2.0, -3.0, 3.0, 4.0, 4.0],
        [0.3, 0.1, -0.2, 0.4, 0.5, -0.6, 0.7, 0.8, 0.9],
    ],
)
def test_wilcoxon_counts_all_choices_of_signs_with_and_without_ties(differences):
    expected = naive.signed_rank_p(differences)
    assert wilcoxon_p(differences) == pytest.approx(expected, abs=1e-12)
    assert wilcoxon_p([-d for d in differences]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "decimals"), [(9, 1), (13, 1), (30, 9), (50, 9), (70, 1), (90, 9)])
def test_wilcoxon_is_scipys_where_that_is_exact_and_beyond_50_sets(n, decimals, rng):
    differences = np.round(rng.normal(0.2, 0.5, size=n), decimals)
    differences = differences[differences != 0]
    expected = stats.wilcoxon(differences).pvalue
    assert wilcoxon_p(differences.tolist()) == pytest.approx(expected, rel=1e-9)


def test_sets_without_a_difference_drop_out_of_wilcoxons_test():
    assert wilcoxon_p([0.0, 0.3, 0.0, 0.1, -0.2]) == wilcoxon_p([0.3, 0.1, -0.2])
    assert wilcoxon_p([0.0, 0.0]) == 1.0


def test_holm_is_that_of_statsmodels(rng):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = rng.uniform(0, 0.3, 12).tolist()
    np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_are_tested_each_and_corrected_together(table):
    found = pairwise_p(table)
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    expected = holm([wilcoxon_p((table[:, i] - table[:, j]).tolist()) for i, j in pairs])
    for (i, j), p in zip(pairs, expected, strict=True):
        assert found[i, j] == found[j, i] == p
    np.testing.assert_array_equal(np.diag(found), 1.0)


def test_average_ranks_are_those_of_aeons_diagram(table):
    aeon_ranks = pytest.importorskip("aeon.visualisation.results._critical_difference")
    expected = aeon_ranks._compute_ranks(table, False)
    np.testing.assert_allclose(ranks(table), expected)
