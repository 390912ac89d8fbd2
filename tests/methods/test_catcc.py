"""CA-TCC: four phases, of which each can be killed, and none sees a label that is not given."""

import numpy as np
import pytest
import torch

import naive
import softclt
from softclt import CATCC, TSTCC
from softclt.data.partial_labels import PartialLabels
from softclt.methods.catcc import PHASES, pseudo_labels
from softclt.methods.tstcc import Terms
from softclt.training import Batch, StepDraws, loop, phases
from softclt.training.distributed import Group
from softclt.training.phases import PhaseMissingError
from softclt.training.randomness import stream_keys

SMALL = {
    "widths": (4, 6, 8),
    "hidden_dims": 8,
    "timesteps": 2,
    "batch_size": 8,
    "max_iter": 6,
    "label_iter": 6,
    "device": "cpu",
    "random_state": 0,
}
ZI = torch.tensor([[1.0, 0.5], [-0.5, 1.0], [0.25, -1.0]], dtype=torch.float64)
ZJ = torch.tensor([[0.75, 0.5], [-0.5, 0.5], [0.5, -1.0]], dtype=torch.float64)
SUPCON = 0.5530060316126861  # of these, labels 0, 1, 0 and temperature 0.2, worked by hand


@pytest.fixture
def series(rng):
    """Fast and slow waves of any phase."""
    t, speed = np.arange(24), np.repeat([0.4, 1.3], 10)
    phase = rng.uniform(0, 6, size=(20, 1))
    return (np.sin(speed[:, None] * t + phase) + 0.1 * rng.normal(size=(20, 24)))[:, None]


@pytest.fixture
def y():
    labels = np.full(20, -1)
    labels[[0, 10]] = 0, 1
    return labels


def model(**parameters):
    return CATCC(**SMALL | parameters)


def weights_of(module):
    return torch.cat([value.flatten().double() for value in module.state_dict().values()])


# ------------------------------------------------------------------------------------------ losses


def test_without_soft_losses_the_class_aware_loss_is_that_of_plain_catcc(series, monkeypatch):
    learner = model(lambda_aux=0.0, precision="float64", max_iter=0).fit(series)
    terms = Terms(torch.tensor([3.0], dtype=torch.float64), (ZI[None], ZJ[None]), 0.0)
    monkeypatch.setattr(CATCC, "_terms", lambda *given: terms)
    x = torch.zeros(1, 3, 1, 24)
    rows, labels = torch.arange(3)[None], torch.tensor([[0, 1, 0]])
    start = torch.zeros(1, dtype=torch.int64)
    batch = Batch(x, None, rows, start, None, None, 0.5, Group(), labels=labels)
    loss = learner._class_aware_loss(learner.module_, batch, None)
    assert loss.item() == pytest.approx(0.01 * 3.0 + 0.1 * SUPCON, rel=1e-12)


@pytest.mark.parametrize("lambda_aux", [0.0, 0.5])
def test_the_class_aware_loss_is_the_sum_of_its_parts(series, lambda_aux):
    learner = model(lambda_aux=lambda_aux, precision="float64", max_iter=0).fit(series)
    counter = torch.tensor(2, dtype=torch.int32)
    draws = StepDraws(stream_keys([0], torch.device("cpu")), 2, counter, torch.float64)
    labels = torch.tensor([[0, 1, 0, -1, 1]])
    x = torch.as_tensor(series[None, :5])
    start = torch.zeros(1, dtype=torch.int64)
    by_lag = learner._temporal_weights(x)
    batch = Batch(x, None, torch.arange(5)[None], start, None, by_lag, 0.5, Group(), labels=labels)
    terms = learner._terms(learner.module_, batch, draws)
    classes = naive.supervised_contrast(
        *(z[0].tolist() for z in terms.projections), labels[0].tolist(), 0.2
    )
    expected = 0.01 * terms.temporal + 0.1 * classes + 0.1 * lambda_aux * terms.auxiliary
    loss = learner._class_aware_loss(learner.module_, batch, draws)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)


def test_soft_weights_belong_to_the_rows_of_the_batch(series, y, monkeypatch):
    seen = []
    plain = CATCC._class_aware_loss

    def looked_at(self, module, batch, draws):
        seen.append((batch.index[0].numpy().copy(), batch.weights[0].numpy().copy()))
        assert torch.equal(batch.labels[0], labels[batch.index[0]])
        np.testing.assert_allclose(batch.x[0].numpy(), scaled[batch.index[0]], rtol=1e-5)
        return plain(self, module, batch, draws)

    D = softclt.pairwise_distance(series, normalize="minmax")
    scaled = ((series - series.mean()) / series.std()).astype(np.float32)
    reference = model().fit(series, y)
    labels = torch.from_numpy(reference.pseudo_labels_)
    monkeypatch.setattr(CATCC, "_class_aware_loss", looked_at)
    model().fit(series, y)
    assert len(seen) == 6
    for rows, weights in seen:
        expected = 2 * 0.5 / (1 + np.exp(20.0 * D[np.ix_(rows, rows)]))
        np.fill_diagonal(expected, 1.0)
        np.testing.assert_allclose(weights, expected, atol=1e-5)


