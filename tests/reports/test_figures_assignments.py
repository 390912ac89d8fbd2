"""Pictures of soft assignments show the values of the functions that training uses."""

import numpy as np
import pytest
import torch

from softclt.assignments import assignments, temporal_weights
from softclt.functional import hierarchical_loss
from softclt.reports.figures import assignment_curves, pooled_hierarchy, temporal_designs
from softclt.reports.figures.assignments import PAPER_DESIGNS, pooled

pytest.importorskip("matplotlib")


def drawn(line):
    return dict(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True))


@pytest.mark.parametrize("assignment", ["sigmoid", "gaussian", "laplacian"])
def test_curves_are_the_assignment_at_every_lag(assignment):
    taus = (0.5, 2.0)
    (ax,) = assignment_curves(taus, max_lag=9, assignment=assignment).axes
    for tau, line in zip(taus, ax.lines, strict=False):
        lags = torch.arange(10, dtype=torch.float64)
        expected = assignments[assignment](lags, tau, 9.0)
        assert list(drawn(line)) == list(range(10))
        np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-15)


def test_every_design_is_drawn_for_its_taus_and_is_the_same_on_both_sides():
    length = 12
    panels = {ax.get_title(): ax for ax in temporal_designs(length=length).axes if ax.get_title()}
    assert list(panels) == ["neighbor", "linear", "gaussian", "sigmoid"]
    for name, ax in panels.items():
        assert len(ax.lines) == len(PAPER_DESIGNS[name])
        for tau, line in zip(PAPER_DESIGNS[name], ax.lines, strict=True):
            shown = drawn(line)
            weights = temporal_weights(length, tau, name, dtype=torch.float64).tolist()
            for lag in range(length):
                weight = weights[lag] if lag < len(weights) else 0.0
                assert shown[lag] == shown[-lag] == pytest.approx(weight, abs=1e-15)


def test_pooling_is_that_of_the_loss(rng):
    z = torch.as_tensor(rng.normal(size=(13, 3)))
    seen = []
    hierarchical_loss(
        z[None], z[None], temporal_weights=lambda t, level: seen.append(t) or torch.ones(1)
    )
    for level, steps in enumerate(seen):
        halves = pooled(z.numpy(), level)
        assert len(halves) == steps
        windows = z.numpy()[: steps * 2**level].reshape(steps, -1, 3)
        np.testing.assert_array_equal(halves, windows.max(axis=1))


def test_the_hierarchy_shows_growing_taus_that_decay_alike_in_original_time(rng):
    series, Z = np.sin(np.arange(64) / 5), rng.normal(size=(64, 6))
    figure = pooled_hierarchy(series, Z, tau=0.5, growth=2.0, n_levels=3)
    weights = [ax for ax in figure.axes if ax.get_title("right").startswith("tau")]
    assert [ax.get_title("right") for ax in weights] == ["tau 0.5", "tau 1", "tau 2"]
    for level, ax in enumerate(weights):
        constant, grown = (drawn(line) for line in ax.lines)
        lag = 2**level  # the next step of this level
        assert grown[lag] == pytest.approx(2 / (1 + np.exp(0.5 * lag)))
        assert constant[lag] == pytest.approx(2 / (1 + np.exp(0.5)))


def test_a_series_of_few_steps_has_fewer_levels(rng):
    figure = pooled_hierarchy(rng.normal(size=6), rng.normal(size=(6, 4)), n_levels=5)
    rows = [ax.get_ylabel() for ax in figure.axes if "level" in ax.get_ylabel()]
    assert rows == ["level 0\n6 steps", "level 1\n3 steps"]


def test_the_caller_s_rcparams_stay_as_they_were():
    import matplotlib

    before = dict(matplotlib.rcParams)
    assignment_curves()
    assert dict(matplotlib.rcParams) == before
