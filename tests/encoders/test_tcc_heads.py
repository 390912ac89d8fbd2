import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softclt.encoders import TCCEncoder, TCCNetwork
from softclt.encoders.tcc import Features
from softclt.encoders.tcc_heads import HEADS, TemporalContrast
from softclt.losses.contextual import future_contrast


@pytest.fixture
def heads():
    torch.manual_seed(0)
    return TemporalContrast(5, hidden_dims=8, timesteps=3).double()


def features(n=4, t=9, lengths=None):
    values, mask = torch.randn(1, n, t, 5, dtype=torch.float64), None
    if lengths is not None:
        mask = torch.arange(t) < torch.tensor(lengths)[None, :, None]
        values = values * mask[..., None]
    return Features(values, mask)


def plain_summary(heads, z):
    """Of one series (t, C), by the textbook: one head after the other, nothing masked."""
    tokens = z @ heads.embed.weight[0] + heads.embed.bias[0]
    x = torch.cat([heads.token, tokens])
    for layer in heads.layers:
        h = F.layer_norm(x, x.shape[-1:])
        query, key, value = (h @ layer.qkv[0]).chunk(3, dim=-1)
        dims = x.shape[-1] // HEADS
        mixed = []
        for i in range(HEADS):
            own = slice(i * dims, (i + 1) * dims)
            weights = (query[:, own] @ key[:, own].T * x.shape[-1] ** -0.5).softmax(dim=-1)
            mixed.append(weights @ value[:, own])
        x = x + torch.cat(mixed, dim=-1) @ layer.out.weight[0] + layer.out.bias[0]
        h = F.layer_norm(x, x.shape[-1:])
        h = F.relu(h @ layer.first.weight[0] + layer.first.bias[0])
        x = x + h @ layer.second.weight[0] + layer.second.bias[0]
    return x[0]


@pytest.mark.parametrize("end", [0, 4, 8])
def test_the_summary_is_a_transformer_over_the_steps_up_to_the_end(heads, end):
    one, two = features(), features()
    ends = torch.full((1, 4), end)
    for view, past in zip((one, two), heads.summary(one, two, ends, None), strict=True):
        for series, own in zip(view.values[0], past[0], strict=True):
            unit = F.normalize(series, dim=-1)
            torch.testing.assert_close(own, plain_summary(heads, unit[: end + 1]))


@pytest.mark.parametrize("drawn", [0, 3, 5])
def test_each_view_predicts_the_next_steps_of_the_other(heads, drawn):
    one, two = features(), features()
    found = heads(one, two, torch.tensor([drawn]))
    pasts = heads.summary(one, two, torch.full((1, 4), drawn), None)
    expected = 0.0
    for other, past in zip((two, one), pasts, strict=True):
        ahead = F.normalize(other.values[:, :, drawn + 1 : drawn + 4], dim=-1)
        each = [past @ heads.future[0, k] + heads.future_bias[0, k] for k in range(3)]
        expected += future_contrast(ahead, torch.stack(each, dim=2))
    torch.testing.assert_close(found.loss, expected)
    assert [p.shape for p in found.projections] == [(1, 4, 32), (1, 4, 32)]


@pytest.mark.parametrize(("n_steps", "predicted", "places"), [(9, 3, 6), (4, 3, 1), (3, 1, 2)])
def test_short_features_have_half_of_their_steps_predicted(heads, n_steps, predicted, places):
    assert heads.n_predicted(n_steps) == predicted
    assert heads.n_places(n_steps) == places
    found = heads(features(t=n_steps), features(t=n_steps), torch.tensor([places - 1]))
    assert found.loss.isfinite().all()


def test_one_step_has_no_future(heads):
    found = heads(features(t=1), features(t=1), torch.tensor([0]))
    assert found.loss.item() == 0


@pytest.mark.parametrize("drawn", range(6))
def test_a_mask_of_all_steps_is_none(heads, drawn):
    one, two, step = features(), features(), torch.tensor([drawn])
    full = torch.ones(1, 4, 9, dtype=torch.bool)
    masked = heads(Features(one.values, full), Features(two.values, full), step)
    torch.testing.assert_close(masked.loss, heads(one, two, step).loss)


@pytest.mark.parametrize("drawn", [0, 2, 5])
def test_what_lies_behind_the_end_of_a_series_does_not_matter(heads, drawn):
    heads.eval()
    lengths = [9, 6, 2, 4]
    one, two = features(lengths=lengths), features(lengths=lengths)
    noisy = [
        Features(torch.where(view.mask[..., None], view.values, 7.0), view.mask)
        for view in (one, two)
    ]
    step = torch.tensor([drawn])
    plain, other = heads(one, two, step), heads(*noisy, step)
    torch.testing.assert_close(other.loss, plain.loss)
    torch.testing.assert_close(other.projections, plain.projections)


def test_the_projection_is_two_linear_maps_around_batch_statistics(heads):
    summary = torch.randn(1, 6, 8, dtype=torch.float64)
    norm = nn.BatchNorm1d(64).double()
    project = heads.project
    inner = norm(summary[0] @ project.first.weight[0] + project.first.bias[0])
    expected = F.relu(inner) @ project.second.weight[0] + project.second.bias[0]
    torch.testing.assert_close(project(summary)[0], expected)
    torch.testing.assert_close(project.norm.running_var[0], norm.running_var)


def test_dropout_comes_with_the_call_and_reaches_every_layer(heads):
    one, two, shapes = features(), features(), []

    def kept(shape, probability):
        shapes.append((shape, probability))
        return torch.ones(1, *shape, dtype=torch.float64)

    step = torch.tensor([4])
    torch.testing.assert_close(heads(one, two, step, kept).loss, heads(one, two, step).loss)
    assert shapes == [((8, 10, 8), 0.1), ((8, 10, 64), 0.1), ((8, 10, 8), 0.1)] * 4


def test_every_parameter_of_the_network_has_a_gradient():
    torch.manual_seed(0)
    network = TCCNetwork(TCCEncoder(2, (3, 4)), hidden_dims=8, timesteps=2)
    x = torch.randn(2, 1, 5, 2, 20)
    weak, strong = (network.encoder.blocks(view)[-1] for view in x)
    found = network.contrast(weak, strong, torch.tensor([3]))
    total = found.loss.sum() + sum((p * torch.randn_like(p)).sum() for p in found.projections)
    total.backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_the_network_encodes_as_its_encoder():
    network = TCCNetwork(TCCEncoder(2, (3, 4))).eval()
    x = torch.randn(3, 2, 20)
    assert torch.equal(network(x), network.encoder(x))
    assert torch.equal(network.all_layers(x), network.encoder.all_layers(x))
    assert (network.n_layers, network.output_dims) == (2, 4)


def test_what_is_dropped_does_not_depend_on_where_the_past_ends(heads):
    """A GPU embeds all steps and a CPU those of the past: both drop by the same numbers."""
    asked = []

    def dropout(shape, probability):
        asked.append(shape)
        return torch.ones(1, *shape, dtype=torch.float64)

    one, two = features(), features()
    for end in (0, 8):
        heads.summary(one, two, torch.full((1, 4), end), dropout)
    assert len(asked) == 2 * 3 * len(heads.layers)
    assert asked[: len(asked) // 2] == asked[len(asked) // 2 :]
    assert {n_tokens for _, n_tokens, _ in asked} == {1 + 9}
