"""What an exported file gives is what `transform` gives: for every method, read-out and scale."""

import numpy as np
import pytest
import torch
from sklearn.utils import get_tags
from torch import nn

import softclt
from softclt.encoders import Encoder
from softclt.encoders.encoder import EncoderWithHeads
from softclt.encoders.residual import ResidualEncoder
from softclt.export import OnnxModel, export_onnx
from softclt.export.networks import alone, blocks
from softclt.export.writing import TOLERANCE, difference
from softclt.methods import TS2Vec, methods

TS2VEC = {"output_dims": 6, "hidden_dims": 4, "depth": 3, "tau_instance": None}
TS2VEC |= {"max_iter": 2, "batch_size": 4, "random_state": 0, "device": "cpu"}
SMALL = TS2VEC | {"widths": (4, 6), "label_iter": 2}


def small(name, **changes):
    known = methods[name]().get_params()
    own = {"width": 8} if name == "series-contrast" else {}
    own = SMALL | own | changes
    return methods[name](**{key: value for key, value in own.items() if key in known})


def fitted(model, X):
    y = np.arange(len(X)) % 2 if get_tags(model).target_tags.required else None
    return model.fit(X, y)


def holey(rng, n, d, t, share=0.1):
    """Series of different lengths, with gaps in single channels and in all of them."""
    X = rng.normal(3, 2, size=(n, d, t))
    X[rng.random(X.shape) < share / d] = np.nan
    X[np.broadcast_to(rng.random((n, 1, t)) < share / 2, X.shape)] = np.nan
    X[0, :, 0] = X[1, :, -1] = np.nan
    for row in X[2::3]:
        row[:, rng.integers(t // 2 + 1, t) :] = np.nan
    X[:, :, t // 2] = 1.0
    return X


def assert_same(model, path, X, share=1.0):
    wanted, found = model.transform(X), OnnxModel(path, n_threads=1).transform(X)
    assert wanted.shape == found.shape
    assert difference(wanted, found, share) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", methods.names())
def test_every_method_gives_the_same_as_onnx(name, rng, tmp_path):
    model = fitted(small(name), rng.normal(3, 2, size=(8, 2, 40)))
    export_onnx(model, tmp_path / "m.onnx")
    for t in (3, 40, 201):
        assert_same(model, tmp_path / "m.onnx", holey(rng, 7, 2, t))


def own_encoders(kind=Encoder):
    """All encoders of the package but those that are others with heads."""
    for one in kind.__subclasses__():
        if one is not EncoderWithHeads:
            yield from own_encoders(one)
            yield one


def test_every_encoder_of_the_package_has_a_form():
    ours = {one for one in own_encoders() if one.__module__.startswith("softclt.")}
    without = {one for one in ours if blocks.dispatch(one) is blocks.dispatch(Encoder)}
    assert ours > without
    assert without == {ResidualEncoder}  # which has a reading of its own


@pytest.mark.slow
@pytest.mark.parametrize("channels", ["concat", "mean"])
@pytest.mark.parametrize("readout", ["compact", "rich"])
def test_the_shipped_encoder_gives_the_same_over_lengths_and_gaps(readout, channels, tmp_path, rng):
    model = softclt.load_pretrained("base", readout=readout, channels=channels, device="cpu")
    export_onnx(model, tmp_path / "m.onnx")
    for n, d, t, share in [(1, 1, 2, 0), (3, 3, 5, 0.3), (5, 2, 130, 0.2), (2, 1, 1100, 0.5)]:
        X = holey(rng, n, d, t, share) if n > 2 else rng.normal(size=(n, d, t))
        # A share of steps above 0 moves by a step where a number is 0 but for rounding.
        assert_same(model, tmp_path / "m.onnx", X, 0.999 if readout == "rich" else 1.0)


def test_constant_channels_and_channels_with_one_value_or_none_are_the_same(tmp_path, rng):
    model = softclt.load_pretrained("base", device="cpu")
    export_onnx(model, tmp_path / "m.onnx")
    X = rng.normal(size=(4, 3, 70))
    X[0, 0], X[1, 1], X[2, 2], X[3, 0] = 5.0, np.nan, np.nan, 1e-300
    X[2, 2, 9] = 4.0
    assert_same(model, tmp_path / "m.onnx", X)


@pytest.mark.parametrize("scale", ["channel", "series", None])
@pytest.mark.parametrize("mask_padding", [True, False])
def test_scales_padding_poolings_and_layers_are_in_the_graph(scale, mask_padding, rng, tmp_path):
    model = TS2Vec(
        **TS2VEC,
        scale=scale,
        mask_padding=mask_padding,
        pooling="mean+max+positive",
        layers="all",
    )
    model.fit(rng.normal(3, 2, size=(8, 2, 40)))
    export_onnx(model, tmp_path / "m.onnx")
    for t in (1, 7, 64):
        X = holey(rng, 7, 2, t) if t > 1 else rng.normal(size=(7, 2, t))
        assert_same(model, tmp_path / "m.onnx", X)


def test_a_large_level_is_removed_before_numbers_become_short(rng, tmp_path):
    X = 1e9 + rng.normal(size=(8, 1, 40))
    model = TS2Vec(**TS2VEC).fit(X)
    export_onnx(model, tmp_path / "m.onnx")
    assert_same(model, tmp_path / "m.onnx", X)
    assert np.ptp(OnnxModel(tmp_path / "m.onnx").transform(X), axis=0).max() > 0.01


@pytest.mark.parametrize("name", ["ts2vec", "cost", "series-contrast", "tstcc"])
def test_what_else_is_in_a_batch_changes_nothing(name, rng, tmp_path):
    model = fitted(small(name), rng.normal(size=(8, 1, 40)))
    export_onnx(model, tmp_path / "m.onnx")
    file = OnnxModel(tmp_path / "m.onnx")
    series = [rng.normal(size=(1, t)) for t in (200, 30, 77, 600)]
    together = file.transform(series)
    for one, R in zip(series, together, strict=True):
        np.testing.assert_allclose(file.transform([one])[0], R, atol=2e-6)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Conv1d(2, 5, 3, padding=1)
        self.outer = nn.Linear(5, 4)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)).transpose(1, 2))


@pytest.mark.slow
def test_a_module_of_ones_own_is_exported_too(rng, tmp_path):
    torch.manual_seed(0)
    model = TS2Vec(**TS2VEC, encoder=Own()).fit(rng.normal(size=(8, 2, 40)))
    export_onnx(model, tmp_path / "m.onnx")
    for t in (2, 90):
        X = rng.normal(size=(5, 2, t))
        X[1, 0, 0] = np.nan
        assert_same(model, tmp_path / "m.onnx", X)


def test_a_model_in_float64_is_exported_in_float32(rng, tmp_path):
    model = TS2Vec(**TS2VEC, precision="float64").fit(rng.normal(size=(8, 2, 40)))
    assert export_onnx(model, tmp_path / "m.onnx").largest_difference < TOLERANCE
    assert next(model.module_.parameters()).dtype == torch.float64
    assert next(alone(model.module_).parameters()).dtype == torch.float64
