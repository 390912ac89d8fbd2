import numpy as np
import pytest
import torch

from softclt.training.randomness import RowDraws, StepDraws, stream_keys
from softclt.training.views import (
    N_CROPS,
    crops_of,
    distort,
    jitter_and_scale,
    overlapping_crops,
    permute_and_jitter,
    step_crop,
)


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


def numbered(lengths, t=40, d=2):
    """Series (1, B, D, T) whose value is 100 times the channel plus the step; NaN at the end."""
    x = torch.arange(float(t)).double() + 100 * torch.arange(d)[:, None]
    x = x.repeat(1, len(lengths), 1, 1)
    for i, length in enumerate(lengths):
        x[0, i, :, length:] = float("nan")
    return x


def n_segments(values):
    return 1 + int((np.diff(values) != 1).sum())


def test_the_weak_view_scales_each_step_of_all_channels_alike_around_two():
    x = torch.randn(1, 400, 3, 50, dtype=torch.float64)
    factors = jitter_and_scale(x, draws_of(1), 0.3) / x
    torch.testing.assert_close(factors[:, :, 0], factors[:, :, 2])
    assert factors.mean().item() == pytest.approx(2, abs=0.01)
    assert factors[:, :, 0].std().item() == pytest.approx(0.3, rel=0.02)
    assert not torch.allclose(factors[0, 0, 0], factors[0, 1, 0])
    noise = jitter_and_scale(x, draws_of(1), 0.3, 0.5) - jitter_and_scale(x, draws_of(1), 0.3)
    assert noise.std().item() == pytest.approx(0.5, rel=0.02)


def test_the_strong_view_permutes_segments_and_keeps_channels_together():
    x = numbered([40] * 600)
    y = permute_and_jitter(x, draws_of(1), max_segments=5, jitter_sigma=0.0, complete=True)
    torch.testing.assert_close(y[:, :, 1], y[:, :, 0] + 100)
    torch.testing.assert_close(y.sort(dim=-1).values, x)
    counts = np.bincount([n_segments(row) for row in y[0, :, 0].numpy()], minlength=6)
    assert counts[5:].sum() == 0
    assert counts[1] > 600 / 4  # a permutation may be none
    assert (counts[2:5] > 20).all()
    same = permute_and_jitter(x, draws_of(1), 5, 0.0)
    assert torch.equal(same, y)


def test_every_order_of_segments_is_equally_likely():
    x = numbered([3] * 3000, t=3, d=1)  # with three segments each step is one
    y = permute_and_jitter(x, draws_of(2), max_segments=4, jitter_sigma=0.0)
    orders, counts = np.unique(y[0, :, 0].numpy(), axis=0, return_counts=True)
    assert len(orders) == 6
    # One segment: as it was. Two, cut at either step: as they were or swapped. Three: any order.
    swapped = 1 / 12 + 1 / 18
    expected = {(0, 1, 2): 1 / 3 + 1 / 6 + 1 / 18, (1, 2, 0): swapped, (2, 0, 1): swapped}
    for order, count in zip(orders, counts, strict=True):
        assert count / 3000 == pytest.approx(expected.get(tuple(order), 1 / 18), abs=0.03)


def test_segments_are_of_what_a_series_has():
    lengths = [40, 23, 7, 2, 1]
    x = numbered(lengths)
    x = torch.cat([x, x.roll(5, dims=-1)], dim=1)  # also with nothing at the start
    x[0, 0, 0, 11:14] = float("nan")  # a gap moves along
    for step in range(20):
        y = permute_and_jitter(x, draws_of(step), max_segments=12, jitter_sigma=0.0)
        for before, after in zip(x[0, :, 0], y[0, :, 0], strict=True):
            assert after.isnan().sum() == before.isnan().sum()
            assert set(after[~after.isnan()].tolist()) == set(before[~before.isnan()].tolist())
        assert torch.equal(y[0, 1:].isnan(), x[0, 1:].isnan())


def test_the_strong_view_has_noise_of_its_own_in_every_channel():
    x = torch.zeros(1, 400, 3, 50, dtype=torch.float64)
    noise = permute_and_jitter(x, draws_of(1), 8, 0.8)
    assert noise.std().item() == pytest.approx(0.8, rel=0.02)
    assert not torch.allclose(noise[:, :, 0], noise[:, :, 1])


def test_views_that_belong_to_rows_are_the_same_at_every_step_and_in_any_batch():
    x = torch.randn(6, 2, 30, dtype=torch.float64)
    views = []
    for step, rows in ((3, [0, 1, 2, 3, 4, 5]), (9, [4, 1])):
        index = torch.tensor([rows])
        own = RowDraws(draws_of(step), index)
        weak = jitter_and_scale(x[index], own, 0.5, 0.1)
        views.append((weak, permute_and_jitter(x[index], own, 6, 0.3)))
    for whole, some in zip(*views, strict=True):
        torch.testing.assert_close(whole[:, [4, 1]], some)
    assert not torch.allclose(views[0][0][0, 0] / x[0], views[0][0][0, 1] / x[1])


def test_sites_of_dropout_have_numbers_of_their_own():
    factors = [draws_of(1).dropout((50, 40), 0.5, 0, site) for site in (0, 1, 2, 7)]
    for i, one in enumerate(factors):
        assert one.mean().item() == pytest.approx(1, abs=0.06)
        for other in factors[:i]:
            assert (one * other).mean().item() == pytest.approx(1, abs=0.12)
