"""The normalisation rule of the protocol."""

import numpy as np
import pytest

from softclt.data import Dataset
from softclt.tasks import protocol_scaling
from softclt.tasks.scaling import UCR_RAW


def dataset(archive, name, rng):
    X = rng.normal(5.0, 3.0, size=(6, 2, 10)) * np.array([1.0, 20.0])[:, None]
    X[1, :, 7:] = np.nan
    return Dataset(X, [0, 1] * 3, X[:4] + 1.0, [0, 1] * 2, {"name": name, "archive": archive})


def test_there_are_34_ucr_sets_to_normalise():
    assert len(UCR_RAW) == 34


@pytest.mark.parametrize("name", ["PLAID", "ucr/PLAID"])
def test_a_raw_ucr_set_is_scaled_by_the_whole_training_set(name, rng):
    data = dataset("ucr", name, rng)
    mean, std = np.nanmean(data.X_train), np.nanstd(data.X_train)
    X_train, X_test = protocol_scaling(data)
    np.testing.assert_allclose(X_train, (data.X_train - mean) / std)
    np.testing.assert_allclose(X_test, (data.X_test - mean) / std)


def test_a_uea_set_is_scaled_channel_by_channel(rng):
    data = dataset("uea", "BasicMotions", rng)
    mean = np.nanmean(data.X_train, axis=(0, 2), keepdims=True)
    std = np.nanstd(data.X_train, axis=(0, 2), keepdims=True)
    X_train, X_test = protocol_scaling(data)
    np.testing.assert_allclose(X_train, (data.X_train - mean) / std)
    np.testing.assert_allclose(X_test, (data.X_test - mean) / std)


@pytest.mark.parametrize(("archive", "name"), [("ucr", "ucr/GunPoint"), ("file", "PLAID")])
def test_everything_else_stays_as_it_is(archive, name, rng):
    data = dataset(archive, name, rng)
    X_train, X_test = protocol_scaling(data)
    np.testing.assert_array_equal(X_train, data.X_train)
    np.testing.assert_array_equal(X_test, data.X_test)


def test_a_constant_channel_stays_finite():
    X = np.ones((3, 1, 4))
    X_train, _ = protocol_scaling(Dataset(X, None, X, None, {"archive": "uea"}))
    np.testing.assert_array_equal(X_train, np.zeros_like(X))
