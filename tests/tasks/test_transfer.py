"""Transfer between data sets of other lengths and channels, with and without learning there."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from softclt import CATCC, TSTCC, TS2Vec, evaluate, fit_many
from softclt.data import ValidatedDataset, datasets, waves
from softclt.methods import methods
from softclt.methods.learner import RepresentationLearner
from softclt.tasks import evaluate_many, transfer
from softclt.tasks.fine_tuning import Target, fine_tune
from softclt.tasks.kept import keeping, kept
from tables import as_before

TINY = {"output_dims": 8, "hidden_dims": 8, "depth": 3, "max_iter": 10, "tau_instance": None}
MODEL = TS2Vec(**TINY, random_state=0)
GROUPS = ("made/A", "made/B", "made/C")


@pytest.fixture(autouse=True)
def three_groups():
    """Data sets by name: the same classes, other noise."""
    with as_before(datasets):
        for seed, name in enumerate(GROUPS):
            datasets.register(name)(lambda seed=seed, name=name: group(seed, name))
        yield


def group(seed=1, name="made/B", **options):
    data = waves(**{"n_per_class": 10, "length": 24, "noise": 0.1, "random_state": seed} | options)
    data.meta["name"] = name
    return data


@pytest.fixture
def predictions(monkeypatch):
    """Labels that were predicted, in turn."""
    seen = []
    plain = transfer.label_metrics

    def noted(y, predicted):
        seen.append(predicted.tolist())
        return plain(y, predicted)

    monkeypatch.setattr(transfer, "label_metrics", noted)
    return seen


def run(data, model=MODEL, **options):
    return evaluate("transfer", model, data, **{"seed": 0, "source": "made/A"} | options)


@pytest.mark.parametrize("n_channels", [1, 3])
def test_a_probe_reads_series_of_other_length_and_channels(n_channels):
    result = run(group(length=40, n_channels=n_channels), mode="probe")
    assert set(result.metrics) == {"accuracy", "precision", "recall", "f1"}
    assert result.metrics["accuracy"] > 0.6
    assert result.probe == "svm"


def test_fine_tuning_starts_from_the_source_for_several_channels_too():
    result = run(group(n_channels=2), steps=[60])
    assert result.metrics["accuracy"] > 0.6
    assert result.metrics["epochs"] == 20  # three passes of 8 of the 24 series that train
    assert result.probe == "fine-tune"


@pytest.mark.parametrize("mode", transfer.MODES)
@pytest.mark.slow
def test_test_labels_change_no_prediction(mode, predictions):
    data = group()
    other = replace(data, y_test=np.random.default_rng(5).permutation(data.y_test))
    run(data, mode=mode, steps=[5, 10])
    run(other, mode=mode, steps=[5, 10])
    assert predictions[0] == predictions[1]


@pytest.mark.parametrize("mode", ["probe", "fine-tune"])
def test_labels_that_are_not_known_change_no_prediction(mode, predictions, monkeypatch):
    data = group()
    rows = np.arange(0, 30, 3)
    monkeypatch.setattr(transfer, "rows_by_share", lambda y, shares, *rest: {"": rows})
    hidden = np.setdiff1d(np.arange(30), rows)
    y = data.y_train.copy()
    y[hidden] = np.random.default_rng(5).permutation(y[hidden])
    for own in (data, replace(data, y_train=y)):
        run(own, mode=mode, share=33, steps=[5, 10])
    assert predictions[0] == predictions[1]


def test_without_adaptation_the_training_part_of_the_target_is_never_seen(predictions):
    data = group()
    other = replace(data, X_train=np.zeros_like(data.X_train), y_train=data.y_train[::-1].copy())
    for own in (data, other):
        run(own, mode="direct", share=50)
    assert predictions[0] == predictions[1]


def test_without_adaptation_channels_and_classes_have_to_be_the_same():
    with pytest.raises(ValueError, match=r"made/A has 1 channels.*made/B has 2 channels"):
        run(group(n_channels=2), mode="direct")
    with pytest.raises(ValueError, match="needs the same channels and classes"):
        run(group(n_classes=2), mode="direct")


def test_a_method_that_needs_labels_can_only_be_used_directly():
    model = methods["fixmatch"](widths=(4, 4, 8), max_iter=3, batch_size=8)
    for mode in ("probe", "fine-tune"):
        with pytest.raises(ValueError, match="learns nothing without labels"):
            run(group(), model=model, mode=mode)
    result = run(group(), model=model, mode="direct", share=50)
    assert result.probe == "auto"
    assert 0 < result.metrics["accuracy"] <= 1


def test_several_sources_leave_the_target_out_and_give_each_score_and_the_mean():
    result = run(group(), source=list(GROUPS), mode="direct", share=30)
    each = [result.metrics[f"{name}.accuracy"] for name in ("A", "C")]
    assert "B.accuracy" not in result.metrics
    assert result.metrics["accuracy"] == pytest.approx(np.mean(each))


def test_several_shares_have_names_of_their_own():
    result = run(group(), mode="probe", share=[20, 100])
    assert list(result.metrics)[::4] == ["20.accuracy", "100.accuracy"]
    assert result.metrics["100.accuracy"] >= result.metrics["20.accuracy"]


def test_a_source_is_learned_once_for_several_targets(monkeypatch):
    fits = []
    monkeypatch.setattr(transfer, "fit_many", lambda m, X: fits.append(1) or fit_many(m, X))
    with keeping():
        first = run(group(), mode="probe")
        run(group(2, "made/C"), mode="probe")
    assert len(fits) == 1
    run(group(), model=clone(MODEL).set_params(max_iter=11), mode="probe")
    assert len(fits) == 2
    assert run(group(), mode="probe").metrics == first.metrics


def test_the_validation_part_of_a_set_chooses(monkeypatch):
    seen = []
    monkeypatch.setattr(
        transfer, "fine_tune", lambda start, targets, steps: seen.extend(targets) or [(len, 1.0)]
    )
    monkeypatch.setattr(transfer._Pair, "scores", lambda self, predicted: {"accuracy": 0.0})
    data = group()
    parts = (data.X_train, data.y_train, data.X_test, data.y_test, data.meta)
    run(ValidatedDataset(*parts, X_val=data.X_test[:7], y_val=data.y_test[:7]))
    run(data)
    given, spared = seen
    assert (len(given.X), len(given.X_val)) == (30, 7)
    assert (len(spared.X), len(spared.X_val)) == (24, 6)
    assert np.bincount(spared.y_val).tolist() == [2, 2, 2]


def fitted():
    return clone(MODEL).fit(group().X_train)


def test_of_equally_good_numbers_of_steps_the_smallest_is_chosen_and_the_first_without_a_choice():
    data = group()
    nothing = data.X_test[:0], data.y_test[:0]
    model = fitted()
    blind = Target(data.X_train, data.y_train, *nothing)
    unlike = Target(data.X_train, data.y_train, data.X_test[:2], np.array([7, 7]))
    (predict, epochs), (_, other) = fine_tune([model, model], [blind, unlike], [9, 3])
    assert epochs == other == 1  # three steps of eight
    assert set(predict(data.X_test)) <= {0, 1, 2}


def test_more_steps_are_taken_where_the_validation_part_is_better_for_it():
    data = group()
    target = Target(data.X_train, data.y_train, data.X_test, data.y_test)
    ((_, epochs),) = fine_tune([fitted()], [target], [1, 90])
    assert epochs == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "glue"}, "'glue'"),
        ({"classifier": "svm"}, "for the modes 'probe' and 'direct'"),
        ({"mode": "probe", "classifier": "fine-tune"}, "'fine-tune'"),
        ({"source": "made/nowhere"}, "made/nowhere"),
        ({"steps": [0]}, "each of steps"),
    ],
)
def test_wrong_options_are_told(options, message):
    with pytest.raises(ValueError, match=message):
        run(group(), **options)


@pytest.mark.parametrize("mode", ["fine-tune", "probe", "direct"])
@pytest.mark.slow
def test_many_models_score_as_each_alone(mode, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    tiny = {"widths": (4, 8), "hidden_dims": 8, "timesteps": 2, "batch_size": 16, "max_iter": 5}
    tiny |= {"precision": "float64"}
    models = [MODEL, TSTCC(**tiny), TSTCC(**tiny, tau_instance=None)]
    if mode == "direct":
        models += [CATCC(**tiny, label_iter=5), methods["fixmatch"](widths=(4, 8), max_iter=5)]
    options = {"mode": mode, "source": list(GROUPS), "share": 40, "steps": [3, 6]}
    together = evaluate_many("transfer", models, group(), seeds=[0, 1], **options)
    alone = [evaluate("transfer", m, group(), s, **options) for m in models for s in (0, 1)]
    for one, other in zip(together, alone, strict=True):
        assert one.identity() == other.identity()
        assert one.metrics == pytest.approx(other.metrics)


@pytest.mark.parametrize("mode", ["probe", "direct"])
def test_more_models_than_are_kept_are_scored_all_the_same(mode, monkeypatch):
    models = [clone(MODEL).set_params(max_iter=n) for n in (1, 2, 3)]
    options = {"mode": mode, "source": "made/A", "share": 40}
    plenty = evaluate_many("transfer", models, group(), **options)
    monkeypatch.setattr(transfer, "_AT_MOST", 2)
    with keeping():
        few = evaluate_many("transfer", models, group(), **options)
        assert len(kept()["learned"]) == 2
    assert [one.metrics for one in few] == [one.metrics for one in plenty]
    assert kept() == {}
