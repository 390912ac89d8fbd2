"""GELU and its slope in one loop."""

import pytest
import torch
from torch.nn import functional as F

import naive
from softclt.encoders import gelu as module
from softclt.encoders.gelu import gelu


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def values():
    ends = torch.tensor([0.0, -0.0, 1e-30, 13.0, -13.0, 100.0, -100.0, 1e4, -1e4])
    return torch.cat([torch.linspace(-8, 8, 1003), ends])


def test_it_is_the_exact_gelu():
    x = values().requires_grad_()
    expected = torch.from_numpy(naive.gelu(values().double().numpy()))
    torch.testing.assert_close(gelu(x).double(), expected, rtol=1e-6, atol=1e-6)


def test_its_slope_is_that_of_the_exact_gelu():
    x, exact = values().requires_grad_(), values().double().requires_grad_()
    (slope,) = torch.autograd.grad(gelu(x).sum(), x)
    (expected,) = torch.autograd.grad(F.gelu(exact).sum(), exact)
    torch.testing.assert_close(slope.double(), expected, rtol=1e-6, atol=1e-6)


def test_gradients_come_in_any_layout():
    x = torch.randn(3, 4, 5).requires_grad_()
    weight = torch.randn(5, 4, 3)
    (ours,) = torch.autograd.grad((gelu(x.mT) * weight.transpose(0, 2).mT).sum(), x)
    (expected,) = torch.autograd.grad((F.gelu(x.mT) * weight.transpose(0, 2).mT).sum(), x)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


def test_what_is_not_a_number_stays_so():
    x = torch.tensor([1.0, torch.nan]).requires_grad_()
    assert gelu(x).isnan().tolist() == [False, True]


def test_other_precisions_and_many_threads_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(module, "_gelu_and_slope", None)  # a call would fail
    gelu(torch.ones(2, dtype=torch.float64, requires_grad=True))
    gelu(torch.ones(2))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    gelu(torch.ones(2, requires_grad=True))
