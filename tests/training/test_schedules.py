import copy

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, SequentialLR

from softclt import TS2Vec, fit_many
from softclt.methods.learner import RepresentationLearner
from softclt.training import fit_loop, loop
from softclt.training.course import Course
from softclt.training.schedules import LearningRates, schedules

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "batch_size": 4, "device": "cpu"}
N = 23  # steps; no multiple of a tenth


@pytest.fixture
def series(rng):
    return rng.normal(size=(9, 2, 20))


def model(**params):
    defaults = {"max_iter": N, "random_state": 0, "distance": "euclidean", "precision": "float64"}
    return TS2Vec(**SMALL | defaults | params)


def warmup_cosine(optimizer):
    rise = LinearLR(optimizer, start_factor=1 / 3, total_iters=2)
    return SequentialLR(optimizer, [rise, CosineAnnealingLR(optimizer, N - 2)], milestones=[2])


OF_TORCH = {
    "constant": lambda optimizer: ConstantLR(optimizer, factor=1),
    "linear": lambda optimizer: LinearLR(optimizer, 1, 0, total_iters=N),
    "cosine": lambda optimizer: CosineAnnealingLR(optimizer, T_max=N),
    "warmup-cosine": warmup_cosine,
}


@pytest.mark.parametrize("name", schedules.names())
@pytest.mark.parametrize("n_steps", [1, 2, 9, 10, 250])
def test_a_factor_is_positive_and_reaches_one_but_not_more(name, n_steps):
    factors = [schedules[name](step, n_steps) for step in range(n_steps)]
    assert min(factors) > 0
    assert max(factors) == 1


@pytest.mark.parametrize("name", OF_TORCH)
@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*")
def test_adamw_takes_the_steps_of_torchs_own_scheduler(series, name, monkeypatch):
    monkeypatch.setattr("softclt.training.schedules._AHEAD", 5)  # several times in a fit
    state = model(max_iter=0).fit(series).training_state_
    reference = copy.deepcopy(state.module)
    optimizer = torch.optim.AdamW(reference.parameters(), lr=0.01)
    scheduler = OF_TORCH[name](optimizer)

    def distance_to_one(module):
        return sum(((p - 1) ** 2).sum() for p in module.parameters())

    wanted = []
    for _ in range(N):
        wanted.append(optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        distance_to_one(reference).backward()
        optimizer.step()
        scheduler.step()

    state.optimizer.param_groups[0]["lr"] = 0.01
    rates = LearningRates([0.01], [name], state.step, state.step + N)
    np.testing.assert_allclose([rates.of(0, step) for step in range(N)], wanted, rtol=1e-12)
    x = torch.from_numpy(series)

    def loss(module, batch, draws):
        return distance_to_one(module)[None]

    task = Course(
        objective=loss,
        x=x,
        weights=None,
        temporal=None,
        lam=0.5,
        seeds=[0],
        batch_size=4,
        max_length=20,
        layout=lambda t, k: t,
        rates=rates,
    )
    fit_loop(state, task, N)
    for own, other in zip(state.module.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-11, atol=1e-13)


def test_many_with_rates_and_schedules_of_their_own_are_as_alone(series, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    settings = [
        {"lr": 1e-3, "lr_schedule": "cosine"},
        {"lr": 4e-3, "lr_schedule": "constant"},
        {"lr": 2e-3, "lr_schedule": "warmup-cosine", "random_state": 5},
    ]
    together = fit_many([model(**own) for own in settings], series)
    assert {one.history_["trained_together"] for one in together} == {3}
    for one, own in zip(together, settings, strict=True):
        alone = model(**own).fit(series)
        np.testing.assert_allclose(one.history_["loss"], alone.history_["loss"], rtol=1e-6)
        np.testing.assert_allclose(one.transform(series), alone.transform(series), atol=1e-6)


@pytest.mark.parametrize("name", ["cosine", "warmup-cosine"])
def test_going_on_from_a_checkpoint_keeps_the_schedule_to_the_bit(
    series, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 5)

    def power_cut(progress):
        if progress.step == 15:
            raise RuntimeError("power cut")

    params = {"lr_schedule": name, "precision": "float32"}
    with pytest.raises(RuntimeError, match="power cut"):
        model(**params).fit(series, checkpoint=tmp_path, callbacks=[power_cut])
    gone_on = model(**params).fit(series, checkpoint=tmp_path)
    straight = model(**params).fit(series)
    assert gone_on.history_["loss"] == straight.history_["loss"]
    for part in ("averaged", "module"):
        own = getattr(gone_on.training_state_, part).state_dict()
        for key, value in getattr(straight.training_state_, part).state_dict().items():
            assert torch.equal(own[key], value), key


def test_a_schedule_changes_what_is_learned(series):
    embeddings = [model(lr_schedule=name).fit(series).transform(series) for name in OF_TORCH]
    for i, one in enumerate(embeddings):
        assert all(np.abs(one - other).max() > 1e-4 for other in embeddings[:i])


def test_a_second_fit_goes_through_the_schedule_again(series):
    rates = LearningRates([0.1], ["linear"], first=10, last=20)
    assert [rates.of(0, 10), rates.of(0, 15)] == [0.1, 0.05]
    twice = model(lr_schedule="linear", warm_start=True).fit(series).fit(series)
    assert twice.n_iter_ == 2 * N
    assert np.isfinite(twice.history_["loss"]).all()


def test_the_same_rate_for_all_and_always_costs_nothing(series, monkeypatch):
    built = []
    monkeypatch.setattr(loop, "RateFactors", lambda *arguments: built.append(arguments))
    model(max_iter=1).fit(series)
    assert built == []
    model(max_iter=1, lr=0.5).fit(series)
    assert built == []
    assert not LearningRates([0.1, 0.2], ["constant"] * 2, 0, 1).same
    assert not LearningRates([0.1, 0.1], ["constant", "linear"], 0, 1).same


def test_a_model_of_a_stack_goes_on_alone_at_its_own_rate(series, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    pair = fit_many([model(warm_start=True), model(warm_start=True, lr=0.01)], series)
    alone = model(warm_start=True, lr=0.01).fit(series).fit(series)
    np.testing.assert_allclose(
        pair[1].fit(series).history_["loss"], alone.history_["loss"], rtol=1e-6
    )


def test_an_unknown_schedule_is_refused_with_the_known_ones(series):
    known = r"unknown learning-rate schedule 'cosin'; known: constant, cosine, linear, warmup-cosin"
    with pytest.raises(ValueError, match=known):
        model(lr_schedule="cosin").fit(series)
