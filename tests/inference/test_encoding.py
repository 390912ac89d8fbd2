import numpy as np
import pytest
import torch

import naive
from softclt.encoders import DilatedEncoder
from softclt.inference import encoding as inference


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return DilatedEncoder(2, output_dims=5, hidden_dims=4, depth=3).eval()


@pytest.fixture
def ragged(rng):
    X = rng.normal(size=(5, 2, 24)).astype(np.float32)
    X[1, :, 10:] = np.nan
    X[2, :, 17:] = np.nan
    X[3, 0, 5] = np.nan
    return X


@pytest.mark.parametrize("pooling", ["max", "mean", "positive", "positive+max"])
@pytest.mark.parametrize("layers", ["last", "all"])
def test_a_vector_depends_neither_on_padding_nor_on_batch_mates(encoder, ragged, pooling, layers):
    options = {"pooling": pooling, "layers": layers}
    together = inference.encode(encoder, ragged, **options)
    alone = [
        inference.encode(encoder, x[None, :, :n], **options)[0]
        for x, n in zip(ragged, [24, 10, 17, 24, 24], strict=True)
    ]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_pooling_sees_observed_steps_only(encoder, ragged):
    steps = inference.encode(encoder, ragged, level="timestamp")
    series = inference.encode(encoder, ragged)
    observed = ~np.isnan(ragged).any(axis=1)
    expected = [z[seen].max(axis=0) for z, seen in zip(steps, observed, strict=True)]
    np.testing.assert_allclose(series, expected, atol=1e-6)


def test_poolings_are_those_of_plain_loops(encoder, ragged):
    steps = inference.encode(encoder, ragged, level="timestamp")
    observed = ~np.isnan(ragged).any(axis=1)
    for pooling in ("mean", "positive", "max+mean+positive", "positive+max"):
        series = inference.encode(encoder, ragged, pooling=pooling)
        expected = [naive.pooled(z, seen, pooling) for z, seen in zip(steps, observed, strict=True)]
        np.testing.assert_allclose(series, expected, atol=1e-6)


def test_a_zero_is_not_positive_and_hidden_steps_count_for_nothing():
    z = torch.tensor([[0.0], [2.0], [-1.0], [5.0]])
    real = torch.tensor([True, True, True, False])
    found = inference.pool(z, real, "positive+mean+max")
    torch.testing.assert_close(found, torch.tensor([1 / 3, 1 / 3, 2.0]))


def test_a_series_without_a_value_has_no_pooled_vector(encoder):
    empty = np.full((1, 2, 4), np.nan, np.float32)
    for pooling in inference.POOLINGS:
        assert np.isnan(inference.encode(encoder, empty, pooling=pooling)).all()


def test_steps_behind_the_end_of_a_series_are_nan_and_no_others(encoder, ragged):
    steps = inference.encode(encoder, ragged, level="timestamp")
    assert steps.shape == (5, 24, 5)
    ended = np.isnan(steps).all(axis=-1)
    assert ended[1].tolist() == [False] * 10 + [True] * 14
    assert not ended[3].any()  # a gap inside is filled by what is around it


def test_windows_are_pooled_steps(encoder, ragged):
    steps = inference.encode(encoder, ragged, level="timestamp")
    windows = inference.encode(encoder, ragged, level="window", window=6, stride=3)
    assert windows.shape == (5, 7, 5)
    np.testing.assert_allclose(windows[0, 2], steps[0, 6:12].max(axis=0), atol=1e-6)
    np.testing.assert_allclose(windows[1, 2], steps[1, 6:10].max(axis=0), atol=1e-6)
    assert np.isnan(windows[1, 4:]).all()


def test_a_causal_step_equals_the_last_step_of_its_window_alone(encoder, rng):
    X = rng.normal(size=(2, 2, 15)).astype(np.float32)
    steps = inference.encode(encoder, X, level="timestamp", causal=True, context=4)
    for t in (0, 2, 4, 14):
        window = X[:, :, max(0, t - 4) : t + 1]
        alone = inference.encode(encoder, window, level="timestamp")[:, -1]
        np.testing.assert_allclose(steps[:, t], alone, atol=1e-5)


def test_the_future_changes_nothing_when_causal(encoder, rng):
    X = rng.normal(size=(2, 2, 30)).astype(np.float32)
    changed = X.copy()
    changed[..., 20:] = 9.0
    for level, options in (("timestamp", {}), ("window", {"window": 5})):
        kwargs = {"level": level, "context": 7, **options}
        before = inference.encode(encoder, X, causal=True, **kwargs)
        after = inference.encode(encoder, changed, causal=True, **kwargs)
        past = 20 if level == "timestamp" else 4
        np.testing.assert_array_equal(before[:, :past], after[:, :past])
        assert not np.allclose(before[:, past:], after[:, past:])
    plain = inference.encode(encoder, X, level="timestamp")
    leaking = inference.encode(encoder, changed, level="timestamp")
    assert not np.allclose(plain[:, :20], leaking[:, :20])  # which is why causal exists


def test_batches_of_any_size_give_the_same(encoder, ragged, monkeypatch):
    kwargs = [{}, {"level": "timestamp", "causal": True, "context": 3}]
    whole = [inference.encode(encoder, ragged, **k) for k in kwargs]
    monkeypatch.setattr(inference, "_STEPS_AT_ONCE", 10)
    for expected, k in zip(whole, kwargs, strict=True):
        np.testing.assert_allclose(inference.encode(encoder, ragged, **k), expected, atol=1e-5)


def test_a_series_longer_than_a_batch_is_encoded_whole(encoder, rng):
    X = rng.normal(size=(1, 2, inference._STEPS_AT_ONCE + 5)).astype(np.float32)
    assert inference.encode(encoder, X).shape == (1, 5)


def test_one_step_is_enough(encoder):
    assert np.isfinite(inference.encode(encoder, np.ones((1, 2, 1), np.float32))).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"level": "series"}, "expected one of 'instance'"),
        ({"level": "window"}, "needs `window`"),
        ({"level": "window", "window": 25}, "at most 24"),
        ({"level": "instance", "window": 3}, "belong to level"),
        ({"pooling": "sum"}, "'max', 'mean', 'positive'"),
        ({"pooling": "max+"}, r"pooling is 'max\+'"),
        ({"pooling": "max+mean+max"}, "each once"),
        ({"layer": 4}, "layers 0 to 3"),
        ({"causal": True, "context": -1}, "context is -1"),
    ],
)
def test_wrong_arguments_are_explained(encoder, ragged, arguments, words):
    with pytest.raises(ValueError, match=words):
        inference.encode(encoder, ragged, **arguments)
