import numpy as np
import pytest
import torch

import naive
from softclt import SemiSupervisedClassifier, evaluate
from softclt.data import waves
from softclt.data.partial_labels import read_labels
from softclt.encoders import TCCEncoder
from softclt.encoders.stacked import stacked
from softclt.methods import FixMatch, MeanTeacher, SemiTime, SimCLR
from softclt.methods.head import ClassifierNetwork
from softclt.methods.learner import RepresentationLearner
from softclt.methods.rivals import labelled
from softclt.methods.rivals.labelled import Given
from softclt.methods.rivals.semitime import halves
from softclt.methods.rivals.teacher import Taught
from softclt.training import StepDraws, loop
from softclt.training.randomness import stream_keys

SMALL = {"widths": (4, 8), "batch_size": 16, "max_iter": 6, "lr": 1e-2, "random_state": 0}
# So that no two series are at distance 0.
RAW = {"distance": "euclidean", "distance_normalize": "max"}
METHODS = [FixMatch, MeanTeacher, SemiTime]
every_one = pytest.mark.parametrize("method", METHODS)


def planted(n, rng, length=40):
    """Three classes by frequency, at any phase; the first two series of each show their label."""
    y = np.arange(n) % 3
    phases = rng.uniform(0, 2 * np.pi, size=(n, 1))
    X = np.sin(2 * np.pi * np.arange(length) * (1 + y[:, None]) / 16 + phases)
    shown = np.where(np.arange(n) < 6, y, -1)
    return (X + 0.3 * rng.normal(size=X.shape))[:, None], y, shown


@every_one
def test_two_labels_a_class_are_enough_for_an_easy_problem(method, rng):
    X, _, shown = planted(90, rng)
    X_test, y_test, _ = planted(90, rng)
    easy = {"batch_size": 30, "max_iter": 80, "scale_sigma": 0.3, "jitter_sigma": 0.3, "lr": 3e-3}
    model = SemiSupervisedClassifier(method(**SMALL | easy)).fit(X, shown)
    assert (model.predict(X_test) == y_test).mean() > 0.75


@every_one
def test_labels_that_are_hidden_are_never_seen(method, rng):
    X, y, shown = planted(24, rng)
    others = np.where(shown < 0, (y + 1) % 3, y)
    first, second = (
        method(**SMALL).fit(X, np.where(shown < 0, -1, labels)).transform(X)
        for labels in (y, others)
    )
    np.testing.assert_array_equal(first, second)
    swapped = np.where(shown < 0, -1, (y + 1) % 3)
    assert np.abs(method(**SMALL).fit(X, swapped).transform(X) - first).max() > 0


@every_one
def test_a_checkpoint_is_taken_over_without_a_seed_and_to_the_same_bits(method, rng, tmp_path):
    X, _, shown = planted(24, rng)
    small = SMALL | {"random_state": None}
    first = method(**small).fit(X, shown, checkpoint=tmp_path)
    assert (tmp_path / "1-semi-supervised").is_dir()
    again = method(**small).fit(X, shown, checkpoint=tmp_path)
    assert again.history_["loss"] == first.history_["loss"]
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    with pytest.raises(ValueError, match="checkpoint of another run"):
        method(**small | {"lr": 1e-3}).fit(X, shown, checkpoint=tmp_path)


