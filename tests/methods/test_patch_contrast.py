"""Patches against each other: places, weights, soft and hard."""

import numpy as np
import pytest
import torch

import naive
from softclt.methods import PatchContrast
from softclt.training.randomness import StepDraws, stream_keys


def model(**params):
    settings = {"width": 8, "length": 16, "max_iter": 3, "patches": 4, "random_state": 0}
    return PatchContrast(**settings | params)


def draws(step=0):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys([0], torch.device("cpu")), step, counter, torch.float32)


def test_weights_are_those_of_plain_loops_and_sections_know_nothing_of_each_other(rng):
    times = torch.from_numpy(rng.uniform(0, 9, size=(2, 3)))
    found = model(tau_temporal=0.7)._patch_weights(times, None)[0]
    np.testing.assert_allclose(found, naive.patch_weights(times.tolist(), 0.7), rtol=1e-6)
    assert model(tau_temporal=None)._patch_weights(times, None) is None
    between = torch.tensor([[[1.0, 0.3], [0.3, 1.0]]])
    mixed = model(tau_temporal=None)._patch_weights(times, between)[0]
    np.testing.assert_allclose(mixed[:3, 3:], 0.3)
    np.testing.assert_allclose(mixed[:3, :3], np.eye(3))


def test_patches_lie_where_a_series_has_values_and_views_lie_near():
    x = torch.full((3, 1, 100), float("nan"))
    x[0], x[1, :, 20:60], x[2, :, 90:] = 1.0, 1.0, 1.0
    one, two = model(patches=200)._places(x, draws())
    assert one[0].min() < 5
    assert one[0].max() > 78
    assert one[1].min() >= 20
    assert one[1].max() <= 44
    assert (one[2] == 84).all()
    assert (one - two).abs().max() <= 4
    assert (two >= 0).all()
    assert (two <= 84).all()


@pytest.mark.parametrize("steps", [2, 15, 16, 40])
def test_one_series_shorter_or_longer_than_a_patch_trains(steps, rng):
    found = model().fit([rng.normal(size=steps)])
    assert np.isfinite(found.history_["loss"]).all()
    assert found.transform(rng.normal(size=(2, 1, 16))).shape == (2, 48)


def test_soft_and_hard_learn_different_embeddings(rng):
    x, patches = rng.normal(size=300).cumsum(), rng.normal(size=(3, 1, 16))
    soft, hard = (model(tau_temporal=tau).fit([x]).transform(patches) for tau in (1.0, None))
    assert not np.allclose(soft, hard)
