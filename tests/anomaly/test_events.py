"""Clearing, segments, grids and alarms, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from softclt.anomaly.events import adjust_segments, clear, find_alarms, regrid, segments
from softclt.anomaly.metrics import Judged, delay_adjusted, point_pr_auc, vus_pr

flags = st.lists(st.booleans(), min_size=1, max_size=40)


@given(flags, st.integers(0, 8))
def test_clearing_is_what_the_plain_loop_says(given_flags, delay):
    assert clear(np.array(given_flags), delay).tolist() == naive.cleared_alarms(given_flags, delay)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40), st.data())
def test_delay_adjusted_scores_are_what_the_plain_loop_counts(pairs, data):
    labels, found = (np.array(part) for part in zip(*pairs, strict=True))
    gaps = data.draw(st.lists(st.integers(1, 3), min_size=len(pairs) - 1, max_size=len(pairs) - 1))
    times = np.cumsum([5, *gaps]) * 60
    delay = data.draw(st.integers(0, 5))
    tp, fp, fn = naive.delay_adjusted_counts(
        naive.on_smallest_gap(labels, times.tolist()),
        naive.on_smallest_gap(found, times.tolist()),
        delay,
    )
    scores = delay_adjusted([Judged(labels, found, found.astype(float), times)], delay)
    assert scores["precision"] == pytest.approx(tp / (tp + fp) if tp + fp else 0.0)
    assert scores["recall"] == pytest.approx(tp / (tp + fn) if tp + fn else 0.0)
    assert scores["f1"] == pytest.approx(2 * tp / (2 * tp + fp + fn) if tp else 0.0)


def test_a_hit_at_the_delay_finds_a_segment_and_one_step_later_does_not():
    labels = np.array([0, 1, 1, 1, 1, 0], dtype=bool)
    at_delay, too_late = np.eye(6, dtype=bool)[3], np.eye(6, dtype=bool)[4]
    assert adjust_segments(at_delay, labels, delay=2).tolist() == labels.tolist()
    assert not adjust_segments(too_late, labels, delay=2).any()
    assert adjust_segments(too_late, labels, delay=None).tolist() == labels.tolist()


def test_a_segment_at_the_end_counts_too():
    assert segments(np.array([False, True, True])) == [(1, 3)]
    labels = np.array([False, True, True])
    assert adjust_segments(np.array([False, True, False]), labels, 0).tolist() == [
        False,
        True,
        True,
    ]


def test_scores_are_taken_over_all_series_together():
    times = np.arange(4)
    found = Judged(np.array([0, 1, 1, 0], bool), np.array([0, 1, 0, 0], bool), np.ones(4), times)
    missed = Judged(np.array([1, 0, 0, 0], bool), np.array([0, 0, 0, 1], bool), np.ones(4), times)
    scores = delay_adjusted([found, missed], delay=1)
    assert scores["precision"] == pytest.approx(2 / 3)
    assert scores["recall"] == pytest.approx(2 / 3)


def test_dates_with_missing_and_repeated_steps_are_put_on_a_grid():
    times = np.array(["2024-01-01T00", "2024-01-01T01", "2024-01-01T01", "2024-01-01T04"], "M8[h]")
    on_grid = regrid(np.array([True, False, True, True]), times)
    assert on_grid.tolist() == [True, True, False, False, True]


def test_alarms_close_to_each_other_are_one_and_severity_counts_from_the_usual_score():
    scores = np.array([0.0, 0.0, 0.0, 5.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, np.nan, 4.0])
    alarms = find_alarms(scores, np.full(12, 3.0), gap=2)
    assert [(alarm.start, alarm.end) for alarm in alarms] == [(3, 5), (11, 11)]
    assert alarms[0].severity == pytest.approx(3.0)
    assert len(find_alarms(scores, np.full(12, 3.0), gap=0)) == 3
    assert find_alarms(scores, np.full(12, np.nan)) == []


def test_scores_without_threshold_are_aeons_and_series_without_anomaly_do_not_count():
    metrics = pytest.importorskip("aeon.benchmarking.metrics.anomaly_detection")
    rng = np.random.default_rng(0)
    labels = np.zeros(300, dtype=bool)
    labels[100:110] = labels[200:203] = True
    scores = rng.normal(size=300) + 2 * labels
    own = Judged(labels, scores > 2, scores, np.arange(300))
    calm = Judged(np.zeros(300, bool), scores > 2, scores, np.arange(300))
    wanted = metrics.range_pr_vus_score(labels.astype(int), scores, max_buffer_size=10)
    assert vus_pr([own, calm], buffer=10) == pytest.approx(wanted)
    assert point_pr_auc([own, calm]) == pytest.approx(
        metrics.pr_auc_score(labels.astype(int), scores)
    )
    assert np.isnan(vus_pr([calm]))


def test_steps_without_a_score_rank_as_least_strange():
    pytest.importorskip("aeon")
    labels = np.arange(50) >= 40
    scores = np.where(labels, 5.0, np.linspace(0, 1, 50))
    scores[:5] = np.nan
    assert point_pr_auc([Judged(labels, labels, scores, np.arange(50))]) == pytest.approx(1.0)
