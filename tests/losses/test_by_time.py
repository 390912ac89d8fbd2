"""Temporal weights by real time: evenly spaced steps are the usual case, to the last level."""

import numpy as np
import pytest
import torch

import naive
from softclt import TS2Vec
from softclt import functional as F
from softclt.assignments import assignments, temporal_weights, weights_by_time
from softclt.data.times import uneven_times
from softclt.losses.by_time import hierarchical_loss_by_time

TINY = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 3, "random_state": 0}


def views(n=3, t=13, m=4, lead=()):
    torch.manual_seed(0)
    return torch.randn(2, *lead, n, t, m, dtype=torch.float64)


def by_time(tau, **options):
    return lambda times, level: weights_by_time(times, tau, level=level, **options)


@pytest.mark.parametrize("name", assignments.names(temporal=True))
@pytest.mark.parametrize("growth", [1, 2])
def test_evenly_spaced_times_have_the_weights_by_lag_at_each_level(name, growth):
    for level in range(3):
        times = torch.arange(12.0, dtype=torch.float64) * 2**level
        ours = weights_by_time(times, 0.7, name, level, growth)
        by_lag = temporal_weights(12, 0.7, name, level, growth, dtype=torch.float64)
        if by_lag is None:
            assert ours is None
            continue
        by_lag = torch.nn.functional.pad(by_lag, (0, 12 - len(by_lag)))
        lags = (torch.arange(12)[:, None] - torch.arange(12)).abs()
        torch.testing.assert_close(ours, by_lag[lags], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_the_loss_of_evenly_spaced_steps_is_the_loss_by_lag(masked, lam):
    z1, z2 = views(lead=(2,))
    mask = None
    if masked:
        mask = torch.rand(2, 3, 13) > 0.2
        mask[0, 1, 7:] = False  # a shorter series
    times = torch.arange(13.0, dtype=torch.float64).expand(2, 3, 13)
    instance = torch.rand(3, 3, dtype=torch.float64).fill_diagonal_(1.0)
    by_lag = F.hierarchical_loss(
        z1, z2, instance, lambda t, k: temporal_weights(t, 0.8, level=k, dtype=z1.dtype), lam, mask
    )
    ours = hierarchical_loss_by_time(z1, z2, times, by_time(0.8), instance, lam, mask)
    torch.testing.assert_close(ours, by_lag, rtol=1e-9, atol=1e-12)


def test_gradients_are_those_by_lag_and_finite_where_masked():
    mask = torch.ones(3, 13, dtype=torch.bool)
    mask[1, 5:] = False
    times = torch.arange(13.0, dtype=torch.float64).expand(3, 13)
    found = []
    for loss in (
        lambda a, b: hierarchical_loss_by_time(a, b, times, by_time(1.0), mask=mask),
        lambda a, b: F.hierarchical_loss(
            a, b, None, lambda t, k: temporal_weights(t, 1.0, level=k, dtype=a.dtype), mask=mask
        ),
    ):
        z1, z2 = (z.clone().requires_grad_() for z in views())
        loss(z1, z2).backward()
        found.append(z1.grad)
    torch.testing.assert_close(found[0], found[1], rtol=1e-8, atol=1e-12)


def test_one_level_equals_plain_loops_for_uneven_times():
    """Two steps are one level with a temporal term, and the last one without."""
    z1, z2 = views(n=2, t=2)
    times = torch.tensor([[0.0, 0.4], [0.0, 3.0]], dtype=torch.float64)
    expected = 0.0
    for i in range(2):
        one = [z[i : i + 1].numpy() for z in (z1, z2)]
        expected += naive.temporal_loss(*one, weights_by_time(times[i], 1.0).numpy()) / 2
    ours = hierarchical_loss_by_time(z1, z2, times, by_time(1.0), lam=0.0)
    assert ours.item() == pytest.approx(float(expected) / 2)  # the mean of two levels


def test_steps_close_in_time_weigh_more():
    weights = weights_by_time(torch.tensor([0.0, 0.1, 5.0]), 1.0)
    assert weights[0, 1] > 0.9
    assert weights[1, 2] < 0.02
    np.testing.assert_allclose(weights.diagonal(), 1)


def test_evenly_spaced_times_are_none_and_others_are_counted_in_gaps():
    lengths = np.array([5, 3])
    dates = np.datetime64("2024-01-01") + np.arange(5) * np.timedelta64(15, "m")
    assert uneven_times(dates, lengths, 5) is None
    late = dates.copy()
    late[-1] += np.timedelta64(15, "m")
    np.testing.assert_allclose(
        uneven_times(late, lengths, 5), [[0, 1, 2, 3, 5], [0, 1, 2, 0, 0]], rtol=1e-6
    )
    assert uneven_times(late, np.array([4, 3]), 5) is None  # the late step is behind the ends


@pytest.fixture
def series(rng):
    return rng.normal(size=(4, 2, 40)).cumsum(axis=-1)


def embedded(X, times=None, **params):
    return TS2Vec(**TINY | params).fit(X, times=times).transform(X)


def test_a_fit_with_even_times_is_the_fit_without(series):
    np.testing.assert_array_equal(embedded(series), embedded(series, np.arange(40) * 3.0))


def test_a_fit_with_uneven_times_is_another_unless_time_is_hard(series, rng):
    times = np.cumsum(rng.exponential(size=(4, 40)), axis=-1)
    assert np.abs(embedded(series) - embedded(series, times)).max() > 1e-6
    hard = {"tau_temporal": None}
    np.testing.assert_array_equal(embedded(series, **hard), embedded(series, times, **hard))


def test_sections_gaps_and_lengths_take_their_times_along(series, rng):
    """Nearly even times give nearly the same fit, whatever is cut, shifted or missing."""
    series[0, :, 30:] = np.nan
    series[1, :, :3] = np.nan
    series[2, :, 10:12] = np.nan
    params = {"max_train_length": 15, "tau_instance": None}
    times = np.arange(40) + np.where(np.arange(40) % 7 == 3, 0.01, 0.0)
    same = embedded(series, **params)
    np.testing.assert_allclose(embedded(series, times, **params), same, atol=1e-2)
    reverse = np.cumsum(rng.exponential(size=40) * 5)
    assert np.abs(embedded(series, reverse, **params) - same).max() > 1e-6


def test_wrong_times_are_refused_with_the_reason(series):
    with pytest.raises(ValueError, match="times has shape"):
        embedded(series, np.arange(39))
    with pytest.raises(ValueError, match="earlier than"):
        embedded(series, np.arange(40)[::-1])
