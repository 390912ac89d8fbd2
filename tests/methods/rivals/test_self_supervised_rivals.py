import numpy as np
import pytest
import torch

from softclt import fit_many
from softclt.encoders.recurrent import Recurrent
from softclt.encoders.tcc import Features
from softclt.methods import CPC, SSLECG, SimCLR, TLoss
from softclt.methods.rivals.cpc import Prediction
from softclt.methods.rivals.ssl_ecg import (
    FLIPPED,
    NEGATED,
    NOISY,
    ORIGINAL,
    PERMUTED,
    SCALED,
    WARPED,
    transformed,
    warped,
)
from softclt.training import StepDraws
from softclt.training.randomness import stream_keys

SMALL = {"widths": (4, 8), "max_iter": 30, "lr": 1e-2, "random_state": 0}
SMALL_TLOSS = {"output_dims": 8, "hidden_dims": 4, "depth": 3, "random_state": 0}

# So that no two series are at distance 0; and few steps, over which rounding stays small.
RAW = {"distance": "euclidean", "distance_normalize": "max", "max_iter": 5}


def draws_of(step):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys([0], torch.device("cpu")), step, counter, torch.float64)


@pytest.fixture
def walks(rng):
    return rng.normal(size=(24, 1, 40)).cumsum(axis=-1)


@pytest.mark.parametrize("method", [SimCLR, CPC, SSLECG])
def test_training_lowers_the_loss(method, walks):
    losses = method(**SMALL).fit(walks).history_["loss"]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


@pytest.mark.parametrize("method", [SimCLR, CPC, SSLECG])
@pytest.mark.slow
def test_a_stack_of_seeds_is_what_each_is_alone(method, walks, monkeypatch):
    monkeypatch.setattr(method, "_stack_size", lambda self, x: 100)
    settings = [{"random_state": 0}, {"random_state": 1}]
    if method is SimCLR:
        settings.append({"random_state": 0, "tau_instance": 5.0})
    # Small steps: what a ReLU or Adam makes of a rounding grows with them.
    shared = SMALL | {"precision": "float64", "max_iter": 10, "lr": 1e-4}
    together = fit_many([method(**shared | own) for own in settings], walks)
    for model, own in zip(together, settings, strict=True):
        assert model.history_["trained_together"] == len(settings)
        alone = method(**shared | own).fit(walks)
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=1e-6)
        np.testing.assert_allclose(model.transform(walks), alone.transform(walks), atol=1e-5)


def test_soft_targets_change_what_simclr_learns_and_sharp_ones_do_not(walks):
    hard, soft, sharp = (
        SimCLR(**SMALL | RAW, tau_instance=tau).fit(walks).transform(walks)
        for tau in (None, 5.0, 1e6)
    )
    assert np.abs(soft - hard).max() > 1e-3
    np.testing.assert_allclose(sharp, hard, atol=1e-4)


def test_a_soft_setting_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="alpha"):
        SimCLR(tau_instance=5.0, alpha=2.0).fit(np.zeros((3, 1, 10)))


def test_poolings_that_their_networks_cannot_learn_through_are_refused():
    for pooling in ("positive", "max+mean"):
        with pytest.raises(ValueError, match="expected one of 'max', 'mean'"):
            SimCLR(pooling=pooling).fit(np.zeros((3, 1, 10)))


def test_recurrent_units_are_those_of_torch(rng):
    layer, torchs = Recurrent(3, 5).double(), torch.nn.GRU(3, 5, batch_first=True).double()
    with torch.no_grad():
        for own, other in zip(layer.parameters(), torchs.parameters(), strict=True):
            other.copy_(own[0])
    x = torch.tensor(rng.normal(size=(4, 6, 3)))
    torch.testing.assert_close(layer(x[None])[0], torchs(x)[0])


def test_a_prediction_sees_the_past_alone_and_meets_the_steps_that_follow(rng):
    prediction = Prediction(3, 5, timesteps=2).double()
    values = torch.tensor(rng.normal(size=(1, 4, 7, 3)))
    end = torch.tensor([3])
    ahead = prediction(Features(values, None), end)
    torch.testing.assert_close(ahead.future, values[:, :, 4:6])
    changed = values.clone()
    changed[:, :, 4:] = 0.0
    torch.testing.assert_close(prediction(Features(changed, None), end).predicted, ahead.predicted)
    changed[:, :, 3] = 0.0
    assert not torch.allclose(prediction(Features(changed, None), end).predicted, ahead.predicted)


def test_shorter_series_are_predicted_within_their_own_steps(rng):
    prediction = Prediction(3, 5, timesteps=3).double()
    values = torch.tensor(rng.normal(size=(1, 2, 9, 3)))
    mask = torch.ones(1, 2, 9, dtype=torch.bool)
    mask[:, 1, 2:] = False
    for place in range(prediction.n_places(9)):
        ahead = prediction(Features(values, mask), torch.tensor([place]))
        assert ahead.real.tolist() == [[[True] * 3, [True, False, False]]]
        torch.testing.assert_close(ahead.future[0, 1, 0], values[0, 1, 1])


