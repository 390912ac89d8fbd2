"""Classifiers that take labels themselves: scores, hidden labels, lines of a bench."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss

from softclt import SeriesClassifier, evaluate
from softclt.bench.running import make_plan, run_plan
from softclt.bench.suites import read_suite
from softclt.classification import classifiers
from softclt.data import Dataset, datasets, waves
from softclt.data.labels import UNLABELLED
from softclt.tasks.supervised import some_of_each_class
from tables import as_before


class Share(ClassifierMixin, BaseEstimator):
    """Says of every series how often each class was among the labels."""

    seen = ()

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        Share.seen = (*Share.seen, np.asarray(y))
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


@pytest.fixture
def data():
    Share.seen = ()
    return waves(n_per_class=8, length=24, random_state=1)


def test_scores_are_those_of_other_packages(data):
    found = evaluate("supervised", Share(), data).metrics
    assert found["accuracy"] == np.mean(data.y_test == 0)
    likely = np.full((len(data.y_test), 3), 1 / 3)
    assert found["log_loss"] == pytest.approx(log_loss(data.y_test, likely))
    assert found["calibration_error"] == pytest.approx(0, abs=1e-9)


def test_a_class_that_was_never_seen_costs_what_it_must(data):
    kept = data.y_train != 2
    part = Dataset(data.X_train[kept], data.y_train[kept], data.X_test, data.y_test, data.meta)
    found = evaluate("supervised", Share(), part).metrics
    share = np.mean(data.y_test == 2)
    assert found["log_loss"] == pytest.approx((1 - share) * np.log(2) - share * np.log(1e-6))


def test_test_labels_change_scores_and_nothing_else(data):
    shuffled = Dataset(data.X_train, data.y_train, data.X_test, np.roll(data.y_test, 8), data.meta)
    models = []

    class Kept(SeriesClassifier):
        def fit(self, X, y):
            models.append(super().fit(X, y))
            return self

    first, second = (evaluate("supervised", Kept(features=("base",)), d) for d in (data, shuffled))
    one, other = (model.predict_proba(data.X_test) for model in models)
    np.testing.assert_array_equal(one, other)
    assert first.metrics["accuracy"] != second.metrics["accuracy"]
    assert first.metrics["loo_accuracy"] == second.metrics["loo_accuracy"]


def test_so_many_labels_of_each_class_are_drawn_and_fewer_are_among_them():
    y = np.array([0] * 9 + [1] * 4 + [2])
    few, more = (some_of_each_class(y, n, seed=5) for n in (1, 3))
    assert np.bincount(y[few]).tolist() == [1, 1, 1]
    assert np.bincount(y[more]).tolist() == [3, 3, 1]
    assert set(few) <= set(more)
    assert any((few != some_of_each_class(y, 1, seed)).any() for seed in range(3))


def test_other_labels_are_hidden_and_only_who_can_use_them_gets_these_series(data):
    evaluate("supervised", Share(), data, seed=4, labels=2)
    assert np.bincount(Share.seen[0]).tolist() == [2, 2, 2]
    with as_before(classifiers):
        classifiers.register("share", unlabelled=True)(Share)
        evaluate("supervised", Share(), data, seed=4, labels=2)
    assert (Share.seen[1] == UNLABELLED).sum() == len(data.y_train) - 6
    with pytest.raises(ValueError, match="labels"):
        evaluate("supervised", Share(), data, labels=0)


def test_a_suite_of_classifiers_has_a_line_for_each_row_and_seed(tmp_path, data):
    suite = tmp_path / "mine.toml"
    suite.write_text(
        '[mine]\ntask = "supervised"\ndata = ["test/waves"]\nseeds = 2\n[mine.configurations]\n'
        'ours = { params = { features = ["base"] } }\nnearest = { method = "dtw-1nn" }\n'
    )
    with as_before(datasets):
        datasets.register("test/waves")(lambda: data)
        plan = make_plan(read_suite(str(suite)), tmp_path / "out.jsonl")
        found = run_plan(plan, tmp_path / "out.jsonl")
        assert make_plan(read_suite(str(suite)), tmp_path / "out.jsonl").n_todo == 0
    assert [(one.configuration, one.method, one.seed) for one in found] == [
        ("ours", "series-classifier", 0),
        ("ours", "series-classifier", 1),
        ("nearest", "dtw-1nn", 0),
        ("nearest", "dtw-1nn", 1),
    ]
    assert all(one.seconds.keys() == {"fit", "predict"} for one in found)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('method = "minirockets"', "unknown classifier 'minirockets'; known: .*minirocket"),
        ('params = { features = ["bases"] }', "unknown block of features 'bases'"),
        ('preset = "paper"', "SeriesClassifier has no presets"),
    ],
)
def test_what_a_suite_asks_of_classifiers_is_checked_before_the_work(tmp_path, row, message):
    suite = tmp_path / "mine.toml"
    suite.write_text(
        f'[mine]\ntask = "supervised"\ndata = ["x"]\n[mine.configurations]\none = {{ {row} }}\n'
    )
    with pytest.raises(ValueError, match=message):
        read_suite(str(suite))
