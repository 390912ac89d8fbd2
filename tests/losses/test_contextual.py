import pytest
import torch

import naive
from softclt.losses.contextual import future_contrast, nt_xent, supervised_contrast

# Worked by hand in float64, from the definitions.
ZI = torch.tensor([[1.0, 0.5], [-0.5, 1.0], [0.25, -1.0]], dtype=torch.float64)
ZJ = torch.tensor([[0.75, 0.5], [-0.5, 0.5], [0.5, -1.0]], dtype=torch.float64)


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def test_the_worked_values_come_out():
    assert nt_xent(ZI, ZJ, 0.2).item() == pytest.approx(0.013995390597190868, rel=1e-12)
    labels = torch.tensor([0, 1, 0])
    found = supervised_contrast(ZI, ZJ, labels, 0.2).item()
    assert found == pytest.approx(0.5530060316126861, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("temperature", [0.2, 1.5])
def test_contrast_of_views_equals_its_loops_for_each_of_a_stack(n, temperature):
    z1, z2 = normal(2, n, 3), normal(2, n, 3)
    loss = nt_xent(z1, z2, temperature)
    assert loss.shape == (2,)
    for r in range(2):
        expected = naive.nt_xent(z1[r].tolist(), z2[r].tolist(), temperature)
        assert loss[r].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 0], [-1, 1, -1, 1, 0], [-1] * 5])
def test_contrast_of_classes_equals_its_loops_and_unknown_is_no_class(labels):
    z1, z2 = normal(2, 5, 3), normal(2, 5, 3)
    loss = supervised_contrast(z1, z2, torch.tensor(labels), 0.2)
    for r in range(2):
        expected = naive.supervised_contrast(z1[r].tolist(), z2[r].tolist(), labels, 0.2)
        assert loss[r].item() == pytest.approx(expected, rel=1e-9)
    stacked = torch.tensor([labels, labels])
    torch.testing.assert_close(supervised_contrast(z1, z2, stacked, 0.2), loss)


@pytest.mark.parametrize("missing", [False, True])
def test_contrast_of_futures_equals_its_loops(missing):
    future, predicted = normal(2, 4, 3, 5), normal(2, 4, 3, 5)
    real = torch.ones(2, 4, 3, dtype=torch.bool)
    if missing:
        real[0, 1, 1:], real[1, :, 2], real[1, 3] = False, False, False
    loss = future_contrast(future, predicted, real if missing else None)
    torch.testing.assert_close(future_contrast(future, predicted, real), loss)
    for r in range(2):
        expected = naive.future_contrast(future[r].tolist(), predicted[r].tolist(), real[r])
        assert loss[r].item() == pytest.approx(expected, rel=1e-9)


def test_nothing_real_is_a_loss_of_zero_with_gradients():
    future, predicted = normal(3, 2, 5).requires_grad_(), normal(3, 2, 5).requires_grad_()
    loss = future_contrast(future, predicted, torch.zeros(3, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert future.grad.abs().max() == 0
    assert predicted.grad.isfinite().all()


def test_gradients_are_right():
    z = normal(2, 4, 3).requires_grad_()
    labels = torch.tensor([0, -1, 0, 1])
    real = torch.tensor([[True, False], [True, True], [False, True]])
    assert torch.autograd.gradcheck(lambda z: nt_xent(z[0], z[1], 0.5), z)
    assert torch.autograd.gradcheck(lambda z: supervised_contrast(z[0], z[1], labels, 0.5), z)
    futures = normal(2, 3, 2, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: future_contrast(z[0], z[1], real), futures)


def test_half_precision_is_summed_up_in_float32():
    z1, z2 = normal(8, 16), normal(8, 16)
    half = nt_xent(z1.bfloat16(), z2.bfloat16(), 0.2)
    assert half.dtype == torch.float32
    same = nt_xent(z1.bfloat16().double(), z2.bfloat16().double(), 0.2)
    assert half.item() == pytest.approx(same.item(), rel=1e-5)
