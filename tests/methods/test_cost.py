import math

import numpy as np
import pytest
import torch

import naive
from softclt import fit_many
from softclt.losses.queue import soft_queue_loss
from softclt.methods import CoST
from softclt.methods.cost import amplitude_and_phase, anchor_steps, positive_weights
from softclt.training import Batch, StepDraws, loop
from softclt.training.distributed import Group
from softclt.training.randomness import batch_rows, stream_keys

SMALL = {
    "output_dims": 6,
    "hidden_dims": 4,
    "depth": 2,
    "kernel_sizes": (1, 2, 4),
    "max_train_length": 20,
    "batch_size": 8,
    "queue_size": 24,
    "max_iter": 3,
    "random_state": 0,
}
HARD = {"tau_instance": None, "tau_temporal": None}


@pytest.fixture
def series(rng):
    return rng.normal(size=(10, 1, 20))


def losses(X, **parameters):
    return CoST(**SMALL | parameters).fit(X).history_["loss"]


def draws_of(step, seed=0):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys([seed], torch.device("cpu")), step, counter, torch.float64)


def batch_of(x, rows=None, mask=None, weights=None, temporal=None):
    index = torch.arange(x.shape[1])[None] if rows is None else rows
    start = torch.zeros(1, dtype=torch.int64)
    return Batch(x, mask, index, start, weights, temporal, 0.5, Group())


def untrained(X, **parameters):
    return CoST(**SMALL | {"max_iter": 0, "precision": "float64"} | parameters).fit(X)


def unit(*shape):
    return torch.nn.functional.normalize(torch.randn(*shape, dtype=torch.float64), dim=-1)


# ------------------------------------------------------------------------------------------ losses


@pytest.mark.parametrize("normalize", [False, True])
def test_the_queue_loss_equals_its_loops(normalize):
    query, keys, queue = unit(2, 4, 3), unit(2, 4, 5, 3), unit(2, 6, 3)
    weights = torch.rand(2, 4, 5, dtype=torch.float64)
    weights[1, 2], weights[0, 1, 2:] = 0.0, 0.0
    loss = soft_queue_loss(query, keys, queue, weights, 0.07, normalize)
    for r in range(2):
        own = (z[r].numpy() for z in (query, keys, queue, weights))
        expected = naive.queue_loss(*own, 0.07, normalize)
        assert loss[r].item() == pytest.approx(float(expected), rel=1e-12)


def test_one_positive_is_the_cross_entropy_of_momentum_contrast():
    query, key, queue = unit(1, 4, 3).requires_grad_(), unit(1, 4, 1, 3), unit(1, 6, 3)
    logits = torch.cat([(query * key[:, :, 0]).sum(-1, keepdim=True), query @ queue.mT], dim=-1)
    expected = torch.nn.functional.cross_entropy(logits[0] / 0.07, torch.zeros(4, dtype=int))
    loss = soft_queue_loss(query, key, queue)
    torch.testing.assert_close(loss[0], expected)
    torch.testing.assert_close(
        torch.autograd.grad(loss[0], query), torch.autograd.grad(expected, query)
    )


def test_neighbours_without_weight_do_not_count():
    query, keys, queue = unit(1, 4, 3), unit(1, 4, 5, 3), unit(1, 6, 3)
    identity = torch.zeros(1, 4, 5, dtype=torch.float64)
    identity[..., 2] = 1.0
    alone = soft_queue_loss(query, keys[:, :, 2:3], queue)
    torch.testing.assert_close(soft_queue_loss(query, keys, queue, identity), alone)


def test_queries_alone_have_a_gradient():
    query, keys, queue = (
        z.requires_grad_() for z in (unit(1, 4, 3), unit(1, 4, 1, 3), unit(1, 6, 3))
    )
    soft_queue_loss(query, keys, queue).sum().backward()
    assert query.grad is not None
    assert keys.grad is None
    assert queue.grad is None


