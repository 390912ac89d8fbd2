import numpy as np
import pytest
import torch

from softclt.augment import draw_crop, draw_offsets, overlapping_crops


@pytest.mark.parametrize("length", [2, 3, 10, 57])
def test_windows_stay_inside_and_overlap_by_at_least_two_steps(length, rng):
    for _ in range(200):
        crop = draw_crop(rng, length)
        assert 0 <= crop.first <= crop.overlap_start < crop.overlap_end <= crop.last <= length
        assert crop.overlap >= 2
        offsets = draw_offsets(rng, crop, length, n=5)
        assert (offsets + crop.first >= 0).all()
        assert (offsets + crop.last <= length).all()


def test_all_overlap_lengths_come_up_about_equally_often(rng):
    counts = np.bincount([draw_crop(rng, 6).overlap for _ in range(5000)], minlength=7)
    assert counts[:2].sum() == 0
    np.testing.assert_allclose(counts[2:] / 5000, 0.2, atol=0.03)


def test_the_overlap_is_the_same_steps_of_the_series_in_both_views(rng):
    x = torch.arange(40.0).repeat(6, 2, 1)  # the value is the step
    for _ in range(50):
        crop = draw_crop(rng, 40)
        offsets = draw_offsets(rng, crop, 40, n=6)
        left, right = overlapping_crops(x, crop, offsets)
        torch.testing.assert_close(left[..., -crop.overlap :], right[..., : crop.overlap])
        assert left[:, 0, 0].tolist() == (offsets + crop.first).tolist()
