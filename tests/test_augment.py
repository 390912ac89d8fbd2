import numpy as np
import pytest
import torch

from softclt.augment import N_CROPS, crops_of, distort, overlapping_crops, step_crop
from softclt.training.randomness import StepDraws, stream_keys


def offsets_of(rng, crop, length, n):
    return torch.from_numpy(rng.integers(-crop.first, length - crop.last + 1, size=n))


@pytest.mark.parametrize("length", [2, 3, 10, 57, 1000])
def test_windows_stay_inside_and_overlap_by_at_least_two_steps(length):
    crops = crops_of(length)
    assert len(crops) == min(N_CROPS, length - 1)
    for crop in crops:
        assert 0 <= crop.first <= crop.overlap_start < crop.overlap_end <= crop.last <= length
        assert crop.overlap >= 2


def test_a_series_of_one_step_is_its_own_view():
    assert crops_of(1) == [(0, 0, 1, 1)]


def test_overlaps_of_all_scales_are_there():
    overlaps = np.array([crop.overlap for crop in crops_of(800)])
    np.testing.assert_allclose(np.sort(overlaps) / 800, (np.arange(16) + 0.5) / 16, atol=1 / 32)
    short = [crop.overlap for crop in crops_of(10)]
    assert short == list(range(2, 11))


@pytest.mark.parametrize("length", [5, 100])
def test_every_round_of_steps_has_each_crop_once_in_an_order_of_its_own(length):
    crops = crops_of(length)
    rounds = [
        [step_crop(length, step) for step in range(first, first + len(crops))]
        for first in range(0, 10 * len(crops), len(crops))
    ]
    assert all(sorted(one) == sorted(crops) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 5
    assert step_crop(length, len(crops)) == rounds[1][0]


def test_the_overlap_is_the_same_steps_of_the_series_in_both_views(rng):
    x = torch.arange(40.0).repeat(6, 2, 1)  # the value is the step
    for crop in crops_of(40):
        offsets = offsets_of(rng, crop, 40, n=6)
        left, right = overlapping_crops(x, crop, offsets)
        torch.testing.assert_close(left[..., -crop.overlap :], right[..., : crop.overlap])
        assert left[:, 0, 0].tolist() == (offsets + crop.first).tolist()


def draws_of(step):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys([0], torch.device("cpu")), step, counter, torch.float64)


def test_distorted_series_are_scaled_shifted_and_jittered_each_half_of_the_time():
    x = torch.stack([torch.zeros(2, 30), torch.ones(2, 30)]).double().repeat(500, 1, 1)[None]
    y = distort(x, draws_of(1), view=0)
    assert abs((y == x).all(dim=(-2, -1))[0, 1::2].double().mean().item() - 1 / 8) < 0.04
    assert abs((y == x).all(dim=(-2, -1))[0, ::2].double().mean().item() - 1 / 4) < 0.05
    flat = y.std(dim=-1) == 0  # no jitter: one number a channel
    assert abs(flat.all(dim=-1).double().mean().item() - 1 / 2) < 0.05
    of_zeros, of_ones = y[0, ::2].mean(dim=-1), y[0, 1::2].mean(dim=-1)
    assert abs(of_zeros.mean().item()) < 0.05
    assert abs(of_ones.mean().item() - 1) < 0.05
    assert of_zeros.var().item() == pytest.approx(0.125 + 0.125 / 30, rel=0.2)  # half of 0.5^2
    assert of_ones.var().item() == pytest.approx(0.25 + 0.125 / 30, rel=0.2)  # scaled and shifted


def test_views_are_distorted_differently_and_what_is_missing_stays_so():
    x = torch.ones(1, 50, 1, 9, dtype=torch.float64)
    x[..., 4] = float("nan")
    one, two = (distort(x, draws_of(1), view) for view in (0, 1))
    assert torch.equal(one.isnan(), x.isnan())
    assert not torch.allclose(one.nan_to_num(), two.nan_to_num())
    assert torch.equal(distort(x, draws_of(1), 0).nan_to_num(), one.nan_to_num())
    assert torch.equal(distort(x, draws_of(1), 0, probability=0.0).nan_to_num(), x.nan_to_num())