def test_amplitude_and_phase_have_gradients_where_a_frequency_is_absent():
    spectrum = torch.zeros(3, dtype=torch.complex128, requires_grad=True)
    sum(part.sum() for part in amplitude_and_phase(spectrum)).backward()
    assert spectrum.grad.isfinite().all()


def given_weights(soft, n):
    W = torch.rand(1, n, n, dtype=torch.float64)
    W.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    return W if soft else None


@pytest.mark.parametrize("soft", [False, True])
def test_the_seasons_loss_contrasts_amplitudes_and_phases_as_the_loops_do(series, soft):
    model, draws = untrained(series), draws_of(3)
    z = torch.randn(2, 1, 20, 4, 6, dtype=torch.float64)  # (view, R, T, B, M)
    W = given_weights(soft, 4)
    batch = batch_of(torch.zeros(1, 4, 1, 20, dtype=torch.float64), weights=W)
    loss = model._season_loss(model.module_, tuple(z), batch, draws)
    views = [
        (model.module_.season(own) * draws.dropout((4, 20, 3), 0.1, view).transpose(1, 2))
        for view, own in enumerate(z)
    ]
    one, two = (view[0].transpose(0, 1).numpy(force=True) + 1e-300 for view in views)
    expected = naive.season_loss(one, two, np.eye(4) if W is None else W[0].numpy())
    assert loss.item() == pytest.approx(expected, rel=1e-9)
    identity = batch_of(batch.x, weights=torch.eye(4, dtype=torch.float64)[None])
    same = model._season_loss(model.module_, tuple(z), identity, draws)
    assert soft or loss.item() == pytest.approx(same.item(), rel=1e-12)


@pytest.mark.parametrize("tau", [None, 0.7])
def test_the_trends_loss_contrasts_a_step_with_the_queue_as_the_loops_do(series, tau):
    model, draws = untrained(series, tau_temporal=tau, key_momentum=0.5), draws_of(3)
    module = model.module_
    with torch.no_grad():
        for parameter in module.query.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    slow = [(q.detach() + k) / 2 for q, k in zip(*parameters_of(module), strict=True)]
    queue = module.queue.clone()
    x = torch.randn(2, 1, 5, 1, 20, dtype=torch.float64)
    z = module.query.features(x[0])
    batch = batch_of(x[1], temporal=model._temporal_weights(x))
    loss = model._trend_loss(module, z, x[1], batch, draws)

    torch.testing.assert_close(list(module.key.parameters()), slow)  # moved before it gave keys
    (step,) = draws.integers(loop.Stream.ANCHOR, 20).tolist()
    queries = whole_trend(module.query, x[0])[step]
    keys = whole_trend(module.key, x[1])
    weights = [
        float(s == step) if tau is None else 2 / (1 + math.exp(tau * abs(s - step)))
        for s in range(20)
    ]
    expected = naive.queue_loss(
        queries.numpy(force=True),
        keys.transpose(0, 1).numpy(force=True),
        queue[0].numpy(),
        [weights] * 5,
        0.07,
    )
    assert loss.item() == pytest.approx(expected, rel=1e-6)  # far steps have no weight in float32
    torch.testing.assert_close(module.queue[0, :5], keys[step])
    torch.testing.assert_close(module.queue[:, 5:], queue[:, :-5])


def parameters_of(module):
    return list(module.query.parameters()), list(module.key.parameters())


def whole_trend(network, x):
    """Unit vectors (T, B, C) at all steps of series (1, B, D, T)."""
    trend = network.heads.everywhere(network.features(x), range(x.shape[-1]))
    head = network.second(network.first(trend).relu())
    return torch.nn.functional.normalize(head, dim=-1)[0].detach()


# ---------------------------------------------------------------------------------------- softness


def test_it_is_soft_by_default_and_none_is_the_original(series):
    soft, hard = losses(series), losses(series, **HARD)
    assert not np.allclose(soft, hard)
    by_name = losses(series, instance_assignment="hard", temporal_assignment="hard")
    np.testing.assert_allclose(by_name, hard)


