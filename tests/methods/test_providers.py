"""Targets between series by any provider: what each says, and that methods listen to it."""

import numpy as np
import pytest
import torch

import naive
import softclt
from softclt import TS2Vec, fit_many, pairwise_distance
from softclt.assignments import assignments
from softclt.encoders.stacked import stacked
from softclt.methods import SeriesContrast, methods
from softclt.methods.providers import Queue, Rows, TargetLearner, providers
from tables import as_before

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 4, "batch_size": 6}
SMALL |= {"random_state": 0, "widths": (4, 6), "width": 8, "length": 64, "window": 5}
SMALL |= {"label_iter": 2, "least_length": 64, "precision": "float64"}


def small(method, **changes):
    known = method().get_params()
    return method(**{k: v for k, v in (SMALL | changes).items() if k in known})


@pytest.fixture
def series(rng):
    return rng.normal(size=(14, 1, 24))


@pytest.fixture
def rows(rng):
    z1, z2 = (torch.tensor(rng.normal(size=(2, 5, 3))) for _ in range(2))
    return Rows(torch.arange(5).expand(2, -1), z1, z2, None, queue=Queue(7, 3))


def test_targets_of_ascl_are_those_of_the_plain_loops(rows):
    found = providers["ascl"](rows, temperature=0.3, neighbours=2.0)
    for r in range(2):
        wanted = naive.ascl_targets(rows.z1[r].numpy(), rows.z2[r].numpy(), 0.3, 2.0)
        np.testing.assert_allclose(found[r], wanted)


def test_ascl_is_hard_where_nothing_is_nearer_than_anything_else(rows):
    alike = torch.ones_like(rows.z1)
    one = Rows(rows.index, alike, alike, None)
    torch.testing.assert_close(
        providers["ascl"](one), torch.eye(5, dtype=alike.dtype).expand(2, -1, -1), atol=1e-7, rtol=0
    )
    pair = Rows(rows.index[:, :2], rows.z1[:, :2], rows.z2[:, :2], None)
    assert providers["ascl"](pair).equal(torch.eye(2).double().expand(2, -1, -1))


def test_neighbours_in_a_queue_are_those_of_the_plain_loops(rng):
    queue = stacked([Queue(9, 3), Queue(9, 3)])
    earlier = [[], []]
    for _ in range(4):
        index = torch.stack([torch.tensor(rng.permutation(12)[:5]) for _ in range(2)])
        z1, z2 = (torch.tensor(rng.normal(size=(2, 5, 3))) for _ in range(2))
        found = providers["nnclr"](Rows(index, z1, z2, None, queue=queue), neighbours=3)
        for r in range(2):
            own = index[r].tolist(), z1[r].numpy(), z2[r].numpy()
            np.testing.assert_array_equal(found[r], naive.nnclr_targets(*own, earlier[r], 3))
            earlier[r] = ([*zip(own[0], own[2], strict=True)] + earlier[r])[:9]


def test_a_queue_forgets_the_oldest_first():
    queue = Queue(3, 1)
    for row in range(4):
        queue.put(torch.tensor([[row]]), torch.tensor([[[float(row)]]]))
    assert queue.index.tolist() == [[3, 2, 1]]
    assert queue.vectors[0, :, 0].tolist() == [3, 2, 1]


def test_labels_are_alike_within_a_class_and_unknown_ones_with_themselves_alone(rows):
    labels = torch.tensor([[0, 1, 0, -1, -1]]).expand(2, -1)
    found = providers["labels"](Rows(rows.index, rows.z1, rows.z2, None, labels))
    wanted = torch.eye(5)
    wanted[0, 2] = wanted[2, 0] = 1
    torch.testing.assert_close(found[1], wanted.double())


@pytest.mark.parametrize("kind", [TS2Vec, SeriesContrast])
@pytest.mark.parametrize("name", providers.names())
def test_every_provider_trains_and_every_one_but_hard_teaches_something_else(kind, name, series):
    y = np.arange(14) % 2
    fitted = small(kind, targets=name).fit(series, y)
    hard = small(kind, targets="hard").fit(series)
    assert np.isfinite(fitted.history_["loss"]).all()
    assert np.array_equal(fitted.history_["loss"], hard.history_["loss"]) == (name == "hard")


