from collections import Counter

import numpy as np
import pytest

from softclt.training import order
from softclt.training.order import rows_of_batch, scatter, set_of_step
from softclt.training.randomness import batch_rows

SHARDS = (0, 3, 10, 14, 20, 26, 30)


def epoch(seed, number, n, batch_size, *rest):
    return [
        rows_of_batch(seed, number * (n // batch_size) + i, n, batch_size, *rest)
        for i in range(n // batch_size)
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 1000])
def test_scattered_positions_are_a_permutation(n):
    assert sorted(scatter(np.arange(n), n, 3, 1).tolist()) == list(range(n))


def test_scattered_neighbours_lie_apart_and_seeds_and_epochs_differ():
    n = 50_000
    first, second, third = (scatter(np.arange(n), n, *key) for key in ((0, 0), (1, 0), (0, 1)))
    for one, other in ((first, second), (first, third), (first, np.arange(n))):
        assert np.mean(one == other) < 5 / n
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert np.mean(np.abs(np.diff(first)) < n / 100) == pytest.approx(0.02, abs=0.005)


def test_up_to_a_million_series_come_as_they_would_from_memory():
    for step in (0, 5, 17):
        np.testing.assert_array_equal(rows_of_batch(4, step, 30, 8), batch_rows(4, step, 30, 8))


def test_more_series_come_once_an_epoch_too(monkeypatch):
    monkeypatch.setattr(order, "KEPT", 10)
    rows = np.concatenate(epoch(0, 2, 30, 5))
    assert sorted(rows.tolist()) == list(range(30))
    assert not np.array_equal(rows, np.concatenate(epoch(0, 3, 30, 5)))


def test_bundles_of_shards_come_one_after_the_other_and_are_permuted():
    batches = epoch(0, 1, 30, 5, SHARDS, 13)
    rows = np.concatenate(batches)
    assert sorted(rows.tolist()) == list(range(30))
    bundles, starts = order._bundles(1, SHARDS, 13)
    assert len(bundles) > 2
    for bundle, part in zip(bundles, np.split(rows, starts[1:]), strict=True):
        expected = [row for first, end in bundle for row in range(first, end)]
        assert sorted(part.tolist()) == sorted(expected)
        assert part.tolist() != expected
        assert len(part) <= 13


def test_seeds_share_bundles_and_epochs_do_not():
    def bundled(seed, number):
        _, starts = order._bundles(number, SHARDS, 13)
        rows = np.concatenate(epoch(seed, number, 30, 5, SHARDS, 13))
        return [sorted(part.tolist()) for part in np.split(rows, starts[1:])], rows.tolist()

    (one, rows), (other, other_rows) = bundled(0, 0), bundled(1, 0)
    assert one == other
    assert rows != other_rows
    assert one != bundled(0, 1)[0]


def test_sets_come_in_proportion_and_their_batches_in_order():
    counts = [6, 1, 13]
    for number in (0, 3):
        steps = [set_of_step(step, counts) for step in range(20 * number, 20 * number + 20)]
        assert Counter(k for k, _ in steps) == {0: 6, 1: 1, 2: 13}
        for k, count in enumerate(counts):
            batches = [batch for own, batch in steps if own == k]
            assert batches == list(range(number * count, (number + 1) * count))
    assert [set_of_step(i, counts)[0] for i in range(20)] != [
        set_of_step(i, counts)[0] for i in range(20, 40)
    ]
