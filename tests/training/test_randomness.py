import numpy as np
import torch

from softclt.training.randomness import StepDraws, Stream, batch_rows

CPU = torch.device("cpu")


def draws(seed, step):
    return StepDraws(seed, step, CPU, torch.float32)


def test_the_same_counters_give_the_same_numbers_whatever_was_drawn_before():
    first = draws(1, 5).keep((4, 6), 0.5, view=0)
    torch.rand(3)
    draws(2, 5).dropout((2, 2), 0.1, view=1)
    torch.testing.assert_close(draws(1, 5).keep((4, 6), 0.5, view=0), first)


def test_seed_step_view_and_purpose_each_change_the_numbers():
    reference = draws(1, 5).keep((50,), 0.5, view=0)
    for other in (draws(2, 5).keep((50,), 0.5, 0), draws(1, 6).keep((50,), 0.5, 0)):
        assert (other != reference).any()
    assert (draws(1, 5).keep((50,), 0.5, view=1) != reference).any()
    assert draws(1, 5).own(Stream.OFFSETS).random() != draws(1, 5).own(Stream.WINDOW).random()


def test_seeds_share_the_crop_schedule():
    same = [draws(seed, 3).shared(Stream.CROPS, 100).random() for seed in (0, 7)]
    assert same[0] == same[1]
    assert draws(0, 3).shared(Stream.CROPS, 101).random() != same[0]


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global state is what is tested
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    draws(1, 1).keep((3,), 0.5, 0)
    draws(1, 1).own(Stream.OFFSETS).random()
    assert torch.equal(torch.random.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_dropout_keeps_the_mean():
    factors = draws(0, 0).dropout((200, 200), 0.1, view=0)
    assert set(np.unique(factors.numpy()).round(4)) == {0.0, np.float32(1.1111)}
    assert abs(factors.mean().item() - 1) < 0.01


def test_an_epoch_shows_every_row_at_most_once_and_epochs_differ():
    epoch = [batch_rows(0, step, n=11, batch_size=4) for step in range(2)]
    assert len(set(np.concatenate(epoch))) == 8
    following = [batch_rows(0, step, n=11, batch_size=4) for step in range(2, 4)]
    assert not np.array_equal(np.concatenate(epoch), np.concatenate(following))
