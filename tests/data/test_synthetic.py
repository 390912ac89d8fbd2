"""Contracts of every registered data set, and facts about the generators."""

import numpy as np
import pytest

from softclt.data import datasets, load, synthetic
from softclt.validation import series_lengths


@pytest.mark.parametrize("name", datasets.names())
def test_registered_data_sets_keep_the_contract(name):
    data = load(name)
    assert data.meta["name"] == name
    assert data.X_train.ndim == 3
    assert data.X_train.shape[1] == data.X_test.shape[1]
    if data.y_train is not None:  # else each step has a state
        assert len(data.y_train) == len(data.X_train)
        assert set(data.y_train) == set(range(len(data.meta["classes"])))
    assert data.meta["ragged"] == datasets.tags(name)["ragged"]
    assert load(name).fingerprint == data.fingerprint


@pytest.mark.parametrize("make", [synthetic.waves, synthetic.ragged])
def test_seed_and_sizes_are_arguments(make):
    data = make(n_per_class=3, length=20, n_channels=2, n_classes=4, random_state=1)
    assert data.X_train.shape == (12, 2, 20)
    assert data.X_test.shape == (12, 2, 20)
    assert len(data.meta["classes"]) == 4
    same = make(n_per_class=3, length=20, n_channels=2, n_classes=4, random_state=1)
    other = make(n_per_class=3, length=20, n_channels=2, n_classes=4, random_state=2)
    assert same.fingerprint == data.fingerprint
    assert other.fingerprint != data.fingerprint


def test_train_and_test_are_different_series():
    data = synthetic.waves(n_per_class=2)
    assert not np.array_equal(data.X_train, data.X_test)


def test_waves_can_be_told_apart_by_their_spectrum():
    data = synthetic.waves(n_per_class=20, noise=0.2)
    train, test = (np.abs(np.fft.rfft(X[:, 0])) for X in (data.X_train, data.X_test))
    nearest = ((test[:, None] - train[None]) ** 2).sum(-1).argmin(1)
    assert (data.y_train[nearest] == data.y_test).mean() > 0.9


def test_ragged_lengths_and_holes_are_as_asked():
    data = synthetic.ragged(n_per_class=30, length=50, min_length=10, missing=0.2)
    lengths = series_lengths(data.X_train)
    assert lengths.min() >= 10
    assert lengths.max() == 50
    inside = np.arange(50) < lengths[:, None]
    share = np.isnan(data.X_train).swapaxes(1, 2)[inside].mean()
    assert 0.12 < share < 0.25
    whole = synthetic.ragged(n_per_class=2, missing=0.0).X_train
    assert np.isnan(whole).any(axis=1).sum() == (96 - series_lengths(whole)).sum()


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="length is 0"):
        synthetic.waves(length=0)
    with pytest.raises(ValueError, match="min_length is 200"):
        synthetic.ragged(min_length=200)
