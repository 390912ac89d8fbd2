import numpy as np
import pytest
import torch

import naive
from softclt.losses.contextual import nt_xent
from softclt.methods.rivals.losses import (
    class_loss,
    consistency_loss,
    pseudo_label_loss,
    ramp_up,
    recognition_loss,
    relation_loss,
    triplet_loss,
)


@pytest.fixture
def logits(rng):
    return torch.tensor(3 * rng.normal(size=(2, 7, 4)))


@pytest.fixture
def others(rng):
    return torch.tensor(rng.normal(size=(2, 7, 4)))


def each(loss, *tensors, **options):
    """The plain-loop loss of each model."""
    models = zip(*(tensor.tolist() for tensor in tensors), strict=True)
    return torch.tensor([loss(*model, **options) for model in models], dtype=torch.float64)


def test_losses_are_those_of_plain_loops(logits, others, rng):
    torch.testing.assert_close(
        pseudo_label_loss(logits, others, 0.7),
        each(naive.pseudo_label_loss, logits, others, threshold=0.7),
    )
    torch.testing.assert_close(
        consistency_loss(logits, others), each(naive.consistency_loss, logits, others)
    )
    alike = torch.tensor(rng.uniform(size=(2, 7)))
    torch.testing.assert_close(
        relation_loss(logits[..., 0], others[..., 0], alike),
        each(naive.relation_loss, logits[..., 0], others[..., 0], alike),
    )
    kinds = torch.tensor(rng.integers(0, 4, size=(2, 7)))
    torch.testing.assert_close(
        recognition_loss(logits, kinds), each(naive.recognition_loss, logits, kinds)
    )


def test_loss_of_classes_is_the_mean_of_minus_the_logarithm_of_their_shares(logits):
    labels = torch.arange(14).view(2, 7) % 4
    expected = [
        -np.mean([np.log(naive.softmax(row)[k]) for row, k in zip(own, known, strict=True)])
        for own, known in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    torch.testing.assert_close(class_loss(logits, labels), torch.tensor(expected))


def test_series_that_fixmatch_is_not_sure_of_have_no_loss_and_no_gradient():
    sure, unsure = [9.0, 0.0, 0.0], [1.0, 0.9, 0.0]
    weak = torch.tensor([[sure, unsure]], requires_grad=True)
    strong = torch.tensor([[[0.3, 0.2, 0.1], [0.3, 0.2, 0.1]]], requires_grad=True)
    pseudo_label_loss(weak, strong, 0.95).sum().backward()
    assert weak.grad is None
    assert strong.grad[0, 0].abs().min() > 0
    assert strong.grad[0, 1].eq(0).all()


def test_soft_nt_xent_is_that_of_plain_loops_and_hard_at_the_identity(rng):
    z1, z2 = torch.tensor(rng.normal(size=(2, 5, 3)))
    weights = torch.tensor(rng.uniform(size=(5, 5))).fill_diagonal_(1.0)
    expected = naive.soft_nt_xent(z1.tolist(), z2.tolist(), weights.tolist(), 0.2)
    assert nt_xent(z1, z2, 0.2, weights).item() == pytest.approx(expected)
    eye = torch.eye(5, dtype=z1.dtype)
    torch.testing.assert_close(nt_xent(z1, z2, 0.2, eye), nt_xent(z1, z2, 0.2))


def test_a_ramp_rises_from_almost_nothing_to_one_and_stays():
    steps = torch.arange(0, 30, 5)
    rise = ramp_up(steps, 20).tolist()
    assert rise[0] == pytest.approx(np.exp(-5))
    assert rise == sorted(rise)
    assert rise[-2:] == [1.0, 1.0]
    assert ramp_up(torch.tensor(3), 0).item() == 1.0


def test_triplets_are_those_of_plain_loops_and_a_single_series_has_no_negative(rng):
    anchor, near, far = (torch.tensor(rng.normal(size=(2, 5, 3))) for _ in range(3))
    weights = torch.tensor(rng.uniform(size=(2, 5, 5)))
    for targets in (weights, None):
        own = torch.zeros(2, 5, 5) if targets is None else targets
        found = triplet_loss(anchor, near, far, targets)
        torch.testing.assert_close(found, each(naive.triplet_loss, anchor, near, far, own))
    alone = triplet_loss(anchor[:, :1], near[:, :1], far[:, :1], None)
    torch.testing.assert_close(alone, -(anchor * near)[:, 0].sum(dim=-1).sigmoid().log())


def test_an_undecided_encoder_has_twice_the_loss_of_a_coin():
    zero = torch.zeros(1, 4, 3)
    assert triplet_loss(zero, zero, zero, None).item() == pytest.approx(2 * np.log(2))
