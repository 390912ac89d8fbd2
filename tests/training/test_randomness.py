import numpy as np
import pytest
import torch

from softclt.training.randomness import StepDraws, Stream, batch_rows, stream_keys

CPU = torch.device("cpu")


def draws(step, *seeds):
    counter = torch.tensor(step, dtype=torch.int32)
    return StepDraws(stream_keys(seeds, CPU), step, counter, torch.float32)


def test_the_same_counters_give_the_same_numbers_whatever_was_drawn_before():
    first = draws(5, 1).keep((4, 6), 0.5, view=0)
    torch.rand(3)
    draws(5, 2).dropout((2, 2), 0.1, view=1)
    assert torch.equal(draws(5, 1).keep((4, 6), 0.5, view=0), first)


def test_a_model_in_a_stack_has_the_draws_that_it_has_alone():
    stack = draws(5, 3, 1, 8)
    alone = draws(5, 1)
    assert torch.equal(stack.keep((4, 7), 0.5, 1)[1:2], alone.keep((4, 7), 0.5, 1))
    assert torch.equal(stack.dropout((3, 5), 0.1, 0)[1:2], alone.dropout((3, 5), 0.1, 0))
    there, here = (d.integers(Stream.OFFSETS, 9, (6,)) for d in (stack, alone))
    assert torch.equal(there[1:2], here)


def test_seed_step_view_and_purpose_each_change_the_numbers():
    reference = draws(5, 1).keep((50,), 0.5, view=0)
    for other in (draws(5, 2).keep((50,), 0.5, 0), draws(6, 1).keep((50,), 0.5, 0)):
        assert (other != reference).any()
    assert (draws(5, 1).keep((50,), 0.5, view=1) != reference).any()
    offsets, windows = (
        draws(5, 1).integers(stream, 1000, (20,)) for stream in (Stream.OFFSETS, Stream.WINDOW)
    )
    assert (offsets != windows).any()


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global state is what is tested
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    draws(1, 1).keep((3,), 0.5, 0)
    draws(1, 1).integers(Stream.OFFSETS, 3)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_dropout_keeps_the_mean():
    factors = draws(0, 0).dropout((200, 200), 0.1, view=0)
    assert set(np.unique(factors.numpy()).round(4)) == {0.0, np.float32(1.1111)}
    assert abs(factors.mean().item() - 1) < 0.01


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_draws_are_as_frequent_as_asked_and_independent_of_their_neighbours(probability):
    kept = torch.stack([draws(s, 0, 1).keep((64,), probability, 0) for s in range(400)]).float()
    assert abs(kept.mean().item() - probability) < 0.01  # (steps, R, places)
    centred = kept - kept.mean()
    variance = centred.square().mean().item()
    for shifted, own in (
        (centred[1:], centred[:-1]),  # of the next step
        (centred[:, 1], centred[:, 0]),  # of another seed
        (centred[..., 1:], centred[..., :-1]),  # of the next place
        (centred[..., 2:], centred[..., :-2]),  # of the next hash
    ):
        assert abs((shifted * own).mean().item()) < 0.03 * variance


def test_whole_numbers_come_up_about_equally_often():
    numbers = torch.stack([draws(s, 4).integers(Stream.OFFSETS, 5, (20,)) for s in range(300)])
    counts = np.bincount(numbers.flatten())
    np.testing.assert_allclose(counts / counts.sum(), 0.2, atol=0.02)


def test_an_epoch_shows_every_row_at_most_once_and_epochs_differ():
    epoch = [batch_rows(0, step, n=11, batch_size=4) for step in range(2)]
    assert len(set(np.concatenate(epoch))) == 8
    following = [batch_rows(0, step, n=11, batch_size=4) for step in range(2, 4)]
    assert not np.array_equal(np.concatenate(epoch), np.concatenate(following))


def test_normal_numbers_have_the_moments_and_tails_of_a_normal_distribution():
    x = draws(3, 0, 1).normal(Stream.JITTER, (400, 250), view=0)
    assert x.shape == (2, 400, 250)
    assert abs(x.mean().item()) < 0.01
    assert abs(x.std().item() - 1) < 0.01
    assert abs((x.abs() > 2).float().mean().item() - 0.0455) < 0.002
    assert abs((x[0] * x[1]).mean().item()) < 0.01
    assert x.isfinite().all()


def test_a_rank_draws_its_part_of_the_normal_numbers_of_the_whole_batch():
    whole = draws(3, 0).normal(Stream.SCALE, (6, 2), view=1)
    parts = []
    for rank in (0, 1):
        own = draws(3, 0)
        own.rank = rank
        parts.append(own.normal(Stream.SCALE, (3, 2), view=1))
    assert torch.equal(torch.cat(parts, dim=1), whole)
