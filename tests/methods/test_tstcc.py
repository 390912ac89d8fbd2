from dataclasses import replace

import numpy as np
import pytest
import torch

from softclt import fit_many, functional
from softclt.assignments import instance_weights, temporal_weights
from softclt.encoders import tcc_heads
from softclt.losses.contextual import nt_xent
from softclt.methods import TSTCC, tstcc
from softclt.training import Batch, StepDraws, Stream, loop
from softclt.training import views as augment
from softclt.training.distributed import Group
from softclt.training.randomness import RowDraws, batch_rows, stream_keys

SMALL = {
    "widths": (4, 6, 8),
    "hidden_dims": 8,
    "timesteps": 2,
    "batch_size": 8,
    "max_iter": 3,
    "random_state": 0,
}
HARD = {"tau_instance": None, "tau_temporal": None}


@pytest.fixture
def series(rng):
    return rng.normal(size=(10, 2, 24))


def losses(X, **parameters):
    return TSTCC(**SMALL | parameters).fit(X).history_["loss"]


def untrained(X, **parameters):
    return TSTCC(**SMALL | {"max_iter": 0, "precision": "float64"} | parameters).fit(X)


def draws_of(step, seed=0):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys([seed], torch.device("cpu")), step, counter, torch.float64)


def batch_of(x, rows=None, mask=None, weights=None, temporal=None):
    index = torch.arange(x.shape[1])[None] if rows is None else rows
    start = torch.zeros(1, dtype=torch.int64)
    return Batch(x, mask, index, start, weights, temporal, 0.5, Group())


def normal(*shape):
    torch.manual_seed(1)
    return torch.randn(*shape, dtype=torch.float64)


# ------------------------------------------------------------------------------------------ losses


def plain_loss(model, x, draws):
    """TS-TCC by its parts, from the same draws; with the features of both views."""
    network, t = model.module_.train(), x.shape[-1]
    dropout = tstcc._Dropouts(draws)
    weak = x * (2 + model.scale_sigma * draws.normal(Stream.SCALE, (x.shape[1], 1, t), 0))
    strong = augment.permute_and_jitter(x, draws, model.max_segments, model.jitter_sigma)
    views = [network.encoder.blocks(view, dropout=dropout) for view in (weak, strong)]
    end = draws.integers(Stream.ANCHOR, network.contrast.n_places(views[0][-1].values.shape[2]))
    found = network.contrast(views[0][-1], views[1][-1], end, dropout)
    return found.loss + 0.7 * nt_xent(*found.projections, 0.2), views


def test_without_auxiliary_losses_it_is_plain_ts_tcc(series):
    model, x = untrained(series, lambda_aux=0.0), normal(1, 5, 2, 24)
    expected, _ = plain_loss(model, x, draws_of(3))
    W = torch.rand(1, 5, 5, dtype=torch.float64)  # whatever the weights are
    loss = model._loss(model.module_, batch_of(x, weights=W), draws_of(3))
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("temperature", [None, 0.5])
def test_the_auxiliary_losses_are_those_of_each_block_over_time_and_series(
    series, soft, normalize, temperature
):
    taus = {"tau_instance": 5.0, "tau_temporal": 0.7} if soft else HARD
    options = {"lambda_aux": 0.3, "lam": 0.4, "normalize_weights": normalize}
    options["aux_temperature"] = temperature
    model, x = untrained(series, **taus, **options), normal(1, 5, 2, 24)
    expected, (weak, strong) = plain_loss(model, x, draws_of(3))
    W = by_lag = None
    if soft:
        W = instance_weights(torch.rand(5, 5, dtype=torch.float64), 5.0, 0.5, "sigmoid")
    for depth, (one, two) in enumerate(zip(weak, strong, strict=True)):
        z1, z2 = one.values, two.values  # (1, B, T, C): time is the time axis
        if temperature is not None:
            z1, z2 = (z / z.norm(dim=-1, keepdim=True).clamp_min(1e-12) for z in (z1, z2))
            z1, z2 = z1 / temperature**0.5, z2 / temperature**0.5
        if soft:
            by_lag = temporal_weights(z1.shape[2], 0.7 * 2**depth, "sigmoid", dtype=z1.dtype)
        temporal = functional.soft_temporal_loss(z1, z2, by_lag, None, normalize)
        instance = functional.soft_instance_loss(z1, z2, W, None, normalize)
        expected = expected + 0.3 * (0.6 * temporal + 0.4 * instance)
    temporal = model._temporal_weights(x)
    batch = batch_of(x, weights=None if W is None else W[None], temporal=temporal)
    batch = replace(batch, lam=0.4)
    torch.testing.assert_close(model._loss(model.module_, batch, draws_of(3)), expected)


