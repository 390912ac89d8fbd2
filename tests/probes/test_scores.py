"""Scores against scikit-learn and against sums done by hand."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from softclt.probes.scores import auprc, classification_metrics


def test_auprc_of_two_classes_is_the_sum_over_recall_steps_done_by_hand():
    y = np.array([1, 0, 1, 0])
    scores = np.array([0.9, 0.8, 0.7, 0.1])  # precision 1 at recall 1/2, 2/3 at recall 1
    assert auprc(y, scores) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_auprc_of_two_columns_reads_the_second_one():
    y = np.array([1, 0, 1, 0])
    scores = np.array([0.9, 0.8, 0.7, 0.1])
    assert auprc(y, np.stack([-scores, scores], axis=1)) == auprc(y, scores)


def test_auprc_of_many_classes_is_the_mean_over_one_hot_columns(rng):
    y = np.repeat([0, 1, 2], 7)
    scores = rng.normal(size=(21, 3))
    by_class = [average_precision_score(y == c, scores[:, c]) for c in range(3)]
    assert auprc(y, scores) == pytest.approx(np.mean(by_class))


def test_a_class_without_test_examples_does_not_count(rng):
    y = np.repeat([0, 2, 3], 5)
    scores = rng.normal(size=(15, 4))
    kept = auprc(y, scores[:, [0, 2, 3]], np.array([0, 2, 3]))
    assert auprc(y, scores, np.arange(4)) == pytest.approx(kept)


@pytest.mark.parametrize("shape", [(6,), (6, 2), (5, 3)])
def test_scores_of_another_shape_are_refused_with_both_shapes(shape):
    with pytest.raises(ValueError, match=r"scores has shape .*expected"):
        auprc(np.array([0, 1, 2, 0, 1, 2]), np.zeros(shape))


def test_accuracy_and_macro_f1_done_by_hand():
    y, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    found = classification_metrics(y, predicted, predicted.astype(float), np.array([0, 1]))
    assert found["accuracy"] == 0.75
    assert found["f1_macro"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert set(found) == {"accuracy", "f1_macro", "auprc"}
