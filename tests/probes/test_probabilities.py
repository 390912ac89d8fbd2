"""How likely a probe on embeddings says each class is."""

import numpy as np
import pytest

from softclt.probes.classifiers import class_scores, probes
from softclt.probes.probabilities import PROBES, probe_probabilities


@pytest.fixture
def blobs(rng):
    """Four classes that overlap: points ``(N, 2)`` and their classes."""
    codes = np.repeat(np.arange(4), 60)
    centres = np.array([[0, 0], [2, 0], [0, 2], [2, 2]])
    return centres[codes] + 0.8 * rng.normal(size=(240, 2)), codes


@pytest.mark.parametrize("kind", PROBES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_likeliest_class_is_the_predicted_one(kind, n_classes, blobs):
    R, codes = blobs[0][blobs[1] < n_classes], blobs[1][blobs[1] < n_classes]
    probe = probes[kind](R[::2], codes[::2])
    likely = probe_probabilities(probe, R)
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    np.testing.assert_array_equal(likely.argmax(axis=1), probe.predict(R))


def test_confidence_of_an_svm_tells_right_from_wrong_better_than_its_won_pairs(blobs):
    R, codes = blobs
    probe = probes["svm"](R[::2], codes[::2])
    right = probe.predict(R[1::2]) == codes[1::2]

    def ranked(scores):  # share of pairs of a right and a wrong one in which the right one is surer
        sure = scores.max(axis=1)
        return np.mean(sure[right][:, None] > sure[~right])

    ours = ranked(probe_probabilities(probe, R[1::2]))
    assert ours > 0.7
    assert ours > ranked(np.exp(class_scores(probe, R[1::2])))


def test_a_probe_that_is_asked_stays_as_it_is_all_the_time(blobs, monkeypatch):
    R, codes = blobs
    probe = probes["svm"](R, codes)

    def written(self, name, value):
        if self is probe:
            pytest.fail(f"{name} was written, while another thread may ask")
        object.__setattr__(self, name, value)

    monkeypatch.setattr(type(probe), "__setattr__", written)
    assert probe_probabilities(probe, R).shape == (240, 4)
