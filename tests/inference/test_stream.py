import numpy as np
import pytest

from softclt import TS2Vec


def fitted(n_channels, **options):
    X = np.random.default_rng(1).normal(3.0, 2.0, size=(3, n_channels, 40))
    small = {"output_dims": 6, "hidden_dims": 4, "depth": 4, "max_iter": 2, "random_state": 0}
    return TS2Vec(**small, **options).fit(X)


@pytest.fixture
def x(rng):
    """A series of two channels with gaps, one of them at the beginning."""
    x = rng.normal(3.0, 2.0, size=(2, 60))
    x[0, [0, 1, 20, 21, 45]] = np.nan
    return x


@pytest.mark.parametrize("mask_padding", [True, False])
@pytest.mark.slow
def test_a_stream_equals_the_batch(x, mask_padding):
    model = fitted(2, mask_padding=mask_padding)
    seen, hidden = model.encode_masked(x[None], context=15)
    moved = model.last_step_change(x[None], context=15)
    one, two, three = (model.stream(context=15) for _ in range(3))
    for t in range(60):
        np.testing.assert_allclose(one.push(x[:, t]), seen[0, t], atol=1e-5)
        np.testing.assert_allclose(two.push_masked(x[:, t]), (seen[0, t], hidden[0, t]), atol=1e-5)
        change = three.push_change(x[:, t])
        assert change.shape == ()
        assert change == pytest.approx(moved[0, t], abs=1e-4)


def test_steps_may_come_in_pieces_of_any_length(x):
    model = fitted(2)
    expected = model.encode(x[None], level="timestamp", causal=True, context=15)[0]
    stream = model.stream(context=15)
    pieces = [stream.push(piece) for piece in np.split(x, [3, 4, 30], axis=1)]
    assert [len(piece) for piece in pieces] == [3, 1, 26, 30]
    np.testing.assert_allclose(np.concatenate(pieces), expected, atol=1e-5)
    changes = model.stream(context=15).push_change(x, norm=2)
    np.testing.assert_allclose(
        changes, model.last_step_change(x[None], context=15, norm=2)[0], atol=1e-5
    )


def test_a_number_is_a_step_of_one_channel(rng):
    model, values = fitted(1), rng.normal(size=8)
    expected = model.encode(values[None], level="timestamp", causal=True, context=5)[0]
    stream = model.stream(context=5)
    np.testing.assert_allclose([stream.push(value) for value in values], expected, atol=1e-5)
    assert stream.push(np.nan).shape == (6,)


def test_streams_of_one_model_do_not_meet(x):
    model = fitted(2)
    alone, first, second = (model.stream(context=10) for _ in range(3))
    for t in range(10):
        second.push(x[:, 30 + t])
        np.testing.assert_array_equal(first.push(x[:, t]), alone.push(x[:, t]))


def test_a_stream_remembers_its_context_only(x):
    stream = fitted(2).stream(context=10)
    stream.push(x)
    size = stream._before.untyped_storage().nbytes()
    stream.push(np.tile(x, 20))
    assert stream._before.untyped_storage().nbytes() == size == 2 * 10 * 4


def test_a_refused_step_changes_nothing(x):
    model = fitted(2)
    stream, undisturbed = model.stream(context=10), model.stream(context=10)
    for wrong, words in (
        (1.0, r"shape \(\); expected the 2 channel"),
        ([1.0, 2.0, 3.0], r"shape \(3,\)"),
        (np.ones((2, 0)), r"shape \(2, 0\)"),
        ([np.inf, 0.0], "infinity"),
    ):
        with pytest.raises(ValueError, match=words):
            stream.push(wrong)
    np.testing.assert_array_equal(stream.push(x), undisturbed.push(x))
