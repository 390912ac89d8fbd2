"""SeriesClassifier: what it learns, what it says of itself, labels, files, scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from estimator_checks import failed_checks
from softclt import SeriesClassifier, load_model
from softclt.classification import blocks, classifier
from softclt.persistence import ModelFileError


def waves(n, rng, noise=0.6, length=40, n_channels=1, classes=(0, 1, 2)):
    """Sines of a speed for each class, and their classes in turn."""
    y = np.arange(n) % len(classes)
    t, phase = np.arange(length), rng.uniform(0, 6, size=(n, n_channels, 1))
    speed = 0.3 * 1.6 ** y[:, None, None]
    X = np.sin(speed * t + phase) + noise * rng.normal(size=(n, n_channels, length))
    return X, np.array(classes)[y]


@pytest.fixture
def data(rng):
    return waves(36, rng)


def test_it_learns_what_there_is_to_learn(data, rng):
    model = SeriesClassifier().fit(*data)
    assert model.score(*waves(90, rng)) > 0.8
    assert model.loo_accuracy_ > 0.8
    likely = model.predict_proba(data[0])
    assert likely.shape == (36, 3)
    np.testing.assert_allclose(likely.sum(axis=1), 1)


def test_shuffled_labels_leave_accuracy_at_chance(rng):
    X, y = waves(120, rng)
    found = [SeriesClassifier().fit(X, rng.permutation(y)).loo_accuracy_ for _ in range(3)]
    assert abs(np.mean(found) - 1 / 3) < 0.09  # three standard errors are 0.075


def test_left_out_accuracy_is_that_of_leaving_out(rng):
    X, y = waves(18, rng, noise=0.8)
    model = SeriesClassifier(features=("base",)).fit(X, y)
    by_hand = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        by_hand.append(
            SeriesClassifier(features=("base",)).fit(X[rest], y[rest]).score(X[[i]], y[[i]])
        )
    assert model.loo_accuracy_ == pytest.approx(np.mean(by_hand), abs=0.12)
    assert model.loo_probabilities_.shape == (18, 3)


def test_predict_is_the_likeliest_class_and_decisions_agree(data):
    X, y = data
    names = np.array(["walk", "run", "sit"])[y]
    three = SeriesClassifier().fit(X, names)
    assert three.classes_.tolist() == ["run", "sit", "walk"]
    likely, said = three.predict_proba(X), three.decision_function(X)
    np.testing.assert_array_equal(three.predict(X), three.classes_[likely.argmax(axis=1)])
    np.testing.assert_array_equal(likely.argmax(axis=1), said.argmax(axis=1))
    two = SeriesClassifier().fit(X, y > 0)
    assert two.decision_function(X).shape == (36,)
    np.testing.assert_array_equal(two.decision_function(X) > 0, two.predict(X))
    odds = np.log(two.predict_proba(X)[:, 1] / two.predict_proba(X)[:, 0])
    np.testing.assert_allclose(two.decision_function(X), odds, rtol=1e-6)


def test_one_label_a_class_is_enough(rng):
    X, y = waves(3, rng, noise=0.1)
    model = SeriesClassifier().fit(X, y)
    assert np.isnan(model.loo_accuracy_)
    np.testing.assert_array_equal(model.predict(X), y)
    assert 0.34 < model.predict_proba(X).max(axis=1).mean() < 0.999


def test_a_class_with_one_label_is_not_counted_but_can_be_predicted(rng):
    X, y = waves(20, rng, noise=0.2)
    kept = np.r_[np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:1]]
    model = SeriesClassifier().fit(X[kept], y[kept])
    right = model.loo_probabilities_.argmax(axis=1) == y[kept]
    assert model.loo_accuracy_ == pytest.approx(right[:-1].mean())
    assert model.predict(X[kept[-1:]]) == [2]


def test_balanced_weights_find_more_of_a_rare_class(rng):
    X, y = waves(160, rng, noise=2.2, classes=(0, 1))
    rare = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:8]]
    new, truth = waves(120, rng, noise=2.2, classes=(0, 1))
    found = {}
    for name, weight in {"none": None, "balanced": "balanced", "given": {1: 10.0}}.items():
        said = SeriesClassifier(class_weight=weight).fit(X[rare], y[rare]).predict(new)
        found[name] = (said[truth == 1] == 1).mean()
    assert found["balanced"] > found["none"] + 0.1
    assert found["given"] > found["none"] + 0.1


def test_weights_of_all_classes_that_are_balanced_are_balanced(data):
    X, y = data
    kept = np.concatenate([np.flatnonzero(y == c)[: 5 + 2 * c] for c in range(3)])
    given = SeriesClassifier(class_weight={0: 3 / 5, 1: 3 / 7, 2: 3 / 9})
    balanced = SeriesClassifier(class_weight="balanced").fit(X[kept], y[kept])
    np.testing.assert_allclose(
        given.fit(X[kept], y[kept]).predict_proba(X), balanced.predict_proba(X), atol=1e-9
    )


def test_weights_by_class_are_saved(data, tmp_path):
    X, y = data
    weight = {0: 2.0, 1: 1.5}
    SeriesClassifier(class_weight=weight).fit(X, y).save(tmp_path / "saved")
    assert SeriesClassifier.load(tmp_path / "saved").class_weight == weight


def test_channels_lengths_and_gaps_may_be_any(rng):
    X, y = waves(24, rng, n_channels=3, noise=0.3)
    X[::4, :, 30:] = np.nan
    X[1::4, 1, 10:20] = np.nan
    model = SeriesClassifier().fit(X, y)
    assert model.loo_accuracy_ > 0.8
    listed = [series[:, : 30 if i % 4 == 0 else 40] for i, series in enumerate(X)]
    same = SeriesClassifier().fit(listed, y)
    np.testing.assert_allclose(same.predict_proba(listed), model.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match=r"X has 1 channel\(s\)"):
        model.predict(X[:, :1])


def test_padding_and_batch_mates_change_nothing(data):
    X, y = data
    model = SeriesClassifier().fit(X, y)
    padded = np.pad(X, ((0, 0), (0, 0), (0, 9)), constant_values=np.nan)
    expected = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(padded), expected, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X[3:5]), expected[3:5], atol=1e-4)


@pytest.mark.parametrize("features", ["auto", ("base", "differences", "statistics"), "compact"])
def test_pickle_and_files_keep_the_answers(features, data, tmp_path):
    X, y = data
    model = SeriesClassifier(features=features).fit(X, np.array(["a", "b", "longer"])[y])
    model.save(tmp_path / "saved")
    loaded = SeriesClassifier.load(tmp_path / "saved")
    for again in (pickle.loads(pickle.dumps(model)), loaded):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert (again.loo_accuracy_, again.features_) == (model.loo_accuracy_, model.features_)
    assert clone(loaded).get_params()["encoder"] == "base"
    assert load_model(tmp_path / "saved" / "encoder").transform(X).shape == (36, 6122)
    with pytest.raises(ModelFileError, match="no series classifier; use softclt"):
        SeriesClassifier.load(tmp_path / "saved" / "encoder")


def test_a_model_of_one_label_a_class_is_saved_too(rng, tmp_path):
    X, y = waves(3, rng)
    SeriesClassifier().fit(X, y).save(tmp_path / "saved")
    assert np.isnan(SeriesClassifier.load(tmp_path / "saved").loo_accuracy_)


def test_another_encoder_beside_the_file_is_refused(data, tmp_path):
    SeriesClassifier().fit(*data).save(tmp_path / "one")
    other = SeriesClassifier(encoder="synthetic").fit(*data)
    other.encoder_.save(tmp_path / "one" / "encoder")
    with pytest.raises(ModelFileError, match="its encoder is another one"):
        SeriesClassifier.load(tmp_path / "one")


@pytest.mark.slow
def test_features_of_other_packages_are_not_saved(data, tmp_path):
    pytest.importorskip("aeon")
    model = SeriesClassifier(features=("base", "hydra"), random_state=0).fit(*data)
    assert model.loo_accuracy_ > 0.8
    with pytest.raises(ValueError, match="'hydra' come from another package and cannot be saved"):
        model.save(tmp_path / "saved")


def test_many_series_are_compared_with_some_of_them(data, rng, monkeypatch):
    X, y = waves(90, rng)
    exact = SeriesClassifier(features="base").fit(X, y)
    monkeypatch.setattr(classifier, "MOST_ROWS", 60)
    monkeypatch.setattr(classifier, "CHOOSING", 30)
    some = SeriesClassifier(random_state=0).fit(X, y)
    new, truth = waves(60, rng)
    assert some.score(new, truth) > exact.score(new, truth) - 0.07
    assert abs(some.loo_accuracy_ - exact.loo_accuracy_) < 0.1
    assert some.loo_probabilities_.shape == (90, 3)


def test_the_drawn_rows_have_every_class_and_its_share():
    codes = np.repeat([0, 1, 2], [700, 299, 1])
    rows = classifier._spread(codes, 100, seed=0)
    assert len(set(rows.tolist())) == 100
    np.testing.assert_allclose(np.bincount(codes[rows]), [70, 29, 1], atol=1)


def test_what_was_wrong_is_said(data):
    X, y = data
    with pytest.raises(ValueError, match="2 of 36 series have no label; leave"):
        SeriesClassifier().fit(X, [None, "", *map(str, y[2:])])
    with pytest.raises(ValueError, match="unknown block of features 'bass'; known: adapted, base"):
        SeriesClassifier(features=("bass",)).fit(X, y)
    with pytest.raises(ValueError, match="expected 'auto', or names of blocks, each once"):
        SeriesClassifier(features=("base", "base")).fit(X, y)
    with pytest.raises(ValueError, match="class_weight is 'even'"):
        SeriesClassifier(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="names the class 7; known"):
        SeriesClassifier(class_weight={7: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"class_weight\[0\] is -1; expected a number > 0"):
        SeriesClassifier(class_weight={0: -1}).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        SeriesClassifier().fit(X, y * 0)


def test_a_fit_that_fails_leaves_a_fitted_one_as_it_was(data, monkeypatch):
    X, y = data
    model = SeriesClassifier().fit(X, y)
    before = model.predict_proba(X)

    def fail(*args, **kwargs):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(classifier, "calibrate", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        model.fit(X[:, :, ::2], np.where(y == 0, 4, y))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_it_works_in_cross_validation(data):
    assert cross_val_score(SeriesClassifier(), *data, cv=3).mean() > 0.7


EXPECTED_FAILURES = {
    "check_n_features_in": "n_features_in_ counts channels, and (N, T) has one",
    "check_n_features_in_after_fitting": "series of another length are legal",
    "check_classifiers_train": "series of another length are legal",
    "check_methods_subset_invariance": "float32 sums round by batch, to 1e-6",
}


@pytest.mark.slow
def test_scikit_learns_own_checks_pass():
    assert failed_checks(SeriesClassifier(device="cpu"), EXPECTED_FAILURES) == {}


def test_every_block_says_what_it_is():
    for name in blocks:
        assert set(blocks.tags(name)) == {"trains", "keeps"}
        assert blocks[name].__doc__
