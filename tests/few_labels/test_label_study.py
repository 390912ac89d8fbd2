"""Cross-validation and learning curves of labels."""

from itertools import pairwise

import numpy as np
import pytest

from softclt.few_labels import LabelStudy, study_labels
from softclt.probes.classifiers import fit_knn


def blobs(rng, per_class, n_classes=3, noise=0.3):
    y = np.repeat(np.arange(n_classes), per_class)
    return np.eye(n_classes)[y] * 3 + noise * rng.normal(size=(len(y), n_classes)), y


class Recorder:
    """A classifier that remembers what it was taught and says the class of the first column."""

    def __init__(self):
        self.taught = []

    def __call__(self, R, y):
        self.taught.append(R[:, 0].astype(int).tolist())
        self.now = set(self.taught[-1])
        return self

    def predict(self, R):
        assert not self.now & set(R[:, 0].astype(int)), "a held-out series was learned from"
        return R[:, 1].astype(int)


def test_clear_classes_are_found_again_and_noise_is_not(rng):
    R, y = blobs(rng, 10)
    assert study_labels(R, y, fit_knn, repeats=1).accuracy.value == 1.0
    nothing = study_labels(rng.normal(size=(60, 4)), np.arange(60) % 2, fit_knn, repeats=2)
    assert 0.25 < nothing.accuracy.value < 0.75
    assert nothing.accuracy.low < 0.5 < nothing.accuracy.high


def test_no_series_is_held_out_and_learned_from_and_small_sets_have_all_classes():
    y = np.array([0] * 12 + [1] * 6 + [2] * 2)
    R = np.column_stack([np.arange(20), y])
    recorder = Recorder()
    study = study_labels(R, y, recorder, repeats=2)
    assert study.right.all()
    assert study.right.shape == (len(study.sizes), 2, 20)
    for rows in recorder.taught:
        assert set(y[rows]) == {0, 1, 2}
        assert len(rows) >= 3
    per_fold = len(study.sizes)
    for start in range(0, len(recorder.taught), per_fold):
        nested = recorder.taught[start : start + per_fold]
        assert all(set(a) <= set(b) for a, b in pairwise(nested))


def test_a_class_with_one_label_is_learned_from_but_not_tested(rng):
    R, y = blobs(rng, 4)
    R, y = np.vstack([R, [[9.0, 9.0, 9.0]]]), np.append(y, 3)
    study = study_labels(R, y, fit_knn, repeats=2)
    assert study.untested.tolist() == [3]
    assert study.rows.tolist() == list(range(12))


def test_one_label_a_class_tests_nothing(rng):
    assert study_labels(*blobs(rng, 1), fit_knn) is None


def test_few_labels_do_not_tell_and_many_do(rng):
    few, many = blobs(rng, 3), blobs(rng, 30)
    assert not study_labels(*few, fit_knn).tells
    assert study_labels(*many, fit_knn, repeats=1).tells


def test_the_same_seed_gives_the_same_study(rng):
    R, y = blobs(rng, 5, noise=2.0)
    first, second = (study_labels(R, y, fit_knn, repeats=2, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.right, second.right)
    assert first.gain() == second.gain()


def power_law(exponent, n=400, sizes=(10, 20, 40, 80)):
    """A study whose error is 0.4 at ten labels and falls as a power."""
    errors = 0.4 * (np.array(sizes) / 10) ** -exponent
    right = np.arange(n) >= np.round(errors * n)[:, None]
    none = np.array([], dtype=int)
    return LabelStudy(np.array(sizes), right[:, None].astype(float), np.arange(n), 5, 80, none)


def test_a_power_law_is_continued():
    gain = power_law(0.5).gain(80)
    assert gain.value == pytest.approx(0.4 * (8**-0.5 - 16**-0.5), abs=0.005)
    assert gain.low < gain.value < gain.high


def test_labels_that_never_helped_are_expected_to_add_nothing():
    gain = power_law(0.0).gain(10)
    assert gain.value == pytest.approx(0, abs=1e-9)
    assert gain.low < 0 < gain.high


def test_two_sizes_are_no_curve():
    assert power_law(0.5, sizes=(10, 20)).gain() is None


def test_the_interval_is_wilsons_for_fewer_independent_tests():
    accuracy = power_law(0.5).accuracy
    n = 400 / (1 + 5 / 4)
    p, z = 1 - 0.4 * 8**-0.5, 1.96
    p = round(p * 400) / 400
    for end in (accuracy.low, accuracy.high):  # where |p - end| is 1.96 standard errors of end
        assert abs(p - end) == pytest.approx(z * np.sqrt(end * (1 - end) / n), rel=1e-6)