def test_series_are_transformed_as_their_kinds_say(rng):
    x = torch.tensor(rng.normal(size=(1, 7, 2, 500))).cumsum(dim=-1)
    kinds = torch.tensor([[ORIGINAL, NOISY, SCALED, NEGATED, FLIPPED, PERMUTED, WARPED]])
    out, made = transformed(x, kinds, draws_of(3))
    torch.testing.assert_close(out[0, ORIGINAL], x[0, ORIGINAL])
    noise = (out - x)[0, NOISY]
    levels = 20 * torch.log10(x[0, NOISY].square().mean(-1).sqrt() / noise.std(dim=-1))
    torch.testing.assert_close(levels, torch.full_like(levels, 15.0), atol=0.5, rtol=0)
    torch.testing.assert_close(out[0, SCALED], 1.1 * x[0, SCALED])
    torch.testing.assert_close(out[0, NEGATED], -x[0, NEGATED])
    torch.testing.assert_close(out[0, FLIPPED], x[0, FLIPPED].flip(-1))
    torch.testing.assert_close(out[0, PERMUTED].sort().values, x[0, PERMUTED].sort().values)
    assert not torch.allclose(out[0, WARPED], x[0, WARPED])
    assert made[0, PERMUTED] in (PERMUTED, ORIGINAL)


def test_a_permutation_of_one_segment_counts_as_no_transformation(rng):
    x = torch.tensor(rng.normal(size=(1, 200, 1, 30)))
    out, kinds = transformed(x, torch.full((1, 200), PERMUTED), draws_of(0), max_segments=3)
    unchanged = (out == x).flatten(2).all(dim=-1)
    assert 120 < unchanged.sum() < 180  # one segment, or two that stay where they are
    assert torch.equal(kinds == ORIGINAL, unchanged)


def test_warped_series_keep_their_ends_and_their_order():
    x = torch.linspace(0, 1, 90, dtype=torch.float64).expand(1, 20, 1, 90).clone()
    x[:, 10:, :, 60:] = torch.nan
    out = warped(x, draws_of(1))
    assert torch.equal(out.isnan(), x.isnan())
    torch.testing.assert_close(out[..., 0], x[..., 0])
    torch.testing.assert_close(out[:, :10, :, -1], x[:, :10, :, -1])
    torch.testing.assert_close(out[:, 10:, :, 59], x[:, 10:, :, 59])
    assert (out[:, :10].diff() > 0).all()
    assert (out - x).nan_to_num().abs().amax(dim=-1).min() > 1e-4


def test_a_part_of_the_anchor_comes_to_lie_nearer_than_parts_of_others(walks):
    losses = TLoss(**SMALL_TLOSS, max_iter=60, lr=1e-2).fit(walks).history_["loss"]
    assert np.mean(losses[-20:]) < np.mean(losses[:20])


def test_soft_targets_change_what_tloss_learns_and_sharp_ones_do_not(walks):
    hard, soft, sharp = (
        TLoss(**SMALL_TLOSS | RAW, tau_instance=tau).fit(walks).transform(walks)
        for tau in (None, 5.0, 1e6)
    )
    assert np.abs(soft - hard).max() > 1e-4
    np.testing.assert_allclose(sharp, hard, atol=1e-5)


def test_a_positive_lies_in_its_anchor_and_every_part_in_its_series(walks, monkeypatch):
    from softclt.training import views as augment

    taken, real = [], augment.take_steps

    def take(x, starts, length):
        taken.append((starts, length))
        return real(x, starts, length)

    monkeypatch.setattr(augment, "take_steps", take)
    TLoss(**SMALL_TLOSS, max_iter=16).fit(walks)
    for (anchor, long), (others, short) in zip(taken[::2], taken[1::2], strict=True):
        positive, negative = others.chunk(2, dim=1)
        assert (anchor <= positive).all()
        assert (positive + short <= anchor + long).all()
        for starts, length in ((anchor, long), (negative, short)):
            assert 0 <= starts.min() <= starts.max() <= 40 - length


@pytest.mark.slow
def test_a_stack_of_tloss_is_what_each_is_alone(walks, monkeypatch):
    monkeypatch.setattr(TLoss, "_stack_size", lambda self, x: 100)
    shared = SMALL_TLOSS | RAW | {"precision": "float64"}
    own = [{}, {"random_state": 1}, {"tau_instance": 5.0}]
    together = fit_many([TLoss(**shared | one) for one in own], walks)
    for model, one in zip(together, own, strict=True):
        assert model.history_["trained_together"] == 3
        alone = TLoss(**shared | one).fit(walks)
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=1e-6)
