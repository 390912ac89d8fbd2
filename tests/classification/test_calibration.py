"""Probabilities from left-out decisions."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from softclt.classification.calibration import USUAL, calibrate


def drawn(rng, n=4000, factor=1.7, shifts=(0.5, -0.5, 0.0)):
    """Decisions, and classes drawn with the probabilities that they stand for."""
    decisions = rng.normal(size=(n, 3))
    p = softmax(factor * decisions + np.array(shifts), axis=1)
    codes = (p.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    return decisions, codes


def test_it_finds_the_factor_and_the_shifts_that_classes_were_drawn_with(rng):
    decisions, codes = drawn(rng)
    found = calibrate(decisions, codes, np.ones(len(codes)))
    assert found.factor == pytest.approx(1.7, rel=0.1)
    np.testing.assert_allclose(found.shifts, [0.5, -0.5, 0.0], atol=0.15)


def test_no_other_factor_makes_the_classes_likelier(rng):
    decisions, codes = drawn(rng)
    found = calibrate(decisions, codes, np.ones(len(codes)))

    def surprise(factor):
        logs = log_softmax(factor * decisions + found.shifts, axis=1)
        return -logs[np.arange(len(codes)), codes].mean()

    assert surprise(found.factor) < min(surprise(0.9 * found.factor), surprise(1.1 * found.factor))


def test_weights_count_a_series_more_than_once(rng):
    decisions, codes = drawn(rng, n=60)
    weights = rng.integers(1, 4, size=60)
    weighted = calibrate(decisions, codes, weights.astype(float))
    repeated = calibrate(
        np.repeat(decisions, weights, axis=0), np.repeat(codes, weights), np.ones(weights.sum())
    )
    assert weighted.factor == pytest.approx(repeated.factor, rel=1e-3)
    np.testing.assert_allclose(weighted.shifts, repeated.shifts, atol=1e-3)


def test_without_any_series_it_is_the_usual_one():
    found = calibrate(np.empty((0, 3)), np.empty(0, dtype=int), np.empty(0))
    assert found.factor == pytest.approx(USUAL)
    np.testing.assert_allclose(found.shifts, 0, atol=1e-6)


def test_a_few_that_are_all_right_do_not_make_it_certain(rng):
    codes = np.arange(6) % 3
    found = calibrate(2 * np.eye(3)[codes] - 1, codes, np.ones(6))
    assert softmax(found(2 * np.eye(3) - 1), axis=1).max() < 0.9999
