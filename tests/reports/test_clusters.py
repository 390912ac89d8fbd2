"""Without labels a map shows clusters that were found."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from softclt.reports.clusters import found_clusters


@pytest.mark.parametrize("k", [2, 4])
def test_groups_far_apart_are_found_and_the_largest_is_the_first(k, rng):
    sizes = [40 - 8 * i for i in range(k)]
    truth = np.repeat(np.arange(k), sizes)
    R = 20.0 * np.eye(k, 6)[truth] + rng.normal(size=(len(truth), 6))
    found = found_clusters(R)
    assert found.name == "cluster found"
    assert adjusted_rand_score(truth, found) == 1.0
    assert (found == "1").sum() == 40


def test_all_series_get_a_cluster_when_it_is_chosen_on_some(rng, monkeypatch):
    monkeypatch.setattr("softclt.reports.clusters.LARGEST", 20)
    truth = np.repeat([0, 1], 50)
    found = found_clusters(20.0 * truth[:, None] + rng.normal(size=(100, 3)))
    assert adjusted_rand_score(truth, found) == 1.0


def test_equal_embeddings_are_one_cluster():
    assert set(found_clusters(np.ones((5, 3)))) == {"1"}


def test_three_series_are_enough(rng):
    assert len(found_clusters(rng.normal(size=(3, 2)))) == 3
