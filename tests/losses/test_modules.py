"""The loss modules: the policy around the functions, as anybody's training loop meets it."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

import softclt
from softclt import SoftContrastiveLoss, SoftInstanceLoss, SoftTemporalLoss
from softclt import functional as F
from softclt.assignments import assignments

GOLDEN = json.loads((Path(__file__).parents[1] / "files" / "golden_losses.json").read_text())
CASES = [
    pytest.param(case, id=f"{case['name']}-{case['convention'].split(':')[0].split()[0]}")
    for case in GOLDEN["cases"]
]
TOLERANCE = {torch.float64: {"rel": 0, "abs": 1e-10}, torch.float32: {"rel": 1e-5}}


@pytest.fixture(params=TOLERANCE, ids=str)
def dtype(request):
    return request.param


def views(n=4, t=9, m=5, dtype=torch.float64, seed=0):
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(2, n, t, m, generator=rng, dtype=torch.float64).to(dtype)
    return z[0].requires_grad_(), z[1].requires_grad_()


def golden_inputs(case, dtype):
    """Views, distances (none for a hard instance loss) and the cut of small weights."""
    z1, z2 = (torch.tensor(case[name], dtype=dtype) for name in ("z1", "z2"))
    d = None if case["D_norm"] is None else torch.tensor(case["D_norm"], dtype=dtype)
    return z1, z2, d, 1e-6 if case["convention"].startswith("official") else 0.0


def distances(n=4, dtype=torch.float64):
    d = torch.rand(n, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return ((d + d.mT) / 2).fill_diagonal_(0.0).to(dtype)


# ------------------------------------------------------------------------------------ worked cases


@pytest.mark.parametrize("case", CASES)
def test_joint_loss_has_the_worked_value(case, dtype):
    z1, z2, d, cut = golden_inputs(case, dtype)
    settings = case["tau_I"], case["tau_T"], case["alpha"], case["lam"]
    for name, options in {
        "hierarchical_joint": {},
        "hierarchical_joint_constant_tau": {"tau_growth": 1},
        "joint_single_level": {"hierarchical": False},
    }.items():
        loss = SoftContrastiveLoss(*settings, weight_cut=cut, **options)(z1, z2, distances=d)
        assert loss.shape == ()
        assert loss.dtype == dtype
        assert loss.item() == pytest.approx(case[name], **TOLERANCE[dtype]), name


@pytest.mark.parametrize("case", CASES)
def test_single_losses_have_the_worked_values(case, dtype):
    z1, z2, d, cut = golden_inputs(case, dtype)
    instance = SoftInstanceLoss(case["tau_I"], case["alpha"])(z1, z2, distances=d)
    temporal = SoftTemporalLoss(case["tau_T"], weight_cut=cut)(z1, z2)
    assert instance.item() == pytest.approx(case["L_I"], **TOLERANCE[dtype])
    assert temporal.item() == pytest.approx(case["L_T"], **TOLERANCE[dtype])


# ---------------------------------------------------------------------------------- soft and hard


@pytest.mark.parametrize("kernel", ["sigmoid", "gaussian", "laplacian"])
def test_a_large_sharpness_is_hard(kernel, dtype):
    z1, z2 = views(dtype=dtype)
    d = (distances() * 0.5 + 0.5).fill_diagonal_(0.0)  # nobody is nobody's copy
    sharp = SoftContrastiveLoss(
        500.0, 500.0, instance_assignment=kernel, temporal_assignment=kernel
    )
    hard = SoftContrastiveLoss(None, None)(z1, z2)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    assert sharp(z1, z2, d).item() == pytest.approx(hard.item(), rel=tolerance)


def test_the_hard_assignment_is_the_same_as_no_sharpness():
    z1, z2 = views()
    named = SoftContrastiveLoss(instance_assignment="hard", temporal_assignment="hard")
    assert named(z1, z2).item() == SoftContrastiveLoss(None, None)(z1, z2).item()


def test_soft_is_not_hard():
    z1, z2 = views()
    hard = SoftContrastiveLoss(None, None)(z1, z2).item()
    for soft in (SoftContrastiveLoss(5.0, None), SoftContrastiveLoss(None, 1.0)):
        assert soft(z1, z2, distances()).item() > hard + 0.01


@pytest.mark.parametrize("tau_instance", [None, 5.0])
def test_losses_alone_are_the_parts_of_the_joint_loss(tau_instance):
    z1, z2 = views()
    instance = SoftInstanceLoss(tau_instance)(z1, z2, distances())
    temporal = SoftTemporalLoss(1.0)(z1, z2)
    joint = SoftContrastiveLoss(tau_instance, 1.0, lam=0.2, hierarchical=False)
    expected = 0.2 * instance + 0.8 * temporal
    assert joint(z1, z2, distances()).item() == pytest.approx(expected.item(), rel=1e-12)


def test_normalized_weights_divide_the_loss_of_each_anchor_by_its_sum():
    z1, z2 = views()
    w = softclt.assignments.instance_weights(distances(), 5.0)
    z_sum = 2 * w.sum(dim=1, keepdim=True) - 1
    normalized = SoftInstanceLoss(5.0, normalize_weights=True)(z1, z2, distances())
    assert normalized.item() == pytest.approx(F.soft_instance_loss(z1, z2, w / z_sum).item())
    joint = SoftContrastiveLoss(5.0, normalize_weights=True)(z1, z2, distances())
    assert joint.item() < SoftContrastiveLoss(5.0)(z1, z2, distances()).item()


def test_distances_may_differ_by_direction():
    z1, z2 = views()
    d = torch.rand(4, 4, dtype=torch.float64)  # as in the authors' scaling of each column
    criterion = SoftInstanceLoss(5.0)
    assert criterion(z1, z2, d).item() != pytest.approx(criterion(z1, z2, d.mT).item(), rel=1e-6)


def test_the_diagonal_of_the_distances_does_not_matter():
    z1, z2 = views()
    criterion = SoftContrastiveLoss(5.0)
    other = distances().fill_diagonal_(0.7)
    assert criterion(z1, z2, distances()).item() == criterion(z1, z2, other).item()


def test_distances_may_be_numpy_or_of_another_precision():
    z1, z2 = views(dtype=torch.float32)
    criterion = SoftContrastiveLoss(5.0)
    loss = criterion(z1, z2, distances()).item()
    assert criterion(z1, z2, distances().numpy()).item() == loss
    d = distances().to(torch.bfloat16)
    assert criterion(z1, z2, d).item() == criterion(z1, z2, d.float()).item()


def test_lam_zero_needs_no_distances():
    z1, z2 = views()
    assert SoftContrastiveLoss(lam=0.0)(z1, z2).item() > 0


# ---------------------------------------------------------------------------------------- padding


@pytest.mark.parametrize("hierarchical", [True, False])
@pytest.mark.parametrize("assignment", assignments.names(temporal=True))
@pytest.mark.parametrize("t", [1, 5, 8, 11])
def test_loss_of_padded_series_is_the_loss_of_the_unpadded(assignment, t, hierarchical):
    criterion = SoftContrastiveLoss(
        5.0, 0.3, temporal_assignment=assignment, hierarchical=hierarchical
    )
    z1, z2 = views(t=t)
    loss = criterion(z1, z2, distances())
    gradients = torch.autograd.grad(loss, (z1, z2))
    for padding in (1, 6):
        padded = [
            torch.nn.functional.pad(z.detach(), (0, 0, 0, padding), value=float("nan"))
            for z in (z1, z2)
        ]
        padded = [z.requires_grad_() for z in padded]
        mask = torch.arange(t + padding).expand(4, -1) < t
        same = criterion(*padded, distances(), mask)
        assert same.item() == pytest.approx(loss.item(), rel=1e-12)
        for z, expected in zip(torch.autograd.grad(same, padded), gradients, strict=True):
            torch.testing.assert_close(z[:, :t], expected, rtol=1e-10, atol=1e-14)
            assert (z[:, t:] == 0).all()


@pytest.mark.parametrize("assignment", assignments.names(temporal=True))
def test_temporal_loss_of_padded_series_is_the_loss_of_the_unpadded(assignment):
    z1, z2 = views()
    criterion = SoftTemporalLoss(0.3, assignment)
    padded = (torch.nn.functional.pad(z, (0, 0, 0, 4)) for z in (z1, z2))
    mask = torch.arange(13).expand(4, -1) < 9
    loss = criterion(*padded, mask=mask)
    assert loss.item() == pytest.approx(criterion(z1, z2).item(), rel=1e-12)


def test_temporal_loss_of_ragged_series_is_the_mean_over_the_anchors_of_each():
    z1, z2 = views()
    lengths = [9, 4, 1, 6]
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    criterion = SoftTemporalLoss(1.0)
    alone = [criterion(z1[i : i + 1, :t], z2[i : i + 1, :t]).item() for i, t in enumerate(lengths)]
    expected = np.average(alone, weights=lengths)
    assert criterion(z1, z2, mask=mask).item() == pytest.approx(expected, rel=1e-12)


# ----------------------------------------------------------------------------------- as a module


@pytest.mark.parametrize(
    "criterion", [SoftContrastiveLoss(5.0), SoftInstanceLoss(5.0), SoftTemporalLoss()], ids=repr
)
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.double()]
)
def test_a_copy_is_the_same_loss(criterion, copied):
    z1, z2 = views()
    known = {} if isinstance(criterion, SoftTemporalLoss) else {"distances": distances()}
    loss = criterion(z1, z2, **known).item()
    assert copied(criterion)(z1, z2, **known).item() == loss
    assert repr(copied(criterion)) == repr(criterion)


def test_a_loss_has_no_state():
    criterion = SoftContrastiveLoss()
    assert criterion.state_dict() == {}
    assert list(criterion.parameters()) == []


def test_the_repr_names_the_settings():
    text = repr(SoftContrastiveLoss(7.0, None, alpha=0.25, lam=0.1, tau_growth=3))
    for setting in ("tau=7.0", "tau=None", "alpha=0.25", "lam=0.1", "growth=3", "'sigmoid'"):
        assert setting in text


def test_a_sharpness_changed_later_is_used():
    z1, z2 = views()
    criterion = SoftTemporalLoss(1.0)
    criterion(z1, z2)
    criterion.temporal.tau = 3.0
    assert criterion(z1, z2).item() == SoftTemporalLoss(3.0)(z1, z2).item()


def test_training_works_after_a_look_in_inference_mode():
    criterion = SoftContrastiveLoss(5.0, 0.11)  # weights nobody made before
    z1, z2 = views()
    with torch.inference_mode():
        quiet = criterion(z1, z2, distances())
    loss = criterion(z1, z2, distances())
    loss.backward()
    assert loss.item() == quiet.item()
    assert z1.grad.abs().sum() > 0


def test_gradient_descent_brings_the_views_together():
    z1, z2 = (z.detach().float().requires_grad_() for z in views())
    criterion = SoftContrastiveLoss(5.0, 1.0)
    optimizer = torch.optim.SGD([z1, z2], lr=0.5)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = criterion(z1, z2, distances())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tau_instance": 0}, "tau_instance is 0; expected a number > 0"),
        ({"tau_temporal": -1.0}, "tau_temporal is -1.0; expected a number > 0"),
        ({"alpha": 0}, "alpha is 0; expected a number > 0 and at most 1"),
        ({"alpha": 1.5}, "alpha is 1.5; expected"),
        ({"lam": 1.1}, "lam is 1.1; expected a number >= 0 and at most 1"),
        ({"tau_growth": 0}, "tau_growth is 0; expected"),
        ({"weight_cut": -0.1}, "weight_cut is -0.1; expected"),
        ({"instance_assignment": "sigmund"}, "unknown assignment 'sigmund'; known: .*sigmoid"),
        ({"instance_assignment": "neighbor"}, "'neighbor' is not for instance weights"),
        ({"temporal_assignment": "dtw"}, "unknown assignment 'dtw'"),
    ],
)
def test_wrong_settings_are_refused_in_words(options, words):
    with pytest.raises(ValueError, match=words):
        SoftContrastiveLoss(**options)


@pytest.mark.parametrize("criterion", [SoftContrastiveLoss(), SoftInstanceLoss()])
def test_missing_distances_are_asked_for(criterion):
    with pytest.raises(ValueError, match=r"needs `distances` of shape \(N, N\) in \[0, 1\]"):
        criterion(*views())


def test_distances_of_another_batch_are_refused():
    with pytest.raises(ValueError, match=r"shape \(3, 3\); expected \(4, 4\) for a batch of 4"):
        SoftContrastiveLoss()(*views(), distances(3))


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan")])
def test_distances_that_are_not_normalised_are_told_how(wrong):
    d = distances()
    d[0, 1] = wrong
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; normalise .*minmax"):
        SoftContrastiveLoss()(*views(), d)


@pytest.mark.parametrize(
    ("z1", "z2", "words"),
    [
        ((4, 9, 5), (4, 8, 5), r"\(4, 9, 5\) and \(4, 8, 5\); expected two views of one shape"),
        ((9, 5), (9, 5), r"expected two views of one shape \(..., N, T, M\)"),
        ((4, 0, 5), (4, 0, 5), r"without a 0"),
    ],
)
def test_views_of_a_wrong_shape_are_refused(z1, z2, words):
    for loss in (F.soft_instance_loss, F.soft_temporal_loss, F.hierarchical_loss):
        with pytest.raises(ValueError, match=words):
            loss(torch.zeros(z1), torch.zeros(z2))


def test_views_of_whole_numbers_are_refused():
    z = torch.ones(2, 3, 4, dtype=torch.int64)
    with pytest.raises(TypeError, match=r"torch\.int64 and torch\.int64; expected floating point"):
        F.soft_temporal_loss(z, z)


@pytest.mark.parametrize(
    "mask", [torch.ones(4, 9), torch.ones(4, 8, dtype=torch.bool), torch.ones(9, dtype=torch.bool)]
)
def test_a_mask_of_a_wrong_kind_is_told_what_is_expected(mask):
    for loss in (F.soft_instance_loss, F.soft_temporal_loss, F.hierarchical_loss):
        with pytest.raises(ValueError, match=r"expected bool of shape \(4, 9\), True where"):
            loss(*views(), mask=mask)


@pytest.mark.parametrize(
    ("loss", "shape", "words"),
    [
        (F.soft_instance_loss, (3, 3), r"\(3, 3\); expected \(4, 4\)"),
        (F.soft_instance_loss, (4,), r"\(4,\); expected \(4, 4\)"),
        (F.soft_instance_loss, (2, 4, 4), r"\(2, 4, 4\); expected \(4, 4\)"),
        (F.soft_temporal_loss, (4, 4), r"\(4, 4\); expected \(9, 9\)"),
        (F.soft_temporal_loss, (10,), r"\(10,\); expected \(9,\) or shorter by lag"),
        (F.soft_temporal_loss, (0,), r"\(0,\); expected \(9,\) or shorter by lag"),
    ],
)
def test_weights_of_a_wrong_shape_are_refused(loss, shape, words):
    with pytest.raises(ValueError, match=words):
        loss(*views(), torch.ones(shape))
