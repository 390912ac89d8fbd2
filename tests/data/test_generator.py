"""Synthetic series to learn from."""

import numpy as np
import pytest
import torch

from softclt.data import synthetic_series
from softclt.data.generator_parts import KINDS, Draws


def log_spectra(x):
    """Strength of ten bands of frequencies of each series, ``(N, 10)``."""
    power = np.abs(np.fft.rfft(x[:, 0])[:, 1:]) ** 2
    bands = np.unique(np.geomspace(1, power.shape[1], 11).astype(int) - 1)[:-1]
    return np.log(np.add.reduceat(power, bands, axis=1) + 1e-6)


def test_the_same_seed_gives_the_same_series_and_another_seed_others():
    one, same, other = (synthetic_series(40, 64, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_the_global_generator_has_no_part_in_it():
    state = torch.get_rng_state()
    synthetic_series(10, 32)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("siblings", [1, 3])
@pytest.mark.parametrize("length", [8, 65, 512])
def test_series_are_finite_and_standardised(length, siblings):
    x = synthetic_series(1000, length, siblings=siblings)
    assert x.shape == (1000, 1, length)
    assert x.dtype == np.float32
    assert np.isfinite(x).all()
    np.testing.assert_allclose(x.mean(axis=-1), 0, atol=1e-4)
    np.testing.assert_allclose(x.std(axis=-1), 1, atol=1e-3)


@pytest.mark.parametrize(("siblings", "whole"), [(1, 2048), (3, 2046), (4096, 4096)])
def test_more_series_begin_with_the_same_whole_blocks(siblings, whole):
    more = synthetic_series(whole + 60, 16, siblings=siblings)
    np.testing.assert_array_equal(
        more[:whole], synthetic_series(whole, 16, siblings=siblings), strict=True
    )


@pytest.mark.parametrize("make", [make for make, _ in KINDS], ids=lambda make: make.__name__)
@pytest.mark.parametrize("length", [8, 9, 300])
def test_every_kind_of_part_is_finite_and_differs_from_draw_to_draw(make, length):
    x = make(Draws(100, 2, length, torch.Generator().manual_seed(0)))
    assert x.shape == (200, length)
    assert x.isfinite().all()
    assert (x.std(dim=1) > 1e-6).float().mean() > 0.7  # a few are flat, most of all in 8 steps
    if length > 9:
        assert len(x.unique(dim=0)) > 180


def test_they_are_of_many_kinds():
    x = synthetic_series(500, 256)[:, 0]
    roughness = np.diff(x, axis=1).std(axis=1)
    assert np.quantile(roughness, 0.05) < 0.1 < 0.8 < np.quantile(roughness, 0.95)
    assert np.mean(roughness > 1) < 0.2  # white noise has 1.41
    spectrum = np.abs(np.fft.rfft(x)) ** 2
    share_of_one_frequency = spectrum.max(axis=1) / spectrum.sum(axis=1)
    assert np.quantile(share_of_one_frequency, 0.9) > 0.5
    kurtosis = (x**4).mean(axis=1)  # normal 3, spikes more, squares less
    assert np.quantile(kurtosis, 0.1) < 2 < 5 < np.quantile(kurtosis, 0.9)


def test_siblings_have_spectra_more_alike_than_strangers_and_are_not_equal():
    x = synthetic_series(800, 256, siblings=4)
    assert len(np.unique(x[:, 0], axis=0)) == 800
    of_families = log_spectra(x).reshape(200, 4, -1)
    within = np.abs(of_families[:, 0] - of_families[:, 1]).mean(axis=-1)
    between = np.abs(of_families[:-1, 0] - of_families[1:, 1]).mean(axis=-1)
    assert np.median(within) < 0.5 * np.median(between)
    one, other = x[0::4, 0], x[1::4, 0]
    assert np.mean((one * other).mean(axis=1) > 0.99) < 0.15  # few are nearly the same


def test_the_last_family_may_be_cut():
    x = synthetic_series(10, 64, siblings=4)
    assert x.shape == (10, 1, 64)
    np.testing.assert_array_equal(x, synthetic_series(12, 64, siblings=4)[:10])


def test_none_is_an_empty_array():
    assert synthetic_series(0, 16).shape == (0, 1, 16)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"n_series": -1}, "n_series is -1"),
        ({"n_series": 2, "length": 7}, "length is 7"),
        ({"n_series": 2, "siblings": 0}, "siblings is 0"),
    ],
)
def test_wrong_numbers_are_refused(numbers, words):
    with pytest.raises(ValueError, match=words):
        synthetic_series(**numbers)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_makes_the_same_series_from_a_seed_and_its_own_kinds_as_often():
    one, same = (synthetic_series(3000, 128, siblings=3, device="cuda") for _ in range(2))
    np.testing.assert_array_equal(one, same)
    assert np.isfinite(one).all()
    np.testing.assert_allclose(one.std(axis=-1), 1, atol=1e-3)
    here = synthetic_series(3000, 128, siblings=3)
    assert not np.allclose(one, here)
    np.testing.assert_allclose(
        log_spectra(one).mean(axis=0), log_spectra(here).mean(axis=0), atol=0.3
    )
