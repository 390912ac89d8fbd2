"""Gradients, masks, precision and memory of the kernel behind all losses."""

import math
from functools import partial
from itertools import product

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from loss_cases import LOSSES, PATHS, assignments, by_lag, some_mask, views
from softclt import functional as F
from softclt.losses import contrast


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    for name, value in PATHS[request.param].items():
        monkeypatch.setattr(contrast, name, value)


@pytest.fixture(params=LOSSES)
def loss_of(request):
    return LOSSES[request.param]


def value_and_gradients(loss_of, z1, z2, *rest):
    loss = loss_of(z1, z2, *rest)
    return [loss.detach(), *torch.autograd.grad(loss.sum(), (z1, z2))]


# ------------------------------------------------------------------------------------- gradients


@pytest.mark.slow
def test_gradient_is_exact(loss_of, path):
    for mask, normalize in product([None, some_mask(3, 5)], [False, True]):
        own = partial(loss_of, mask=mask, normalize=normalize)
        assert torch.autograd.gradcheck(own, views(3, 5, 2))


@pytest.mark.slow
def test_gradient_is_exact_with_leading_axes(path):
    z1, z2 = views(2, 5, 2, lead=(2,))
    weights = assignments(2, lead=(2,)), assignments(5, lead=(2,))
    for loss, w in zip((F.soft_instance_loss, F.soft_temporal_loss), weights, strict=True):
        assert torch.autograd.gradcheck(lambda a, b, loss=loss, w=w: loss(a, b, w), (z1, z2))