def test_it_is_soft_by_default_and_every_part_counts(series):
    soft = losses(series)
    for change in (
        HARD,
        {"tau_instance": None},
        {"tau_temporal": None},
        {"tau_growth": 1},
        {"lambda_aux": 0.1},
        {"lam": 0.2},
        {"contextual_weight": 0.0},
        {"temperature": 0.5},
        {"weak_jitter": True},
        {"scale_sigma": 0.1},
        {"jitter_sigma": 0.1},
        {"max_segments": 3},
        {"redraw_views": False},
        {"dropout": 0.0},
        {"timesteps": 1},
    ):
        assert not np.allclose(losses(series, **change), soft), change


def test_very_sharp_assignments_are_hard(series):
    sharp = {"tau_instance": 1e9, "tau_temporal": 1e4, "distance_normalize": "max"}
    np.testing.assert_allclose(losses(series, **sharp), losses(series, **HARD), rtol=1e-5)


@pytest.mark.parametrize("change", [{"lambda_aux": 0.0}, {"lam": 0.0}, {"tau_instance": None}])
def test_distances_that_nobody_would_look_at_are_not_computed(series, change):
    model = TSTCC(**SMALL | change).fit(series)
    assert model.history_["distance_mode"] is None


def test_padding_of_a_batch_changes_no_loss(series):
    lengths, x = [24, 11, 24, 5, 17], normal(1, 5, 2, 24)
    for i, n in enumerate(lengths):
        x[0, i, :, n:] = float("nan")
    model = untrained(series, scale_sigma=0.0, jitter_sigma=0.0, max_segments=2, dropout=0.0)
    found = []
    for before in (0, 3):  # as series are centred for training
        padded = torch.nn.functional.pad(x, (before, 3 - before), value=float("nan"))
        batch = batch_of(padded, mask=~padded.isnan().any(dim=-2))
        found.append(model._terms(model.module_, batch, draws_of(0)))
    torch.testing.assert_close(found[0].temporal, found[1].temporal)
    torch.testing.assert_close(found[0].auxiliary, found[1].auxiliary)
    torch.testing.assert_close(found[0].projections, found[1].projections)


# ------------------------------------------------------------------------------------------- views


def test_views_are_drawn_anew_at_every_step_unless_they_belong_to_the_series(series):
    x = normal(10, 2, 24)
    for redraw in (True, False):
        model = untrained(series, redraw_views=redraw)
        views = []
        for step in (3, 4):
            rows = torch.tensor([[7, 2, 5]]) if step == 3 else torch.tensor([[1, 7, 2]])
            views.append(model._views(batch_of(x[rows], rows), draws_of(step)))
        for one, two in zip(*views, strict=True):
            same = torch.allclose(one[:, :2], two[:, 1:])  # rows 7 and 2
            assert same is not redraw
    own = RowDraws(draws_of(9), torch.tensor([[7]]))
    torch.testing.assert_close(
        views[0][0][:, :1], augment.jitter_and_scale(x[7][None, None], own, model.scale_sigma)
    )


# ---------------------------------------------------------------------------------------- training


def test_training_is_adam_with_decay_and_ends_with_the_last_iterate(series):
    options = HARD | {"precision": "float64", "scale": None, "lr": 0.01}
    trained = TSTCC(**SMALL | options).fit(series)
    model = untrained(series, **options)
    module, x = model.module_, torch.from_numpy(series.astype(np.float32)).double()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, betas=(0.9, 0.99), weight_decay=3e-4)
    for step in range(3):
        rows = torch.from_numpy(batch_rows(0, step, 10, 8))
        optimizer.zero_grad()
        loss = model._loss(module, batch_of(x[rows][None], rows[None]), draws_of(step))
        loss.sum().backward()
        optimizer.step()
        assert trained.history_["loss"][step] == pytest.approx(loss.item(), rel=1e-9)
    for name, value in module.state_dict().items():
        torch.testing.assert_close(trained.module_.state_dict()[name], value)


