"""VUS, whole alarms, conformal levels and persistence."""

import numpy as np
import pytest

import naive
from softclt.anomaly.detection import Detection, watch
from softclt.anomaly.events import Alarm, find_alarms, persistent
from softclt.anomaly.metrics import count_events
from softclt.anomaly.scorers import new_scorer
from softclt.anomaly.surface import vus_pr_score
from softclt.anomaly.thresholds import new_threshold


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("spans", [[(50, 60)], [(0, 3), (290, 300)], [(5, 6), (8, 9), (100, 180)]])
@pytest.mark.parametrize("buffer", [1, 20])
def test_vus_is_aeons(ties, spans, buffer, rng):
    aeon = pytest.importorskip("aeon.benchmarking.metrics.anomaly_detection")
    labels = np.zeros(300, dtype=bool)
    for start, end in spans:
        labels[start:end] = True
    scores = rng.normal(size=300) + labels
    scores = np.round(scores) if ties else scores
    expected = aeon.range_pr_vus_score(labels.astype(int), scores, max_buffer_size=buffer)
    assert vus_pr_score(labels, scores, buffer) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01, 0.001])
def test_a_conformal_level_is_that_of_the_plain_rule(rate, rng):
    scores = rng.exponential(size=150)
    rule = new_threshold("conformal", {"rate": rate, "skip": 0}).fit([scores])
    assert rule.level_ == naive.conformal_level(scores.tolist(), rate)
    assert rule.rate_ <= max(rate, 1 / 151) + 1e-12
    assert rule.stream()(3.0) == rule.level_


def test_conformal_levels_hold_their_rate(rng):
    over = []
    for _ in range(300):
        rule = new_threshold("conformal", {"rate": 0.02, "skip": 0}).fit([rng.normal(size=200)])
        over.append((rng.normal(size=50) > rule.level_).mean())
    assert 0.01 < np.mean(over) < 0.025


@pytest.mark.parametrize(("least", "of"), [(1, 1), (2, 3), (3, 3), (2, 10)])
def test_persistence_is_that_of_plain_loops(least, of, rng):
    flags = rng.random(60) < 0.4
    assert persistent(flags, least, of).tolist() == naive.persistent(flags.tolist(), least, of)
    scores, levels = flags.astype(float), np.full(60, 0.5)
    alarms = find_alarms(scores, levels, 0, (least, of))
    assert sum(a.end - a.start + 1 for a in alarms) == sum(naive.persistent(flags, least, of))


def test_events_are_counted_once_and_in_time():
    labels, flags = np.zeros(100, dtype=bool), np.zeros(100, dtype=bool)
    labels[20:30], labels[60:70] = True, True
    flags[[5, 6, 25, 31, 90]] = True  # 31 is near the anomaly: no alarm of its own
    events = count_events(labels, flags, None, gap=3)
    assert (events.anomalies, events.found, events.alarms, events.false) == (2, 1, 3, 2)
    assert events.f1 == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))
    late = count_events(labels, flags, 4, gap=3)
    assert (late.found, late.f1) == (0, 0.0)
    assert count_events(~labels & labels, flags, None, gap=3).false == 4


def test_expected_false_alarms_are_those_of_the_learned_part_and_one(rng):
    x = np.sin(np.arange(800) / 4) + 0.1 * rng.normal(size=800)
    scorer = new_scorer("patches", {"windows": (8,)}, random_state=0).fit([x[None, :400]])
    found = watch(scorer, x[None], 400, "conformal", {"rate": 0.05})
    n = len(find_alarms(found.normal, found.normal_levels, 7))
    assert n > 0
    assert found.false_alarms_a_step(7) == pytest.approx((n + 1) / 400)
    running = watch(scorer, x[None], 400, "running")
    assert np.isnan(running.false_alarms_a_step(7))


def test_channels_that_explain_an_alarm_come_the_strangest_first():
    channels = np.array([[0.0, 1.0, np.nan], [0.0, 5.0, 6.0], [9.0, 4.0, 3.5]])
    found = Detection(np.ones(3), np.zeros(3), 10, channels=channels)
    assert found.explained_by(Alarm(11, 12, 2.0)) == [1, 2]
    assert Detection(np.ones(3), np.zeros(3), 10).explained_by(Alarm(11, 12, 2.0)) == []
