import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from softclt import EmbeddingEnsemble, TS2Vec

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "random_state": 0}


@pytest.fixture
def series(rng):
    return rng.normal(size=(10, 1, 20))


def test_the_embedding_is_that_of_the_members_one_after_the_other(series):
    ensemble = EmbeddingEnsemble(TS2Vec(**SMALL), n_members=3).fit(series)
    parts = [member.transform(series) for member in ensemble.members_]
    np.testing.assert_array_equal(ensemble.transform(series), np.concatenate(parts, axis=1))
    assert ensemble.encode(series, level="timestamp").shape == (10, 20, 18)
    assert len(set(ensemble.get_feature_names_out())) == 18


def test_members_have_seeds_of_their_own_and_the_estimators_seed_decides_them(series):
    one, same, other = (
        EmbeddingEnsemble(TS2Vec(**SMALL | {"random_state": seed}), n_members=2).fit(series)
        for seed in (0, 0, 1)
    )
    assert one.members_[0].seed_ != one.members_[1].seed_
    np.testing.assert_array_equal(one.transform(series), same.transform(series))
    assert (one.transform(series) != other.transform(series)).any()


def test_parameters_are_taken_in_turn(series):
    grid = [{"tau_instance": 5.0}, {"tau_instance": None, "lr": 1e-2}]
    ensemble = EmbeddingEnsemble(TS2Vec(**SMALL), n_members=3, param_list=grid).fit(series)
    assert [m.tau_instance for m in ensemble.members_] == [5.0, None, 5.0]
    assert [m.lr for m in ensemble.members_] == [1e-3, 1e-2, 1e-3]


def test_the_estimator_itself_is_left_alone_and_can_be_cloned_and_put_in_a_pipeline(series):
    model = TS2Vec(**SMALL)
    ensemble = EmbeddingEnsemble(model, n_members=2)
    y = np.arange(10) % 2
    pipeline = make_pipeline(clone(ensemble), RidgeClassifier()).fit(series, y)
    assert pipeline.predict(series).shape == (10,)
    assert not hasattr(model, "module_")
    assert ensemble.get_params()["estimator__tau_instance"] == 20.0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"n_members": 0}, "n_members is 0"), ({"param_list": []}, "param_list is empty")],
)
def test_wrong_parameters_are_explained(series, parameters, words):
    with pytest.raises(ValueError, match=words):
        EmbeddingEnsemble(TS2Vec(**SMALL), **parameters).fit(series)