def test_forty_epochs_of_all_series_where_they_do_not_fill_a_batch(series):
    assert TSTCC(**SMALL | {"max_iter": None, "batch_size": 128}).fit(series).n_iter_ == 40


def test_the_loss_falls(series):
    found = losses(series, max_iter=60, lr=3e-3)
    assert np.mean(found[-10:]) < np.mean(found[:10])


class PowerCutError(Exception):
    pass


def power_cut(progress):
    if progress.step == 6:
        raise PowerCutError


def assert_same_bits(one, other):
    assert one.history_["loss"] == other.history_["loss"]
    own = one.module_.state_dict()
    assert any("running_var" in name for name in own)
    for name, value in other.module_.state_dict().items():
        assert torch.equal(own[name], value), name
    moments = one.training_state_.optimizer.state_dict()["state"]
    for i, values in other.training_state_.optimizer.state_dict()["state"].items():
        for key, value in values.items():
            assert torch.equal(moments[i][key], value)


def test_going_on_from_a_checkpoint_ends_with_the_same_bits(series, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 3)
    model = TSTCC(**SMALL | {"max_iter": 9})
    with pytest.raises(PowerCutError):
        model.fit(series, checkpoint=tmp_path, callbacks=[power_cut])
    gone_on = TSTCC(**SMALL | {"max_iter": 9}).fit(series, checkpoint=tmp_path)
    assert_same_bits(gone_on, TSTCC(**SMALL | {"max_iter": 9}).fit(series))


def test_training_goes_on_after_encoding_and_loading_with_the_same_bits(series, tmp_path):
    straight = TSTCC(**SMALL | {"max_iter": 6}).fit(series)
    first = TSTCC(**SMALL).fit(series)
    first.transform(series)
    first.save(tmp_path, training=True)
    assert_same_bits(first.set_params(warm_start=True).fit(series), straight)
    assert_same_bits(TSTCC.load(tmp_path).set_params(warm_start=True).fit(series), straight)


def test_a_fitted_network_is_in_evaluation_mode_and_encoding_leaves_it_alone(series):
    model = TSTCC(**SMALL).fit(series)
    before = {name: value.clone() for name, value in model.module_.state_dict().items()}
    model.transform(series)
    assert not model.module_.training
    for name, value in model.module_.state_dict().items():
        assert torch.equal(before[name], value), name


STACK = [
    {"random_state": 0},
    {"random_state": 1},
    {"tau_instance": None, "tau_temporal": None},
    {"tau_instance": 5.0, "tau_temporal": 1.5, "alpha": 1.0, "lam": 0.2},
    {"lam": 0.0},
    {"lam": 1.0},
]


