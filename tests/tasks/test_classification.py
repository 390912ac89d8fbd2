"""The classification task and `evaluate`, mostly with a learner that takes no time."""

import json
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from softclt import TS2Vec, evaluate
from softclt.data import Dataset
from softclt.data.synthetic import waves
from softclt.tasks import Result


class Flatten(TransformerMixin, BaseEstimator):
    """A learner without learning: the values themselves; it keeps what it was given."""

    seen: ClassVar[list] = []

    def __init__(self, tau_instance=20.0, tau_temporal=1.0, random_state=None):
        self.tau_instance = tau_instance
        self.tau_temporal = tau_temporal
        self.random_state = random_state

    def fit(self, X, y=None):
        assert y is None, "labels reached the learner"
        self.seen.append((self.random_state, X))
        return self

    def transform(self, X):
        return np.nan_to_num(X).reshape(len(X), -1)


@pytest.fixture
def data():
    return waves(n_per_class=8, length=24, noise=0.5, random_state=1)


def test_evaluate_scores_like_the_same_steps_by_hand(data):
    R_train, R_test = (X.reshape(len(X), -1) for X in (data.X_train, data.X_test))
    by_hand = SVC(C=1e4).fit(R_train, data.y_train).score(R_test, data.y_test)  # 24 series: one fit
    assert evaluate("classification", Flatten(), data).metrics["accuracy"] == by_hand


def test_evaluate_leaves_the_model_alone_and_seeds_its_clone(data):
    model = Flatten(random_state=99)
    result = evaluate("classification", model, data, seed=5)
    assert model.random_state == 99
    assert Flatten.seen[-1][0] == 5
    assert (result.seed, result.params["random_state"]) == (5, 5)


def test_every_random_state_of_a_pipeline_is_seeded(data):
    model = make_pipeline(Flatten(), PCA(3))
    result = evaluate("classification", model, data, seed=4)
    assert Flatten.seen[-1][0] == 4
    assert "random_state=4" in str(result.params["steps"])


def test_several_probes_share_one_fit_and_agree_with_single_ones(data):
    Flatten.seen.clear()
    both = evaluate("classification", Flatten(), data, probe=["svm", "knn"])
    assert len(Flatten.seen) == 1
    for probe in ("svm", "knn"):
        single = evaluate("classification", Flatten(), data, probe=probe)
        assert single.probe == probe
        for metric, value in single.metrics.items():
            assert both.metrics[f"{probe}.{metric}"] == value
    assert both.probe == "svm+knn"


def test_test_labels_change_scores_and_nothing_else(data):
    Flatten.seen.clear()
    shuffled = Dataset(
        data.X_train, data.y_train, data.X_test, np.roll(data.y_test, 8), dict(data.meta)
    )
    first, second = (evaluate("classification", Flatten(), d) for d in (data, shuffled))
    np.testing.assert_array_equal(Flatten.seen[0][1], Flatten.seen[1][1])
    assert first.metrics["accuracy"] != second.metrics["accuracy"]


def test_the_series_of_a_uea_set_reach_the_learner_scaled(data):
    uea = Dataset(
        data.X_train * 5 + 3,
        data.y_train,
        data.X_test,
        data.y_test,
        dict(data.meta, archive="uea"),
    )
    evaluate("classification", Flatten(), uea)
    X = Flatten.seen[-1][1]
    assert (round(X.mean(), 8), round(X.std(), 8)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("taus", "choice"),
    [
        ({}, "default"),
        ({"tau_instance": None, "tau_temporal": None}, "hard"),
        ({"tau_instance": 3.0}, "fixed"),
        ({"tau_instance": None}, "fixed"),
    ],
)
def test_the_result_says_how_tau_was_chosen(data, taus, choice):
    assert evaluate("classification", Flatten(**taus), data).tau_choice == choice


def test_a_choice_of_tau_that_parameters_cannot_tell_is_passed(data):
    result = evaluate("classification", Flatten(tau_instance=3.0), data, tau_choice="oracle")
    assert result.tau_choice == "oracle"
    with pytest.raises(ValueError, match="tau_choice is 'best'; expected one of"):
        evaluate("classification", Flatten(), data, tau_choice="best")


def test_a_result_of_ts2vec_holds_everything_to_run_it_again(data):
    model = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=2)
    result = evaluate("classification", model, data, seed=1)
    assert (result.task, result.dataset, result.method) == (
        "classification",
        "synthetic/waves",
        "ts2vec",
    )
    assert result.fingerprint == data.fingerprint
    assert set(result.params) == set(model.get_params())
    assert set(result.metrics) == {"accuracy", "f1_macro", "auprc"}
    assert set(result.seconds) == {"fit", "encode", "probe"}
    assert {"softclt", "python", "torch", "numpy"} <= set(result.versions)
    assert result.options == {"probe": "svm"}
    assert result.device
    line = json.loads(result.to_json())
    again = TS2Vec(**line["params"])
    repeated = evaluate(line["task"], again, data, seed=line["seed"], **line["options"])
    assert repeated.metrics == result.metrics
    assert repeated.identity() == Result.from_json(result.to_json()).identity()


def test_data_may_be_a_name():
    assert evaluate("classification", Flatten(), "synthetic/waves").dataset == "synthetic/waves"


def test_a_test_class_that_training_never_saw_is_scored(data):
    y_test = data.y_test.copy()
    y_test[0] = 3
    meta = dict(data.meta, classes=["a", "b", "c", "d"])
    result = evaluate(
        "classification", Flatten(), Dataset(data.X_train, data.y_train, data.X_test, y_test, meta)
    )
    assert 0 < result.metrics["auprc"] <= 1


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"y_train": None, "y_test": None}, {}, "needs labels"),
        ({"X_test": None, "y_test": None}, {}, "needs labels in a training and a test part"),
        ({"y_train": np.zeros(24, int)}, {}, "all training labels are the same"),
        ({}, {"probe": "tree"}, "unknown probe 'tree'; known: knn, linear, ridge, svm"),
        ({}, {"probe": []}, "probe is empty"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_the_fit(data, change, options, message):
    Flatten.seen.clear()
    parts = {k: change.get(k, getattr(data, k)) for k in ("X_train", "y_train", "X_test", "y_test")}
    with pytest.raises(ValueError, match=message):
        evaluate("classification", Flatten(), Dataset(**parts, meta=dict(data.meta)), **options)
    assert not Flatten.seen


def test_unknown_tasks_and_options_are_told_the_known_ones(data):
    with pytest.raises(ValueError, match=r"unknown task 'regression'; known: .*classification"):
        evaluate("regression", Flatten(), data)
    with pytest.raises(TypeError, match="no option 'prob'; known: probe"):
        evaluate("classification", Flatten(), data, prob="svm")
