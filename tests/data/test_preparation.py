import numpy as np
import pytest

from softclt.data import preparation
from softclt.data.preparation import (
    apply_scale,
    centre,
    channel_scale,
    scale_each_series,
    split_sections,
    stretched,
)

NAN = np.nan


def test_scaling_gives_each_channel_mean_0_and_deviation_1(rng):
    X = rng.normal([[5.0], [-3.0]], [[2.0], [0.1]], size=(20, 2, 30))
    X[0, 0, 3] = NAN
    scaled = apply_scale(X, *channel_scale(X))
    np.testing.assert_allclose(np.nanmean(scaled, axis=(0, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(np.nanstd(scaled, axis=(0, 2)), 1, atol=1e-6)


def test_a_small_signal_on_a_large_offset_survives_the_cast_to_float32(rng):
    signal = rng.normal(size=(4, 1, 50))
    scaled = apply_scale(1e9 + signal, *channel_scale(1e9 + signal))
    expected = (signal - signal.mean()) / signal.std()
    np.testing.assert_allclose(scaled, expected, atol=1e-5)


def test_constant_and_empty_channels_are_scaled_without_a_division_by_zero():
    X = np.stack([np.full((3, 5), 7.0), np.full((3, 5), NAN)], axis=1)
    scaled = apply_scale(X, *channel_scale(X))
    assert (scaled[:, 0] == 0).all()
    assert np.isnan(scaled[:, 1]).all()


def test_each_series_is_scaled_to_the_unit_interval_by_itself():
    X = np.array([[[0.0, 5.0, 10.0]], [[-1.0, NAN, -2.0]]])
    np.testing.assert_allclose(
        scale_each_series(X), [[[0.0, 0.5, 1.0]], [[1.0, NAN, 0.0]]], atol=1e-5
    )


@pytest.mark.parametrize(("length", "sections"), [(10, 1), (11, 1), (12, 2), (20, 3)])
def test_series_are_cut_once_they_have_twice_the_length(length, sections):
    X = np.arange(2 * length, dtype=np.float32).reshape(2, 1, length)
    cut = split_sections(X, 6)
    assert len(cut) == 2 * sections
    kept = np.concatenate([cut[i::2].ravel()[~np.isnan(cut[i::2].ravel())] for i in range(2)])
    np.testing.assert_array_equal(kept, X.ravel())  # section-major, nothing lost


def test_eigenworms_would_give_five_sections_of_3597_steps():
    assert split_sections(np.zeros((1, 1, 17984), np.float32), 3000).shape == (5, 1, 3597)


def test_centring_evens_out_the_margins_and_keeps_the_values():
    X = np.array(
        [[[1, 2, 3, 4, 5, 6]], [[1, 2, NAN, NAN, NAN, NAN]], [[NAN, NAN, 1, NAN, 2, NAN]]],
        dtype=np.float32,
    )
    expected = [
        [[1, 2, 3, 4, 5, 6]],
        [[NAN, NAN, 1, 2, NAN, NAN]],
        [[NAN, 1, NAN, 2, NAN, NAN]],
    ]
    np.testing.assert_array_equal(centre(X), expected)


def test_centring_leaves_complete_series_and_inner_gaps_alone():
    X = np.array([[[1, NAN, 3]], [[1, 2, 3]]], dtype=np.float32)
    assert centre(X) is X


def test_series_are_prepared_in_blocks_as_if_at_once(rng, monkeypatch):
    X = rng.normal(5.0, 3.0, size=(11, 2, 9)).astype(np.float32)
    X[2, :, :3] = X[7, 1, 4:] = NAN

    def prepared():
        scale = channel_scale(X)
        return [*scale, apply_scale(X, *scale), scale_each_series(X), centre(X)]

    at_once = prepared()
    monkeypatch.setattr(preparation, "_BLOCK", 3 * 18)  # 3 series at a time, and 2 at last
    for whole, in_blocks in zip(at_once, prepared(), strict=True):
        np.testing.assert_allclose(in_blocks, whole, rtol=1e-6)


def test_stretched_series_have_the_same_values_on_other_steps(rng):
    X = 5.0 + 3.0 * rng.normal(size=(4, 2, 30)).cumsum(axis=-1)
    X[1, 0] = np.nan
    X[1, 1, :] = [NAN] * 29 + [7.0]
    X[2, :, :4] = NAN
    X[3, 1, 1:-1] = NAN
    np.testing.assert_array_equal(stretched(X[:1], 30), X[:1])
    twice = stretched(X, 59)
    np.testing.assert_allclose(twice[0, :, ::2], X[0])
    np.testing.assert_array_equal(twice[1], [[0.0] * 59, [7.0] * 59])
    np.testing.assert_allclose(twice[2, :, [0, -1]], X[2, :, [4, -1]])
    np.testing.assert_allclose(np.diff(twice[3, 1]), (X[3, 1, -1] - X[3, 1, 0]) / 58)
