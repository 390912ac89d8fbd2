"""Which series to label next."""

import numpy as np
import pytest

from softclt.few_labels import margins, to_label_next


def three_clusters(rng):
    """Rows 0-29, 30-59 and 60-79 are clusters, 80 is an outlier."""
    centres = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], [30, 30, 20], axis=0)
    return np.vstack([centres + 0.5 * rng.normal(size=centres.shape), [[40.0, 40.0]]])


def unsure(n):
    return np.full((n, 2), 0.5)


def test_each_cluster_without_a_label_gets_one_the_largest_first(rng):
    R = three_clusters(rng)
    chosen = to_label_next(R, unsure(81), np.array([3]), n=2)
    assert 30 <= chosen[0] < 60 <= chosen[1] < 80


def test_an_outlier_is_not_chosen_before_the_crowd(rng):
    assert 80 not in to_label_next(three_clusters(rng), unsure(81), np.array([3]), n=5)


def test_of_two_like_clusters_the_uncertain_one_comes_first(rng):
    half = rng.normal(size=(20, 3))
    R = np.vstack([half, half + 10, half + 20])
    sure = np.tile([0.99, 0.01], (20, 1))
    last, middle = (
        np.vstack([unsure(20), *parts]) for parts in ((sure, unsure(20)), (unsure(20), sure))
    )
    assert to_label_next(R, last, np.arange(20), n=1)[0] >= 40
    assert 20 <= to_label_next(R, middle, np.arange(20), n=1)[0] < 40


def test_labelled_rows_are_never_chosen_and_none_twice(rng):
    chosen = to_label_next(three_clusters(rng), unsure(81), np.arange(75), n=10)
    assert sorted(chosen) == [75, 76, 77, 78, 79, 80]


def test_all_labelled_leaves_nothing_to_choose(rng):
    assert len(to_label_next(rng.normal(size=(4, 2)), unsure(4), np.arange(4))) == 0


def test_equal_series_and_no_label_at_all_still_give_an_answer():
    chosen = to_label_next(np.zeros((5, 2)), unsure(5), np.array([], dtype=int), n=2)
    assert len(set(chosen)) == 2


def test_the_choice_is_the_documented_sum_as_loops(rng):
    R, labelled = rng.normal(size=(12, 3)), [1, 7]
    p = rng.dirichlet(np.ones(3), size=12)
    S = (R - R.mean(axis=0)) / R.std(axis=0)
    free = [i for i in range(12) if i not in labelled]
    d = {(i, j): np.linalg.norm(S[i] - S[j]) for i in range(12) for j in range(12)}
    near = [np.mean(sorted(d[i, j] for j in free if j != i)[:4]) for i in free]
    s = 2 * np.median(near)
    best, value = -1, -1.0
    for i in free:
        total = 0.0
        for j in free:
            ordered = sorted(p[j])
            weight = (1 + 1 - (ordered[-1] - ordered[-2])) / 2
            covered = max(np.exp(-((d[j, known] / s) ** 2)) for known in labelled)
            total += weight * max(0.0, np.exp(-((d[i, j] / s) ** 2)) - covered)
        if total > value:
            best, value = i, total
    assert to_label_next(R, p, np.array(labelled), n=1, neighbors=4)[0] == best


def test_a_margin_is_the_lead_of_the_first_class():
    assert margins(np.array([[0.2, 0.7, 0.1]])) == pytest.approx([0.5])
