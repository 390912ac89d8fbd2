"""Windows are read from both ends, alone, and as the series' own steps say."""

import numpy as np
import pytest
import torch
from torch import nn

import naive
from softclt.encoders import Piece, WindowEncoder


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return WindowEncoder(2, window=5, output_dims=3, hidden_dims=4).double()


def by_hand(encoder, x):
    """Of one window ``(D, W)``, by torch's own recurrent cell, step by step."""

    def read_with(units):
        cell = nn.GRUCell(2, 4).double()
        with torch.no_grad():
            for own, other in zip(cell.parameters(), units.parameters(), strict=True):
                own.copy_(other[0])

        def read(steps):
            held = torch.zeros(1, 4, dtype=torch.float64)
            for step in steps:
                held = cell(step[None], held)
            return held[0]

        return read

    steps = list(torch.as_tensor(x.T))
    ends = [
        naive.bidirectional_ends(steps, read_with(encoder.forwards))[0],
        naive.bidirectional_ends(steps, read_with(encoder.backwards))[1],
    ]
    return torch.cat(ends) @ encoder.out.weight[0] + encoder.out.bias[0]


def test_a_window_is_read_to_both_ends(encoder, rng):
    x = torch.tensor(rng.normal(size=(3, 2, 5)))
    z = encoder(x)
    for own, vectors in zip(x, z, strict=True):
        torch.testing.assert_close(vectors, by_hand(encoder, own.numpy()).expand(5, 3))


def test_the_last_window_ends_with_the_series(encoder, rng):
    x = torch.tensor(rng.normal(size=(2, 2, 13)))
    z = encoder(x)
    windows = [x[..., 0:5], x[..., 5:10], x[..., 8:13]]
    wanted = [
        encoder(window)[:, :1].expand(-1, n, -1)
        for window, n in zip(windows, (5, 5, 3), strict=True)
    ]
    torch.testing.assert_close(z, torch.cat(wanted, dim=1))


@pytest.mark.parametrize("length", [1, 3, 5, 7, 12])
def test_padding_changes_nothing(encoder, rng, length):
    x = torch.tensor(rng.normal(size=(1, 2, length)))
    padded = torch.cat([x, x.new_full((1, 2, 6), np.nan)], dim=-1)
    torch.testing.assert_close(encoder(padded)[:, :length], encoder(x))


def test_a_missing_step_and_a_hidden_one_are_zero(encoder, rng):
    x = torch.tensor(rng.normal(size=(1, 2, 9)))
    gap, zero = x.clone(), x.clone()
    gap[0, 1, 4], zero[0, :, 4] = np.nan, 0.0
    keep = torch.arange(9)[None] != 4
    for other in (encoder(gap), encoder(x, keep)):
        torch.testing.assert_close(other, encoder(zero))


def test_pieces_are_series_of_their_own(encoder, rng):
    x = torch.tensor(rng.normal(size=(1, 2, 14)))
    z = encoder(x, pieces=[Piece(range(8), range(6, 8)), Piece(range(8, 14), range(8, 9))])
    apart = [encoder(x[..., :8])[:, 6:8], encoder(x[..., 8:])[:, :1]]
    torch.testing.assert_close(z, torch.cat(apart, dim=1))


def test_a_stack_is_each_network_by_itself(rng):
    from softclt.encoders.stacked import stacked

    torch.manual_seed(1)
    one, two = (WindowEncoder(2, 5, 3, 4).double() for _ in range(2))
    x = torch.tensor(rng.normal(size=(2, 3, 2, 11)))
    torch.testing.assert_close(stacked([one, two])(x), torch.stack([one(x[0]), two(x[1])]))
