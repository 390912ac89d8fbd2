"""TNC: neighbours are near, others are not, soft targets follow the distance of windows."""

import math

import numpy as np
import pytest
import torch

import naive
from softclt import TNC, fit_many
from softclt.data import simulated_states
from softclt.losses.neighbourhood import neighbourhood_loss
from softclt.training import Batch, StepDraws
from softclt.training.distributed import Group
from softclt.training.randomness import stream_keys

SMALL = {"window": 10, "hidden_dims": 6, "samples": 4, "batch_size": 6, "random_state": 0}


def tensors(rng, *shapes):
    return [torch.tensor(rng.normal(size=shape)) for shape in shapes]


def draws_of(step):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys([0], torch.device("cpu")), step, counter, torch.float64)


def batch_of(lengths, about, steps):
    x = torch.zeros(1, len(lengths), 1, steps)
    return Batch(
        x=x,
        mask=None,
        index=torch.arange(len(lengths))[None],
        start=torch.zeros(1, dtype=torch.int64),
        weights=None,
        temporal=None,
        lam=0.5,
        group=Group(),
        about=torch.as_tensor(about)[None],
    )


@pytest.fixture(scope="module")
def series():
    return simulated_states(n_series=16, length=200, segment=20).X_train


@pytest.mark.parametrize("soft", [False, True])
def test_the_loss_is_that_of_the_plain_loops(rng, soft):
    near, far = tensors(rng, (3, 4), (3, 5))
    targets = torch.tensor(rng.uniform(size=far.shape)) if soft else None
    found = neighbourhood_loss(near, far, targets, unlabelled=0.1)
    own = torch.zeros(3, 5) if targets is None else targets
    wanted = naive.neighbourhood_loss(*(p.tolist() for p in (near, far, own)), 0.1)
    assert found.item() == pytest.approx(wanted)


def test_an_undecided_network_has_the_loss_of_a_coin_whatever_the_targets(rng):
    zero = torch.zeros(2, 3, 4)
    for weight in (0.0, 0.05, 1.0):
        torch.testing.assert_close(
            neighbourhood_loss(zero, zero, unlabelled=weight), torch.full((2,), math.log(2))
        )


def test_anchors_that_do_not_count_change_nothing(rng):
    near, far = tensors(rng, (2, 3, 4), (2, 3, 4))
    counts = torch.tensor([[True, True, False], [True, True, False]])
    torch.testing.assert_close(
        neighbourhood_loss(near, far, anchors=counts), neighbourhood_loss(near[:, :2], far[:, :2])
    )
    assert neighbourhood_loss(near, far, anchors=counts & False).tolist() == [0, 0]


def test_neighbours_lie_within_their_width_and_others_beyond_five_of_them():
    model, n = TNC(**SMALL | {"samples": 400}), 60
    about = np.repeat([[1], [2], [3]], n // 3, axis=0).repeat(200, axis=1)
    room = torch.full((1, n), 1990)
    places = model._places(room, 10, batch_of([2000] * n, about, 2000), draws_of(1))
    inner = (places.anchor > 100) & (places.anchor < 1890)
    width = 10 * torch.as_tensor(about[:, 0])
    gaps = (places.near - places.anchor[..., None]).double()
    spread = gaps.square().mean(dim=-1).sqrt() / width
    assert spread[inner].mean().item() == pytest.approx(1, abs=0.03)
    apart = (places.far - places.anchor[..., None]).abs()
    assert (apart >= 5 * width[:, None]).all()
    for drawn in places:
        assert 0 <= drawn.min() <= drawn.max() <= 1990
    late = 2 * places.anchor > 1990  # the others are on the longer side
    assert ((places.far < places.anchor[..., None]) == late[..., None]).all()


def test_an_anchor_has_the_neighbourhood_of_the_nearest_centre():
    model = TNC(**SMALL | {"samples": 2000})
    about = np.ones((1, 10), int)
    about[0, 5:] = 3
    room = torch.full((1, 1), 90)
    for step in range(8):
        places = model._places(room, 10, batch_of([100], about, 100), draws_of(step))
        near_end = places.anchor.item() + 5 >= 45
        reached = places.anchor.item() - places.near.min().item()
        assert (reached > 38) == near_end


def test_soft_targets_are_the_assignment_at_the_distance_in_windows():
    model = TNC(window=10, tau_temporal=2.0)
    weights = model._temporal_weights(torch.zeros((), dtype=torch.float64))(100, 0)
    for gap in (0, 5, 10, 30):  # half a window, one, three
        assert weights[gap].item() == pytest.approx(2 / (1 + math.exp(2.0 * gap / 10)))


@pytest.mark.slow
@pytest.mark.parametrize("tau", [None, 0.5])
def test_training_lowers_the_loss(series, tau):
    model = TNC(**SMALL, tau_temporal=tau, max_iter=60, lr=1e-2).fit(series)
    losses = model.history_["loss"]
    assert np.mean(losses[-20:]) < np.mean(losses[:10])


def test_soft_and_hard_learn_other_things(series):
    hard, soft = (
        TNC(**SMALL, tau_temporal=tau, max_iter=5).fit(series).history_["loss"]
        for tau in (None, 0.5)
    )
    assert np.abs(np.subtract(hard, soft)).max() > 1e-3


@pytest.mark.slow
def test_a_stack_of_seeds_and_taus_is_what_each_is_alone(series, monkeypatch):
    monkeypatch.setattr(TNC, "_stack_size", lambda self, x: 100)
    shared = SMALL | {"precision": "float64", "max_iter": 5}
    own = [{"random_state": 0}, {"random_state": 1}, {"tau_temporal": 2.0}]
    own += [{"tau_temporal": None}, {"temporal_assignment": "hard"}]
    together = fit_many([TNC(**shared | one) for one in own], series)
    assert [model.history_["trained_together"] for model in together] == [5] * 5
    for model, one in zip(together, own, strict=True):
        alone = TNC(**shared | one).fit(series)
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=1e-6)


def test_padding_behind_the_series_changes_no_step(series):
    padded = np.concatenate([series, np.full((*series.shape[:2], 30), np.nan)], axis=-1)
    ragged = np.concatenate([padded, padded[:1]])  # a longer one, so that padding is seen
    ragged[-1, :, -30:] = 0.0
    model = TNC(**SMALL | {"batch_size": 13}, max_iter=3).fit(ragged)
    assert np.isfinite(model.history_["loss"]).all()
    np.testing.assert_allclose(model.transform(series), model.transform(padded), atol=1e-6)


def test_a_window_is_at_most_half_of_a_series(series):
    model = TNC(**SMALL | {"window": 150}, max_iter=2).fit(series[..., :30])
    assert np.isfinite(model.transform(series[..., :30])).all()


def test_series_read_batch_by_batch_are_refused(series, tmp_path):
    np.save(tmp_path / "X.npy", series.astype(np.float32))
    from softclt.data import open_series

    with pytest.raises(ValueError, match="TNC looks for neighbourhoods in all series"):
        TNC(**SMALL, max_iter=2).fit(open_series(tmp_path / "X.npy"))
