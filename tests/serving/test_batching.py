"""Requests at the same time are computed together, and each gets its own."""

import asyncio
import threading

import numpy as np
import pytest

from softclt.serving.batching import AT_ONCE, Batcher, padded


@pytest.fixture
def batches():
    return []


@pytest.fixture
def batcher(batches):
    made = Batcher(batches.append)
    yield made
    made.close()


class Gate:
    """Work that waits until it is let through; a result is the sum of a series."""

    def __init__(self):
        self.opened, self.entered = threading.Event(), threading.Event()

    def __call__(self, X):
        self.entered.set()
        assert self.opened.wait(10)
        if (X == 13).any():
            raise ValueError("13 brings bad luck")
        return np.nansum(X, axis=(1, 2))


def series(*rows):
    return np.array(rows, dtype=float)[:, None]  # (N, 1, T)


def together(batcher, gate, *jobs):
    """Results of jobs that all wait while a first one is computed."""

    async def run():
        first = asyncio.create_task(batcher.submit(gate, series([1.0, 1.0]), "sum"))
        await asyncio.to_thread(gate.entered.wait, 10)
        rest = [asyncio.create_task(batcher.submit(gate, *job)) for job in jobs]
        await asyncio.sleep(0)
        gate.opened.set()
        return await asyncio.gather(first, *rest, return_exceptions=True)

    return asyncio.run(run())[1:]


def test_what_waits_is_one_batch_and_each_gets_its_own(batcher, batches):
    jobs = [(series([i, i + 1.0], [i, 0.0]), "sum") for i in range(5)]
    found = together(batcher, Gate(), *jobs)
    assert found == [[2 * i + 1, i] for i in range(5)]
    assert batches == [1, 10]


def test_other_work_other_channels_and_other_lengths_are_batches_of_their_own(batcher, batches):
    jobs = [
        (series([1.0, 2.0]), "sum"),
        (series([1.0, 2.0]), "other"),
        (np.ones((1, 2, 2)), "sum"),
        (np.ones((1, 1, 9)), "sum"),
        (series([3.0, 4.0, 5.0]), "sum"),
        (series([1.0, 1.0]), None),
    ]
    assert together(batcher, Gate(), *jobs) == [[3], [3], [4], [9], [12], [2]]
    assert batches == [1, 2, 1, 1, 1, 1]


def test_a_series_that_cannot_be_taken_fails_alone(batcher):
    jobs = [(series([1.0, 2.0]), "sum"), (series([13.0, 2.0]), "sum"), (series([5.0, 2.0]), "sum")]
    first, bad, last = together(batcher, Gate(), *jobs)
    assert (first, last) == ([3], [7])
    assert isinstance(bad, ValueError)


def test_a_large_request_is_computed_in_parts(batcher, batches):
    X = np.ones((5, 1, AT_ONCE // 2))
    found = asyncio.run(batcher.submit(lambda part: part.sum(axis=(1, 2)), X, "sum"))
    assert found == [AT_ONCE // 2] * 5
    assert batches == [2, 2, 1]


def test_what_nobody_waits_for_any_more_is_not_computed(batcher, batches):
    gate = Gate()

    async def run():
        first = asyncio.create_task(batcher.submit(gate, series([1.0]), "sum"))
        await asyncio.to_thread(gate.entered.wait, 10)
        given_up = asyncio.create_task(batcher.submit(gate, series([2.0]), "sum"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        gate.opened.set()
        return await first

    assert asyncio.run(run()) == [1]
    batcher.close()
    assert batches == [1]


def test_closing_finishes_what_was_submitted_and_takes_no_more(batches):
    batcher, gate = Batcher(batches.append), Gate()
    assert together(batcher, gate, (series([1.0, 2.0]), "sum")) == [[3]]
    batcher.close()
    with pytest.raises(RuntimeError, match="stopping"):
        asyncio.run(batcher.submit(gate, series([1.0])))


def test_padding_is_missing_values_at_the_end():
    X = padded([series([1.0]), series([2.0, 3.0])])
    np.testing.assert_array_equal(X, [[[1.0, np.nan]], [[2.0, 3.0]]])