def test_hard_targets_are_those_without_tau(series):
    one = small(TS2Vec, targets="hard").fit(series)
    other = small(TS2Vec, tau_instance=None).fit(series)
    assert one.history_["loss"] == other.history_["loss"]
    assert one.history_["distances"] is None  # nobody computed them


def test_a_queue_is_kept_with_the_model_and_stacks_do_the_same(series, tmp_path, monkeypatch):
    model = small(TS2Vec, targets="nnclr", queue_size=20, target_params={"neighbours": 3})
    model.fit(series).save(tmp_path, training=True)
    again = softclt.load_model(tmp_path)
    torch.testing.assert_close(again.module_.queue.index, model.module_.queue.index)
    np.testing.assert_array_equal(again.transform(series), model.transform(series))
    monkeypatch.setattr(TS2Vec, "_stack_size", lambda self, x: 10)
    both = [small(TS2Vec, targets="nnclr", random_state=seed) for seed in (0, 1)]
    for own in fit_many(both, series):
        alone = small(TS2Vec, targets="nnclr", random_state=own.random_state).fit(series)
        assert own.history_["trained_together"] == 2
        np.testing.assert_allclose(own.history_["loss"], alone.history_["loss"], rtol=1e-6)


def test_a_teachers_distances_are_given_to_fit(series):
    teacher = small(TS2Vec, tau_instance=None).fit(series)
    D = pairwise_distance(teacher.transform(series), metric="euclidean")
    taught, plain = small(TS2Vec).fit(series, distances=D), small(TS2Vec).fit(series)
    assert taught.history_["loss"] != plain.history_["loss"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"targets": "guess"}, "unknown provider of targets 'guess'; known: ascl, distances"),
        ({"targets": "ascl", "target_params": {"heat": 1}}, "heat"),
        ({"targets": "labels"}, "give them to fit as y"),
        ({"queue_size": 0}, "queue_size is 0"),
    ],
)
def test_wrong_settings_are_named(changes, words, series):
    with pytest.raises(ValueError, match=words):
        small(TS2Vec, **changes).fit(series)


def identity(d, tau, span):
    """An assignment like any other that happens to be 1 at distance 0 and 0 elsewhere."""
    return torch.zeros_like(d).masked_fill(d == 0, 1.0)


def soft_methods():
    """Methods with a tau, and those that can be told targets.

    Not patch-contrast: two patches may begin at one step, so their distance is 0, too.
    """
    for name in methods.names():
        taus = {"tau_instance", "tau_temporal"} & set(methods[name]().get_params())
        if taus and name not in ("pretrained", "patch-contrast"):
            yield name


@pytest.mark.parametrize("name", [*soft_methods()])
def test_soft_with_identity_targets_is_hard(name, series):
    method = methods[name]
    y = np.where(np.arange(14) < 8, np.arange(14) % 2, -1)
    distances = {"distance": "euclidean", "distance_normalize": "max"}  # no pair at distance 0
    hard = distances | {"tau_instance": None, "tau_temporal": None}
    soft = distances | {"tau_instance": 1.0, "instance_assignment": "identity"}
    soft |= {"tau_temporal": 1.0, "temporal_assignment": "identity"}
    with as_before(assignments):
        assignments.register("identity", instance=True, temporal=True, grows=False)(identity)
        found = [small(method, **own).fit(series, y) for own in (soft, hard)]
    soft_losses, hard_losses = (np.array(model.history_["loss"]) for model in found)
    assert len(hard_losses) > 0
    np.testing.assert_allclose(soft_losses, hard_losses, rtol=1e-9)


def test_only_methods_that_take_targets_have_the_parameter():
    for name in methods.names():
        has = "targets" in methods[name]().get_params()
        assert has == issubclass(methods[name], TargetLearner)
