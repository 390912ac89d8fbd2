"""The classifier from few labels: methods, classifiers, labels, files, scikit-learn."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from estimator_checks import failed_checks
from softclt import CATCC, TSTCC, SemiSupervisedClassifier, TS2Vec, load_model
from softclt.persistence import ModelFileError
from softclt.training import loop, phases

TCC = {"widths": (4, 6, 8), "hidden_dims": 8, "timesteps": 2, "max_iter": 3, "batch_size": 8}
TS2 = {"output_dims": 8, "hidden_dims": 4, "depth": 2, "max_iter": 3}
PARAMS = {"catcc": TCC, "tstcc": TCC, "supervised": TCC, "ts2vec": TS2}
every_method = pytest.mark.parametrize("method", PARAMS)
CLASSIFIERS = ("svm", "ridge", "linear", "fine-tune", "linear-probe")


@pytest.fixture
def series(rng):
    t, speed = np.arange(24), np.repeat([0.4, 0.9, 1.6], 7)
    return np.sin(speed[:, None] * t + rng.uniform(0, 6, size=(21, 1)))[:, None]


@pytest.fixture
def y():
    labels = np.full(21, -1)
    labels[[0, 7, 14]] = 5, 3, 9
    return labels


def model(method="ts2vec", **own):
    given = {"method_params": PARAMS[method]} if isinstance(method, str) else {}
    settings = {"label_iter": 4, "random_state": 0, "device": "cpu"}
    return SemiSupervisedClassifier(method, **settings | given | own)


def assert_is_a_distribution(likely, n, n_classes=3):
    assert likely.shape == (n, n_classes)
    assert likely.min() >= 0
    np.testing.assert_allclose(likely.sum(axis=1), 1, rtol=1e-12)


@every_method
def test_every_method_learns_from_one_label_a_class(method, series, y):
    fitted = model(method).fit(series, y)
    assert fitted.classes_.tolist() == [3, 5, 9]
    likely = fitted.predict_proba(series)
    assert_is_a_distribution(likely, 21)
    np.testing.assert_array_equal(fitted.predict(series), fitted.classes_[likely.argmax(axis=1)])
    assert fitted.encoder_.transform(series).shape == (21, 8)
    assert fitted.labelled_.sum() == 3


@pytest.mark.parametrize("method", ["catcc", "tstcc", "ts2vec"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_every_classifier_goes_with_every_method(method, classifier, series, y):
    fitted = model(method, classifier=classifier).fit(series, y)
    assert_is_a_distribution(fitted.predict_proba(series), 21)
    assert (fitted.network_ is None) == (classifier in ("svm", "ridge", "linear"))


def test_auto_is_an_svm_for_ts2vec_fine_tuning_for_tstcc_and_catccs_own(series, y):
    assert model("ts2vec").fit(series, y).probe_kind_ == "svm"
    tuned = model("tstcc").fit(series, y)
    by_name = model("tstcc", classifier="fine-tune").fit(series, y)
    np.testing.assert_array_equal(tuned.predict_proba(series), by_name.predict_proba(series))
    own = model("catcc").fit(series, y)
    assert own.network_ is own.encoder_.network_
    assert "classifier" in own.encoder_.history_["phases"]


def test_it_learns_what_there_is_to_learn(series, y):
    fitted = model("tstcc", method_params=TCC | {"lr": 1e-2, "max_iter": 30}, label_iter=60)
    truth = np.repeat([5, 3, 9], 7)
    assert (fitted.fit(series, y).predict(series) == truth).mean() > 0.6


def test_an_instance_is_a_method_too_and_stays_unfitted(series, y):
    instance = TS2Vec(**TS2, random_state=0, device="cpu")
    given, named = (model(own).fit(series, y) for own in (instance, "ts2vec"))
    np.testing.assert_array_equal(given.predict_proba(series), named.predict_proba(series))
    assert not hasattr(instance, "module_")
    with pytest.raises(ValueError, match="method_params belong to a method given by name"):
        model(instance, method_params={"depth": 3}).fit(series, y)
    with pytest.raises(ValueError, match="method is 3; expected a name, one of catcc"):
        model(3, method_params=None).fit(series, y)


@pytest.mark.parametrize(
    ("method", "kind"), [("ts2vec", TS2Vec), ("tstcc", TSTCC), ("catcc", CATCC)]
)
def test_a_pretrained_method_takes_the_place_of_the_first_phase(
    method, kind, series, y, monkeypatch
):
    straight = model(method).fit(series, y)
    before = kind(**PARAMS[method], random_state=0, device="cpu").fit(series)
    kept = before.transform(series)

    def never(*given, **options):
        raise AssertionError("trained without labels again")

    monkeypatch.setattr("softclt.methods.many.fit_loop", never)
    adopted = model(method, pretrained=before, method_params=None).fit(series, y)
    np.testing.assert_allclose(
        adopted.predict_proba(series), straight.predict_proba(series), atol=1e-7
    )
    np.testing.assert_array_equal(before.transform(series), kept)


def test_a_pretrained_tstcc_serves_catcc(series, y):
    before = TSTCC(**TCC, random_state=0, device="cpu").fit(series)
    adopted = model("catcc", pretrained=before).fit(series, y)
    straight = model("catcc").fit(series, y)
    np.testing.assert_array_equal(adopted.predict_proba(series), straight.predict_proba(series))
    with pytest.raises(ValueError, match="starts from scratch"):
        model("supervised", pretrained=before).fit(series, y)


# ------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize("marker", [None, np.nan, "", "?"])
def test_names_and_any_marker(marker, series, y):
    names = np.full(21, marker, dtype=object)
    names[[0, 7, 14]] = "walk", "run", "sit"
    fitted = model(unlabelled=marker).fit(series, names)
    assert fitted.classes_.tolist() == ["run", "sit", "walk"]
    assert set(fitted.predict(series)) <= {"run", "sit", "walk"}


def test_minus_one_can_be_a_class(series, y):
    labels = np.where(y == -1, -99, y)
    labels[7] = -1
    assert model(unlabelled=-99).fit(series, labels).classes_.tolist() == [-1, 5, 9]


def test_hidden_labels_change_nothing_and_shown_ones_do(series, y, rng):
    truth = np.repeat([5, 3, 9], 7)
    rows = [0, 7, 14]
    likely = []
    for hidden in (truth, rng.permutation(truth)):
        shown = np.full(21, -1)
        hidden = hidden.copy()
        hidden[rows] = truth[rows]
        shown[rows] = hidden[rows]
        likely.append(model("catcc").fit(series, shown).predict_proba(series))
    np.testing.assert_array_equal(*likely)
    more = y.copy()
    more[1] = 5
    assert not np.array_equal(likely[0], model("catcc").fit(series, more).predict_proba(series))


def test_a_named_class_without_label_warns_and_is_never_predicted(series, y):
    with pytest.warns(UserWarning, match=r"no series has a label of \[4\]"):
        fitted = model(classes=[3, 4, 5, 9]).fit(series, y)
    assert fitted.classes_.tolist() == [3, 4, 5, 9]
    likely = fitted.predict_proba(series)
    assert_is_a_distribution(likely, 21, 4)
    assert (likely[:, 1] == 0).all()
    plain = model().fit(series, y)
    np.testing.assert_array_equal(fitted.predict(series), plain.predict(series))
    with pytest.raises(ValueError, match=r"not among the classes: \[9\]"):
        model(classes=[3, 5]).fit(series, y)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.full(21, -1), "y has no label"),
        ([2] * 5 + [-1] * 16, "one class only"),
        ([0, 1], "X has 21 series, but y has 2 entries"),
    ],
)
def test_labels_that_teach_nothing_are_refused(series, labels, words):
    with pytest.raises(ValueError, match=words):
        model().fit(series, labels)


def test_wrong_settings_are_refused_with_what_there_is(series, y):
    with pytest.raises(ValueError, match="classifier is 'tree'; expected one of 'auto', 'svm'"):
        model(classifier="tree").fit(series, y)
    with pytest.raises(ValueError, match="unknown method 'ts3vec'"):
        model("ts2vec").set_params(method="ts3vec").fit(series, y)


def test_series_of_any_length_and_with_gaps_are_classified(series, y):
    ragged = [one[:, : 24 - i % 5] for i, one in enumerate(series)]
    ragged[4] = np.where(np.arange(ragged[4].shape[1]) == 6, np.nan, ragged[4])
    for method in ("tstcc", "ts2vec"):
        fitted = model(method, classifier="fine-tune").fit(ragged, y)
        assert_is_a_distribution(fitted.predict_proba(ragged[:5]), 5)


# --------------------------------------------------------------------------- files and checkpoints


class PowerCutError(Exception):
    pass


@pytest.mark.parametrize("method", ["tstcc", "catcc"])
def test_a_killed_fit_goes_on_to_the_same_answers(method, series, y, tmp_path, monkeypatch):
    straight = model(method).fit(series, y).predict_proba(series)
    plain = phases.fit_loop

    def dies(*given, title="training", **options):
        monkeypatch.setattr(loop, "_LOOK_EVERY", 2)
        monkeypatch.setattr(phases, "fit_loop", plain)
        plain(*given, title=title, **options)
        raise PowerCutError

    monkeypatch.setattr(phases, "fit_loop", dies)
    with pytest.raises(PowerCutError):
        model(method).fit(series, y, checkpoint=tmp_path)
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["1-self-supervised", "2-fine-tune"]
    gone_on = model(method).fit(series, y, checkpoint=tmp_path)
    np.testing.assert_array_equal(gone_on.predict_proba(series), straight)


@pytest.mark.parametrize(
    ("method", "classifier"), [("ts2vec", "svm"), ("tstcc", "fine-tune"), ("catcc", "auto")]
)
def test_pickle_and_files_keep_the_answers(method, classifier, series, tmp_path):
    names = np.array([""] * 21, dtype=object)
    names[[0, 7, 14]] = "walk", "run", "sit"
    fitted = model(method, classifier=classifier).fit(series, names)
    fitted.save(tmp_path / "saved")
    loaded = SemiSupervisedClassifier.load(tmp_path / "saved")
    for copy in (pickle.loads(pickle.dumps(fitted)), loaded):
        np.testing.assert_array_equal(copy.predict_proba(series), fitted.predict_proba(series))
        np.testing.assert_array_equal(copy.predict(series), fitted.predict(series))
    again = clone(loaded).fit(series, names)
    assert again.predict_proba(series).shape == (21, 3)
    encoder = load_model(tmp_path / "saved" / "encoder")
    np.testing.assert_array_equal(encoder.transform(series), fitted.encoder_.transform(series))
    with pytest.raises(ModelFileError, match="no semi-supervised classifier; use softclt"):
        SemiSupervisedClassifier.load(tmp_path / "saved" / "encoder")


def test_the_callers_random_state_is_left_alone(series, y):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    model("catcc").fit(series, y).predict(series)
    assert torch.equal(torch.random.get_rng_state(), before)


EXPECTED_FAILURES = {
    "check_n_features_in": "n_features_in_ counts channels, and (N, T) has one",
    "check_n_features_in_after_fitting": "series of another length are legal",
    "check_classifiers_train": "series of another length are legal",
}


@pytest.mark.slow
def test_scikit_learns_own_checks_pass():
    tiny = {"output_dims": 8, "hidden_dims": 8, "depth": 1, "max_iter": 4, "precision": "float64"}
    classifier = SemiSupervisedClassifier(
        "ts2vec", method_params=tiny, unlabelled=-99, random_state=0, device="cpu"
    )
    assert failed_checks(classifier, EXPECTED_FAILURES) == {}


def test_a_fit_that_fails_leaves_a_fitted_one_as_it_was(series, y, monkeypatch):
    fitted = model().fit(series, y)
    before = fitted.predict(series)

    def fail(*args, **kwargs):
        raise RuntimeError("in the middle")

    monkeypatch.setattr("softclt.few_labels.classifier.fit_many", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        fitted.fit(series, np.where(y == 5, 4, y))
    np.testing.assert_array_equal(fitted.predict(series), before)
