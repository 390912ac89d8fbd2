import os

import numpy as np
import pytest
import torch

from softclt.distances import gpu, gpu_kernel, pairwise_distance
from softclt.distances.gpu import (
    FILLER,
    DeviceSeries,
    Tuning,
    check_gpu,
    device_series,
    dtw_on_device,
    matrix_on_device,
)
from softclt.distances.measure import Measure
from softclt.distances.registration import Ragged

CPU = torch.device("cpu")
WINDOWS = [None, 0.0, 0.1, 0.4, 1.0]


@pytest.fixture
def device():
    """Where the kernel runs here."""
    if gpu_kernel.AVAILABLE and os.environ.get("TRITON_INTERPRET") == "1":
        return CPU
    if not gpu_kernel.AVAILABLE or not torch.cuda.is_available():
        pytest.skip("the kernel needs a GPU and Triton, or Triton and TRITON_INTERPRET=1")
    return check_gpu("cuda")


@pytest.fixture
def longest(device):
    """Steps of the longest series; the interpreter does not get far."""
    return 200 if device.type == "cuda" else 21


def random_walks(rng, n, d, shortest, longest):
    return [rng.normal(size=(d, t)).cumsum(1) for t in rng.integers(shortest, longest + 1, n)]


def ragged(series):
    ends = np.cumsum([x.shape[1] for x in series])
    return Ragged(np.concatenate(series, axis=1), np.concatenate([[0], ends]))


def pairs_on_device(x, y, rows, cols, device, **options):
    """The distances as an array, from lists of (D, T_i)."""
    both = ragged([*x, *y]).values.mean(axis=1)
    left, right = (device_series(ragged(series), device, both) for series in (x, y))
    indices = (torch.as_tensor(own, device=device) for own in (rows, cols))
    return dtw_on_device(left, right, *indices, **options).cpu().numpy()


# ------------------------------------------------------------------------------ without a GPU, too
def test_a_machine_without_a_gpu_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="'cuda', but torch sees no GPU here; use device=None"):
        check_gpu("cuda")
    with pytest.raises(ValueError, match="'cuda'"):
        pairwise_distance([[0.0, 1.0], [2.0, 3.0]], device="cuda")


def test_a_gpu_without_triton_says_what_to_install(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu_kernel, "AVAILABLE", False)
    with pytest.raises(ValueError, match=r"Triton 3\.3 or newer.* pip install"):
        check_gpu("cuda")


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"'cuda:2', but torch sees 2 GPU\(s\)"):
        check_gpu("cuda:2")


def test_a_device_that_is_no_gpu_is_refused():
    with pytest.raises(
        ValueError, match="device is 'meta'; distances run on the CPU and on 'cuda'"
    ):
        check_gpu("meta")


def test_device_series_are_time_major_with_the_centre_removed_and_filler_behind_the_end():
    x = ragged([np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), np.array([[4.0], [40.0]])])
    series = device_series(x, CPU, np.array([1.0, 10.0]))
    assert len(series) == 2
    assert series.lengths.tolist() == [3, 1]
    expected = [
        [[0, 3], [0, 30]],
        [[1, FILLER], [10, FILLER]],
        [[2, FILLER], [20, FILLER]],
        [[FILLER, FILLER], [FILLER, FILLER]],
    ]
    np.testing.assert_array_equal(series.values, np.array(expected, np.float32))  # (T + 1, D, N)


def test_a_batch_of_device_series_is_in_the_order_asked_for():
    x = ragged([np.full((1, t), float(t)) for t in (1, 2, 3)])
    batch = device_series(x, CPU, np.zeros(1)).take(torch.tensor([2, 0]))
    assert batch.lengths.tolist() == [3, 1]
    assert batch.values[0, 0].tolist() == [3.0, 1.0]


def test_the_centre_is_removed_before_digits_are_lost():
    small = np.array([[0.0, 1e-3, 2e-3]])
    series = device_series(ragged([small + 1e8]), CPU, np.array([1e8]))
    np.testing.assert_allclose(series.values[:3, 0, 0], small[0], atol=1e-7)


@pytest.mark.parametrize("value", [1e17, np.nan])
def test_values_that_float32_cannot_square_are_refused(value):
    with pytest.raises(ValueError, match="channel 1 holds values up to"):
        device_series(ragged([np.array([[1.0], [value]])]), CPU, np.zeros(2))


def test_pairs_and_channels_must_fit():
    one, two = (
        DeviceSeries(torch.zeros(2, d, 1), torch.ones(1, dtype=torch.int32)) for d in (1, 2)
    )
    first = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"x has 1 channel\(s\) and y has 2"):
        dtw_on_device(one, two, first, first)
    with pytest.raises(ValueError, match=r"rows have shape \(1,\) and cols \(2,\)"):
        dtw_on_device(one, one, first, first.repeat(2))


# ------------------------------------------------------------------------------------- the kernel
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("d", [1, 2, 4, 9])  # 9 do not stay in registers
def test_random_pairs_equal_the_cpu(rng, device, longest, d, window):
    x, y = random_walks(rng, 9, d, 1, longest), random_walks(rng, 7, d, 1, longest)
    rows, cols = rng.integers(9, size=37), rng.integers(7, size=37)  # more than a block, not two
    got = pairs_on_device(x, y, rows, cols, device, window=window)
    expected = pairwise_distance(x, y, window=window)[rows, cols]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [None, 0.2])
