"""The probes are scikit-learn's, with the protocol's size rules."""

import sys

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from softclt.probes.classifiers import C_GRID, class_scores, probes


def blobs(rng, n, n_classes, m=5):
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, m)) + y[:, None] * 0.7, y


@pytest.mark.parametrize(
    ("n", "n_classes", "searched"),
    [(49, 2, False), (50, 2, True), (50, 10, True), (54, 11, False), (55, 11, True)],
)
def test_c_is_searched_from_50_series_and_5_a_class_on(monkeypatch, rng, n, n_classes, searched):
    asked = []

    def best(R, y):
        asked.append(len(y))
        return 7.0

    monkeypatch.setattr(sys.modules[class_scores.__module__], "_best_C", best)
    svm = probes["svm"](*blobs(rng, n, n_classes))
    assert asked == [n] * searched
    expected = 7.0 if searched else 1e4
    assert expected == svm.C


@pytest.mark.parametrize("apart", [0.0, 0.3, 0.7, 5.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_the_grid_has_nine_values_and_the_search_is_scikit_learns(rng, apart, dtype):
    assert C_GRID == (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
    y = np.arange(60) % 3
    R = (rng.normal(size=(60, 5)) + apart * y[:, None]).astype(dtype)
    reference = GridSearchCV(SVC(), {"C": list(C_GRID)}, cv=5).fit(R, y)
    svm = probes["svm"](R, y)
    assert reference.best_params_["C"] == svm.C
    np.testing.assert_allclose(svm.decision_function(R), reference.decision_function(R))


def test_the_search_bears_a_class_of_one_and_features_that_say_nothing(rng):
    y = np.arange(60) == 30
    assert probes["svm"](rng.normal(size=(60, 2)), y).C in C_GRID
    idle = probes["svm"](np.ones((60, 2)), np.arange(60) % 2)
    assert C_GRID[0] == idle.C


def test_above_the_limit_a_stratified_subsample_is_searched(rng):
    R, y = blobs(rng, 120, 2)
    half, _, labels, _ = train_test_split(R, y, train_size=60, random_state=0, stratify=y)
    svm = probes["svm"](R, y, max_samples=60)
    assert svm.shape_fit_ == (60, 5)
    np.testing.assert_allclose(
        svm.decision_function(R), probes["svm"](half, labels).decision_function(R)
    )


def test_the_limit_of_the_linear_probe_is_larger(rng):
    R, y = blobs(rng, 90, 3)
    assert probes["linear"](R, y, max_samples=30).score(R, y) > 1 / 3
    linear = probes["linear"](R, y)
    assert linear[0].n_samples_seen_ == 90
    assert len(linear[1].estimators_) == 3  # one against the rest


def test_knn_is_the_nearest_standardised_neighbour(rng):
    R, y = blobs(rng, 40, 4)
    R[:, 0] *= 1000
    new = R + rng.normal(size=R.shape)
    scaler = StandardScaler().fit(R)
    reference = KNeighborsClassifier(1).fit(scaler.transform(R), y)
    np.testing.assert_array_equal(
        probes["knn"](R, y).predict(new), reference.predict(scaler.transform(new))
    )


def test_ridge_chooses_its_penalty_by_leave_one_out_on_standardised_features(rng):
    R, y = blobs(rng, 60, 3)
    R[:, 0] *= 1000
    scaled = StandardScaler().fit_transform(R)
    reference = RidgeClassifierCV(alphas=np.logspace(-3, 3, 10)).fit(scaled, y)
    ridge = probes["ridge"](R, y)
    assert ridge[-1].alpha_ == reference.alpha_
    np.testing.assert_allclose(ridge.decision_function(R), reference.decision_function(scaled))


@pytest.mark.parametrize("name", probes.names())
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_highest_score_is_the_prediction(name, n_classes, rng):
    R, y = blobs(rng, 30, n_classes)
    probe = probes[name](R, y)
    scores = class_scores(probe, R)
    assert scores.shape == (30, n_classes)
    agreement = (scores.argmax(axis=1) == probe.predict(R)).mean()
    assert agreement > 0.9  # an SVM's votes and its one-against-rest scores may differ


def test_a_class_that_the_probe_never_saw_scores_lowest(rng):
    R, y = blobs(rng, 30, 2)
    scores = class_scores(probes["svm"](R, y * 2), R, np.array([0, 1, 2]))
    assert scores.shape == (30, 3)
    assert (scores[:, 1] == scores.min()).all()


def test_an_unknown_probe_is_told_the_known_ones():
    with pytest.raises(ValueError, match="unknown probe 'tree'; known: knn, linear, ridge, svm"):
        probes["tree"]
