"""What is said of series left out: accuracy, confusion, doubts, and whether confidences hold."""

import numpy as np
import pytest

from softclt import SeriesClassifier
from softclt.classification import LeftOut, reliability
from softclt.few_labels import wilson

NAMES = np.array(["a", "b", "c"])


@pytest.fixture
def left_out():
    """Five series; the last is the only one of its class."""
    likely = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.7, 0.1], [0.9, 0.05, 0.05], [0.5, 0.4, 0.1]]
    return LeftOut(NAMES, np.array([0, 0, 1, 1, 2]), np.array(likely), np.arange(4))


def test_accuracy_and_confusion_count_what_can_be_found_again(left_out):
    assert left_out.accuracy == wilson(0.5, 4)
    assert left_out.confusion.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_doubts_are_the_least_margins_of_counted_series(left_out):
    np.testing.assert_allclose(left_out.margins, [0.7, -0.3, 0.5, -0.85, -0.4])
    assert left_out.suspects.tolist() == [3, 1]


def test_nothing_is_said_where_no_class_has_two_series(left_out):
    none = LeftOut(NAMES, left_out.codes, left_out.probabilities, np.array([], int))
    assert none.accuracy is None
    assert none.reliability is None
    assert none.suspects.tolist() == []
    assert none.confusion.sum() == 0


def test_wilsons_interval_is_the_textbooks():
    found = wilson(0.8, 10)
    assert (found.low, found.high) == pytest.approx((0.490, 0.943), abs=1e-3)
    assert wilson(1.0, 5).high == 1.0


def test_flipped_labels_are_the_most_doubtful(rng):
    t = np.arange(48)
    y = np.arange(60) % 3
    X = np.sin((0.2 + 0.15 * y[:, None]) * t + rng.uniform(0, 6, (60, 1)))
    X += 0.2 * rng.normal(size=X.shape)
    flipped = [4, 20, 41]
    y[flipped] = (y[flipped] + 1) % 3
    model = SeriesClassifier().fit(X, NAMES[y])
    assert set(model.left_out_.suspects[:3].tolist()) == set(flipped)
    assert model.left_out_.accuracy.value == model.loo_accuracy_
    assert model.left_out_.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.left_out_.probabilities, model.loo_probabilities_)


def test_honest_probabilities_have_no_calibration_error(rng):
    sure = rng.uniform(0.5, 1, size=20_000)
    said = np.stack([sure, 1 - sure], axis=1)
    honest = (rng.uniform(size=len(sure)) > sure).astype(int)
    assert reliability(said, honest).ece < 0.015
    boastful = (rng.uniform(size=len(sure)) > sure - 0.2).astype(int)
    assert reliability(said, boastful).ece == pytest.approx(0.2, abs=0.015)


def test_bins_hold_every_prediction_and_empty_ones_are_gaps():
    told = reliability(np.array([[1.0, 0.0], [0.55, 0.45]]), np.array([0, 1]))
    assert told.counts.sum() == 2
    assert told.counts[9] == told.counts[5] == 1
    assert np.isnan(told.accuracy[0])
    assert told.ece == pytest.approx((0.0 + 0.55) / 2)
    with pytest.raises(ValueError, match=r"expected \(N, L\) and \(N,\)"):
        reliability(np.ones((2, 2)), np.array([0]))
