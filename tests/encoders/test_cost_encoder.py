import numpy as np
import pytest
import torch

import naive
from softclt.encoders import CoSTEncoder, Piece
from softclt.encoders.cost import FourierLayer, TrendHeads

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "kernel_sizes": (1, 2, 4), "length": 9}


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return CoSTEncoder(2, **SMALL, queue_size=5).double()


def series(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def n_parameters(module, trained=None):
    chosen = [p for p in module.parameters() if trained in (None, p.requires_grad)]
    return sum(p.numel() for p in chosen)


def test_the_encoder_of_the_paper_has_the_sizes_that_the_paper_gives():
    with torch.device("meta"):
        encoder = CoSTEncoder(1)
    trend = 255 * 320 * 160 + 8 * 160
    head = 2 * (160 * 160 + 160)
    season = 101 * (320 * 160 + 160) * 2  # complex
    assert n_parameters(encoder, trained=True) == 637_248 + trend + head + season
    assert n_parameters(encoder, trained=False) == 637_248 + trend + head
    assert encoder.queue.shape == (1, 256, 160)


@pytest.mark.parametrize("length", [1, 2, 8, 9, 10, 25])
def test_every_step_of_any_length_has_a_representation(encoder, length):
    assert encoder(series(3, 2, length)).shape == (3, length, 6)


@pytest.mark.parametrize("length", [2, 5, 6])
@pytest.mark.parametrize("steps", [1, 4, 5, 6, 13])
def test_the_fourier_layer_is_a_map_of_each_coefficient_of_the_transform(length, steps):
    layer = FourierLayer(3, 2, length).double()
    z = series(1, steps, 2, 3)
    weight, bias = (torch.view_as_complex(p.detach())[0].numpy() for p in layer.parameters())
    out = layer(z).numpy(force=True)
    for b in range(2):
        expected = naive.fourier_layer(z[0, :, b].numpy(), weight, bias, length)
        np.testing.assert_allclose(out[0, :, b], expected, atol=1e-12)


def test_the_trend_is_the_mean_of_causal_convolutions():
    heads = TrendHeads(3, 2, (1, 2, 4)).double()
    z = series(1, 7, 2, 3)
    kernels = [w.detach()[0].numpy() for w in heads.weights]
    biases = [b.detach()[0].numpy() for b in heads.biases]
    for steps in (range(7), range(2, 3), range(6, 7)):
        out = heads.everywhere(z, steps).numpy(force=True)
        for b in range(2):
            expected = naive.trend(z[0, :, b].numpy(), kernels, biases)
            np.testing.assert_allclose(out[0, :, b], expected[steps.start : steps.stop], atol=1e-12)


def test_the_trend_of_a_step_sees_as_far_back_as_the_longest_kernel_and_nothing_later():
    heads = TrendHeads(3, 2, (1, 2, 4)).double()
    z = series(1, 12, 1, 3)
    changed = z.clone()
    changed[:, 5] += 1.0
    touched = heads.everywhere(z, range(12)) != heads.everywhere(changed, range(12))
    assert touched.any(dim=-1).flatten().nonzero().flatten().tolist() == [5, 6, 7, 8]


def test_keys_around_a_step_are_unit_vectors_of_the_trend_there(encoder):
    z = series(1, 11, 2, 6)
    centre = torch.tensor([[3, 9]])
    around = encoder.query.projected(z, centre, reach=2)
    trend = encoder.query.heads.everywhere(z, range(11))
    head = encoder.query.second(encoder.query.first(trend).relu())
    unit = head / head.norm(dim=-1, keepdim=True)
    assert around.shape == (1, 5, 2, 3)
    torch.testing.assert_close(around[:, :, 0], unit[:, 1:6, 0])
    torch.testing.assert_close(around[:, :4, 1], unit[:, 7:11, 1])  # the fifth is beyond the end


def test_padding_behind_a_series_changes_nothing(encoder):
    x = series(2, 2, 11)
    padded = torch.nn.functional.pad(x, (0, 17), value=float("nan"))
    torch.testing.assert_close(encoder(padded)[:, :11], encoder(x))
    encoder.query.trunk.mask_padding = False
    assert not torch.allclose(encoder(padded)[:, :11], encoder(x), atol=1e-6)


def test_layers_can_be_read_one_by_one_or_all_at_once(encoder):
    x, keep = series(2, 2, 12), torch.rand(2, 12) < 0.7
    side_by_side = [encoder(x, keep, layer=k) for k in range(encoder.n_layers)]
    torch.testing.assert_close(encoder.all_layers(x, keep), torch.cat(side_by_side, dim=-1))
    torch.testing.assert_close(encoder(x, keep, layer=3), encoder(x, keep))
    assert [z.shape[-1] for z in side_by_side] == [4, 4, 6, 6]


def test_pieces_of_a_row_give_what_each_gives_alone(encoder):
    x, keep = series(3, 2, 20), torch.rand(3, 20) < 0.7
    x[1, :, :3] = float("nan")
    pieces = [Piece(range(9), range(4, 9)), Piece(range(9, 20), range(12, 14))]
    left, right = encoder(x[..., :9], keep[:, :9]), encoder(x[..., 9:], keep[:, 9:])
    expected = torch.cat([left[:, 4:], right[:, 3:5]], dim=1)
    torch.testing.assert_close(encoder(x, keep, pieces=pieces), expected)


def test_the_last_steps_of_windows_are_those_of_each_window_alone(encoder):
    x = series(2, 2, 13)
    seen, hidden = encoder.last_steps(x, context=8, hide=True)
    for k in range(5):
        window, keep = x[..., k : k + 9], torch.ones(2, 9, dtype=torch.bool)
        torch.testing.assert_close(seen[:, k], encoder(window)[:, -1])
        keep[:, -1] = False
        torch.testing.assert_close(hidden[:, k], encoder(window, keep)[:, -1])


def test_new_keys_push_the_oldest_out_of_the_queue(encoder):
    before = encoder.queue.clone()
    first, second = series(1, 2, 3), series(1, 4, 3)
    encoder.enqueue(first)
    assert torch.equal(encoder.queue, torch.cat([first, before[:, :3]], dim=1))
    encoder.enqueue(second)
    assert torch.equal(encoder.queue, torch.cat([second, first[:, :1]], dim=1))
    encoder.enqueue(first, torch.tensor([[False, True]]))
    assert torch.equal(encoder.queue, torch.cat([first[:, 1:], second], dim=1))
    many = series(1, 9, 3)
    encoder.enqueue(many)
    assert torch.equal(encoder.queue, many[:, :5])


def test_the_slow_copy_begins_as_its_original_and_takes_a_part_of_every_difference(encoder):
    pairs = [(encoder.key.get_parameter(name), p) for name, p in encoder.query.named_parameters()]
    assert all(torch.equal(slow, quick) for slow, quick in pairs)
    with torch.no_grad():
        for _, quick in pairs:
            quick += torch.randn_like(quick)
    expected = [0.9 * slow + 0.1 * quick.detach() for slow, quick in pairs]
    encoder.follow(0.9)
    torch.testing.assert_close([slow.detach() for slow, _ in pairs], expected)
    encoder(series(2, 2, 12)).sum().backward()
    assert all(slow.grad is None for slow, _ in pairs)


def test_a_stack_takes_the_leading_axis(encoder):
    x = series(1, 3, 2, 12)
    dropout = torch.rand(1, 3, 12, 6, dtype=torch.float64)
    torch.testing.assert_close(encoder(x, dropout=dropout)[0], encoder(x[0], dropout=dropout[0]))
    torch.testing.assert_close(encoder(x, dropout=dropout), encoder(x) * dropout)
