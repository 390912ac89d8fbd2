import numpy as np
import pytest
import torch

import naive
from softclt.encoders import DilatedEncoder, Piece
from softclt.encoders.stacked import DilatedConv, _Products, _SideBySide, one_of, stacked


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return DilatedEncoder(2, output_dims=5, hidden_dims=4, depth=3).double().eval()


def n_parameters(encoder):
    return sum(p.numel() for p in encoder.parameters())


def test_the_encoder_of_the_paper_has_637248_parameters_and_64_more_per_channel():
    assert n_parameters(DilatedEncoder(1)) == 637_248
    assert n_parameters(DilatedEncoder(4)) == 637_248 + 3 * 64


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 30])
def test_output_equals_the_blocks_written_as_loops(encoder, length):
    x = torch.randn(1, 2, length, dtype=torch.float64)
    parameters = {name: p.numpy(force=True) for name, p in encoder.named_parameters()}
    expected = naive.dilated_encoder(parameters, x[0].numpy(), depth=3)
    np.testing.assert_allclose(encoder(x)[0].numpy(force=True), expected, atol=1e-12)


def test_a_step_sees_as_far_as_the_dilations_sum_up_to_and_no_further():
    encoder = DilatedEncoder(1, output_dims=2, hidden_dims=3, depth=2).double()
    reach = 2 * (2**3 - 1)  # two convolutions a block: 1 + 2 * reach steps in all
    x = torch.randn(1, 1, 101, dtype=torch.float64)
    changed = x.clone()
    changed[..., 50] += 1.0
    touched = (encoder(x) != encoder(changed)).any(dim=-1)[0].nonzero().flatten()
    assert touched.min() == 50 - reach
    assert touched.max() == 50 + reach


def test_a_missing_step_is_the_same_as_a_hidden_one(encoder):
    x = torch.randn(3, 2, 20, dtype=torch.float64)
    keep = torch.ones(3, 20, dtype=torch.bool)
    keep[:, 7] = False
    missing = x.clone()
    missing[:, 0, 7] = float("nan")  # one channel is enough
    torch.testing.assert_close(encoder(missing), encoder(x, keep=keep))
    assert not torch.allclose(encoder(x, keep=keep), encoder(x))


@pytest.mark.parametrize("before", [0, 3])
def test_padding_at_either_end_changes_nothing_inside(encoder, before):
    x = torch.randn(2, 2, 11, dtype=torch.float64)
    padded = torch.full((2, 2, 30), float("nan"), dtype=torch.float64)
    padded[..., before : before + 11] = x
    torch.testing.assert_close(encoder(padded)[:, before : before + 11], encoder(x))


def test_padding_gets_in_when_the_mask_is_off(encoder):
    encoder.mask_padding = False
    x = torch.randn(2, 2, 11, dtype=torch.float64)
    padded = torch.nn.functional.pad(x, (0, 9), value=float("nan"))
    assert not torch.allclose(encoder(padded)[:, :11], encoder(x), atol=1e-6)


def test_layers_can_be_read_one_by_one_or_all_at_once(encoder):
    x = torch.randn(2, 2, 12, dtype=torch.float64)
    side_by_side = torch.cat([encoder(x, layer=k) for k in range(encoder.n_layers)], dim=-1)
    torch.testing.assert_close(encoder.all_layers(x), side_by_side)
    torch.testing.assert_close(encoder(x, layer=3), encoder(x))


def test_dropout_factors_scale_the_output(encoder):
    x = torch.randn(2, 2, 12, dtype=torch.float64)
    factors = torch.rand(2, 12, 5, dtype=torch.float64)
    torch.testing.assert_close(encoder(x, dropout=factors), encoder(x) * factors)


def test_a_stack_of_networks_gives_what_each_gives_alone():
    torch.manual_seed(1)
    networks = [DilatedEncoder(2, output_dims=5, hidden_dims=4, depth=3).double() for _ in range(3)]
    x = torch.randn(3, 4, 2, 20, dtype=torch.float64)
    x[1, 2, :, 15:] = float("nan")
    keep = torch.rand(3, 4, 20) < 0.7
    together = stacked(networks)(x, keep=keep)
    for r, network in enumerate(networks):
        torch.testing.assert_close(together[r], network(x[r], keep=keep[r]))
        alone = one_of(stacked(networks), r)
        torch.testing.assert_close(alone(x[r]), network(x[r]))