# ------------------------------------------------------------------------------------------ phases


@pytest.mark.slow
def test_it_tells_classes_apart_from_one_label_each(series, y):
    learner = model(max_iter=40, label_iter=60, lr=3e-3).fit(series, y)
    assert learner.classes_.tolist() == [0, 1]
    assert list(learner.history_["phases"]) == list(PHASES[1:])
    assert learner.history_["phases"]["classifier"]["loss"][-1] < 0.3
    assert (learner.pseudo_labels_ == np.repeat([0, 1], 10)).mean() > 0.8
    assert learner.network_.encoder is learner.module_


class PowerCutError(Exception):
    pass


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.slow
def test_killed_in_any_phase_it_goes_on_to_the_same_bits(number, series, y, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 2)
    looks = []

    def power_cut(progress):
        looks.append(progress.step)
        if len(looks) == 3 * number - 1:  # three looks a phase: killed at the second
            raise PowerCutError

    with pytest.raises(PowerCutError):
        model().fit(series, y, checkpoint=tmp_path, callbacks=[power_cut])
    assert len(list(tmp_path.iterdir())) == number
    gone_on = model().fit(series, y, checkpoint=tmp_path)
    straight = model().fit(series, y)
    assert torch.equal(weights_of(gone_on.network_), weights_of(straight.network_))
    for name in PHASES[1:]:
        own, other = (m.history_["phases"][name]["loss"] for m in (gone_on, straight))
        assert own == other
    assert gone_on.history_["loss"] == straight.history_["loss"]


def test_phases_that_have_ended_are_not_run_again(series, y, tmp_path, monkeypatch):
    first = model().fit(series, y, checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1-self-supervised",
        "2-fine-tune",
        "3-class-aware",
        "4-classifier",
    ]

    def never(*given, **options):
        raise AssertionError

    monkeypatch.setattr(phases, "fit_loop", never)
    monkeypatch.setattr("softclt.methods.many.fit_loop", never)
    monkeypatch.setattr("softclt.methods.between.batch_distances", never)
    again = model().fit(series, y, checkpoint=tmp_path)
    assert torch.equal(weights_of(again.network_), weights_of(first.network_))


def test_phases_can_be_run_one_by_one(series, y, tmp_path):
    for name in PHASES:
        learner = model().fit(series, y, checkpoint=tmp_path, phases=name)
        assert (learner.network_ is not None) == (name in ("fine-tune", "classifier"))
    straight = model().fit(series, y)
    assert torch.equal(weights_of(learner.network_), weights_of(straight.network_))


@pytest.mark.parametrize(("name", "missing"), [("fine-tune", 0), ("classifier", 0)])
def test_a_phase_alone_needs_those_before_it(series, y, tmp_path, name, missing):
    with pytest.raises(PhaseMissingError, match=f"the phase '{PHASES[missing]}' has not been run"):
        model().fit(series, y, checkpoint=tmp_path, phases=[name])
    with pytest.raises(ValueError, match="phases is 'tuning'; expected one of"):
        model().fit(series, y, phases=["tuning"])


def test_the_first_phase_is_tstcc_and_another_one_can_take_its_place(series, y, tmp_path):
    own = {name: value for name, value in SMALL.items() if name != "label_iter"}
    before = TSTCC(**own).fit(series)
    kept = weights_of(before.module_).clone()
    straight, adopted = model().fit(series, y), model().fit(series, y, pretrained=before)
    assert torch.equal(weights_of(straight.network_), weights_of(adopted.network_))
    assert torch.equal(weights_of(before.module_), kept)
    with pytest.raises(ValueError, match="network is not that of this CATCC"):
        model(widths=(4, 8)).fit(series, y, pretrained=before)


def test_without_labels_it_is_tstcc(series):
    own = {name: value for name, value in SMALL.items() if name != "label_iter"}
    ours, theirs = model().fit(series), TSTCC(**own).fit(series)
    np.testing.assert_array_equal(ours.transform(series), theirs.transform(series))
    assert ours.network_ is None


def test_heads_are_new_and_the_encoder_is_the_tuned_one_when_classes_are_learned(series, y):
    learner = model(max_iter=0).fit(series, y, phases=PHASES[:2])
    tuned = learner.network_
    aware = learner._with_new_heads(tuned, seed=5)
    torch.testing.assert_close(
        aware.encoder.state_dict(), tuned.encoder.encoder.state_dict(), rtol=0, atol=0
    )
    heads = zip(aware.contrast.parameters(), tuned.encoder.contrast.parameters(), strict=True)
    assert any(not torch.equal(new, old) for new, old in heads)


# ------------------------------------------------------------------------------------------ labels


