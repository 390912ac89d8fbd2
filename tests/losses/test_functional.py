"""The losses against the equations as loops, the worked cases, and what must hold for any input."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from loss_cases import LOSSES, PATHS, assignments, by_lag, some_mask, views
from softclt import SoftTemporalLoss
from softclt import functional as F
from softclt.assignments import assignments as all_assignments
from softclt.assignments import temporal_weights
from softclt.losses import contrast

GOLDEN = json.loads((Path(__file__).parents[1] / "files" / "golden_losses.json").read_text())
CASES = [
    pytest.param(case, id=f"{case['name']}-{case['convention'].split(':')[0].split()[0]}")
    for case in GOLDEN["cases"]
]
TOLERANCE = {torch.float64: {"rel": 0, "abs": 1e-10}, torch.float32: {"rel": 1e-5}}
SHAPES = [(1, 5, 3), (2, 7, 4), (5, 13, 3), (3, 1, 4), (2, 2, 2)]  # one series; odd; one step


@pytest.fixture(params=TOLERANCE, ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    """Every way through the kernel: similarities whole or in rows, lag weights dense or not."""
    for name, value in PATHS[request.param].items():
        monkeypatch.setattr(contrast, name, value)


def lag_matrix(t, k=0):
    return naive.lag_matrix(by_lag(t, k).__getitem__, t)


def arrays(*tensors):
    return [x.detach().numpy() for x in tensors]


TWINS = {
    "instance": lambda z1, z2, *rest: naive.instance_loss(z1, z2, assignments(len(z1)), *rest),
    "temporal": lambda z1, z2, *rest: naive.temporal_loss(z1, z2, assignments(z1.shape[1]), *rest),
    "temporal by lag": lambda z1, z2, *rest: naive.temporal_loss(
        z1, z2, lag_matrix(z1.shape[1]), *rest
    ),
    "hierarchical": lambda z1, z2, *rest: naive.hierarchical_loss(
        z1, z2, assignments(len(z1)), lag_matrix, 0.3, *rest
    ),
    "hard": lambda z1, z2, *rest: naive.hierarchical_loss(
        z1, z2, np.eye(len(z1)), lambda t, k: np.eye(t), 0.3, *rest
    ),
}


@pytest.fixture(params=LOSSES)
def loss_name(request):
    return request.param


@pytest.fixture
def loss_of(loss_name):
    return LOSSES[loss_name]


# ------------------------------------------------------------------------------------ worked cases


def golden_case(case, dtype):
    """Views, instance weights, and weights by lag as a function of the growth of tau."""
    tau, cut = case["tau_T"], 1e-6 if case["convention"].startswith("official") else 0.0

    def temporal(growth):
        def weights(t, k):
            values = [2 / (1 + math.exp(tau * growth**k * lag)) for lag in range(t)]
            return torch.tensor([w if w >= cut else 0.0 for w in values], dtype=dtype)

        return None if tau is None else weights

    z1, z2, w = (torch.tensor(case[name], dtype=dtype) for name in ("z1", "z2", "w_I"))
    return z1, z2, None if case["tau_I"] is None else w, temporal


def test_the_worked_cases_are_a_faithful_copy(shared_folder):
    source = json.loads((shared_folder / "golden" / "golden_losses.json").read_text())
    assert len(source["cases"]) == len(GOLDEN["cases"]) == 31
    for copied, case in zip(GOLDEN["cases"], source["cases"], strict=True):
        assert copied == {name: case[name] for name in copied}
    others = set(GOLDEN) - {"about", "cases"}
    assert {name: GOLDEN[name] for name in others} == {name: source[name] for name in others}


@pytest.mark.parametrize("case", CASES)
def test_loops_have_the_worked_value_of_every_anchor(case):
    z1, z2 = np.array(case["z1"]), np.array(case["z2"])
    instance = naive.instance_losses(z1, z2, case["w_I"])
    temporal = naive.temporal_losses(z1, z2, case["w_T_level0"])
    np.testing.assert_allclose(instance, case["l_I_per_anchor"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(temporal, case["l_T_per_anchor"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_every_level_has_the_worked_values(case, dtype):
    z1, z2, w, temporal = golden_case(case, dtype)
    assert (case["hierarchical_levels"][0]["L_I"], case["hierarchical_levels"][0]["L_T"]) == (
        pytest.approx((case["L_I"], case["L_T"]), abs=1e-12)
    )
    for level in case["hierarchical_levels"]:
        t = level["T"]
        loss = F.soft_instance_loss(z1, z2, w)
        assert loss.dtype == dtype
        assert loss.item() == pytest.approx(level["L_I"], **TOLERANCE[dtype])
        if t > 1:
            lags = None if temporal(2) is None else temporal(2)(t, level["level"])
            loss = F.soft_temporal_loss(z1, z2, lags)
            assert loss.item() == pytest.approx(level["L_T"], **TOLERANCE[dtype])
            z1, z2 = (torch.nn.functional.max_pool1d(z.mT, 2).mT for z in (z1, z2))


@pytest.mark.parametrize("case", CASES)
def test_temporal_weights_as_a_matrix_give_the_worked_value(case, dtype):
    z1, z2, _, _ = golden_case(case, dtype)
    loss = F.soft_temporal_loss(z1, z2, torch.tensor(case["w_T_level0"], dtype=dtype))
    assert loss.item() == pytest.approx(case["L_T"], **TOLERANCE[dtype])


@pytest.mark.parametrize("case", CASES)
def test_joint_loss_has_the_worked_value(case, dtype):
    z1, z2, w, temporal = golden_case(case, dtype)
    for name, growth, max_levels in [
        ("hierarchical_joint", 2, None),
        ("hierarchical_joint_constant_tau", 1, None),
        ("joint_single_level", 2, 1),
    ]:
        levels = {"lam": case["lam"], "max_levels": max_levels}
        loss = F.hierarchical_loss(z1, z2, w, temporal(growth), **levels)
        assert loss.item() == pytest.approx(case[name], **TOLERANCE[dtype]), name


def test_single_level_gradient_has_the_worked_values(path):
    (case,) = (
        c
        for c in GOLDEN["cases"]
        if c["name"] == "B_soft_both" and c["convention"].startswith("paper:")
    )
    z1, z2, w, temporal = golden_case(case, torch.float64)
    z1.requires_grad_(), z2.requires_grad_()
    F.hierarchical_loss(z1, z2, w, temporal(2), max_levels=1).backward()
    golden = GOLDEN["gradient_single_level"]
    np.testing.assert_allclose(z1.grad, golden["dz1"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(z2.grad, golden["dz2"], rtol=0, atol=1e-12)


def test_equal_embeddings_have_the_closed_form():
    golden = GOLDEN["closed_form_all_equal_embeddings"]
    n, t = golden["N"], golden["T"]
    z = torch.randn(2, dtype=torch.float64).expand(n, t, 2)
    d = np.array(golden["D"])
    d = (d - 1.0) / 3.0  # min-max over the pairs of different series
    w_i = 2 * golden["alpha"] / (1 + np.exp(golden["tau_I"] * d))
    np.fill_diagonal(w_i, 1.0)
    w_t = by_lag(t, tau=golden["tau_T"])
    z_i = 2 * w_i.sum(axis=1) - 1
    np.testing.assert_allclose(z_i, golden["Z_I"], atol=1e-12)
    values = {
        "L_I": (F.soft_instance_loss(z, z, torch.tensor(w_i)), z_i.mean() * math.log(2 * n - 1)),
        "L_T": (F.soft_temporal_loss(z, z, w_t), np.mean(golden["Z_T"]) * math.log(2 * t - 1)),
        "L_I_hard": (F.soft_instance_loss(z, z), math.log(2 * n - 1)),
        "L_T_hard": (F.soft_temporal_loss(z, z), math.log(2 * t - 1)),
    }
    for name, (loss, closed_form) in values.items():
        assert loss.item() == pytest.approx(golden[name], abs=1e-12)
        assert loss.item() == pytest.approx(closed_form, abs=1e-12)


def test_hard_hierarchical_loss_of_equal_embeddings_has_the_closed_form():
    n, m, lam = 3, 4, 0.3
    z = torch.ones(n, 2**m, 2, dtype=torch.float64)
    temporal = sum(math.log(2 * 2**k - 1) for k in range(1, m + 1))
    expected = (lam * (m + 1) * math.log(2 * n - 1) + (1 - lam) * temporal) / (m + 1)
    assert F.hierarchical_loss(z, z, lam=lam).item() == pytest.approx(expected, abs=1e-12)


# ------------------------------------------------------------------------- the equations as loops


def test_loss_equals_the_equation_written_as_loops(loss_name, path):
    for shape, normalize, masked in product(SHAPES, [False, True], [False, True]):
        z1, z2 = views(*shape, seed=sum(shape))
        mask = some_mask(*shape[:2]) if masked else None
        expected = TWINS[loss_name](*arrays(z1, z2), mask, normalize)
        loss = LOSSES[loss_name](z1, z2, mask, normalize)
        which = shape, f"{normalize=}", f"{masked=}"
        assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-13), which


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    padding=st.integers(0, 3),
    gaps=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_masks_of_ragged_series_with_gaps_follow_the_rules_level_by_level(
    lengths, padding, gaps, seed
):
    n, t = len(lengths), max(lengths) + padding
    if t == 0:
        return
    z1, z2 = views(n, t, 2, seed=seed)
    mask = torch.arange(t) < torch.tensor(lengths)[:, None]
    if gaps:
        mask &= some_mask(n, t, seed)
    expected = TWINS["hierarchical"](*arrays(z1, z2), mask)
    loss = LOSSES["hierarchical"](z1, z2, mask)
    assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_loss_is_the_scaled_divergence_and_entropy_of_appendix_d():
    n, t = 4, 3
    z1, z2 = views(n, t, 3)
    w = assignments(n)
    total = 0.0
    for step in range(t):
        r = torch.cat([z1[:, step], z2[:, step]]).detach()
        for a in range(2 * n):
            others = [b for b in range(2 * n) if b != a]
            p = torch.softmax(r[others] @ r[a], dim=0)
            weights = torch.stack([w[a % n, b % n] for b in others])
            q = weights / weights.sum()
            divergence = (q * (q / p).log()).sum()
            entropy = -(q * q.log()).sum()
            total += (weights.sum() * (divergence + entropy)).item()
    loss = F.soft_instance_loss(z1, z2, w)
    assert loss.item() == pytest.approx(total / (2 * n * t), rel=1e-12)


def test_leading_axes_equal_a_loop_over_them(loss_of):
    lead, (n, t, m) = (2, 3), (3, 6, 4)
    z1, z2 = views(n, t, m, lead=lead)
    loss = loss_of(z1, z2)
    assert loss.shape == lead
    for i in np.ndindex(lead):
        assert loss[i].item() == pytest.approx(loss_of(z1[i], z2[i]).item(), rel=1e-12)


def test_leading_axes_may_have_their_own_weights_and_masks(path):
    lead, (n, t, m) = (2, 2), (3, 9, 4)
    z1, z2 = views(n, t, m, lead=lead)
    w_i, w_t = assignments(n, lead=lead), assignments(t, lead=lead)
    mask = some_mask(n, t, lead=lead)
    mask[0, 0, :, 3:], mask[0, 1, :, 1:], mask[1, 1] = False, False, False  # 3, 1, 9 and 0 steps

    def linear(length, level):  # depends on the length, which differs from mask to mask
        return 1 - torch.arange(length) / max(1, length - 1)

    instance = F.soft_instance_loss(z1, z2, w_i, mask)
    temporal = F.soft_temporal_loss(z1, z2, w_t, mask)
    joint = F.hierarchical_loss(z1, z2, w_i, linear, mask=mask)
    for i in np.ndindex(lead):
        alone = z1[i], z2[i]
        same = pytest.approx(F.soft_instance_loss(*alone, w_i[i], mask[i]).item(), rel=1e-12)
        assert instance[i].item() == same
        same = pytest.approx(F.soft_temporal_loss(*alone, w_t[i], mask[i]).item(), rel=1e-12)
        assert temporal[i].item() == same
        same = F.hierarchical_loss(*alone, w_i[i], linear, mask=mask[i]).item()
        assert joint[i].item() == pytest.approx(same, rel=1e-12)


def test_leading_axes_may_have_their_own_weights_by_lag(path):
    z1, z2 = views(2, 9, 3, lead=(2,))
    taus = torch.tensor([[0.3], [1.5]], dtype=torch.float64)
    stacked = F.hierarchical_loss(z1, z2, None, lambda t, k: torch.exp(-taus * torch.arange(t)))
    for i, tau in enumerate(taus):
        alone = F.hierarchical_loss(
            z1[i], z2[i], None, lambda t, k, tau=tau: torch.exp(-tau * torch.arange(t))
        )
        assert stacked[i].item() == pytest.approx(alone.item(), rel=1e-12)


@pytest.mark.parametrize("normalize", [False, True])
def test_weights_for_any_length_serve_masks_of_all_lengths(path, normalize):
    lead, (n, t, m) = (4,), (3, 13, 4)
    mask = some_mask(n, t, lead=lead)
    mask[0, :, 6:], mask[1, :, 1:], mask[3] = False, False, False  # 6, 1, 13 and 0 steps
    asked = []

    def counted(length, level):
        asked.append((length, level))
        return by_lag(length, level)

    found = []
    for weights in (by_lag, F.LagWeights(counted, any_length=True)):
        z1, z2 = views(n, t, m, lead=lead)
        loss = F.hierarchical_loss(z1, z2, None, weights, 0.3, mask, normalize)
        found.append((loss, *torch.autograd.grad(loss.sum(), (z1, z2))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    assert asked == [(16, 0), (8, 1), (4, 2)]  # once for each level, of the next power of two
    F.hierarchical_loss(*views(n, 12, m), None, weights)
    assert len(asked) == 3


@pytest.mark.parametrize("name", all_assignments.names(temporal=True))
def test_weights_by_lag_of_a_module_are_those_of_the_assignment(name):
    z = torch.zeros(1, dtype=torch.float64)
    weights = SoftTemporalLoss(0.3, name, weight_cut=1e-3).temporal(z)
    for length in range(1, 40) if name != "hard" else ():
        own = temporal_weights(length, 0.3, name, level=1, growth=1, cut=1e-3, dtype=z.dtype)
        assert torch.equal(weights(length, 1), own)


def test_a_short_vector_by_lag_means_zero_for_longer_lags(path):
    z1, z2 = views(2, 9, 3)
    w = by_lag(9)
    w[4:] = 0
    short, full = F.soft_temporal_loss(z1, z2, w[:4]), F.soft_temporal_loss(z1, z2, w)
    assert short.item() == pytest.approx(full.item(), rel=1e-13)


# ------------------------------------------------------------------------------------ symmetries


def test_swapping_the_views_changes_nothing(loss_of):
    z1, z2 = views(3, 6, 4)
    assert loss_of(z1, z2).item() == pytest.approx(loss_of(z2, z1).item(), rel=1e-12)


def test_permuting_the_series_with_their_weights_changes_nothing():
    z1, z2 = views(5, 6, 4)
    w, order = assignments(5), torch.tensor([3, 0, 4, 1, 2])
    before = F.hierarchical_loss(z1, z2, w, by_lag)
    after = F.hierarchical_loss(z1[order], z2[order], w[order][:, order], by_lag)
    assert before.item() == pytest.approx(after.item(), rel=1e-12)


def test_reversing_time_changes_nothing():
    z1, z2 = views(3, 8, 4)  # a power of two: pooling makes the same pairs
    before = F.hierarchical_loss(z1, z2, assignments(3), by_lag)
    after = F.hierarchical_loss(z1.flip(1), z2.flip(1), assignments(3), by_lag)
    assert before.item() == pytest.approx(after.item(), rel=1e-12)
    z1, z2 = views(3, 7, 4)
    before = F.soft_temporal_loss(z1, z2, by_lag(7))
    after = F.soft_temporal_loss(z1.flip(1), z2.flip(1), by_lag(7))
    assert before.item() == pytest.approx(after.item(), rel=1e-12)


@pytest.mark.parametrize("name", ["instance", "temporal", "temporal by lag"])
def test_single_level_losses_know_only_angles_and_lengths(name):
    z1, z2 = views(3, 6, 4)
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))
    loss = LOSSES[name](z1, z2).item()
    assert LOSSES[name](z1 @ rotation, z2 @ rotation).item() == pytest.approx(loss, rel=1e-12)
    assert LOSSES[name](2 * z1, 2 * z2).item() != pytest.approx(loss, rel=1e-3)
    assert LOSSES[name](z1 + 1, z2 + 1).item() != pytest.approx(loss, rel=1e-3)


def test_the_same_added_to_all_similarities_changes_nothing(loss_of, path):
    z1, z2 = views(3, 6, 4)  # i.e. the gradients for an anchor's similarities add up to zero
    shifted = [torch.cat([z, torch.full_like(z[..., :1], 3.0)], dim=-1) for z in (z1, z2)]
    assert loss_of(z1, z2).item() == pytest.approx(loss_of(*shifted).item(), rel=1e-12)


def test_temporal_loss_is_the_instance_loss_with_the_axes_swapped():
    z1, z2 = views(4, 6, 3)
    swapped = F.soft_instance_loss(z1.transpose(0, 1), z2.transpose(0, 1), assignments(6))
    assert F.soft_temporal_loss(z1, z2, assignments(6)).item() == pytest.approx(swapped.item())


def test_identity_weights_are_hard(path):
    z1, z2 = views(3, 6, 4)
    for soft, hard in (
        (F.soft_instance_loss(z1, z2, torch.eye(3)), F.soft_instance_loss(z1, z2)),
        (F.soft_temporal_loss(z1, z2, torch.eye(6)), F.soft_temporal_loss(z1, z2)),
        (F.soft_temporal_loss(z1, z2, torch.eye(6)[0]), F.soft_temporal_loss(z1, z2)),
    ):
        assert soft.item() == pytest.approx(hard.item(), rel=1e-13)


def test_lam_decouples_the_two_parts():
    z1, z2 = views(3, 6, 4)
    w, other = assignments(3), assignments(3, seed=1)
    instance, temporal, joint = (
        F.hierarchical_loss(z1, z2, w, by_lag, lam).item() for lam in (1.0, 0.0, 0.25)
    )
    assert joint == pytest.approx(0.25 * instance + 0.75 * temporal, rel=1e-12)
    assert F.hierarchical_loss(z1, z2, other, by_lag, 0.0).item() == temporal
    assert F.hierarchical_loss(z1, z2, w, None, 1.0).item() == instance


@pytest.mark.parametrize(("t", "n_levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)])
def test_levels_are_the_logarithm_of_the_length_and_one(t, n_levels):
    seen = []

    def weights(length, level):
        seen.append((length, level))
        return by_lag(length)

    F.hierarchical_loss(*views(2, t, 3), None, weights)
    assert seen == [(t >> level, level) for level in range(n_levels - 1)]
