import copy

import numpy as np
import pytest
import torch
from torch import nn

from softclt import inference
from softclt.encoders import TCCEncoder
from softclt.encoders.stacked import one_of, stacked
from softclt.encoders.tcc import BatchNorm

SMALL = {"widths": (4, 5, 6), "kernel_size": 8}


@pytest.fixture
def encoder():
    """With statistics as after some training."""
    torch.manual_seed(0)
    return trained(TCCEncoder(2, **SMALL).double())


def trained(encoder):
    for module in encoder.modules():
        if isinstance(module, BatchNorm):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return encoder.eval()


def series(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def ragged(lengths, d=2, t=40, before=0):
    """Series (1, B, D, T) of given lengths, with NaN around them."""
    x = torch.full((1, len(lengths), d, t), float("nan"), dtype=torch.float64)
    for i, length in enumerate(lengths):
        x[0, i, :, before : before + length] = series(d, length)
    return x


@pytest.mark.parametrize(
    ("steps", "kernel", "stride", "expected"),
    [
        (128, 8, 1, [65, 34, 18]),  # HAR
        (178, 8, 1, [90, 46, 24]),  # Epilepsy
        (500, 8, 1, [251, 127, 65]),  # FordA
        (80, 8, 1, [41, 22, 12]),  # PhalangesOutlinesCorrect
        (3000, 25, 3, [501, 252, 127]),  # sleepEDF
        (5120, 32, 4, [641, 322, 162]),  # FD
        (2, 8, 1, [2, 2, 2]),
    ],
)
def test_blocks_have_the_lengths_of_the_original(steps, kernel, stride, expected):
    encoder = TCCEncoder(1, (2, 2, 2), kernel, stride).eval()
    x = torch.randn(1, 1, 1, steps)
    assert [values.shape[2] for values, _ in encoder.blocks(x)] == expected
    assert [values.shape[2] for values, _ in encoder.blocks(x, complete=True)] == expected
    assert encoder(x[0]).shape == (1, steps, 2)


def test_the_network_for_har_has_the_size_that_the_original_has():
    encoder = TCCEncoder(9)
    n_encoder = sum(p.numel() for p in encoder.parameters())
    last = encoder.eval().blocks(torch.zeros(1, 1, 9, 128))[-1].values
    n_head = last[0, 0].numel() * 6 + 6
    assert n_encoder + n_head == 98_502


def torch_twin(encoder):
    """The same network made of torch's own layers."""
    layers = []
    for block in encoder.layers:
        _, n_out, n_in, kernel = block.weight.shape
        conv = nn.Conv1d(n_in, n_out, kernel, block.stride, kernel // 2, bias=False)
        norm = nn.BatchNorm1d(n_out)
        conv.weight.data = block.weight.data[0].clone()
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(norm, name).data = getattr(block.norm, name).data[0].clone()
        layers.append(nn.Sequential(conv, norm, nn.ReLU(), nn.MaxPool1d(2, 2, 1)))
    return nn.Sequential(*layers).double()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("complete", [True, False])
def test_blocks_and_their_statistics_are_those_of_torchs_layers(encoder, training, complete):
    twin = torch_twin(encoder).train(training)
    encoder.train(training)
    x = series(1, 5, 2, 31)
    for block, layer, h in zip(
        encoder.blocks(x, complete=complete), twin, outputs(twin, x[0]), strict=True
    ):
        torch.testing.assert_close(block.values[0].mT, h)
        assert layer[1].training is training
    for block, layer in zip(encoder.layers, twin, strict=True):
        torch.testing.assert_close(block.norm.running_mean[0], layer[1].running_mean)
        torch.testing.assert_close(block.norm.running_var[0], layer[1].running_var)


def outputs(twin, h):
    found = []
    for layer in twin:
        h = layer(h)
        found.append(h)
    return found


def test_statistics_are_of_real_steps_only():
    torch.manual_seed(0)
    norm = BatchNorm(3).double()
    x, real = series(4, 1, 3, 7), torch.zeros(4, 1, 1, 7, dtype=torch.float64)
    real[0, ..., :5], real[2, ..., 2] = 1.0, 1.0
    y = norm(x, real)
    kept = torch.cat([x[0, 0, :, :5], x[2, 0, :, 2:3]], dim=-1)  # (3, 6)
    mean, var = kept.mean(dim=-1), kept.var(dim=-1, unbiased=False)
    expected = (x - mean[:, None]) / (var[:, None] + 1e-5).sqrt()
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(norm.running_mean[0], 0.1 * mean)
    torch.testing.assert_close(norm.running_var[0], 0.9 + 0.1 * kept.var(dim=-1))


def test_one_value_is_normalised_to_the_bias():
    norm = BatchNorm(3)
    assert norm(torch.randn(1, 1, 3, 1)).abs().max() == 0
    assert norm.running_var.isfinite().all()


def test_what_pads_a_batch_changes_neither_features_nor_statistics():
    lengths = [31, 7, 19, 2, 31]
    x = ragged(lengths, t=31)
    found = []
    for before, behind in ((0, 0), (0, 13), (3, 8), (8, 1)):
        torch.manual_seed(0)
        encoder = TCCEncoder(2, **SMALL).double()
        padded = torch.nn.functional.pad(x, (before, behind), value=float("nan"))
        found.append((encoder.blocks(padded), encoder.state_dict()))
    for blocks, state in found[1:]:
        for (values, mask), (own, own_mask) in zip(blocks, found[0][0], strict=True):
            n = own.shape[2]
            torch.testing.assert_close(values[:, :, :n], own)
            assert torch.equal(mask[:, :, :n], own_mask)
            assert not mask[:, :, n:].any()
            assert not values[:, :, n:].any()
        for name, value in found[0][1].items():
            torch.testing.assert_close(state[name], value)


def test_a_series_in_a_batch_is_as_it_is_alone(encoder):
    lengths = [31, 7, 19, 2, 31]
    for before in (0, 5):
        x = ragged(lengths, before=before)
        together = encoder(x[0])
        for i, n in enumerate(lengths):
            alone = encoder(x[0, i : i + 1, :, before : before + n])
            torch.testing.assert_close(together[i : i + 1, before : before + n], alone)


def test_a_feature_is_real_if_it_sees_any_observed_step():
    encoder = TCCEncoder(1, (2,)).eval()
    x = torch.zeros(1, 1, 1, 60)
    x[..., 10:40] = float("nan")
    ((_, mask),) = encoder.blocks(x)
    # A step of the convolution sees 4 steps before its place and 3 behind; two are pooled.
    seen = [any(not 10 <= s < 40 for s in range(i - 4, i + 4) if 0 <= s < 60) for i in range(61)]
    expected = [any(seen[max(0, 2 * j - 1) : 2 * j + 1]) for j in range(31)]
    assert mask[0, 0].tolist() == expected
    assert 0 < sum(expected) < 31


def test_each_step_reads_the_pooled_step_over_it(encoder):
    x = series(1, 3, 2, 40)
    blocks = encoder.blocks(x)
    for layer, (values, _) in enumerate(blocks):
        z = encoder(x, layer=layer)
        for t in range(40):
            place = t
            for _ in range(layer + 1):
                place = (place + 1) // 2
            assert torch.equal(z[:, :, t], values[:, :, place])
    assert torch.equal(encoder.all_layers(x)[..., -6:], encoder(x))
    assert encoder.all_layers(x[0]).shape == (3, 40, 15)


def test_a_mask_hides_as_missing_values_do(encoder):
    x, mask = series(1, 3, 2, 40), torch.ones(1, 3, 40, dtype=torch.bool)
    mask[0, 1, 25:], mask[0, 2, 4:9] = False, False
    gone = x.masked_fill(~mask[:, :, None], float("nan"))
    for one, two in zip(encoder.blocks(x, mask), encoder.blocks(gone), strict=True):
        assert torch.equal(one.values, two.values)
        assert torch.equal(one.mask, two.mask)


def test_hidden_steps_have_zeros_and_are_still_there(encoder):
    x, keep = ragged([40, 20]), torch.ones(1, 2, 40, dtype=torch.bool)
    keep[..., 19] = False
    zeros = torch.where(keep[:, :, None] | x.isnan(), x, 0.0)
    assert torch.equal(encoder(x, keep), encoder(zeros))
    assert not torch.equal(encoder(x, keep), encoder(x))


def test_a_frozen_encoder_keeps_its_statistics(encoder):
    x = series(1, 3, 2, 40)
    expected = encoder(x)
    encoder.train().requires_grad_(False)
    before = copy.deepcopy(encoder.state_dict())
    torch.testing.assert_close(encoder(x), expected)
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    encoder.requires_grad_(True)
    assert not torch.allclose(encoder(x), expected)


def test_dropout_is_of_the_first_block_alone(encoder):
    x, shapes = series(1, 3, 2, 40), []

    def dropped(shape, probability):
        shapes.append((shape, probability))
        return torch.zeros(1, *shape, dtype=torch.float64)

    blocks = encoder.blocks(x, dropout=dropped)
    assert shapes == [((3, 4, 21), 0.35)]
    assert not blocks[0].values.any()
    assert blocks[1].values.any()


def test_a_stack_is_its_networks_side_by_side():
    torch.manual_seed(0)
    each = [trained(TCCEncoder(2, **SMALL).double()) for _ in range(2)]
    stack, x = stacked(each), torch.cat([ragged([40, 13]), ragged([9, 40])])
    for r, own in enumerate(each):
        torch.testing.assert_close(stack(x)[r], own(x[r]))
        again = one_of(stack, r)
        for name, value in own.state_dict().items():
            assert torch.equal(again.state_dict()[name], value)
    stack.train()
    stack.blocks(x)
    for r, own in enumerate(each):
        own.train().blocks(x[r : r + 1])
        for name, value in own.state_dict().items():
            torch.testing.assert_close(one_of(stack, r).state_dict()[name], value)


def test_inference_reads_all_levels(encoder, rng):
    X = rng.normal(size=(3, 2, 40)).astype(np.float32)
    X[1, :, 30:] = np.nan
    encoder = encoder.float()
    assert inference.encode(encoder, X).shape == (3, 6)
    steps = inference.encode(encoder, X, level="timestamp")
    assert np.isnan(steps[1, 30:]).all()
    causal = inference.encode(encoder, X, level="timestamp", causal=True, context=15)
    window = inference.encode(encoder, X[..., 5:21], level="timestamp")
    np.testing.assert_allclose(causal[:, 20], window[:, -1], atol=1e-5)
    begun = inference.encode(encoder, X[..., :4], level="timestamp")  # less than the context
    np.testing.assert_allclose(causal[:, 3], begun[:, -1], atol=1e-5)
    wide = inference.read_outs(encoder, X, [("max", "all"), ("max", "last")])
    assert wide["max", "all"].shape == (3, 15)
    np.testing.assert_array_equal(wide["max", "last"], inference.encode(encoder, X))