def test_what_is_learned_depends_on_the_labels_given_and_on_no_others(series, rng):
    truth = np.repeat([0, 1], 10)
    shown = [0, 10]
    results = []
    for hidden in (truth, rng.permutation(truth)):
        labels = hidden.copy()
        labels[shown] = truth[shown]
        y = np.where(np.isin(np.arange(20), shown), labels, -1)
        results.append(model().fit(series, y))
    assert torch.equal(weights_of(results[0].network_), weights_of(results[1].network_))
    other = np.full(20, -1)
    other[[0, 10]] = 1, 0
    swapped = model().fit(series, other)
    assert not torch.equal(weights_of(results[0].network_), weights_of(swapped.network_))


def test_the_phases_on_labels_get_the_labelled_series_and_no_others(series, y, monkeypatch):
    given = {}
    plain = phases.fit_loop

    def recorded(state, task, *others, title="training", **options):
        given[title] = task
        return plain(state, task, *others, title=title, **options)

    monkeypatch.setattr(phases, "fit_loop", recorded)
    monkeypatch.setattr("softclt.methods.many.fit_loop", recorded)
    learner = model().fit(series, y)
    assert given["self-supervised"].labels is None
    for name in ("fine-tune", "classifier"):
        assert given[name].labels.tolist() == [0, 1]
        assert given[name].x.shape == (2, 1, 24)
    assert given["class-aware"].labels.tolist() == [learner.pseudo_labels_.tolist()]


def test_pseudo_labels_keep_the_labels_given_and_leave_out_what_is_not_likely():
    labels = PartialLabels(np.array([3, 7]), np.array([0, -1, -1, 1]))
    likely = np.array([[0.1, 0.9], [0.3, 0.7], [0.45, 0.55], [0.2, 0.8]])
    assert pseudo_labels(likely, labels).tolist() == [0, 1, 1, 1]
    assert pseudo_labels(likely, labels, keep_labels=False).tolist() == [1, 1, 1, 1]
    assert pseudo_labels(likely, labels, confidence=0.6).tolist() == [0, 1, -1, 1]
    assert pseudo_labels(likely, labels, confidence=1.0).tolist() == [0, -1, -1, 1]


def test_no_label_at_all_says_that_labels_are_needed(series):
    with pytest.raises(ValueError, match="y has no label: all of its 20 entries"):
        model().fit(series, np.full(20, -1))


def test_names_are_labels_too(series):
    names = np.array([None] * 20, dtype=object)
    names[[0, 10]] = "fast", "slow"
    learner = model().fit(series, names)
    assert learner.classes_.tolist() == ["fast", "slow"]
    assert learner.pseudo_labels_.shape == (20,)


def test_presets_are_those_of_tstcc():
    assert CATCC.from_preset("har", confidence=0.9).timesteps == 6
    assert CATCC.from_preset("hard").lambda_aux == 0


# ------------------------------------------------------------------------------------------- files


def test_a_model_with_labels_keeps_its_encoder_in_files(series, y, tmp_path):
    learner = model().fit(series, y)
    learner.save(tmp_path)
    loaded = softclt.load_model(tmp_path)
    np.testing.assert_array_equal(loaded.transform(series), learner.transform(series))
    assert loaded.history_["phases"]["fine-tune"]["loss"]
    with pytest.raises(ValueError, match="was fitted with labels, in phases"):
        learner.save(tmp_path, training=True)


# ------------------------------------------------------------------------------------- side by side


@pytest.mark.slow
def test_a_stack_with_labels_of_their_own_is_what_each_is_alone(series, monkeypatch):
    monkeypatch.setattr(CATCC, "_stack_size", lambda self, x: 3)  # four: a stack and one alone
    settings = [
        {},
        {"random_state": 1},
        {"tau_instance": None, "tau_temporal": None},
        {"lam": 0.2, "tau_temporal": 1.0},
    ]
    rng = np.random.default_rng(3)
    labels = []
    for _ in settings:
        codes = np.full(20, -1)
        codes[[rng.integers(10), 10 + rng.integers(10)]] = 0, 1
        labels.append(PartialLabels(np.array(["slow", "fast"]), codes))
    learners = [model(precision="float64", **own) for own in settings]
    before: list[TSTCC | None] = [None] * len(learners)
    before[1] = learners[1].first_phase().fit(series)
    CATCC.fit_labelled_many(learners, series, labels, pretrained=before)
    steps = []
    for learner, own, shown in zip(learners, settings, labels, strict=True):
        alone = model(precision="float64", **own).fit_labelled(series, shown)
        for phase in PHASES[1:]:
            losses = alone.history_["phases"][phase]["loss"]
            np.testing.assert_allclose(learner.history_["phases"][phase]["loss"], losses, rtol=1e-6)
            steps.append(len(losses))
        np.testing.assert_array_equal(learner.pseudo_labels_, alone.pseudo_labels_)
        np.testing.assert_allclose(
            weights_of(learner.network_), weights_of(alone.network_), rtol=1e-6, atol=1e-8
        )
    assert min(steps) == 6
