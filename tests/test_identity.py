"""A key is equal for equal settings and for no others."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from softclt import TS2Vec
from softclt.data import waves
from softclt.identity import settings_key
from softclt.methods import fit_many
from softclt.methods.stacks import stack_key
from softclt.selection import data_distances_key

LONG = np.arange(2000.0)  # longer than what NumPy prints in full
LAYERS = nn.Sequential(
    nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.LSTM(2, 3), nn.TransformerEncoderLayer(2, 1)
)
OTHER = np.where(LONG == 1000, 7.0, LONG)


class Scaled(nn.Module):
    """A number that is neither a weight nor in the ``repr``."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x.transpose(1, 2)


def weighted(x, y, weights):
    return float(np.abs(x.mean() - y.mean()) * weights[1000])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (LONG, OTHER),
        ({"weights": LONG}, {"weights": OTHER}),
        (torch.from_numpy(LONG), torch.from_numpy(OTHER)),
        (LONG, LONG.astype(np.float32)),
        (LONG, LONG[:, None]),
        (1, 1.0),
        (1, "1"),
        (None, "None"),
        ([1, 2], [2, 1]),
        ({"x": 1, "y": 2}, {"x": 2, "y": 1}),
        (TS2Vec(alpha=0.5), TS2Vec(alpha=0.6)),
        (partial(weighted, weights=LONG), partial(weighted, weights=OTHER)),
        (lambda: 0, lambda: 0),
        (torch.relu, torch.tanh),
        (Scaled(1.0), Scaled(2.0)),
        (nn.Sequential(Scaled(1.0)), nn.Sequential(Scaled(2.0))),
        (nn.LSTM(1, 2), nn.LSTM(1, 2)),
    ],
)
def test_what_differs_has_different_keys(one, two):
    assert settings_key(one) != settings_key(two)
    assert settings_key(one) == settings_key(one)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (LONG, LONG.copy()),
        (np.ones((3, 4)), np.ones((4, 3)).T),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
        ({3, 1, 2}, {1, 2, 3}),
        (np.float64(0.5), 0.5),
        (Scaled(1.0), Scaled(1.0)),
        (LAYERS, copy.deepcopy(LAYERS)),
        (TS2Vec(distance_params={"a": LONG}), TS2Vec(distance_params={"a": LONG.copy()})),
    ],
)
def test_what_is_the_same_has_one_key(one, two):
    assert settings_key(one) == settings_key(two)


def test_a_function_never_has_the_key_of_one_that_is_gone():
    keys = [settings_key(lambda: 0) for _ in range(20)]  # at one address, one after the other
    assert len(set(keys)) == 20


def test_models_with_other_long_parameters_share_neither_a_stack_nor_distances():
    models = [TS2Vec(distance=weighted, distance_params={"weights": w}) for w in (LONG, OTHER)]
    assert repr(models[0].get_params()) == repr(models[1].get_params())  # which hid it
    assert stack_key(models[0]) != stack_key(models[1])
    assert data_distances_key(models[0]) != data_distances_key(models[1])


def test_fit_many_measures_the_distances_of_each_model():
    X = waves(n_per_class=2, length=12, random_state=0).X_train
    small = {"output_dims": 2, "hidden_dims": 2, "depth": 1, "max_iter": 3, "random_state": 0}
    seen = []

    def measured(x, y, weights):
        seen.append(weights[1000])
        return weighted(x, y, weights)

    fit_many(
        [TS2Vec(distance=measured, distance_params={"weights": w}, **small) for w in (LONG, OTHER)],
        X,
    )
    assert set(seen) == {1000.0, 7.0}