@pytest.mark.parametrize("kind", [k for k in PATHS if k != "whole"])
def test_every_path_gives_the_same(loss_of, kind, monkeypatch):
    z1, z2 = views(3, 11, 4)
    mask = some_mask(3, 11)
    whole = value_and_gradients(loss_of, z1, z2, mask, True)
    for name, value in PATHS[kind].items():
        monkeypatch.setattr(contrast, name, value)
    for a, b in zip(whole, value_and_gradients(loss_of, z1, z2, mask, True), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("normalize", [False, True], ids=["", "normalized"])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("length", [70, 130, 200])
def test_similarities_above_the_diagonal_are_enough(length, soft, normalize, monkeypatch):
    monkeypatch.setattr(contrast, "_DENSE", 0)
    case = *views(2, length, 3), by_lag(length) if soft else None, None, normalize
    half = value_and_gradients(F.soft_temporal_loss, *case)
    monkeypatch.setattr(contrast, "_one_shift", lambda z: None)
    for a, b in zip(half, value_and_gradients(F.soft_temporal_loss, *case), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)


def test_one_shift_is_refused_where_an_anchor_would_be_lost():
    z = torch.ones(1, 8, 1)
    assert contrast._one_shift(z) == 1.0
    z[:, ::4] = 20.0  # 400 to its positive, while the others have 1
    assert contrast._one_shift(z) is None
    assert contrast._one_shift(torch.full_like(z, math.nan)) is None


@pytest.mark.parametrize("length", [1, 2, 6, 100, 150])
@pytest.mark.parametrize("masked", [False, True], ids=["", "masked"])
def test_a_band_over_many_blocks_equals_the_matrix(length, masked, monkeypatch):
    z1, z2 = views(2, 150, 3)
    mask = some_mask(2, 150) if masked else None
    monkeypatch.setattr(contrast, "_BLOCK", 150 * 64)

    def loss_of(z1, z2):
        return F.soft_temporal_loss(z1, z2, by_lag(150, tau=0.01)[:length], mask)

    band = value_and_gradients(loss_of, z1, z2)
    monkeypatch.setattr(contrast, "_DENSE", 150)
    for a, b in zip(band, value_and_gradients(loss_of, z1, z2), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-14)


def test_gradient_is_scaled_by_what_comes_from_above_and_flows_twice():
    z1, z2 = views(3, 4, 2)
    loss = LOSSES["hierarchical"](z1, z2)
    once = torch.autograd.grad(loss, z1, retain_graph=True)[0]
    twice = torch.autograd.grad(-2.5 * loss, z1)[0]
    torch.testing.assert_close(twice, -2.5 * once)


def test_one_view_may_be_without_gradient():
    z1, z2 = views(3, 4, 2)
    both = torch.autograd.grad(LOSSES["hierarchical"](z1, z2), z1)[0]
    one = torch.autograd.grad(LOSSES["hierarchical"](z1, z2.detach()), z1)[0]
    torch.testing.assert_close(one, both)


def test_without_gradient_the_value_is_the_same(loss_of, path):
    z1, z2 = views(3, 6, 2)
    with torch.no_grad():
        quiet = loss_of(z1, z2)
    assert not quiet.requires_grad
    assert quiet.item() == pytest.approx(loss_of(z1, z2).item(), rel=1e-14)


def test_no_gradient_flows_into_the_weights():
    z1, z2 = views(3, 4, 2)
    w = assignments(3).requires_grad_()
    F.soft_instance_loss(z1, z2, w).backward()
    assert w.grad is None


# ---------------------------------------------------------------------- nothing to contrast, masks


def test_one_series_has_an_instance_loss_of_exactly_zero():
    z1, z2 = views(1, 6, 3)
    loss, *gradients = value_and_gradients(F.soft_instance_loss, z1, z2, torch.ones(1, 1))
    assert loss.item() == 0.0
    assert all((g == 0).all() for g in gradients)
    temporal, joint = (F.hierarchical_loss(z1, z2, lam=lam).item() for lam in (0.0, 0.5))
    assert joint == pytest.approx(temporal / 2)


@pytest.mark.parametrize("weights", [None, torch.ones(1), torch.ones(1, 1)])
def test_one_step_has_a_temporal_loss_of_exactly_zero(weights):
    z1, z2 = views(3, 1, 3)
    loss, *gradients = value_and_gradients(F.soft_temporal_loss, z1, z2, weights)
    assert loss.item() == 0.0
    assert all((g == 0).all() for g in gradients)


@pytest.mark.parametrize("scale", [1.0, 1e300])
def test_nothing_to_contrast_at_any_level_is_zero_with_gradient_zero(scale):
    for shape, lam in (((3, 1, 2), 0.0), ((1, 5, 2), 1.0), ((1, 1, 2), 0.5)):
        z1, z2 = ((scale * z).detach().requires_grad_() for z in views(*shape))
        loss, *gradients = value_and_gradients(
            lambda a, b, lam=lam: F.hierarchical_loss(a, b, lam=lam), z1, z2
        )
        assert loss.item() == 0.0
        assert all((g == 0).all() for g in gradients)


@pytest.mark.parametrize("normalize", [False, True])
def test_all_masked_is_zero_with_gradient_zero(loss_of, normalize, path):
    z1, z2 = views(3, 4, 2)
    mask = torch.zeros(3, 4, dtype=torch.bool)
    loss, *gradients = value_and_gradients(loss_of, z1, z2, mask, normalize)
    assert loss.item() == 0.0
    assert all((g == 0).all() for g in gradients)


@pytest.mark.parametrize("normalize", [False, True])
def test_an_anchor_with_only_its_positive_has_exactly_nothing(loss_of, normalize, path):
    mask = torch.zeros(3, 8, dtype=torch.bool)
    mask[1, 4] = True
    for dtype in (torch.float32, torch.float64):
        z1, z2 = (z.detach().to(dtype).requires_grad_() for z in views(3, 8, 5))
        loss, *gradients = value_and_gradients(loss_of, z1, z2, mask, normalize)
        assert loss.item() == 0.0
        assert all((g == 0).all() for g in gradients)


@pytest.mark.parametrize("normalize", [False, True])
def test_content_of_masked_steps_changes_nothing(loss_of, normalize, path):
    both = views(3, 7, 2)
    mask = some_mask(3, 7)
    before = value_and_gradients(loss_of, *both, mask, normalize)
    for filling in (1e9, math.nan, math.inf, -math.inf):
        filled = [z.detach().masked_fill(~mask[..., None], filling) for z in both]
        after = value_and_gradients(loss_of, *(z.requires_grad_() for z in filled), mask, normalize)
        for a, b in zip(before, after, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        assert all((g[~mask] == 0).all() for g in after[1:]), filling


def test_a_mask_that_is_true_everywhere_changes_nothing(loss_of, path):
    z1, z2 = views(3, 7, 2)
    with_mask = value_and_gradients(loss_of, z1, z2, torch.ones(3, 7, dtype=torch.bool))
    for a, b in zip(with_mask, value_and_gradients(loss_of, z1, z2), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_a_series_that_is_masked_is_not_in_the_batch(path):
    z1, z2 = views(4, 6, 3)
    w = assignments(4)
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[2] = False
    rest = [0, 1, 3]
    masked = F.hierarchical_loss(z1, z2, w, by_lag, mask=mask)
    without = F.hierarchical_loss(z1[rest], z2[rest], w[rest][:, rest], by_lag)
    assert masked.item() == pytest.approx(without.item(), rel=1e-12)


# -------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_accumulated_in_float32(loss_of, dtype, autocast):
    z1, z2 = ((3 * z).detach().to(dtype).requires_grad_() for z in views(4, 33, 16))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = loss_of(z1, z2)
    loss.backward()
    assert loss.dtype == torch.float32
    expected = value_and_gradients(
        loss_of, *(z.detach().double().requires_grad_() for z in (z1, z2))
    )
    assert loss.item() == pytest.approx(expected[0].item(), rel=1e-5)
    for z, gradient in zip((z1, z2), expected[1:], strict=True):
        assert z.grad.dtype == dtype
        torch.testing.assert_close(z.grad.double(), gradient, rtol=2e-2, atol=1e-4)


def test_views_of_different_precision_meet_in_the_better_one():
    z1, z2 = views(2, 4, 3)
    assert F.soft_temporal_loss(z1, z2.float()).dtype == torch.float64
    assert F.soft_temporal_loss(z1.float(), z2.half()).dtype == torch.float32


def test_similarities_of_ten_thousand_stay_finite_and_right(loss_of):
    signs = torch.randint(0, 2, (2, 4, 9, 1), generator=torch.Generator().manual_seed(0)) * 2.0 - 1
    z1, z2 = (signs * 100.0).float()
    z1.requires_grad_(), z2.requires_grad_()
    loss, *gradients = value_and_gradients(loss_of, z1, z2)
    exact = loss_of(z1.double(), z2.double()).item()
    assert exact > 1e3  # similarities of +1e4 and -1e4 in one softmax
    assert loss.item() == pytest.approx(exact, rel=1e-5)
    assert all(torch.isfinite(g).all() for g in gradients)


def test_the_largest_half_precision_embeddings_stay_finite(loss_of):
    z1, z2 = (torch.full((3, 6, 8), 6e4, dtype=torch.float16).requires_grad_() for _ in range(2))
    loss = loss_of(z1, z2)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z1.grad).all()


@pytest.mark.slow
def test_float32_is_right_to_five_digits_at_three_thousand_steps():
    z1, z2 = views(1, 3000, 8)
    for loss_of in (
        lambda a, b: F.soft_temporal_loss(a, b, by_lag(3000, tau=0.02)),
        lambda a, b: F.hierarchical_loss(a, b, None, by_lag),
    ):
        with torch.no_grad():
            exact, single = loss_of(z1, z2), loss_of(z1.float(), z2.float())
        assert single.dtype == torch.float32
        assert single.item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_callers_matmul_precision_is_put_back(precision):
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(precision)
        LOSSES["hierarchical"](*views(3, 4, 2))
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(
    not hasattr(torch.backends.mkldnn, "matmul"),
    reason="torch 2.9 brought a setting for each backend",
)
def test_a_matmul_precision_set_for_one_backend_is_put_back():
    for backend in (torch.backends.cuda, torch.backends.mkldnn):
        before = backend.matmul.fp32_precision
        try:
            backend.matmul.fp32_precision = "tf32"
            LOSSES["hierarchical"](*views(3, 4, 2))
            assert backend.matmul.fp32_precision == "tf32"
        finally:
            backend.matmul.fp32_precision = before


# ----------------------------------------------------------------------------------------- memory


class LargestTensor(TorchDispatchMode):
    """Elements of the largest tensor that any operation makes."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.elements = max(self.elements, made.untyped_storage().nbytes() // made.itemsize)
        return made


@pytest.mark.parametrize("reach", [1, 20, 300])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.slow
def test_no_matrix_of_all_steps_is_ever_made(reach, masked, monkeypatch):
    n, t, m, block = 2, 300, 4, 20_000
    monkeypatch.setattr(contrast, "_WHOLE", block)
    monkeypatch.setattr(contrast, "_BLOCK", block)
    z1, z2 = views(n, t, m)
    mask = some_mask(n, t) if masked else None
    with LargestTensor() as largest:
        F.soft_temporal_loss(z1, z2, by_lag(t)[:reach], mask).backward()
    assert 2 * n * t * m <= largest.elements <= max(block, 64 * (64 + 2 * reach)) < t * t