@pytest.mark.parametrize("give", [range(7), range(4, 7), range(2), range(3, 5)])
@pytest.mark.parametrize("dilation", [1, 3, 6, 7, 20])
@pytest.mark.slow
def test_gradients_of_the_convolution_are_those_of_its_sums(dilation, give):
    conv = DilatedConv(2, 3, dilation).double()
    x = torch.randn(2, 7, 2, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 3, 2, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    plus = torch.randn(2, len(give), 2, 3, dtype=torch.float64, requires_grad=True)

    def run(x, weight, bias, plus=None):
        parameters = {"weight": weight, "bias": bias}
        return torch.func.functional_call(conv, parameters, (x, [range(7)], [give], plus))

    assert torch.autograd.gradcheck(run, (x, weight, bias))
    assert torch.autograd.gradcheck(run, (x, weight, bias, plus))


@pytest.mark.parametrize("give", [range(7), range(4, 7), range(2), range(3, 5)])
@pytest.mark.parametrize("have", [range(7), range(1, 7), range(5)])
@pytest.mark.parametrize("dilation", [1, 3, 6])
def test_shifted_copies_side_by_side_give_what_a_product_for_each_tap_gives(dilation, have, give):
    x = torch.randn(2, len(have), 4, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 3, 2, 3, dtype=torch.float64, requires_grad=True)
    start = torch.randn(2, len(give), 4, 3, dtype=torch.float64, requires_grad=True)
    inputs = (x, weight, start)
    taps = DilatedConv(2, 3, dilation)._taps([have], [give])
    one_by_one = _Products.apply(*inputs, taps)
    side_by_side = _SideBySide.apply(*inputs, dilation, have, give)
    torch.testing.assert_close(side_by_side, one_by_one)
    grad = torch.randn_like(start)
    torch.testing.assert_close(
        torch.autograd.grad(side_by_side, inputs, grad),
        torch.autograd.grad(one_by_one, inputs, grad),
    )


def test_a_convolution_reads_its_input_right_however_it_lies_in_memory():
    conv, runs = DilatedConv(3, 3, 2).double(), [range(7)]
    x = torch.randn(1, 4, 7, 3, dtype=torch.float64).transpose(1, 2)
    torch.testing.assert_close(conv(x, runs, runs, x), conv(x.contiguous(), runs, runs) + x)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (range(4, 9), range(9, 14)),
        (range(9), range(12, 40)),
        (range(8, 9), range(20, 22)),
        (range(3), range(30, 40)),
    ],
)
def test_pieces_of_a_row_give_what_each_gives_alone_and_so_do_their_gradients(encoder, left, right):
    x = torch.randn(3, 2, 40, dtype=torch.float64)  # two series of 9 and 31 steps
    x[0, :, :3] = x[1, :, -2:] = x[2, 0, 20] = float("nan")
    keep = torch.rand(3, 40) < 0.5
    apart = torch.cat([encoder(x[..., :9], keep[:, :9]), encoder(x[..., 9:], keep[:, 9:])], dim=1)
    expected = torch.cat([apart[:, left], apart[:, right]], dim=1)
    pieces = [Piece(range(9), left), Piece(range(9, 40), right)]
    together = encoder(x, keep=keep, pieces=pieces)
    torch.testing.assert_close(together, expected)
    parameters = list(encoder.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(together.square().sum(), parameters),
        torch.autograd.grad(expected.square().sum(), parameters),
    )


def test_what_is_said_to_be_complete_is_not_looked_at(encoder):
    x = torch.randn(2, 2, 12, dtype=torch.float64)
    keep = torch.rand(2, 12) < 0.5
    torch.testing.assert_close(encoder(x, keep=keep, complete=True), encoder(x, keep=keep))
    torch.testing.assert_close(encoder(x, complete=True), encoder(x))
    x[0, 0, 3] = float("nan")
    assert encoder(x, complete=True).isnan().any()
