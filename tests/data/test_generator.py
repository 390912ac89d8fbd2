"""Synthetic series to learn from."""

import numpy as np
import pytest

from softclt.data import synthetic_series


def test_the_same_seed_gives_the_same_series_and_another_seed_others():
    one, same, other = (synthetic_series(40, 64, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("length", [8, 65, 512])
def test_series_are_finite_and_standardised(length):
    x = synthetic_series(300, length)
    assert x.shape == (300, 1, length)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(x.mean(axis=-1), 0, atol=1e-4)
    np.testing.assert_allclose(x.std(axis=-1), 1, atol=1e-3)


def test_more_series_begin_with_the_same_whole_blocks():
    np.testing.assert_array_equal(synthetic_series(600, 32)[:512], synthetic_series(512, 32))


def test_they_are_of_many_kinds():
    x = synthetic_series(500, 256)[:, 0]
    roughness = np.diff(x, axis=1).std(axis=1)
    assert np.quantile(roughness, 0.05) < 0.2 < 0.8 < np.quantile(roughness, 0.95)
    spectrum = np.abs(np.fft.rfft(x)) ** 2
    share_of_one_frequency = spectrum.max(axis=1) / spectrum.sum(axis=1)
    assert np.quantile(share_of_one_frequency, 0.9) > 0.5


def test_none_is_an_empty_array_and_wrong_numbers_are_refused():
    assert synthetic_series(0, 16).shape == (0, 1, 16)
    with pytest.raises(ValueError, match="length is 3"):
        synthetic_series(2, 3)
