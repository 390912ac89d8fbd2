import itertools

import numpy as np
import pytest
import torch

import naive
from softclt import TS2Vec, inference
from softclt.encoders import DilatedEncoder, Encoder
from softclt.encoders.windows import Layout, plan
from softclt.inference import causal
from softclt.inference.causal import Lookback


def new_encoder(n_channels=2, depth=3, mask_padding=True):
    torch.manual_seed(0)
    return DilatedEncoder(n_channels, 5, 4, depth, mask_padding).eval()


def plainly(encoder, X, context, hide_last=False, **options):
    """Window by window, in double precision."""
    double = new_encoder(X.shape[1], encoder.n_layers - 1, encoder.mask_padding).double()
    double.load_state_dict(encoder.state_dict())

    @torch.no_grad()
    def encode(window, keep):
        x, keep = torch.as_tensor(window)[None], torch.as_tensor(keep)[None]
        if options.get("layers") == "all":
            return double.all_layers(x, keep)[0].numpy()
        return double(x, keep, layer=options.get("layer"))[0].numpy()

    return naive.causal_steps(encode, X, context, hide_last)


def series(rng, n_channels, length, missing=0.0):
    X = rng.normal(size=(2, n_channels, length)).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, :, length - 1] = 1.0  # neither has ended before
    return X


@pytest.mark.parametrize("mask_padding", [True, False])
@pytest.mark.parametrize(
    ("depth", "context", "n_channels", "length", "missing"),
    [
        (0, 5, 1, 12, 0.0),
        (2, 7, 1, 40, 0.0),
        (3, 20, 3, 60, 0.05),
        (3, 24, 2, 50, 0.6),
        (5, 64, 1, 90, 0.02),
        (5, 3, 1, 20, 0.2),
        (10, 41, 2, 50, 0.1),
        (4, 30, 1, 12, 0.1),  # shorter than the context
        (3, 0, 1, 6, 0.3),
        (3, 8, 2, 1, 0.0),
    ],
)
@pytest.mark.slow
def test_every_step_equals_its_window_alone(
    rng, mask_padding, depth, context, n_channels, length, missing
):
    encoder = new_encoder(n_channels, depth, mask_padding)
    X = series(rng, n_channels, length, missing)
    seen, hidden = causal.encode_masked(encoder, X, Lookback(context))
    steps = inference.encode(encoder, X, level="timestamp", causal=True, context=context)
    np.testing.assert_allclose(steps, plainly(encoder, X, context), atol=1e-5)
    np.testing.assert_allclose(seen, steps, atol=1e-5)
    np.testing.assert_allclose(hidden, plainly(encoder, X, context, hide_last=True), atol=1e-5)


