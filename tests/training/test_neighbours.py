"""Batches with neighbours in them."""

import numpy as np
import pytest
import torch

from softclt.training.neighbours import NeighbourRows


def line(n):
    """Distances of points on a line."""
    places = torch.arange(float(n))
    return (places[:, None] - places).abs()


def test_half_of_a_batch_are_neighbours_of_the_other_half():
    rows = NeighbourRows([line(1000)], [1000], [1.0], neighbours=2)
    for step in range(5):
        batch = rows(0, step, 64)
        apart = np.abs(batch[:, None] - batch) + 1000 * np.eye(64)
        assert (apart.min(axis=1) == 1).mean() > 0.9


def test_a_row_comes_once_even_where_all_are_wanted():
    rows = NeighbourRows([line(9)], [9], [1.0], neighbours=3)
    assert sorted(rows(3, 7, 9)) == list(range(9))


def test_rows_depend_on_seed_and_step_alone():
    rows = NeighbourRows([line(50)], [50], [1.0], neighbours=3)
    np.testing.assert_array_equal(rows(1, 2, 16), rows(1, 2, 16))
    assert not np.array_equal(rows(1, 2, 16), rows(1, 3, 16))
    assert not np.array_equal(rows(1, 2, 16), rows(2, 2, 16))


@pytest.mark.parametrize("neighbours", [0, 4])
def test_sets_have_their_weights_in_a_batch_with_neighbours_and_without(neighbours):
    rows = NeighbourRows([line(400), None], [400, 600], [3.0, 1.0], neighbours)
    own = np.concatenate([rows(0, step, 64) < 400 for step in range(50)])
    assert own.mean() == pytest.approx(0.75, abs=0.03)


def test_neighbours_are_of_the_same_set():
    rows = NeighbourRows([line(3), line(3)], [3, 3], [1.0, 1.0], neighbours=5)
    assert rows.counts.tolist() == [2] * 6
    assert (rows.nearest[:3, :2] < 3).all()
    assert (rows.nearest[3:, :2] >= 3).all()


def test_siblings_are_neighbours_of_each_other_alone():
    rows = NeighbourRows([None, 4], [6, 10], [1.0, 1.0], neighbours=10)
    assert rows.counts.tolist() == [0] * 6 + [3] * 10
    for row in range(6, 14):
        first = 6 + (row - 6) // 4 * 4
        assert set(rows.nearest[row, :3]) == set(range(first, first + 4)) - {row}
    assert (rows.nearest[14:, :3] == np.array([[14], [15]])).all()  # a cut family is alone
