"""The few-label task: what it scores, what it reads, and what it never sees."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from softclt import CATCC, TSTCC, TS2Vec, evaluate, fit_many
from softclt.data import Dataset, draw_labels, save_rows, waves
from softclt.methods import methods
from softclt.methods.learner import RepresentationLearner
from softclt.tasks import evaluate_many, few_labels
from softclt.tasks.semi_supervised import predict_from

TINY = {"output_dims": 8, "hidden_dims": 8, "depth": 3, "max_iter": 20, "tau_instance": None}
MODEL = TS2Vec(**TINY, random_state=0)


@pytest.fixture(scope="module")
def data():
    return waves(n_per_class=20, length=32, noise=0.1, random_state=0)


def run(data, model=MODEL, **options):
    return evaluate("semi_supervised", model, data, seed=0, **options)


def test_every_share_has_its_scores_and_more_labels_help(data):
    result = run(data, shares=[5, 50])
    names = ("accuracy", "f1_macro", "f1_weighted")
    assert list(result.metrics) == [f"{share}.{name}" for share in (5, 50) for name in names]
    assert result.metrics["50.accuracy"] > result.metrics["5.accuracy"]
    assert result.metrics["50.accuracy"] > 0.6
    assert result.probe == "svm"
    assert set(result.seconds) == {"fit", "encode", "labels 5", "labels 50"}


def test_one_training_serves_all_shares(data, monkeypatch):
    fits = []
    monkeypatch.setattr(few_labels, "fit_many", lambda m, X: fits.append(1) or fit_many(m, X))
    run(data, shares=[5, 10, 20])
    assert len(fits) == 1


def hidden_shuffled(data, rows):
    """The same data with other labels in the test part, and on all but the shown rows."""
    rng = np.random.default_rng(7)
    y_train = data.y_train.copy()
    others = np.setdiff1d(np.arange(len(y_train)), rows)
    y_train[others] = rng.permutation(y_train[others])
    changed = replace(data, y_train=y_train, y_test=rng.permutation(data.y_test))
    assert (changed.y_train != data.y_train).sum() > 10
    return changed


@pytest.mark.parametrize("classifier", ["svm", "auto", "fine-tune"])
@pytest.mark.slow
def test_hidden_and_test_labels_change_no_prediction(data, classifier):
    shown = {"10": draw_labels(data.y_train, 10)}
    ((first, _),) = predict_from([clone(MODEL)], data, [shown], classifier)
    shuffled = hidden_shuffled(data, shown["10"])
    ((second, _),) = predict_from([clone(MODEL)], shuffled, [shown], classifier)
    assert (first["10"] == second["10"]).all()
    assert len(set(first["10"].tolist())) > 1


@pytest.mark.parametrize("name", [name for name in ("tstcc", "catcc") if name in methods])
@pytest.mark.slow
def test_methods_with_networks_of_their_own_see_no_hidden_label_either(data, name):
    known = methods[name]().get_params()
    small = {"max_epochs": 1, "widths": (4, 4, 8), "hidden_dims": 8, "timesteps": 3}
    model = methods[name](**{k: v for k, v in small.items() if k in known}, random_state=0)
    shown = {"10": draw_labels(data.y_train, 10)}
    ((first, _),) = predict_from([clone(model)], data, [shown])
    shuffled = hidden_shuffled(data, shown["10"])
    ((second, _),) = predict_from([clone(model)], shuffled, [shown])
    assert (first["10"] == second["10"]).all()


def test_rows_of_a_file_take_the_place_of_the_draw(data, tmp_path):
    path = tmp_path / "rows.json"
    save_rows(path, {10: draw_labels(data.y_train, 10, seed=0)}, n_series=60)
    assert run(data, shares=[10], rows=str(path)).metrics == run(data, shares=[10]).metrics
    with pytest.raises(ValueError, match="no rows for 5 per cent; it has 10"):
        run(data, shares=[5], rows=str(path))


def test_the_seed_draws_the_labels_and_the_plain_draw_is_one(data):
    def rows_of(**options):
        seen = []
        model = clone(MODEL).set_params(max_iter=0)
        plain = TS2Vec.transform
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                TS2Vec, "transform", lambda self, X: seen.append(np.array(X)) or plain(self, X)
            )
            options = {"seed": 0, **options}
            evaluate("semi_supervised", model, data, shares=[50], **options)
        return seen[0]  # the labelled series come first

    assert rows_of(seed=1).tolist() != rows_of(seed=2).tolist()
    assert rows_of(seed=1, draw=4).tolist() == rows_of(seed=2, draw=4).tolist()
    plain = [rows_of(seed=seed, rule="plain").tolist() for seed in (1, 2)]
    assert plain[0] == plain[1]


def test_a_draw_of_one_class_says_what_to_do(data, tmp_path):
    path = tmp_path / "rows.json"
    save_rows(path, {10: np.flatnonzero(data.y_train == 0)[:6]}, n_series=60)
    with pytest.raises(ValueError, match="all of one class; use a larger share or rule"):
        run(data, shares=[10], rows=str(path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": []}, "no share is given"),
        ({"shares": [0]}, "share"),
        ({"classifier": "forest"}, "'forest'.*svm"),
        ({"rule": "fair"}, "'fair'"),
    ],
)
def test_wrong_options_are_told_before_training(data, options, message, monkeypatch):
    monkeypatch.setattr(TS2Vec, "fit", lambda *a, **k: pytest.fail("was fitted"))
    with pytest.raises(ValueError, match=message):
        run(data, **options)


def test_data_without_test_labels_are_refused(data):
    with pytest.raises(ValueError, match="needs labels in a training and a test part"):
        run(Dataset(data.X_train, data.y_train))


@pytest.mark.slow
def test_many_models_score_as_each_alone_and_share_a_first_phase(data, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    fitted = []
    monkeypatch.setattr(
        few_labels, "fit_many", lambda m, X: fitted.extend(own := list(m)) or fit_many(own, X)
    )
    tiny = {"widths": (4, 8), "hidden_dims": 8, "timesteps": 2, "batch_size": 16, "max_iter": 5}
    tiny |= {"precision": "float64"}
    models = [
        MODEL,
        TSTCC(**tiny),
        CATCC(**tiny, label_iter=5),
        CATCC(**tiny, label_iter=5, tau_instance=None),
        methods["fixmatch"](widths=(4, 8), max_iter=5),
    ]
    together = evaluate_many("semi_supervised", models, data, seeds=[0, 1], shares=[10, 20])
    assert len(fitted) == 6  # of TS2Vec and two TS-TCC each with two seeds; FixMatch needs labels
    alone = [
        evaluate("semi_supervised", model, data, seed, shares=[10, 20])
        for model in models
        for seed in (0, 1)
    ]
    for one, other in zip(together, alone, strict=True):
        assert one.identity() == other.identity()
        assert one.metrics == pytest.approx(other.metrics)
        assert (one.trained_together, other.trained_together) == (10, 1)
