"""A torch module of one's own as the encoder of a method."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from softclt import TS2Vec, fit_many, load_model
from softclt.encoders import ForeignEncoder, Piece
from softclt.methods import RepresentationLearner
from softclt.persistence import ModelFileError


class Convolutions(nn.Module):
    """Two plain layers, with batch statistics and a number."""

    def __init__(self, n_channels=1, size=6):
        super().__init__()
        self.first = nn.Conv1d(n_channels, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Conv1d(4, size, 3, padding=1)
        self.gain = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.gain * self.last(self.norm(self.first(x)).relu()).transpose(1, 2)


class ByChannel(Convolutions):
    """Forgets to put time before the embedding."""

    def forward(self, x):
        return super().forward(x).transpose(1, 2)


class InPairs(Convolutions):
    """Has a vector for each step of an even number of them."""

    def forward(self, x):
        return super().forward(x)[:, : x.shape[-1] // 2 * 2]


class LongOnes(Convolutions):
    """Forgets a step of series that are shorter than those it is tried with."""

    def forward(self, x):
        return super().forward(x)[:, : None if x.shape[-1] > 30 else -1]


X = np.random.default_rng(0).normal(size=(10, 1, 40)).astype(np.float32)


def module(**kwargs):
    torch.manual_seed(0)
    return Convolutions(**kwargs)


def small(**kwargs):
    return TS2Vec(**{"encoder": module(), "max_iter": 4, "random_state": 0} | kwargs)


def test_it_is_trained_and_its_own_weights_stay():
    own = module()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    model = TS2Vec(encoder=own, max_iter=4, random_state=0).fit(X)
    assert model.transform(X).shape == (10, 6)
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
    trained = model.module_.module.state_dict()
    assert not torch.equal(trained["first.weight"], before["first.weight"])
    assert trained["norm.num_batches_tracked"] == 8  # two views a step; not those of the start


def test_the_same_module_and_seed_give_the_same_model():
    first, second = small().fit(X), small().fit(X)
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    assert clone(small()).fit(X).transform(X).shape == (10, 6)


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_models_with_a_module_of_their_own_are_fitted_side_by_side_as_alone(schedule):
    models = [small(tau_instance=tau, lr_schedule=schedule) for tau in (5.0, None)]
    together = [model.transform(X) for model in fit_many(models, X)]
    alone = [clone(model).fit(X).transform(X) for model in models]
    np.testing.assert_array_equal(together, alone)


class Looks(nn.Linear):
    """Goes by its values."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)) if x.sum() < 1e9 else x.transpose(1, 2)


class Recurrent(nn.LSTM):
    def forward(self, x):
        return super().forward(x.transpose(1, 2))[0]


def plain(**kwargs):
    """The convolutions without the lone number."""
    own = module(**kwargs)
    del own.gain
    own.gain = 1.0
    return own


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_what_can_be_stacked_is_and_becomes_what_it_is_alone(schedule, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 10)
    settings = [{"tau_instance": 5.0, "lr": 1e-3}, {"tau_instance": None, "lr": 3e-3}]
    exact = {"encoder": plain(), "lr_schedule": schedule, "precision": "float64"}
    models = [small(**exact, **own) for own in settings]
    together = [model.transform(X) for model in fit_many(models, X)]
    assert [model.history_["trained_together"] for model in models] == [2, 2]
    again = fit_many([model.set_params(warm_start=True) for model in models], X)
    assert [model.n_iter_ for model in again] == [8, 8]
    monkeypatch.undo()
    alone = [clone(model).set_params(warm_start=False).fit(X) for model in models]
    np.testing.assert_allclose(together, [own.transform(X) for own in alone], atol=1e-5)
    longer = [own.set_params(warm_start=True).fit(X).transform(X) for own in alone]
    np.testing.assert_allclose([own.transform(X) for own in again], longer, atol=1e-5)


@pytest.mark.parametrize(
    "encoder",
    [module(), nn.Sequential(plain(), nn.Dropout()), Looks(1, 5)],
    ids=["a number", "dropout", "looks"],
)
def test_what_cannot_be_stacked_is_trained_one_by_one(encoder, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 10)
    models = fit_many([small(encoder=encoder, random_state=seed) for seed in (0, 1)], X)
    assert [model.history_["trained_together"] for model in models] == [1, 1]


def test_a_recurrent_network_is_trained_either_way(monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 10)
    models = [small(encoder=Recurrent(1, 4, batch_first=True), random_state=s) for s in (0, 1)]
    assert fit_many(models, X)[1].transform(X).shape == (10, 4)


def test_missing_values_hidden_steps_and_varying_lengths_are_zeros_to_it():
    encoder = ForeignEncoder(module().eval(), 1).eval()
    x = torch.from_numpy(X[:2])
    gap, zeros = x.clone(), x.clone()
    gap[:, :, 7], zeros[:, :, 7] = float("nan"), 0.0
    keep = torch.ones(2, 40, dtype=torch.bool)
    keep[:, 7] = False
    assert torch.equal(encoder(gap), encoder(zeros))
    assert torch.equal(encoder(x, keep), encoder(zeros))
    uneven = [X[0, 0, :20], X[1, 0]]
    assert np.isfinite(small().fit(uneven).transform(uneven)).all()


def test_pieces_are_series_of_their_own():
    encoder = ForeignEncoder(module().eval(), 1).eval()
    x = torch.from_numpy(X)
    pieces = [Piece(range(15), range(5, 15)), Piece(range(15, 40), range(15, 25))]
    apart = torch.cat([encoder(x[..., :15])[:, 5:], encoder(x[..., 15:])[:, :10]], dim=1)
    torch.testing.assert_close(encoder(x, pieces=pieces), apart)


def test_levels_causal_reading_and_surprise_work():
    model = small().fit(X)
    assert model.encode(X, "timestamp").shape == (10, 40, 6)
    assert model.encode(X, "timestamp", causal=True, context=5).shape == (10, 40, 6)
    assert model.last_step_change(X, context=5).shape == (10, 40)


def test_a_saved_model_asks_for_the_module_and_takes_it(tmp_path):
    model = small().fit(X)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="Convolutions; give one"):
        load_model(tmp_path / "model")
    with pytest.raises(ModelFileError, match="does not fit"):
        load_model(tmp_path / "model", encoder=module(size=7))
    loaded = load_model(tmp_path / "model", encoder=Convolutions())
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_a_checkpoint_goes_on_with_the_same_module_and_refuses_another(tmp_path):
    whole = small().fit(X, checkpoint=tmp_path)
    again = small().fit(X, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.transform(X), whole.transform(X))
    with pytest.raises(ValueError, match="another run"):
        small(encoder=module(size=7)).fit(X, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (ByChannel(), r"makes shape \(2, 6, 64\).*expected \(B, T, M\)"),
        (Convolutions(n_channels=3), r"cannot take series of shape .*\(2, 1, 64\)"),
        (nn.LSTM(64, 5), "makes a tuple"),
        (InPairs(), r"makes shape \(2, 36, 6\).*expected \(B, T, M\) = \(2, 37, M\)"),
        (LongOnes(), r"LongOnes makes \d+ vectors of series of \d+ steps"),
        ("resnet", "expected a torch module"),
        (nn.Identity(), "Identity has no parameters"),
    ],
)
def test_what_does_not_fit_is_told_before_the_first_step(encoder, message):
    with pytest.raises(ValueError, match=message):
        TS2Vec(encoder=encoder, max_iter=10**9).fit(X)
