"""Streams: at most so many, each with its own past."""

import numpy as np
import pytest
from served import normal_series

from softclt import AnomalyDetector
from softclt.serving.limits import Limits, Refusal
from softclt.serving.streams import Streams


class Sum:
    """A stream whose score is the sum of all so far."""

    def __init__(self):
        self.total = 0.0

    def push(self, x):
        self.total += float(x.sum())
        return self.total, self.total > 5


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def streams(clock):
    return Streams(Sum, Limits(streams=2, idle=100.0), lambda: clock[0])


def test_steps_are_counted_and_two_streams_do_not_meet(streams):
    assert streams.push("a", np.ones((1, 2))) == [(0, 1.0, False), (1, 2.0, False)]
    assert streams.push("b", np.ones((2, 1))) == [(0, 2.0, False)]
    assert streams.push("a", np.full((1, 1), 4.0)) == [(2, 6.0, True)]
    assert len(streams) == 2


def test_one_too_many_is_refused_until_one_ends_or_is_idle(streams, clock):
    for name in "ab":
        streams.push(name, np.ones((1, 1)))
    with pytest.raises(Refusal, match="all 2 streams") as refused:
        streams.push("c", np.ones((1, 1)))
    assert refused.value.status == 503
    assert refused.value.headers["retry-after"] == "100"
    clock[0] = 60.0
    streams.push("a", np.ones((1, 1)))
    clock[0] = 101.0  # b is idle for too long, a is not
    assert streams.push("c", np.ones((1, 1)))[0][0] == 0
    assert streams.push("a", np.ones((1, 1)))[0][0] == 2
    assert streams.end("a")
    assert not streams.end("a")
    assert streams.push("b", np.ones((1, 1)))[0][0] == 0  # anew


def test_answers_of_a_scorer_that_looks_ahead_name_the_steps_that_they_are_about():
    detector = AnomalyDetector(scorer_params={"windows": (4, 16)}, random_state=0)
    detector.fit(normal_series())
    streams, x = Streams(detector.stream, Limits()), normal_series(1, 60)
    assert streams.push("a", x[:, :10]) == []
    found = streams.push("a", x[:, 10:])
    assert [step for step, _, _ in found] == list(range(60 - 15))
    scores = detector.anomaly_scores(x)[0]
    np.testing.assert_allclose([score for _, score, _ in found], scores[:45])
