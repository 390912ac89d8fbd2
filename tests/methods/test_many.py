"""Models fitted together are the models that each fit alone would have made."""

import numpy as np
import pytest
import torch

from softclt import TS2Vec, fit_many
from softclt.methods import SeriesContrast
from softclt.methods.learner import RepresentationLearner

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 3, "batch_size": 4, "device": "cpu"}

GRID = [
    {"random_state": 0},
    {"random_state": 1},
    {"tau_instance": None, "random_state": 0},
    {"tau_instance": None, "tau_temporal": None, "random_state": 2},
    {"tau_instance": 5.0, "tau_temporal": 2.5, "alpha": 1.0, "lam": 0.2, "random_state": 0},
    {"instance_assignment": "gaussian", "temporal_assignment": "linear", "random_state": 3},
    {"tau_growth": 1, "weight_cut": 1e-3, "lr": 3e-3, "random_state": 0},
    {"lam": 1.0, "random_state": 4},
    {"lam": 0.0, "lr": 1e-4, "random_state": 5},
]


@pytest.fixture
def series(rng):
    return rng.normal(size=(11, 2, 24))


@pytest.fixture
def stacked(monkeypatch):
    """Stacks on the CPU, too."""
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)


def models(**shared):
    return [TS2Vec(**SMALL | shared | own) for own in GRID]


def parameters(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def worst(one, other):
    difference = parameters(one.module_) - parameters(other.module_)
    return float(difference.abs().max() / parameters(one.module_).abs().max())


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.slow
def test_many_equal_each_alone_in_float64_over_50_steps(series, stacked, missing):
    if missing:
        series[2, :, 15:] = np.nan
        series[5, 1, 3:6] = np.nan
    together = fit_many(models(max_iter=50, precision="float64"), series)
    assert {model.history_["trained_together"] for model in together} == {len(GRID)}
    for model, alone in zip(together, models(max_iter=50, precision="float64"), strict=True):
        alone.fit(series)
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=1e-6)
        assert worst(model, alone) < 1e-6
        np.testing.assert_allclose(model.transform(series), alone.transform(series), atol=1e-5)


@pytest.mark.slow
def test_many_equal_each_alone_in_float32_over_10_steps(series, stacked):
    together = fit_many(models(max_iter=10), series)
    for model, alone in zip(together, models(max_iter=10), strict=True):
        assert worst(model, alone.fit(series)) < 1e-3


def test_on_a_cpu_they_are_trained_one_by_one_and_share_their_distances(series, monkeypatch):
    from softclt.methods import between

    made = []
    original = between.BatchDistances
    monkeypatch.setattr(
        between, "BatchDistances", lambda *a, **k: made.append(original(*a, **k)) or made[-1]
    )
    grid = fit_many(models(max_iter=3), series)
    assert len(made) == 1
    for model, alone in zip(grid, models(max_iter=3), strict=True):
        assert model.history_["loss"] == alone.fit(series).history_["loss"]


def test_methods_that_compare_series_in_ways_of_their_own_share_no_distances(series):
    def both():
        short = {"length": 64, "max_iter": 2, "random_state": 0}
        yield TS2Vec(**SMALL, max_iter=2, random_state=0)
        yield SeriesContrast(width=2, **short)
        yield SeriesContrast(width=2, **short, distance_length=3)

    for model, alone in zip(fit_many(both(), series), both(), strict=True):
        assert model.history_["loss"] == alone.fit(series).history_["loss"]


def test_models_are_fitted_in_place_in_their_order_and_are_ordinary_afterwards(
    series, stacked, tmp_path
):
    grid = models(max_iter=2)
    assert fit_many(grid, series) == grid
    grid[3].save(tmp_path, training=True)
    loaded = TS2Vec.load(tmp_path)
    np.testing.assert_array_equal(loaded.transform(series), grid[3].transform(series))


def test_other_architectures_and_data_rules_are_groups_of_their_own(series, stacked):
    grid = [
        TS2Vec(**SMALL | {"depth": 2, "max_iter": 2, "random_state": 0}),
        TS2Vec(**SMALL, max_iter=2, random_state=0),
        TS2Vec(**SMALL, max_iter=2, random_state=1),
        TS2Vec(**SMALL, max_iter=3, random_state=1, scale=None, distance="euclidean"),
    ]
    fit_many(grid, series)
    assert [model.history_["trained_together"] for model in grid] == [1, 2, 2, 1]
    assert [model.n_iter_ for model in grid] == [2, 2, 2, 3]
    alone = TS2Vec(**SMALL, max_iter=3, random_state=1, scale=None, distance="euclidean")
    assert worst(grid[3], alone.fit(series)) == 0


def test_a_stack_goes_on_from_where_its_models_were(series, stacked):
    grid = [
        TS2Vec(**SMALL, max_iter=3, warm_start=True, precision="float64", random_state=seed)
        for seed in (0, 1)
    ]
    fit_many(fit_many(grid, series), series)
    straight = TS2Vec(**SMALL, max_iter=6, precision="float64", random_state=1).fit(series)
    assert grid[1].n_iter_ == 6
    np.testing.assert_allclose(grid[1].history_["loss"], straight.history_["loss"], rtol=1e-9)
    assert worst(grid[1], straight) < 1e-9


def test_lazy_distances_serve_a_stack(series, stacked):
    grid = [TS2Vec(**SMALL, max_iter=4, distance_mode="lazy", random_state=s) for s in (0, 1)]
    fit_many(grid, series)
    alone = TS2Vec(**SMALL, max_iter=4, distance_mode="lazy", random_state=1).fit(series)
    assert worst(grid[1], alone) < 1e-5
    assert grid[1].history_["distance_mode"] == "lazy"


def test_no_models_are_no_work(series):
    assert fit_many([], series) == []


def test_a_wrong_parameter_of_any_model_is_an_error_before_any_is_trained(series):
    grid = [TS2Vec(**SMALL, max_iter=2), TS2Vec(**SMALL, lam=2.0)]
    with pytest.raises(ValueError, match="lam is 2"):
        fit_many(grid, series)
    assert not hasattr(grid[0], "module_")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_steps_replayed_as_graphs_are_the_steps(series, precision, monkeypatch):
    from softclt.training.loop import _Stepper

    captured = models(max_iter=50, precision=precision, device="cuda")
    fit_many(captured, series)
    monkeypatch.setattr(_Stepper, "take", lambda self, step: self._bring(step) or self._step(step))
    eager = fit_many(models(max_iter=50, precision=precision, device="cuda"), series)
    tolerance = 1e-9 if precision == "float64" else 1e-2
    for one, other in zip(captured, eager, strict=True):
        np.testing.assert_allclose(one.history_["loss"], other.history_["loss"], rtol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_and_a_cpu_take_the_same_steps(series):
    there, here = (
        fit_many(models(max_iter=20, precision="float64", device=device), series)
        for device in ("cuda", "cpu")
    )
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one.history_["loss"], other.history_["loss"], rtol=1e-6)