def test_very_sharp_assignments_are_hard(series):
    hard = losses(series, **HARD)
    sharp = losses(series, tau_instance=1e9, tau_temporal=1e4, distance_normalize="max")
    np.testing.assert_allclose(sharp, hard, rtol=1e-5)


def test_both_taus_and_the_seasons_weight_change_the_loss(series):
    hard = losses(series, **HARD, season_weight=1.0)
    for change in ({"tau_instance": 5.0}, {"tau_temporal": 1.0}, {"season_weight": 2.0}):
        assert not np.allclose(losses(series, **HARD | {"season_weight": 1.0} | change), hard)


# ------------------------------------------------------------------------------ anchors and batches


def test_series_that_miss_nothing_are_contrasted_at_the_step_drawn():
    x, drawn = torch.zeros(1, 3, 1, 8), torch.tensor([5])
    assert anchor_steps(drawn, None, x).tolist() == [[5, 5, 5]]
    assert anchor_steps(drawn, torch.ones(1, 3, 8, dtype=torch.bool), x).tolist() == [[5, 5, 5]]


def test_series_that_miss_steps_are_contrasted_at_each_step_that_they_have():
    mask = torch.tensor([[[0, 1, 1, 0, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]], dtype=torch.bool)
    x = torch.zeros(1, 2, 1, 8)
    steps = [anchor_steps(torch.tensor([t]), mask, x)[0].tolist() for t in range(8)]
    assert [first for first, _ in steps] == [1, 1, 2, 2, 4, 4, 5, 5]
    assert {second for _, second in steps} == {0}


def test_positives_end_with_the_series_and_at_what_is_missing():
    by_lag, anchors = torch.tensor([1.0, 0.5, 0.25]), torch.tensor([[0, 3]])
    weights = positive_weights(by_lag, anchors, 5, None)
    assert weights.tolist() == [[[0.0, 0.0, 1.0, 0.5, 0.25], [0.25, 0.5, 1.0, 0.5, 0.0]]]
    mask = torch.tensor([[[0, 0, 0, 0, 0], [1, 1, 0, 1, 1]]], dtype=torch.bool)
    weights = positive_weights(by_lag, anchors, 5, mask)
    assert weights.tolist() == [[[0.0] * 5, [0.25, 0.0, 1.0, 0.5, 0.0]]]


def test_a_batch_larger_than_the_data_has_every_series_about_equally_often():
    rows = batch_rows(0, 4, n=10, batch_size=32)
    counts = np.bincount(rows, minlength=10)
    assert len(rows) == 32
    assert set(counts) <= {1, 2, 3, 4}
    assert not np.array_equal(rows, batch_rows(0, 5, n=10, batch_size=32))


def test_few_series_fill_a_batch_and_the_queue(series):
    model = CoST(**SMALL | {"batch_size": 24, "max_iter": 1}).fit(series)
    fresh = CoST(**SMALL | {"max_iter": 0}).fit(series)
    assert not torch.isclose(model.module_.queue, fresh.module_.queue).all(dim=-1).any()


# ----------------------------------------------------------------------------------------- training


def test_training_is_sgd_with_momentum_decay_and_a_cosine_and_ends_with_the_last_iterate(series):
    options = HARD | {"precision": "float64", "scale": None, "lr": 0.1}
    trained = CoST(**SMALL | options).fit(series)
    model = untrained(series, **options)
    module, x = model.module_, torch.from_numpy(series.astype(np.float32)).double()
    own = [p for p in module.parameters() if p.requires_grad]
    velocity = [torch.zeros_like(p) for p in own]
    for step in range(3):
        rows = torch.from_numpy(batch_rows(0, step, 10, 8))
        loss = model._loss(module, batch_of(x[rows][None], rows[None]), draws_of(step))
        grads = torch.autograd.grad(loss.sum(), own)
        rate = 0.1 * (1 + math.cos(math.pi * step / 3)) / 2
        with torch.no_grad():
            for p, v, grad in zip(own, velocity, grads, strict=True):
                v.mul_(0.9).add_(grad + 1e-4 * p)
                p -= rate * v
        assert trained.history_["loss"][step] == pytest.approx(loss.item(), rel=1e-9)
    for name, value in module.state_dict().items():
        torch.testing.assert_close(trained.module_.state_dict()[name], value)


def test_the_loss_falls(series):
    found = losses(series, max_iter=60, lr=0.05, **HARD)
    assert np.mean(found[-20:]) < np.mean(found[5:25])


class PowerCutError(Exception):
    pass


def power_cut(progress):
    if progress.step == 6:
        raise PowerCutError


def assert_same_bits(one, other):
    assert one.history_["loss"] == other.history_["loss"]
    own = one.module_.state_dict()
    assert "queue" in own
    for name, value in other.module_.state_dict().items():
        assert torch.equal(own[name], value), name
    moments = one.training_state_.optimizer.state_dict()["state"]
    for i, values in other.training_state_.optimizer.state_dict()["state"].items():
        assert torch.equal(moments[i]["momentum_buffer"], values["momentum_buffer"])


def test_going_on_from_a_checkpoint_ends_with_the_same_bits(series, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 3)
    model = CoST(**SMALL | {"max_iter": 9})
    with pytest.raises(PowerCutError):
        model.fit(series, checkpoint=tmp_path, callbacks=[power_cut])
    gone_on = CoST(**SMALL | {"max_iter": 9}).fit(series, checkpoint=tmp_path)
    assert_same_bits(gone_on, CoST(**SMALL | {"max_iter": 9}).fit(series))


def test_training_goes_on_after_loading_with_the_same_bits(series, tmp_path):
    constant = {"lr_schedule": "constant"}
    straight = CoST(**SMALL | constant | {"max_iter": 6}).fit(series)
    CoST(**SMALL | constant).fit(series).save(tmp_path, training=True)
    gone_on = CoST.load(tmp_path).set_params(warm_start=True).fit(series)
    assert_same_bits(gone_on, straight)


def test_several_are_fitted_one_by_one_to_what_each_is_alone(series):
    both = fit_many([CoST(**SMALL), CoST(**SMALL | {"random_state": 1})], series)
    assert both[1].history_["loss"] == losses(series, random_state=1)
    assert both[0].history_["trained_together"] == 1


def test_ragged_series_with_gaps_train_to_finite_embeddings(rng):
    X = rng.normal(size=(8, 2, 30))
    X[2, :, 11:] = np.nan
    X[5, 1, 3:9] = np.nan
    X[6, :, 1:] = np.nan
    for mask_padding in (True, False):
        model = CoST(**SMALL, mask_padding=mask_padding).fit(X)
        assert np.isfinite(model.history_["loss"]).all()
        assert np.isfinite(model.transform(X)).all()


def test_a_causal_step_sees_its_window_alone(rng):
    X = rng.normal(size=(2, 1, 45))
    model = CoST(**SMALL).fit(X)
    Z = model.encode(X, level="timestamp", causal=True, context=19)
    window = model.encode(X[..., 11:31], level="timestamp")
    np.testing.assert_allclose(Z[:, 30], window[:, -1], atol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"output_dims": 5}, "output_dims is 5; expected an even number"),
        ({"kernel_sizes": ()}, "kernel_sizes is empty"),
        ({"kernel_sizes": (2, 0)}, "kernel_sizes is 0"),
        ({"season_weight": -1.0}, "season_weight is -1.0"),
        ({"key_momentum": 1.5}, "key_momentum is 1.5"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"queue_size": 0}, "queue_size is 0"),
        ({"tau_temporal": -1.0}, "tau_temporal is -1.0"),
    ],
)
def test_wrong_parameters_are_explained_at_fit(series, parameters, words):
    with pytest.raises(ValueError, match=words):
        CoST(**SMALL | parameters).fit(series)
