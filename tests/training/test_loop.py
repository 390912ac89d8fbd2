import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from softclt import CoST, TS2Vec
from softclt.data import waves
from softclt.training import fit_loop
from softclt.training.course import Course

PLAIN = {"temporal": None, "lam": 0.5, "seeds": [0], "layout": lambda length, step: length}
SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "random_state": 0}


@pytest.fixture
def series(rng):
    return rng.normal(size=(9, 2, 20)).astype(np.float32)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_averaged_weights_are_the_mean_of_the_initial_ones_and_all_iterates(series):
    iterates = [
        weights(TS2Vec(max_iter=k, **SMALL).fit(series).training_state_.module) for k in range(4)
    ]
    model = TS2Vec(max_iter=3, **SMALL).fit(series)
    torch.testing.assert_close(weights(model.module_), torch.stack(iterates).mean(dim=0))


def test_going_on_gives_the_run_that_was_never_interrupted(series):
    straight = TS2Vec(max_iter=6, precision="float64", **SMALL).fit(series)
    halves = TS2Vec(max_iter=3, precision="float64", warm_start=True, **SMALL)
    halves.fit(series).fit(series)
    np.testing.assert_allclose(straight.history_["loss"], halves.history_["loss"], rtol=1e-12)
    torch.testing.assert_close(weights(straight.module_), weights(halves.module_))
    assert halves.n_iter_ == 6


def test_without_warm_start_fit_begins_again(series):
    model = TS2Vec(max_iter=2, **SMALL).fit(series)
    first = copy.deepcopy(model.history_["loss"])
    assert model.fit(series).history_["loss"] == first


def test_iterations_follow_the_rule_by_size_unless_they_are_given():
    model = TS2Vec(batch_size=4)
    assert model._n_steps(100_000, 10) == 200
    assert model._n_steps(100_001, 10) == 600
    assert TS2Vec(max_epochs=3, batch_size=4)._n_steps(10, 10) == 6
    assert TS2Vec(max_iter=5, max_epochs=3, batch_size=4)._n_steps(10, 10) == 5
    assert TS2Vec(max_epochs=3, batch_size=4)._n_steps(10, 2) == 3


def test_long_series_are_trained_on_windows_of_the_greatest_length(series):
    model = TS2Vec(max_iter=2, max_train_length=15, **SMALL).fit(series)
    assert np.isfinite(model.history_["loss"]).all()


def test_a_loss_that_is_no_number_stops_with_a_hint(series):
    with pytest.raises(FloatingPointError, match="smaller lr"):
        TS2Vec(max_iter=30, lr=1e12, **SMALL).fit(series * 1e3)


def test_bfloat16_arithmetic_stays_near_float32(series):
    full = TS2Vec(max_iter=2, **SMALL).fit(series).history_["loss"]
    half = TS2Vec(max_iter=2, precision="bfloat16", **SMALL).fit(series).history_["loss"]
    np.testing.assert_allclose(half, full, rtol=0.05)


def test_a_loss_gets_the_weights_of_its_batch_and_of_no_other(series):
    state = TS2Vec(max_iter=0, **SMALL).fit(series).training_state_
    asked, given = [], []

    def weights(index):
        asked.append(index.tolist())
        return (10.0 * index[..., None] + index[:, None]).float()

    def loss(module, batch, draws):
        given.append((batch.index.tolist(), None if batch.weights is None else batch.weights + 0))
        return sum(p.sum(dim=tuple(range(1, p.ndim))) for p in module.parameters())

    def task(weights):
        x = torch.from_numpy(series)
        return Course(objective=loss, x=x, weights=weights, batch_size=4, max_length=20, **PLAIN)

    fit_loop(state, task(weights), n_steps=3)
    assert [index for index, _ in given] == asked
    assert asked[0] != asked[1]
    for (index,), (values,) in given:
        assert values.tolist() == [[10.0 * i + j for j in index] for i in index]
    fit_loop(state, task(None), n_steps=1)
    assert given[-1][1] is None


def test_a_window_of_long_series_is_drawn_for_the_values_and_their_mask_alike(series):
    series[0, 1, 4] = np.nan
    seen = []

    def loss(module, batch, draws):
        seen.append(replace(batch, index=batch.index.clone()))  # one buffer serves all steps
        return sum(p.sum(dim=tuple(range(1, p.ndim))) for p in module.parameters())

    state = TS2Vec(max_iter=0, **SMALL).fit(series).training_state_
    x = torch.from_numpy(series)
    task = Course(objective=loss, x=x, weights=None, batch_size=9, max_length=15, **PLAIN)
    fit_loop(state, task, n_steps=8)
    for batch in seen:
        start = int(batch.start[0])
        expected = x[batch.index[0], :, start : start + 15]
        assert torch.equal(batch.x[0].nan_to_num(), expected.nan_to_num())
        assert torch.equal(batch.mask[0], ~expected.isnan().any(dim=1))
    assert len({int(batch.start[0]) for batch in seen}) > 1


@pytest.mark.parametrize("method", [TS2Vec, CoST])
@pytest.mark.slow
def test_as_many_threads_give_the_same_bits_and_others_the_same_up_to_rounding(method):
    X = waves(n_per_class=4, length=120, random_state=0).X_train
    threads, embedded = torch.get_num_threads(), []
    try:
        for n in (1, 2, 1, 2):
            torch.set_num_threads(n)
            model = method(
                output_dims=32, hidden_dims=32, depth=4, max_iter=2, random_state=0, device="cpu"
            )
            embedded.append(model.fit(X).transform(X))
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(embedded[:2], embedded[2:])
    np.testing.assert_allclose(embedded[0], embedded[1], atol=1e-4)