def test_the_short_way_and_the_long_way_agree_in_double_precision(rng):
    shapes = itertools.product((0, 3, 6), (0, 1, 7, 50), (True, False), (1, 3), (1, 30))
    for depth, context, mask_padding, n_series, n_windows in shapes:
        encoder = new_encoder(2, depth, mask_padding).double()
        x = torch.as_tensor(rng.normal(size=(n_series, 2, context + n_windows)))
        x[torch.as_tensor(rng.random(x.shape) < rng.choice([0.0, 0.1, 0.5]))] = float("nan")
        for layer, every in ((None, False), (None, True), (depth // 2, False)):
            with torch.no_grad():
                short = encoder.last_steps(x, context, layer, every, hide=True)
                long = Encoder.last_steps(encoder, x, context, layer, every, hide=True)
            torch.testing.assert_close(short, long, rtol=0, atol=1e-10)


def test_windows_of_the_paper_agree_in_single_and_double_precision(rng):
    encoder = DilatedEncoder(1, hidden_dims=8, output_dims=6).eval()
    x = torch.as_tensor(rng.normal(size=(1, 1, 200 + 300)), dtype=torch.float32)
    x[..., [200, 350, 351]] = float("nan")
    for dtype, atol in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        encoder = encoder.to(dtype)
        with torch.no_grad():
            short = encoder.last_steps(x.to(dtype), 200, hide=True)
            long = Encoder.last_steps(encoder, x.to(dtype), 200, hide=True)
        torch.testing.assert_close(short, long, rtol=0, atol=atol)


def test_few_rows_are_worked_out_for_a_window_of_the_paper():
    n = 1024
    dilations = tuple(2**i for i in range(11) for _ in range(2))
    steps = plan(Layout(1, n, 200), dilations, None, False, torch.device("cpu"))
    rows = sum(step.n_shared + step.n_own for step in steps)
    assert rows < 90 * n  # 22 layers of 201 steps otherwise
    assert steps[-1].n_own == n  # in the last, widest block the last step alone
    assert steps[0].n_shared == n + 200
    assert steps[0].n_own == 2 * n  # the first and the last step of each window


@pytest.mark.parametrize("options", [{"layers": "all"}, {"layer": 1}])
def test_other_blocks_can_be_read_out(rng, options):
    encoder, X = new_encoder(), series(rng, 2, 30, 0.1)
    seen, hidden = causal.encode_masked(encoder, X, Lookback(9, **options))
    np.testing.assert_allclose(seen, plainly(encoder, X, 9, **options), atol=1e-5)
    np.testing.assert_allclose(hidden, plainly(encoder, X, 9, True, **options), atol=1e-5)


def test_parts_of_any_size_give_the_same(rng, monkeypatch):
    encoder, X = new_encoder(), series(rng, 2, 50, 0.1)
    X[1, :, 33:] = np.nan
    whole = causal.encode_masked(encoder, X, Lookback(12))
    for at_once in (1, 7, 49, 60):
        monkeypatch.setattr(causal, "_WINDOWS_AT_ONCE", {"cpu": at_once})
        np.testing.assert_allclose(causal.encode_masked(encoder, X, Lookback(12)), whole, atol=1e-5)


def test_the_change_is_the_distance_between_seen_and_hidden(rng):
    X = series(rng, 1, 40, 0.1)
    model = TS2Vec(output_dims=6, hidden_dims=4, depth=3, max_iter=0, random_state=0).fit(X)
    seen, hidden = model.encode_masked(X, context=10)
    np.testing.assert_allclose(
        seen, model.encode(X, level="timestamp", causal=True, context=10), atol=1e-5
    )
    for norm in (1, 2):
        expected = np.linalg.norm(seen - hidden, ord=norm, axis=-1)
        moved = model.last_step_change(X, context=10, norm=norm)
        np.testing.assert_allclose(moved, expected, atol=1e-5)
    missing = np.isnan(X[:, 0])
    assert (moved[missing] == 0).all()
    assert (moved[~missing] > 0).all()


def test_steps_behind_the_end_of_a_series_are_nan(rng):
    X = series(rng, 1, 20)
    X[0, :, 12:] = np.nan
    encoder = new_encoder(1)
    for z in causal.encode_masked(encoder, X, Lookback(4)):
        assert np.isnan(z).all(axis=-1)[0].tolist() == [False] * 12 + [True] * 8
        assert np.isfinite(z[1]).all()
    moved = causal.last_step_change(encoder, X, Lookback(4))
    assert np.isnan(moved[0]).tolist() == [False] * 12 + [True] * 8


def test_a_surprise_moves_its_own_step_most(rng):
    X = np.sin(np.arange(120) / 3)[None, None] + 0.01 * rng.normal(size=(1, 1, 120))
    small = {"output_dims": 8, "hidden_dims": 8, "depth": 3, "max_iter": 20, "random_state": 0}
    model = TS2Vec(tau_instance=None, **small).fit(X)
    X[..., 90] += 6.0
    assert model.last_step_change(X, context=30)[0].argmax() == 90


def test_pooled_causal_steps_are_those_of_the_timestamp_level(rng):
    encoder, X = new_encoder(), series(rng, 2, 30, 0.1)
    steps = inference.encode(encoder, X, level="timestamp", causal=True, context=6)
    observed = ~np.isnan(X).any(axis=1)
    expected = [z[real].max(axis=0) for z, real in zip(steps, observed, strict=True)]
    pooled = inference.encode(encoder, X, causal=True, context=6)
    np.testing.assert_allclose(pooled, expected, atol=1e-5)


def test_the_network_is_back_in_training_mode_when_parts_are_left_unread(rng):
    encoder = new_encoder().train()
    some = causal.parts(encoder, torch.as_tensor(series(rng, 2, 9)), Lookback(3))
    next(some)
    some.close()
    assert encoder.training


@pytest.mark.parametrize(
    ("arguments", "words"), [({"context": -1}, "context is -1"), ({"norm": 0.5}, "norm is 0.5")]
)
def test_wrong_arguments_of_the_change_are_explained(rng, arguments, words):
    model = TS2Vec(output_dims=4, hidden_dims=4, depth=1, max_iter=0, random_state=0)
    X = series(rng, 1, 9)
    with pytest.raises(ValueError, match=words):
        model.fit(X).last_step_change(X, **arguments)
