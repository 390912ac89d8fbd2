"""From a distance or a lag to a weight."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from softclt.assignments import (
    assignments,
    check_assignment,
    instance_weights,
    temporal_weights,
)

GOLDEN = json.loads((Path(__file__).parent / "files" / "golden_losses.json").read_text())


def lag_table(weights, length):
    """Weights by lag as a matrix, zero beyond the end of the vector."""
    padded = np.zeros(length)
    padded[: len(weights)] = weights
    lags = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return padded[lags]


# A new assignment is tested by being registered.


@pytest.mark.parametrize("name", assignments.names())
@pytest.mark.parametrize("tau", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("span", [1.0, 9.0])
def test_an_assignment_falls_from_one_within_the_unit_interval(name, tau, span):
    d = torch.linspace(0, span, 101, dtype=torch.float64)
    weights = assignments[name](d, tau, span)
    assert weights.shape == d.shape
    assert weights.dtype == d.dtype
    assert weights[0] == 1
    assert ((weights >= 0) & (weights <= 1)).all()
    assert (weights.diff() <= 0).all()


@pytest.mark.parametrize("name", assignments.names())
def test_an_assignment_is_elementwise(name):
    d = torch.rand(3, 4, dtype=torch.float64)
    one_by_one = [[assignments[name](x, 2.0, 1.0).item() for x in row] for row in d]
    np.testing.assert_allclose(assignments[name](d, 2.0, 1.0), one_by_one, rtol=1e-12)


@pytest.mark.parametrize("name", assignments.names(temporal=True))
@pytest.mark.parametrize("level", [0, 1, 3])
def test_temporal_weights_start_at_one_and_are_no_longer_than_the_series(name, level):
    weights = temporal_weights(7, 0.3, name, level)
    if name == "hard":
        assert weights is None
        return
    assert 1 <= len(weights) <= 7
    assert weights[0] == 1
    assert ((weights >= 0) & (weights <= 1)).all()
    assert temporal_weights(1, 0.3, name, level).tolist() == [1.0]


@pytest.mark.parametrize("name", assignments.names(instance=True))
def test_instance_weights_have_ones_on_the_diagonal_and_alpha_as_upper_bound(name):
    distances = torch.rand(4, 4, generator=torch.Generator().manual_seed(0))
    weights = instance_weights(distances, 3.0, 0.4, name)
    if name == "hard":
        assert weights is None
        return
    assert (weights.diagonal() == 1).all()
    others = weights[~torch.eye(4, dtype=torch.bool)]
    assert ((others >= 0) & (others <= 0.4)).all()


@pytest.mark.parametrize("tau", GOLDEN["w_T_table"])
def test_temporal_weights_have_the_tabled_values(tau):
    table = GOLDEN["w_T_table"][tau]
    weights = temporal_weights(len(table), float(tau), dtype=torch.float64)
    np.testing.assert_allclose(weights, table, rtol=0, atol=1e-12)


def test_temporal_weights_have_the_published_digits():
    for tau, weight in ((1.0, 0.537882842740), (0.5, 0.755081337596), (2.5, 0.151716360042)):
        weights = temporal_weights(2, tau, dtype=torch.float64)
        assert weights.tolist() == [1.0, pytest.approx(weight, abs=1e-12)]


@pytest.mark.parametrize("tau", GOLDEN["w_I_table_alpha0.5"])
def test_instance_weights_have_the_tabled_values(tau):
    for distance, weight in GOLDEN["w_I_table_alpha0.5"][tau].items():
        d = torch.full((2, 2), float(distance), dtype=torch.float64)
        weights = instance_weights(d, float(tau), alpha=0.5)
        assert weights[0, 1].item() == pytest.approx(weight, abs=1e-12)


def test_instance_weight_of_equal_series_is_alpha():
    equal = torch.zeros(2, 2, dtype=torch.float64)
    for name in ("sigmoid", "gaussian", "laplacian", "linear"):
        assert instance_weights(equal, 5.0, 0.5, name)[0, 1] == 0.5
        assert instance_weights(equal, 5.0, 1.0, name)[0, 1] == 1.0


@pytest.mark.parametrize(
    ("variant", "name", "tau"),
    [
        ("neighbor_30pct", "neighbor", 0.3),
        ("linear_paper", "linear", 1.0),
        ("gaussian_sigma1", "gaussian", 1.0),
    ],
)
def test_assignment_variants_have_the_worked_values(variant, name, tau):
    weights = temporal_weights(5, tau, name, dtype=torch.float64)
    expected = GOLDEN["assignment_variants_T5"][variant]
    np.testing.assert_allclose(lag_table(weights, 5), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("sigmoid", lambda d, tau: 2 / (1 + math.exp(tau * d))),
        ("gaussian", lambda d, tau: math.exp(-((tau * d) ** 2) / 2)),
        ("laplacian", lambda d, tau: math.exp(-tau * d)),
        ("linear", lambda d, tau: 1 - d),
    ],
)
def test_kernels_of_a_distance_are_the_formulas(name, formula):
    d = torch.tensor([[0.3, 0.8], [0.1, 0.0]], dtype=torch.float64)
    weights = instance_weights(d, 2.5, 0.5, name)
    assert weights[0, 1].item() == pytest.approx(0.5 * formula(0.8, 2.5), abs=1e-14)
    assert weights[1, 0].item() == pytest.approx(0.5 * formula(0.1, 2.5), abs=1e-14)


@pytest.mark.parametrize("name", assignments.names(temporal=True, grows=True))
def test_one_decay_in_original_time_at_every_level(name):
    full = temporal_weights(64, 0.2, name, 0, dtype=torch.float64)
    for level in (1, 2, 3):
        pooled = temporal_weights(64 >> level, 0.2, name, level, dtype=torch.float64)
        np.testing.assert_allclose(pooled, full[:: 2**level][: len(pooled)], rtol=1e-12)


def test_constant_sharpness_is_a_growth_of_one():
    for level in (0, 3):
        weights = temporal_weights(8, 0.5, "sigmoid", level, growth=1)
        assert torch.equal(weights, temporal_weights(8, 0.5))


@pytest.mark.parametrize("name", ["linear", "neighbor"])
def test_shares_of_the_length_do_not_grow_with_the_level(name):
    assert torch.equal(temporal_weights(9, 0.3, name, 4), temporal_weights(9, 0.3, name, 0))


def test_neighbor_window_is_a_share_of_the_length():
    assert temporal_weights(10, 0.3, "neighbor").tolist() == [1, 1, 1, 1]
    assert temporal_weights(5, 1.0, "neighbor").tolist() == [1, 1, 1, 1, 1]


def test_weights_below_the_cut_are_zero():
    cut = temporal_weights(8, 2.5, cut=1e-6, dtype=torch.float64)
    table = GOLDEN["w_T_table"]["2.5"]
    np.testing.assert_allclose(cut, [w for w in table if w >= 1e-6], atol=1e-12)
    assert temporal_weights(8, 14.6, cut=1e-6).tolist() == [1.0]  # hard from there on


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_band_ends_where_weights_die_out_within_the_precision(dtype):
    weights = temporal_weights(1000, 1.0, dtype=dtype)
    assert weights.dtype == dtype
    assert 15 < len(weights) < 40
    assert weights[-1] >= torch.finfo(dtype).eps / 2
    assert 2 / (1 + math.exp(len(weights))) < torch.finfo(dtype).eps / 2


def test_no_sharpness_is_hard():
    assert temporal_weights(5, None) is None
    assert instance_weights(torch.zeros(2, 2), None) is None


def test_unknown_assignment_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown assignment 'sigmoyd'; known: .*sigmoid"):
        check_assignment("sigmoyd", 1.0, kind="temporal")


def test_an_assignment_of_the_other_kind_is_refused_with_its_own_kind():
    with pytest.raises(
        ValueError, match=r"'neighbor' is not for instance weights; known: .*linear"
    ):
        check_assignment("neighbor", 1.0, kind="instance")


@pytest.mark.parametrize("tau", [0, -1.0, math.nan, "5", True])
def test_a_sharpness_that_is_not_positive_is_refused(tau):
    with pytest.raises(ValueError, match=r"tau_temporal is .*; expected a number > 0"):
        check_assignment("sigmoid", tau, kind="temporal")


def test_an_infinite_sharpness_is_told_about_none():
    with pytest.raises(ValueError, match="tau_instance is infinite; None is hard"):
        check_assignment("sigmoid", math.inf, kind="instance")
