"""What it takes to write a method, and what holds for all of them."""

import inspect

import numpy as np
import pytest
import torch
from sklearn.base import clone

from softclt import fit_many, functional, load_model
from softclt.encoders import DilatedEncoder
from softclt.methods import methods
from softclt.methods.learner import RepresentationLearner
from softclt.methods.signature import with_parameters_of
from softclt.methods.soft import SoftAtAllLevels, SoftLearner
from tables import as_before

X = np.random.default_rng(0).normal(size=(6, 1, 20)).astype(np.float32)


class Plain(RepresentationLearner):
    """The two hooks and nothing else."""

    def _build(self, n_channels):
        return DilatedEncoder(n_channels, 5, 4, depth=1)

    def _loss(self, module, batch, draws):
        z = module(batch.x)
        return functional.hierarchical_loss(z, z.flip(-1))


class Soft(SoftAtAllLevels):
    """Reads a parameter from itself that the batch should have brought."""

    _stacks = True

    def _build(self, n_channels):
        return DilatedEncoder(n_channels, 5, 4, depth=1)

    def _loss(self, module, batch, draws):
        z = module(batch.x)
        return self.lam * functional.hierarchical_loss(z, z.flip(-1), batch.weights)


@pytest.mark.parametrize("name", methods.names())
def test_every_method_says_what_each_of_its_parameters_is(name):
    kind = methods[name]
    parameters = inspect.signature(kind).parameters
    assert all(f"\n    {parameter}: " in kind.__doc__ for parameter in parameters)
    assert set(parameters) == set(kind().get_params())


@pytest.mark.parametrize("name", methods.names())
def test_a_wrong_parameter_is_named(name):
    with pytest.raises(TypeError, match="'sice'"):
        methods[name](sice=1)


def test_two_hooks_are_enough(tmp_path):
    with as_before(methods):
        methods.register("plain")(Plain)
        model = clone(Plain(max_iter=3, random_state=0)).fit(X)
        model.save(tmp_path)
        again = load_model(tmp_path)
    assert model.transform(X).shape == (6, 5)
    assert model.history_["distance_mode"] is None  # nobody asked for distances
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="batch_size"):
        Plain(batch_size=0).fit(X)


def test_models_that_do_not_say_that_they_stack_are_trained_one_by_one(monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 10)
    models = fit_many([Plain(max_iter=2, random_state=seed) for seed in (0, 1)], X)
    assert [model.history_["trained_together"] for model in models] == [1, 1]


def test_a_loss_that_reads_what_differs_in_a_stack_is_an_error(monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 10)
    alike = [Soft(max_iter=2, random_state=seed) for seed in (0, 1)]
    assert [model.history_["trained_together"] for model in fit_many(alike, X)] == [2, 2]
    with pytest.raises(AttributeError, match="lam"):
        fit_many([Soft(max_iter=2, random_state=0, lam=lam) for lam in (0.2, 0.5)], X)


def test_a_parameter_that_no_class_lets_differ_keeps_models_apart(monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 10)
    models = [Soft(max_iter=2, random_state=0, normalize_weights=own) for own in (True, False)]
    assert [model.history_["trained_together"] for model in fit_many(models, X)] == [1, 1]


def test_instance_weights_without_distances_are_refused():
    class Odd(Plain):
        def _instance_weights(self, distances):
            return torch.eye(len(distances))

    with pytest.raises(TypeError, match="SoftLearner"):
        Odd(max_iter=1).fit(X)


def test_defaults_of_a_parent_can_be_others():
    class Large(SoftLearner):
        @with_parameters_of(SoftLearner, batch_size=64)
        def __init__(self, **parameters):
            super().__init__(**parameters)

    class Larger(Large):
        @with_parameters_of(Large, tau_instance=None)
        def __init__(self, *, own=1, **parameters):
            super().__init__(**parameters)
            self.own = own

    model = Larger.__new__(Larger)
    Larger.__init__(model, own=2)
    assert (model.own, model.batch_size, model.tau_instance, model.alpha) == (2, 64, None, 0.5)
    assert inspect.signature(Larger).parameters["batch_size"].default == 64
