"""Classifiers that are run beside ours: aeon's on series made complete, and 1-NN by warping."""

import numpy as np
import pytest

from naive import dtw
from softclt.classification import classifiers
from softclt.classification.nearest import NearestByWarping
from softclt.classification.peers import Peer

PEERS = [name for name in classifiers if issubclass(classifiers[name], Peer)]


class Recorder:
    """Keeps what it is given, and says that all classes are as likely."""

    def fit(self, X, y):
        self.seen, self.classes_ = [X], np.unique(y)
        return self

    def predict_proba(self, X):
        self.seen.append(X)
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class Recorded(Peer):
    """A peer whose classifier is the recorder."""

    def _new(self, seed):
        return Recorder()


def test_complete_series_of_one_length_go_in_as_they_are(rng):
    X = rng.normal(size=(4, 2, 12))
    model = Recorded().fit(X, [0, 0, 1, 1])
    model.predict(X)
    for seen in model._inner.seen:
        np.testing.assert_array_equal(seen, X)


def test_other_series_are_brought_to_the_longest_of_those_learned_from():
    line = np.linspace(-1.0, 3.0, 20)
    gap, short = line.copy(), np.full(20, np.nan)
    gap[5:9] = np.nan
    short[:5] = line[::4][:5]
    model = Recorded().fit(np.stack([line, gap, short])[:, None], [0, 0, 1])
    model.predict(np.concatenate([line, line])[None, None])
    learned, later = model._inner.seen
    np.testing.assert_allclose(learned[1, 0], line)
    np.testing.assert_allclose(learned[2, 0], np.linspace(line[0], line[16], 20))
    assert later.shape == (1, 1, 20)


def test_series_are_never_shorter_than_a_kernel(rng):
    model = Recorded().fit(rng.normal(size=(4, 1, 6)), [0, 0, 1, 1])
    assert model._inner.seen[0].shape == (4, 1, 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PEERS if name not in ("rdst", "catch22")])
def test_a_peer_learns_and_a_seed_is_a_run(name, rng):
    pytest.importorskip("aeon")
    y = np.arange(16) % 2
    X = np.sin((0.3 + 0.4 * y[:, None, None]) * np.arange(24)) + 0.1 * rng.normal(size=(16, 1, 24))
    first, second = (classifiers[name](random_state=3).fit(X, y) for _ in range(2))
    assert (first.predict(X) == y).mean() > 0.9
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_nearest_by_warping_is_what_plain_loops_find(rng):
    X, new = rng.normal(size=(6, 2, 9)), rng.normal(size=(5, 2, 11))
    y = np.array(["a", "b", "c", "a", "b", "c"])
    model = NearestByWarping().fit(X, y)
    by_hand = [y[np.argmin([dtw(one, other) for other in X])] for one in new]
    assert model.predict(new).tolist() == by_hand
    np.testing.assert_array_equal(model.predict_proba(new).sum(axis=1), 1)


def test_nearest_by_warping_takes_gaps_lengths_and_many_series(rng, monkeypatch):
    X = [rng.normal(size=(1, n)) for n in (5, 8, 11)]
    X[1][0, 3] = np.nan
    model = NearestByWarping().fit(X, [0, 1, 2])
    monkeypatch.setattr("softclt.classification.nearest._AT_ONCE", 4)  # one series at a time
    assert model.predict(X).tolist() == [0, 1, 2]
