"""Classifier heads on encoders: what they read, what learns, and with how few labels."""

import numpy as np
import pytest
import torch

from softclt import TSTCC, TS2Vec
from softclt.data.partial_labels import read_labels
from softclt.methods.head import ClassifierNetwork
from softclt.methods.supervised import (
    Lesson,
    class_probabilities,
    fit_classifiers_together,
    label_steps,
    new_classifier,
)
from softclt.training.phases import PhaseMissingError

LEARNERS = {
    "tstcc": lambda **own: TSTCC(widths=(4, 6), hidden_dims=8, max_iter=2, device="cpu", **own),
    "ts2vec": lambda **own: TS2Vec(
        output_dims=6, hidden_dims=4, depth=2, max_iter=2, device="cpu", **own
    ),
}
both = pytest.mark.parametrize("name", LEARNERS)


@pytest.fixture
def series(rng):
    t, speed = np.arange(24), np.repeat([0.4, 1.3], 6)
    return np.sin(speed[:, None] * t + rng.uniform(0, 6, size=(12, 1)))[:, None]


def labels_for(n=12, known=(0, 1, 6, 7)):
    y = np.full(n, -1)
    y[list(known)] = np.array(known) >= n // 2
    return read_labels(y, n)


def fit_classifier(learner, X, labels, lesson, **options):
    (found,) = fit_classifiers_together([learner], [X], [labels], lesson, **options)
    return found


def fitted(name, X, **own):
    return LEARNERS[name](random_state=0, **own).fit(X)


def encoder_of(module):
    return {k: v for k, v in module.state_dict().items() if "contrast" not in k}


def changed(one, other):
    """Which parts of two networks of one kind differ: parameters, statistics."""
    kinds = set()
    for key, value in one.items():
        if not torch.equal(value, other[key]):
            kinds.add("statistics" if "running" in key else "parameters")
    return kinds


def test_a_head_reads_several_poolings_side_by_side(series):
    learner = fitted("ts2vec", series, lr=1e-2, pooling="max+positive")
    network, facts = fit_classifier(learner, series, labels_for(), Lesson("any", n_steps=60))
    assert network.head.weight.shape == (1, 12, 2)  # 6 maxima and 6 shares
    assert facts["loss"][-1] < 0.95 * facts["loss"][0]
    assert changed(encoder_of(learner.module_), encoder_of(network.encoder)) == {"parameters"}


def test_a_share_of_steps_alone_is_refused_where_an_encoder_learns_through_it(series):
    with pytest.raises(ValueError, match="cannot learn"):
        new_classifier(fitted("ts2vec", series, pooling="positive"), series, 2, seed=0)
    new_classifier(fitted("tstcc", series, pooling="positive"), series, 2, seed=0)  # has no pooling


@both
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.slow
def test_one_label_a_class_is_enough(name, frozen, series):
    learner = fitted(name, series, lr=1e-2)
    lesson = Lesson("any", frozen=frozen, n_steps=60)
    network, facts = fit_classifier(learner, series, labels_for(known=(0, 6)), lesson)
    assert len(facts["loss"]) == 60
    assert facts["loss"][-1] < 0.95 * facts["loss"][0]
    likely = class_probabilities(learner, network, series)
    assert likely.shape == (12, 2)
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    assert likely[[0, 6], [0, 1]].min() > 0.5


@both
def test_a_linear_probe_leaves_the_encoder_as_it_is_and_fine_tuning_does_not(name, series):
    learner = fitted(name, series)
    before = {k: v.clone() for k, v in encoder_of(learner.module_).items()}
    probe, _ = fit_classifier(
        learner, series, labels_for(), Lesson("linear-probe", frozen=True, n_steps=3)
    )
    assert changed(before, encoder_of(probe.encoder)) == set()
    tuned, _ = fit_classifier(learner, series, labels_for(), Lesson("fine-tune", n_steps=3))
    assert changed(before, encoder_of(tuned.encoder)) == {"parameters"}
    assert changed(before, encoder_of(learner.module_)) == set()


def test_a_linear_probe_has_no_dropout(series):
    learner = fitted("tstcc", series, dropout=0.9)
    network = new_classifier(learner, series, 2, seed=0)
    x = torch.zeros(1, 3, 1, 24)

    class Draws:
        def dropout(self, *given, **options):
            raise AssertionError("dropped")

    network.encoder.eval()
    network.logits(x, Draws())
    network.encoder.train()
    with pytest.raises(AssertionError, match="dropped"):
        network.logits(x, Draws())


