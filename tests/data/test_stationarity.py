"""The test of many stretches at once is that of one, and neighbourhoods end where it says."""

import numpy as np
import pytest

import naive
from softclt.data.stationarity import adf_p_values, neighbourhood_widths
from softclt.silence import without_warnings


def stretches(rng, n):
    walks = rng.normal(size=(3, n)).cumsum(axis=1)
    sines = np.sin(np.arange(n) / 3 + rng.uniform(0, 6, size=(3, 1)))
    return np.concatenate([rng.normal(size=(3, n)), walks, sines + 0.1 * rng.normal(size=(3, n))])


@pytest.mark.parametrize("n", [12, 40, 100])
def test_p_values_are_those_of_the_plain_loops(rng, n):
    X = stretches(rng, n)
    np.testing.assert_allclose(adf_p_values(X), [naive.adf_p_value(x) for x in X], atol=1e-9)


@pytest.mark.parametrize("n", [12, 100, 300])
def test_p_values_are_those_of_statsmodels(rng, n):
    stattools = pytest.importorskip("statsmodels.tsa.stattools")
    X = stretches(rng, n)
    with without_warnings():
        wanted = [stattools.adfuller(x)[1] for x in X]
    np.testing.assert_allclose(adf_p_values(X), wanted, atol=1e-9)


def test_level_and_scale_of_a_stretch_do_not_matter(rng):
    X = stretches(rng, 60)
    np.testing.assert_allclose(adf_p_values(1e3 * X + 1e4), adf_p_values(X), atol=1e-6)


def test_what_never_changes_or_is_short_is_stationary_and_a_gap_is_not_known(rng):
    X = rng.normal(size=(2, 3, 20)).cumsum(axis=-1)
    X[0, 0], X[1, 1, 4] = 7.0, np.nan
    p = adf_p_values(X)
    assert p.shape == (2, 3)
    assert p[0, 0] == 0
    assert np.isnan(p[1, 1])
    assert np.isfinite(p).sum() == 5
    assert (adf_p_values(X[:, 2:, :9]) == 0).all()


def test_a_neighbourhood_grows_while_stationary_and_ends_with_the_series_and_at_gaps(rng):
    X = rng.normal(size=(3, 1, 1000))
    X[1] = X[1].cumsum(axis=-1)
    X[2, 0, 330:] = np.nan
    widths = neighbourhood_widths(X, window=50, stride=50)
    assert widths.shape == (3, 20)
    assert widths[0].tolist() == [1, 2, *[3] * 17, 2]  # the ends are near
    assert (widths[1] == 1).mean() > 0.8  # a walk
    assert widths[2, :7].tolist() == [1, 2, 3, 3, 3, 2, 1]  # up to 330
    assert (widths[2, 7:] == 1).all()


def test_channels_are_looked_at_together(rng):
    still, walk = rng.normal(size=200), rng.normal(size=200).cumsum()
    apart = neighbourhood_widths(np.stack([still, walk])[:, None], 20, 20)
    together = neighbourhood_widths(np.stack([still, walk])[None], 20, 20)
    assert (together <= apart.max(axis=0)).all()
    assert together.mean() < apart[0].mean()
