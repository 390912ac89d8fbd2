"""Distances within several sets, for batches that mix them."""

import numpy as np
import pytest
import torch

from softclt.distances import BatchDistances
from softclt.distances.of_sets import OF_SIBLINGS, SetDistances


@pytest.fixture
def parts(rng):
    return [rng.normal(size=(n, 1, 12)) for n in (5, 3, 4)]


def naive(between, starts, rows):
    """One pair after the other."""
    block = np.ones((len(rows), len(rows)))
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            k, m = (max(s for s in range(len(starts)) if starts[s] <= row) for row in (one, other))
            own = between[k]
            if i == j:
                block[i, j] = 0
            elif k != m or own is None:
                continue
            elif isinstance(own, int):
                same = (one - starts[k]) // own == (other - starts[k]) // own
                block[i, j] = OF_SIBLINGS if same and own > 1 else 1
            else:
                block[i, j] = own([one - starts[k], other - starts[k]])[0, 1]
    return block


@pytest.mark.parametrize("mode", ["dense", "lazy"])
def test_series_of_a_set_have_its_distances_and_others_are_far(parts, mode):
    one, two = (BatchDistances(part, mode=mode) for part in parts[:2])
    between, starts = [one, None, 2, two], [0, 5, 9, 14]
    distances = SetDistances(between, starts)
    rows = torch.tensor([16, 0, 9, 10, 11, 4, 13, 5, 15, 6, 2])
    np.testing.assert_allclose(distances(rows), naive(between, starts, rows.tolist()), atol=1e-6)


def test_siblings_alone_need_no_distances(parts):
    distances = SetDistances([3], [0])
    block = distances(torch.tensor([0, 2, 3, 8]))
    expected = np.ones((4, 4)) - np.eye(4)
    expected[0, 1] = expected[1, 0] = OF_SIBLINGS
    np.testing.assert_allclose(block, expected)
