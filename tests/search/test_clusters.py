"""Groups that are there are found; medoids, odd ones and confidence mean what they say."""

import numpy as np
import pytest

from softclt.reports.clusters import clusters_figure
from softclt.search import find_clusters


@pytest.fixture
def groups(rng):
    """Three groups of different sizes around directions at right angles."""
    y = np.repeat([0, 1, 2], [30, 20, 10])
    return np.eye(8)[y] + 0.03 * rng.normal(size=(60, 8)), y


def test_groups_that_are_there_are_found_and_their_number(groups):
    R, y = groups
    found = find_clusters(R)
    assert found.n_clusters == 3
    assert max(found.scores, key=found.scores.get) == 3
    np.testing.assert_array_equal(found.labels, y)  # the largest is 0
    assert (found.confidence > 0.5).all()
    np.testing.assert_array_equal(find_clusters(R, 3).labels, y)
    assert find_clusters(R, most=2).n_clusters == 2


def test_scale_and_a_common_direction_change_nothing(groups):
    R, y = groups
    np.testing.assert_array_equal(find_clusters(1e6 * R + 5, 3).labels, y)


def test_medoids_and_odd_ones_are_those_of_a_loop(groups):
    R, _ = groups
    R[4] = [1, 0.9, 0, 0, 0, 0, 0, 0]
    found = find_clusters(R, 3)
    U = R - R.mean(axis=0)
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    for c in range(3):
        own = [i for i in range(60) if found.labels[i] == c]
        sums = [sum(((U[i] - U[j]) ** 2).sum() for j in own) for i in own]
        assert found.medoid[own].tolist() == [s == min(sums) for s in sums]
        far = [np.sqrt(((U[i] - U[own].mean(axis=0)) ** 2).sum()) for i in own]
        np.testing.assert_allclose(found.distance[own], far)
        low, high = np.percentile(far, [25, 75])
        assert found.odd[own].tolist() == [f > high + 1.5 * (high - low) for f in far]
    assert found.odd[4]
    assert found.confidence[4] < found.confidence[5]


def test_density_finds_the_groups_and_leaves_out_what_is_in_none(groups, rng):
    R, y = groups
    R = np.concatenate([R, -rng.normal(size=(8, 8))])
    found = find_clusters(R, method="hdbscan")
    assert found.n_clusters == 3
    assert all(len(set(found.labels[:60][y == c])) == 1 for c in range(3))
    assert found.confidence[60:].max() < found.confidence[:60].mean()
    none = found.labels == -1
    assert none[60:].any()
    assert not none[:60].any()
    assert np.isnan(found.distance[none]).all()
    assert not (found.medoid | found.odd)[none].any()
    assert found.medoid.sum() == 3


@pytest.mark.parametrize("n", [1, 2, 5])
def test_series_that_are_all_the_same_are_one_cluster(n):
    found = find_clusters(np.ones((n, 4)))
    assert found.labels.tolist() == [0] * n
    assert np.isnan(found.confidence).all()
    assert found.medoid.sum() == 1
    assert not found.odd.any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 0}, "k"),
        ({"k": 61}, "k"),
        ({"method": "dbscan"}, "expected one of"),
        ({"method": "hdbscan", "k": 3}, "leave k out"),
    ],
)
def test_wrong_arguments_are_named(groups, arguments, words):
    with pytest.raises(ValueError, match=words):
        find_clusters(groups[0], **arguments)


def test_too_few_series_are_named():
    with pytest.raises(ValueError, match="1 different embedding"):
        find_clusters(np.ones((5, 4)), 2)
    with pytest.raises(ValueError, match="at least 5 series"):
        find_clusters(np.ones((4, 4)), method="hdbscan")


def test_the_picture_has_a_panel_for_each_cluster_and_channel(groups, rng):
    pytest.importorskip("matplotlib")
    X = rng.normal(size=(60, 2, 20))
    X[3, :, 12:] = np.nan
    figure = clusters_figure(X, find_clusters(groups[0]), "sixty")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles[0].startswith("cluster 0, channel 0: 30 series")
    assert len(titles) == 6