@pytest.mark.parametrize("t", [1, 2, 8, 16, 17])  # whole strips need no filler
def test_equal_lengths_equal_the_cpu(rng, device, t, window):
    x = random_walks(rng, 4, 1, t, t)
    got = pairs_on_device(x, x, [0, 1, 2], [1, 2, 3], device, window=window)
    expected = pairwise_distance(x, window=window)[[0, 1, 2], [1, 2, 3]]
    np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize("window", [None, 0.0, 0.3])
@pytest.mark.parametrize("d", [1, 3])
def test_equal_series_have_distance_zero(rng, device, longest, d, window):
    x = [*random_walks(rng, 3, d, 1, longest), np.full((d, 7), 0.1), np.full((d, 12), 0.1)]
    rows, cols = [0, 1, 2, 3, 4, 3], [0, 1, 2, 3, 4, 4]  # constants are equal whatever their length
    assert not pairs_on_device(x, x, rows, cols, device, window=window).any()


def test_one_step_against_many_is_the_sum_over_the_many(device):
    x, y = [np.array([[1.0]])], [np.array([[1.0, 2.0, 4.0]])]
    for window in (None, 0.0):
        got = pairs_on_device(x, y, [0], [0], device, window=window, squared=True)
        np.testing.assert_allclose(got, [10.0], rtol=1e-6)


def test_squared_is_without_the_root(rng, device, longest):
    x = random_walks(rng, 3, 2, 5, longest)
    rooted, squared = (
        pairs_on_device(x, x, [0, 1], [2, 2], device, squared=flag) for flag in (False, True)
    )
    np.testing.assert_allclose(rooted**2, squared, rtol=1e-6)


def test_no_pairs_give_no_distances(rng, device):
    x = random_walks(rng, 2, 1, 3, 3)
    none = np.zeros(0, np.int64)
    assert pairs_on_device(x, x, none, none, device).shape == (0,)


def test_pairs_may_be_columns_of_one_tensor(rng, device):
    x = random_walks(rng, 4, 1, 5, 9)
    pairs = torch.tensor([[0, 3], [1, 2], [2, 0]], device=device)
    got = pairs_on_device(x, x, pairs[:, 0], pairs[:, 1], device)
    np.testing.assert_allclose(got, pairwise_distance(x)[[0, 1, 2], [3, 2, 0]], rtol=1e-4)


def test_large_offsets_do_not_cost_digits(rng, device, longest):
    x = [series + 1e6 for series in random_walks(rng, 5, 2, 5, longest)]
    got = pairs_on_device(x, x, [0, 1, 2], [3, 4, 4], device)
    np.testing.assert_allclose(got, pairwise_distance(x)[[0, 1, 2], [3, 4, 4]], rtol=1e-4)


@pytest.mark.parametrize("window", [None, 0.2])
@pytest.mark.parametrize(
    "tuning",
    [Tuning(64, 8, 2, 4), Tuning(128, 16, 2, 8), Tuning(32, 32, 4, 16), Tuning(32, 8, 8, 1)],
)
def test_results_do_not_depend_on_how_the_work_is_cut(rng, device, longest, tuning, window):
    x = random_walks(rng, 6, 1, 1, longest)
    rows, cols = np.triu_indices(6)
    usual = pairs_on_device(x, x, rows, cols, device, window=window)
    other = pairs_on_device(x, x, rows.astype(np.int32), cols, device, window=window, tuning=tuning)
    np.testing.assert_array_equal(other, usual)


@pytest.mark.parametrize("window", [None, 0.15])
def test_square_matrix_in_tiles_equals_the_cpu(rng, device, longest, window, monkeypatch):
    monkeypatch.setattr(gpu, "_TILE_SIDES", (4, 4))
    x = random_walks(rng, 10, 1, 1, longest)
    own = ragged(x)
    got = matrix_on_device(Measure("dtw", window), own, own, device=device, half=True)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, got.T)
    assert not got.diagonal().any()
    np.testing.assert_allclose(got, pairwise_distance(x, window=window), rtol=1e-4, atol=1e-5)


def test_rectangular_matrix_in_tiles_equals_the_cpu(rng, device, longest, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "_TILE_SIDES", (5, 5))
    x, y = random_walks(rng, 11, 2, 1, longest), random_walks(rng, 3, 2, 1, longest)
    got = matrix_on_device(
        Measure("dtw"), ragged(x), ragged(y), device=device, half=False, progress=True
    )
    np.testing.assert_allclose(got, pairwise_distance(x, y), rtol=1e-4, atol=1e-5)
    assert "33/33" in capsys.readouterr().err


def test_a_matrix_of_one_series_is_zero(rng, device):
    own = ragged(random_walks(rng, 1, 1, 5, 5))
    np.testing.assert_array_equal(
        matrix_on_device(Measure("dtw"), own, own, device=device, half=True), [[0.0]]
    )
