import numpy as np
import pytest
import torch

from softclt.augment import N_CROPS, crops_of, overlapping_crops, step_crop


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