@pytest.mark.parametrize(("n", "from_scratch", "moves"), [(4, False, False), (16, False, True)])
def test_few_series_leave_batch_statistics_as_they_are(rng, n, from_scratch, moves):
    X = rng.normal(size=(2 * n, 1, 24))
    learner = fitted("tstcc", X)
    labels = labels_for(2 * n, known=[*range(n // 2), *range(n, n + n // 2)])
    lesson = Lesson("fine-tune", n_steps=2, from_scratch=from_scratch)
    network, _ = fit_classifier(learner, X, labels, lesson)
    moved = "statistics" in changed(encoder_of(learner.module_), encoder_of(network.encoder))
    assert moved == moves


def test_from_scratch_statistics_are_those_of_the_batches(series):
    learner = fitted("tstcc", series)
    lesson = Lesson("fine-tune", n_steps=2, from_scratch=True)
    network, _ = fit_classifier(learner, series, labels_for(), lesson)
    assert "statistics" in changed(encoder_of(learner.module_), encoder_of(network.encoder))


# ---------------------------------------------------------------------------------- what is read


def test_steps_are_read_side_by_side_if_all_series_have_one_length(series):
    learner = fitted("tstcc", series)
    last = learner.module_.encoder.blocks(torch.zeros(1, 1, 1, 24))[-1].values
    network = new_classifier(learner, series, 3, seed=0)
    assert network.head.weight.shape == (1, last.shape[2] * 6, 3)
    x = torch.as_tensor(series, dtype=torch.float32)[None]
    flat = learner.module_.encoder.blocks(x)[-1].values.flatten(2)
    expected = flat @ network.head.weight + network.head.bias[:, None]
    torch.testing.assert_close(network.logits(x), expected)


def test_series_of_several_lengths_are_pooled(series):
    ragged = [one[:, : 24 - i] for i, one in enumerate(series)]
    learner = fitted("tstcc", ragged)
    padded = np.stack(
        [np.pad(s, ((0, 0), (0, 24 - s.shape[1])), constant_values=np.nan) for s in ragged]
    )
    assert new_classifier(learner, padded, 2, seed=0).head.weight.shape == (1, 6, 2)


@both
@pytest.mark.parametrize("ragged", [False, True])
def test_a_prediction_depends_neither_on_padding_nor_on_batch_mates(name, ragged, series):
    X = series.copy()
    if ragged:
        X[3, :, 15:], X[8, :, 9:] = np.nan, np.nan
    learner = fitted(name, X)
    network, _ = fit_classifier(learner, X, labels_for(), Lesson("fine-tune", n_steps=2))
    others = [X[0], X[1][:, :17], X[2][:, :5], np.tile(X[4], 2)]  # of other lengths, too
    together = class_probabilities(learner, network, others)
    alone = np.concatenate([class_probabilities(learner, network, [one]) for one in others])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_a_stretched_series_of_constant_features_is_read_as_before(series):
    learner = fitted("tstcc", series)
    network = new_classifier(learner, series, 2, seed=0)
    assert isinstance(network, ClassifierNetwork)
    values = torch.ones(1, 2, 4, 6)
    network._features = lambda *given: (values, None)
    longer = network.logits(torch.zeros(1, 2, 1, 9))
    values = torch.ones(1, 2, network.n_steps, 6)
    torch.testing.assert_close(network.logits(torch.zeros(1, 2, 1, 24)), longer)


def test_steps_are_forty_passes_and_two_hundred_at_least():
    assert label_steps(3, batch_size=128) == 200
    assert label_steps(2560, batch_size=128) == 800


def test_a_lesson_that_is_only_looked_for_must_have_been_given(series, tmp_path):
    learner = fitted("ts2vec", series)
    lesson = Lesson("fine-tune", n_steps=2, folder=tmp_path)
    with pytest.raises(PhaseMissingError):
        fit_classifier(learner, series, labels_for(), lesson, found_only=True)
    first, _ = fit_classifier(learner, series, labels_for(), lesson)
    found, _ = fit_classifier(learner, series, labels_for(), lesson, found_only=True)
    assert torch.equal(first.head.weight, found.head.weight)
