"""Numbers under the pictures, and panels of distance matrices."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from softclt import TS2Vec
from softclt.reports.figures import (
    distance_matrices,
    instance_maps,
    layer_distances,
    neighbourhood_maps,
)
from softclt.reports.figures.measures import (
    class_order,
    euclidean_distances,
    groups,
    rank_correlation,
    rank_shares,
    same_label_share,
    seriation,
    shared_neighbours,
)

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex


def distances_of(points):
    return euclidean_distances(np.asarray(points, dtype=float)[:, None])


@pytest.fixture(scope="module")
def series():
    return np.random.default_rng(0).normal(size=(10, 2, 16))


@pytest.fixture(scope="module")
def model(series):
    small = TS2Vec(output_dims=6, hidden_dims=4, depth=3, max_iter=2, random_state=0)
    return small.fit(series)


def test_rank_correlation_is_spearman_s_over_the_pairs(rng):
    first, second = (euclidean_distances(rng.integers(0, 4, size=(9, 2))) for _ in range(2))
    pairs = np.triu_indices(9, 1)
    expected = spearmanr(first[pairs], second[pairs]).statistic  # with ties
    assert rank_correlation(first, second) == pytest.approx(expected)
    assert rank_correlation(first, first**3) == pytest.approx(1.0)
    assert np.isnan(rank_correlation(first, np.zeros((9, 9))))


def test_rank_shares_keep_the_order_of_pairs_and_run_from_0_to_1(rng):
    D = euclidean_distances(rng.normal(size=(6, 3)))
    shares = rank_shares(D)
    pairs = np.triu_indices(6, 1)
    np.testing.assert_array_equal(np.argsort(shares[pairs]), np.argsort(D[pairs]))
    np.testing.assert_allclose(np.sort(shares[pairs]), np.linspace(0, 1, 15))
    np.testing.assert_array_equal(shares, shares.T)


def test_neighbour_agreement_counts_shared_neighbours():
    line = distances_of([0, 1, 2.1, 3.3])
    assert shared_neighbours(line, line, k=2) == 1.0
    # Nearest of each: 1, 0, 1, 2 on the line; 2, 3, 0, 1 in the other.
    assert shared_neighbours(line, distances_of([0, 10, 1, 11.5]), k=1) == 0.0
    assert shared_neighbours(line, distances_of([9, 0, 1.1, 2.3]), k=3) == 1.0


def test_same_label_share_counts_nearest_neighbours_of_the_own_class():
    D = distances_of([0, 1, 2.5, 10, 11])
    assert same_label_share(D, np.array([0, 0, 1, 1, 1])) == pytest.approx(4 / 5)


def test_seriation_puts_points_of_a_line_in_their_order(rng):
    points = rng.permutation(8)
    found = points[seriation(distances_of(points))].tolist()
    assert found in (list(range(8)), list(range(7, -1, -1)))


def test_rows_are_sorted_by_class_first():
    points, labels = np.array([3, 0, 2, 1]), np.array([1, 0, 0, 1])
    order = class_order(distances_of(points), labels)
    assert labels[order].tolist() == [0, 0, 1, 1]


def test_groups_of_close_points_are_numbered_along_the_line():
    found = groups(distances_of([5.1, 0, 0.1, 9, 5, 9.2]), 3)
    assert found[0] == found[4] == 1
    assert found[1] == found[2] != found[3] == found[5]


def test_layer_distances_are_those_of_the_pooled_outputs(model, series):
    by_layer = layer_distances(model, series)
    assert list(by_layer) == [0, 1, 2, 3]
    for layer, D in by_layer.items():
        R = model.encode(series, layer=layer).astype(float)
        np.testing.assert_allclose(D, cdist(R, R), atol=1e-9)


def test_panels_show_ranks_of_the_distances_in_one_order_with_their_correlation(model, series):
    data = euclidean_distances(series.reshape(10, -1))
    labels = np.arange(10) % 2
    by_model = {"this": layer_distances(model, series, [0, 3]), "that": {0: data}}
    figure = distance_matrices(data, by_model, labels, ["even", "odd"])
    order = class_order(data, labels)
    matrices = [data, *by_model["this"].values(), data]
    panels = [ax for ax in figure.axes if ax.images]
    assert len(panels) == len(matrices)
    for panel, D in zip(panels, matrices, strict=True):
        shown = np.asarray(panel.images[0].get_array())
        np.testing.assert_array_equal(shown, rank_shares(D)[np.ix_(order, order)])
    rho = rank_correlation(data, by_model["this"][3])
    assert panels[2].get_xlabel() == f"ρ = {rho:.2f}"
    assert panels[2].get_title() == "layer 4"
    assert panels[3].get_xlabel() == "ρ = 1.00"
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["even", "odd"]


def test_maps_of_instances_name_few_classes_and_not_many(rng):
    R = rng.normal(size=(40, 5))
    few = instance_maps({"hard": R, "soft": R}, np.arange(40) % 3, list("abc"), projection="pca")
    assert [text.get_text() for text in few.legends[0].get_texts()] == list("abc")
    assert few.axes[0].get_xlabel().startswith("nearest of the same class: ")
    many = instance_maps({"hard": R}, np.arange(40) % 20, projection="pca")
    assert not many.legends
    without = instance_maps({"hard": R}, projection="pca")
    assert without.axes[0].get_xlabel() == ""


def test_neighbourhoods_have_one_colour_in_both_spaces(rng):
    levels = np.repeat([0.0, 5.0, 20.0], 4)
    X = levels[:, None, None] + 0.1 * rng.normal(size=(12, 1, 8))
    R = levels[:, None] + 0.1 * rng.normal(size=(12, 3))
    D = euclidean_distances(X[:, 0])
    figure = neighbourhood_maps(X, D, {"model": R}, n_groups=3, projection="pca")
    *lines, scatter = figure.axes
    right = [to_hex(points.get_facecolor()[0]) for points in scatter.collections]
    assert [to_hex(ax.lines[0].get_color()) for ax in lines] == right
    assert [len(ax.lines) - 1 for ax in lines] == [4, 4, 4]
    assert scatter.get_xlabel().startswith("neighbours kept: ")