@pytest.mark.parametrize("shared", [{}, {"lambda_aux": 0.0}, {"aux_temperature": 0.2}])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.slow
def test_a_stack_is_what_each_is_alone(series, monkeypatch, shared, missing):
    monkeypatch.setattr(TSTCC, "_stack_size", lambda self, x: 100)
    series = series.copy()
    if missing:
        series[1, :, 9:] = np.nan
        series[2, 0, 3:5] = np.nan
    shared = SMALL | shared | {"precision": "float64", "max_iter": 20}
    together = fit_many([TSTCC(**shared | own) for own in STACK], series)
    for model, own in zip(together, STACK, strict=True):
        assert model.history_["trained_together"] == len(STACK)
        alone = TSTCC(**shared | own).fit(series)
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=1e-6)
        np.testing.assert_allclose(model.transform(series), alone.transform(series), atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_ragged_series_with_gaps_train_to_finite_embeddings(rng, precision):
    X = rng.normal(size=(8, 2, 30))
    X[2, :, 11:] = np.nan
    X[5, 1, 3:20] = np.nan
    X[6, :, 1:] = np.nan
    for mask_padding in (True, False):
        model = TSTCC(**SMALL, mask_padding=mask_padding, precision=precision).fit(X)
        assert np.isfinite(model.history_["loss"]).all()
        assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("shape", [(1, 1, 20), (2, 1, 2), (3, 1, 3)])
def test_the_fewest_series_and_the_shortest_train(rng, shape):
    X = rng.normal(size=shape)
    model = TSTCC(**SMALL | {"tau_instance": None}).fit(X)
    assert np.isfinite(model.history_["loss"]).all()
    assert np.isfinite(model.transform(X)).all()


def test_a_step_of_complete_series_never_waits_for_the_device(series, monkeypatch):
    def refuse(self, *args):
        raise AssertionError("a number was brought to the host")

    monkeypatch.setattr(tcc_heads, "_n_looked_at", lambda z, end: z.shape[2])  # as on a GPU
    model, x = untrained(series), normal(1, 5, 2, 24)
    batch = batch_of(x, temporal=model._temporal_weights(x))
    model._loss(model.module_, batch, draws_of(0))  # weights by lag are made once and kept
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    loss = model._loss(model.module_, batch, draws_of(1))
    monkeypatch.undo()
    assert loss.isfinite().all()


def test_every_level_can_be_read(rng):
    X = rng.normal(size=(3, 1, 45))
    model = TSTCC(**SMALL).fit(X)
    assert model.transform(X).shape == (3, 8)
    assert model.encode(X, level="timestamp").shape == (3, 45, 8)
    assert model.encode(X, layer=0).shape == (3, 4)
    assert model.set_params(layers="all").transform(X).shape == (3, 18)
    Z = model.set_params(layers="last").encode(X, level="timestamp", causal=True, context=19)
    window = model.encode(X[..., 11:31], level="timestamp")
    np.testing.assert_allclose(Z[:, 30], window[:, -1], atol=1e-5)
    assert model.last_step_change(X, context=19).shape == (3, 45)


def test_waves_of_different_classes_come_apart():
    from sklearn.linear_model import LogisticRegression

    from softclt.data import waves

    data = waves(n_per_class=20, length=60, random_state=0)
    model = TSTCC(**SMALL | {"max_iter": 30, "lr": 3e-3, "batch_size": 32}).fit(data.X_train)
    probe = LogisticRegression(max_iter=1000).fit(model.transform(data.X_train), data.y_train)
    chance = np.bincount(data.y_test).max() / len(data.y_test)
    assert probe.score(model.transform(data.X_test), data.y_test) > chance + 0.2


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"widths": ()}, "widths is empty"),
        ({"widths": (4, 0)}, "widths is 0"),
        ({"hidden_dims": 6}, "hidden_dims is 6; expected a multiple of 4"),
        ({"timesteps": 0}, "timesteps is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"lambda_aux": -1.0}, "lambda_aux is -1.0"),
        ({"aux_temperature": 0.0}, "aux_temperature is 0.0"),
        ({"max_segments": 1}, "max_segments is 1"),
        ({"tau_temporal": -1.0}, "tau_temporal is -1.0"),
    ],
)
def test_wrong_parameters_are_explained_at_fit(series, parameters, words):
    with pytest.raises(ValueError, match=words):
        TSTCC(**SMALL | parameters).fit(series)


def test_several_processes_are_refused(series, monkeypatch):
    class Two(Group):
        size = 2

    monkeypatch.setattr(tstcc, "current_group", Two)
    with pytest.raises(ValueError, match="trained by one process"):
        TSTCC(**SMALL).fit(series)


def test_presets_have_the_constants_of_their_data_sets():
    har = TSTCC.from_preset("har")
    assert (har.scale_sigma, har.jitter_sigma, har.max_segments, har.timesteps) == (1.1, 0.8, 8, 6)
    hard = TSTCC.from_preset("hard").get_params()
    assert hard == TSTCC(lambda_aux=0.0).get_params() | {"widths": [32, 64, 128]}
    with pytest.raises(ValueError, match="needs tau_instance and tau_temporal and lam"):
        TSTCC.from_preset("paper")
