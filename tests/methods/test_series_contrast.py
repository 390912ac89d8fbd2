"""Contrast of whole series."""

import numpy as np
import pytest
import torch

import naive
from softclt.data import Corpus
from softclt.data.preparation import resampled
from softclt.encoders.residual import ResidualEncoder
from softclt.losses.contextual import nt_xent
from softclt.methods import SeriesContrast

TINY = {"width": 4, "length": 32, "least_length": 16, "max_iter": 3, "random_state": 0}


def tiny(**changes):
    return SeriesContrast(**TINY | {"batch_size": 8} | changes)


@pytest.fixture
def series(rng):
    return rng.normal(size=(12, 2, 40)).cumsum(axis=-1)


@pytest.mark.parametrize("length", [5, 12, 30])
def test_resampling_is_the_plain_loop(length, rng):
    X = rng.normal(3, 5, size=(6, 2, 12))
    X[1, 0, 4:7] = X[2, 1, :3] = X[3, 0, 8:] = np.nan
    X[4, 0] = 7.0
    X[4, 1] = np.nan
    X[5, 0, 1:] = np.nan
    expected = [[naive.resampled(list(channel), length) for channel in one] for one in X]
    np.testing.assert_allclose(resampled(X, length), expected, atol=1e-5)


def test_a_straight_line_stays_one_at_any_length():
    line = np.arange(10.0)[None, None]
    for length in (5, 10, 100):
        steps = np.diff(resampled(line, length)[0, 0])
        np.testing.assert_allclose(steps, steps[0], atol=1e-6)


def test_level_scale_and_constants_do_not_matter(series):
    model = tiny().fit(series)
    np.testing.assert_allclose(
        model.transform(1e3 * series - 5e4), model.transform(series), atol=1e-4
    )
    assert np.isfinite(model.transform(np.ones((2, 2, 9)))).all()


def test_a_batch_of_several_processes_is_the_batch_of_one(rng):
    z1, z2 = (torch.as_tensor(rng.normal(size=(6, 4))) for _ in range(2))
    weights = torch.as_tensor(0.5 * np.ones((6, 6)) + 0.5 * np.eye(6))

    class OneOfTwo:
        """Gathers what the other process has, too: first of view 1, then of view 2."""

        size = 2

        def __init__(self):
            self.views = iter((z1, z2))

        def gather(self, x, dim):
            whole = torch.nn.functional.normalize(next(self.views), dim=-1)[:, None] / 0.1**0.5
            assert x.shape == (3, 1, 4)
            return whole

    losses = [
        nt_xent(z1[part], z2[part], 0.1, weights, OneOfTwo()) for part in (slice(0, 3), slice(3, 6))
    ]
    torch.testing.assert_close(torch.stack(losses).mean(), nt_xent(z1, z2, 0.1, weights))


def test_poolings_of_whole_series_are_those_of_the_steps_of_a_block(series):
    model = tiny(pooling="max", layers="all").fit(series)
    R = model.transform(series)  # (N, D * 8 blocks' widths)
    encoder = model.module_.encoder
    blocks = encoder.blocks_of(torch.from_numpy(resampled(series, 32)))
    expected = torch.cat([h.amax(dim=-1).view(12, 2, -1) for h in blocks], dim=-1)
    np.testing.assert_allclose(R, expected.detach().reshape(12, -1), atol=1e-6)


def test_one_pass_gives_all_read_outs(series):
    model = tiny().fit(series)
    wanted = {("max+mean", "last"), ("max+mean+positive", "all")}
    found = model.read_outs(series, wanted)
    for pooling, layers in wanted:
        alone = tiny(pooling=pooling, layers=layers).fit(series).transform(series)
        np.testing.assert_array_equal(found[pooling, layers], alone)


def test_steps_keep_their_number_and_do_not_depend_on_later_ones_where_causal(series):
    model = tiny().fit(series)
    assert model.encode(series, level="timestamp").shape == (12, 40, 2 * 12)
    later = series.copy()
    later[:, :, 30:] += 9
    one, other = (
        model.encode(X, level="timestamp", causal=True, context=10) for X in (series, later)
    )
    np.testing.assert_array_equal(one[:, :30], other[:, :30])
    assert not np.allclose(one[:, 30:], other[:, 30:])


def test_a_block_is_interpolated_between_its_own_steps():
    encoder = ResidualEncoder(4)
    x = torch.randn(1, 1, 17)
    z = encoder(x)  # (1, 17, 12)
    own = encoder.blocks_of(x)[-1].mT
    torch.testing.assert_close(z[:, ::8], own)
    torch.testing.assert_close(z[:, 4], (own[:, 0] + own[:, 1]) / 2)


def corpus(rng):
    values = resampled(rng.normal(size=(30, 1, 40)).cumsum(axis=-1), 32)
    return Corpus(values, ("a", "b", "made"), (12, 8, 10), (3.0, 2.0, 1.0), (0, 0, 1))


def test_a_corpus_is_learned_from_with_and_without_softness(rng):
    data = corpus(rng)
    soft, hard, plain = (
        tiny(tau_instance=tau, neighbours=k).fit(data)
        for tau, k in ((16.0, 3), (None, 3), (None, 0))
    )
    losses = [model.history_["loss"] for model in (soft, hard, plain)]
    assert all(len(own) == 3 for own in losses)
    assert losses[0] != losses[1] != losses[2]
    assert soft.transform(rng.normal(size=(2, 1, 9))).shape == (2, 24)


def test_series_of_different_sets_are_as_far_as_can_be(rng):
    data = corpus(rng)
    model = tiny(max_iter=1)
    seen = {}
    original = model._loss

    def look(module, batch, draws):
        seen["index"], seen["weights"] = batch.index[0], batch.weights[0]
        return original(module, batch, draws)

    model._loss = look
    model.set_params(batch_size=30).fit(data)
    sets = np.searchsorted([12, 20], seen["index"].numpy(), side="right")
    across = (sets[:, None] != sets) | (sets[:, None] == 2)
    np.fill_diagonal(across, False)
    weights = seen["weights"].numpy()
    assert weights[across].max() < 1e-3
    assert weights[~across].max() > 0.2
    np.testing.assert_array_equal(weights.diagonal(), 1)


def test_hard_training_with_neighbours_needs_distances_but_no_weights(series):
    hard = tiny(tau_instance=None, neighbours=2).fit(series)
    plain = tiny(tau_instance=None, neighbours=0).fit(series)
    assert hard.history_["loss"] != plain.history_["loss"]
    assert plain.history_["distances"] is None


def test_neighbours_of_series_too_many_for_a_matrix_are_refused(series):
    with pytest.raises(ValueError, match="leave distance_mode='lazy' out"):
        tiny(neighbours=2, distance_mode="lazy").fit(series)


@pytest.mark.slow
def test_a_stopped_training_goes_on_to_the_same_bits(rng, tmp_path):
    data = corpus(rng)
    whole = tiny(max_iter=200, batch_size=6).fit(data)
    stop = tiny(max_iter=200, batch_size=6)

    def interrupt(told):
        if told.step == 100:
            raise SystemExit

    with pytest.raises(SystemExit):
        stop.fit(data, checkpoint=tmp_path, callbacks=[interrupt])
    again = tiny(max_iter=200, batch_size=6).fit(data, checkpoint=tmp_path)
    for one, other in zip(whole.module_.parameters(), again.module_.parameters(), strict=True):
        assert torch.equal(one, other)
