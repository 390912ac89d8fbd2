"""Many models trained in one go score as each of them alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from softclt import EmbeddingEnsemble, TS2Vec, evaluate
from softclt.data.synthetic import ragged, waves
from softclt.inference import encoding as inference
from softclt.tasks import evaluate_many, tasks, together
from softclt.tasks.evaluation import Outcome
from tables import registered

TINY = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 3, "device": "cpu"}


@pytest.fixture
def data():
    return waves(n_per_class=8, length=24, noise=0.6, random_state=1)


@pytest.fixture
def models():
    hard = {"tau_instance": None, "tau_temporal": None}
    return [
        TS2Vec(**TINY),
        TS2Vec(**TINY, **hard),
        TS2Vec(**TINY | hard | {"max_iter": 0}),
        TS2Vec(**TINY, layers="all"),
        TS2Vec(**TINY, layers="all", pooling="mean"),
        EmbeddingEnsemble(TS2Vec(**TINY, layers="all"), n_members=2),
    ]


def without_times(result):
    return replace(result, seconds={}, created="", trained_together=1)


def test_results_equal_those_of_evaluate_in_the_order_of_models_and_seeds(data, models):
    many = evaluate_many("classification", models, data, seeds=[0, 3], probe="ridge")
    single = [
        evaluate("classification", model, data, seed, probe="ridge")
        for model in models
        for seed in (0, 3)
    ]
    assert [r.identity() for r in many] == [r.identity() for r in single]
    for one, other in zip(many, single, strict=True):
        assert one.metrics == pytest.approx(other.metrics, abs=1e-4)
        assert replace(without_times(one), metrics={}) == replace(without_times(other), metrics={})
    assert len({tuple(r.metrics.values()) for r in many}) > 4  # they could differ


def test_what_differs_in_its_read_out_alone_is_trained_once(data, models, monkeypatch):
    calls = []

    def counted(distinct, X):
        distinct = list(distinct)
        calls.append(len(distinct))
        return together_fit_many(distinct, X)

    together_fit_many = together.fit_many
    monkeypatch.setattr(together, "fit_many", counted)
    results = evaluate_many("classification", models, data, seeds=[0, 1], probe="knn")
    # soft, hard, untrained and two members for each seed; the read-outs of soft cost nothing
    assert calls == [2 * 5]
    assert {r.trained_together for r in results} == {10}


def test_the_shares_of_the_time_add_up_to_the_whole(data, models):
    results = evaluate_many("classification", [models[0], models[5]], data, probe="knn")
    alone, pair = (r.seconds["fit"] for r in results)
    assert pair == pytest.approx(2 * alone)
    assert set(results[0].seconds) == {"fit", "encode", "probe"}


def test_one_pass_of_the_encoder_gives_every_read_out():
    X = ragged(n_per_class=3, length=20).X_train
    poolings = (*inference.POOLINGS, "max+mean")
    wanted = {(p, layers) for p in poolings for layers in inference.LAYERS}
    fitted = TS2Vec(**TINY, random_state=0).fit(X)
    found = fitted.read_outs(X, wanted)
    for pooling, layers in wanted:
        R = fitted.set_params(pooling=pooling, layers=layers).transform(X)
        np.testing.assert_array_equal(found[pooling, layers], R)


def test_an_ensemble_says_its_members_parameters_and_how_taus_were_chosen(data):
    taus = [{"tau_instance": 5.0}, {"tau_instance": 40.0}]
    models = [
        EmbeddingEnsemble(TS2Vec(**TINY), n_members=2),
        EmbeddingEnsemble(TS2Vec(**TINY, tau_instance=None, tau_temporal=None), n_members=2),
        EmbeddingEnsemble(TS2Vec(**TINY), n_members=2, param_list=taus),
    ]
    results = evaluate_many("classification", models, data, seeds=[7], probe="knn")
    assert [r.tau_choice for r in results] == ["default", "hard", "fixed"]
    assert results[0].params["max_iter"] == 3
    assert (results[0].params["n_members"], results[0].params["estimator"]) == (2, "ts2vec")
    assert results[0].params["random_state"] == 7


def test_a_model_of_another_kind_is_fitted_by_itself(data):
    flat = FunctionTransformer(lambda X: X.reshape(len(X), -1))
    model = make_pipeline(flat, PCA(2, random_state=0))
    mixed = evaluate_many("classification", [model, TS2Vec(**TINY)], data, probe="knn")
    assert mixed[0].metrics == evaluate("classification", model, data, probe="knn").metrics
    assert [r.trained_together for r in mixed] == [1, 1]


def test_a_task_that_does_not_read_embeddings_is_run_model_by_model(data):
    def run(model, data, *, plus=0):
        return Outcome({"count": float(len(data.X_train) + plus)}, {})

    with registered(tasks, "counting", run):
        results = evaluate_many("counting", [TS2Vec(**TINY)], data, seeds=[0, 1], plus=1)
    assert [r.metrics for r in results] == [{"count": 25.0}] * 2


def test_what_cannot_be_scored_is_refused_before_the_fit(data, monkeypatch):
    monkeypatch.setattr(together, "fit_many", lambda *args: pytest.fail("was fitted"))
    with pytest.raises(ValueError, match="unknown probe 'tree'"):
        evaluate_many("classification", [TS2Vec(**TINY)], data, probe="tree")