@every_one
def test_training_that_was_stopped_goes_on_to_the_same_bits(method, rng, tmp_path, monkeypatch):
    X, _, shown = planted(24, rng)
    whole = method(**SMALL).fit(X, shown)
    monkeypatch.setattr(loop, "_LOOK_EVERY", 3)
    calls = []

    def stop_in_the_middle(progress):
        calls.append(progress)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        method(**SMALL).fit(X, shown, checkpoint=tmp_path, callbacks=[stop_in_the_middle])
    resumed = method(**SMALL).fit(X, shown, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


@every_one
def test_what_is_missing_at_the_end_of_all_series_changes_nothing(method, rng):
    X, _, shown = planted(24, rng)
    X[3, :, 30:] = np.nan
    longer = np.pad(X, [(0, 0), (0, 0), (0, 5)], constant_values=np.nan)
    np.testing.assert_array_equal(
        method(**SMALL).fit(X, shown).transform(X), method(**SMALL).fit(longer, shown).transform(X)
    )


@every_one
def test_wrong_uses_are_told_what_to_do(method, rng):
    X, _, shown = planted(12, rng)
    with pytest.raises(ValueError, match="requires y"):
        method(**SMALL).fit(X)
    with pytest.raises(ValueError, match="leave warm_start out"):
        method(**SMALL, warm_start=True).fit(X, shown)
    with pytest.raises(ValueError, match="max_iter or max_epochs"):
        SemiSupervisedClassifier(method(**SMALL), label_iter=3).fit(X, shown)
    pretrained = SimCLR(**SMALL).fit(X)
    with pytest.raises(ValueError, match="leave pretrained out"):
        SemiSupervisedClassifier(method(**SMALL), pretrained=pretrained).fit(X, shown)
    X[0] = np.nan
    with pytest.raises(ValueError, match="series 0 of X has no step"):
        method(**SMALL).fit(X, shown)


@every_one
@pytest.mark.slow
def test_a_stack_with_labels_of_their_own_is_what_each_is_alone(method, rng, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 3)
    sizes = []
    monkeypatch.setattr(
        labelled, "stacked", lambda networks: sizes.append(len(networks)) or stacked(networks)
    )
    X, y, _ = planted(24, rng)
    X[3, :, 30:] = np.nan
    small = SMALL | {"precision": "float64"}
    settings = [small | {"random_state": seed} for seed in range(6)]
    if method is SemiTime:  # hard and soft targets in one stack
        settings[1] |= {"tau_instance": 20.0}
    n_labels = [6, 6, 6, 6, 9, 9]  # stacks of three, one and two
    labels = []
    for n in n_labels:
        shown = np.concatenate(
            [rng.permutation(np.flatnonzero(y == c))[: n // 3] for c in range(3)]
        )
        labels.append(read_labels(np.where(np.isin(np.arange(24), shown), y, -1), 24))
    models = [method(**own) for own in settings]
    method.fit_labelled_many(models, X, labels, pretrained=[None] * 6)
    assert sizes == [3, 2]
    for model, own, shown in zip(models, settings, labels, strict=True):
        alone = method(**own).fit_labelled(X, shown)
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=1e-6)
        for name, value in alone.network_.state_dict().items():
            torch.testing.assert_close(
                model.network_.state_dict()[name], value, rtol=1e-6, atol=1e-8
            )


def test_labelled_series_of_a_step_come_with_their_labels_again_and_again():
    labels = torch.arange(3)
    x = labels.double()[:, None, None].expand(3, 1, 4)
    given = Given(x[None], labels[None], n_drawn=400, n_steps=1)
    counter = torch.tensor(0, dtype=torch.int32)
    draws = StepDraws(stream_keys([0], torch.device("cpu")), 0, counter, torch.float64)
    drawn = given.draw(draws)
    assert torch.equal(drawn.x[:, :, 0, 0].long(), drawn.labels)
    assert drawn.labels.unique(return_counts=True)[1].min() > 100


def test_a_teacher_begins_as_a_copy_and_is_the_average_of_its_student(rng):
    encoder = TCCEncoder(1, (4,)).double()
    network = Taught(ClassifierNetwork(encoder, 1, 2, length=10).double())
    for own, other in zip(network.helper.parameters(), network.encoder.parameters(), strict=True):
        assert torch.equal(own, other)
    iterates = rng.normal(size=40)
    for step, value in enumerate(iterates):
        with torch.no_grad():
            for weights in network.encoder.state_dict().values():
                weights.fill_(value)
        network.follow(torch.tensor(step), 0.9)
        for weights in network.helper.state_dict().values():
            expected = naive.averaged(iterates[: step + 1], 0.9)
            torch.testing.assert_close(weights, torch.full_like(weights, expected))
        if step < 10:
            assert naive.averaged(iterates[: step + 1], 0.9) == pytest.approx(
                iterates[: step + 1].mean()
            )


def test_a_teacher_answers_by_statistics_of_the_batch_that_it_is_asked_about(rng):
    student = ClassifierNetwork(TCCEncoder(1, (4,)).double(), 1, 2, length=10).double()
    network = Taught(student)
    network.helper.requires_grad_(False).eval()
    x = torch.as_tensor(rng.normal(size=(1, 8, 1, 10)))
    answers = network.answers(x, complete=True)
    torch.testing.assert_close(network.answers(100 * x, complete=True), answers, rtol=0, atol=1e-3)
    assert (network.helper.eval().logits(100 * x) - answers).abs().max() > 0.1


@pytest.mark.parametrize("missing", [False, True])
def test_the_teacher_does_so_while_its_student_trains(missing, rng, monkeypatch):
    X, _, shown = planted(24, rng)
    if missing:
        X[3, :, 30:] = np.nan
    ask, same = Taught.answers, []

    def watched(self, x, complete):
        statistics = [value for name, value in self.helper.named_buffers() if "mean" in name]
        before = [value.clone() for value in statistics]
        answers = ask(self, x, complete)
        same.extend(map(torch.equal, before, statistics))
        return answers

    monkeypatch.setattr(Taught, "answers", watched)
    MeanTeacher(**SMALL).fit(X, shown)
    assert same == [False] * 12  # six steps, two blocks


def test_the_classifier_of_fixmatch_is_the_teacher(rng):
    X, _, shown = planted(24, rng)
    last, mean = (FixMatch(**SMALL, teacher_memory=m).fit(X, shown) for m in (0.0, 0.5))
    assert last.history_["loss"] == mean.history_["loss"]
    assert np.abs(last.transform(X) - mean.transform(X)).max() > 0


def test_fixmatch_with_a_threshold_that_nothing_reaches_learns_from_labels_alone(rng):
    X, _, shown = planted(24, rng)
    kept, without = (
        FixMatch(**SMALL, **own).fit(X, shown).transform(X)
        for own in ({"threshold": 1.0}, {"unlabelled_weight": 0.0})
    )
    np.testing.assert_array_equal(kept, without)


def test_halves_of_a_series_have_as_many_observed_steps_each():
    x = torch.arange(7.0)[None, None, None]
    past, future = halves(x, None)
    assert past.tolist() == [[[[0.0, 1.0, 2.0]]]]
    assert future.tolist() == [[[[4.0, 5.0, 6.0]]]]
    missing = x.clone()
    missing[..., 1] = missing[..., 5:] = torch.nan
    past, future = halves(missing, ~missing.isnan()[:, :, 0])
    assert past[~past.isnan()].tolist() == [0.0, 2.0]
    assert future[~future.isnan()].tolist() == [3.0, 4.0]


def test_soft_targets_change_what_semitime_learns_and_sharp_ones_do_not(rng):
    X, _, shown = planted(24, rng)
    hard, soft, sharp = (
        SemiTime(**SMALL, tau_instance=tau, **RAW).fit(X, shown).transform(X)
        for tau in (None, 5.0, 1e6)
    )
    assert np.abs(soft - hard).max() > 1e-4
    np.testing.assert_allclose(sharp, hard, atol=1e-5)


@pytest.mark.parametrize("method", [FixMatch, SimCLR])
def test_the_few_label_task_takes_every_rival(method):
    data = waves(n_per_class=20, length=32, noise=0.1, random_state=0)
    result = evaluate("semi_supervised", method(**SMALL), data, seed=0, shares=[10, 20])
    assert set(result.metrics) >= {"10.accuracy", "20.accuracy"}
    assert result.probe == ("fine-tune" if method is SimCLR else "auto")
    read = evaluate("semi_supervised", method(**SMALL), data, seed=0, shares=[20], classifier="svm")
    assert read.probe == "svm"
    assert read.metrics["20.accuracy"] > 1 / 3
