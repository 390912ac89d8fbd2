"""`select`: what is trained, how it is scored, and what is chosen."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import softclt
from softclt import EmbeddingEnsemble, TS2Vec, pairwise_distance, select
from softclt.data import waves
from softclt.data.preparation import apply_scale, channel_scale
from softclt.selection import (
    DEFAULT_GRID,
    choose,
    comparison,
    configurations,
    criteria,
    embedding_score,
)
from softclt.selection.comparison import cross_validated
from tables import as_before

TAUS = {"tau_instance": [5.0, 20.0, None]}


@pytest.fixture(scope="module")
def data():
    return waves(n_per_class=5, length=24, random_state=0)


@pytest.fixture
def model():
    return TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=3, random_state=3, device="cpu")


def test_the_best_by_labels_is_the_best_of_the_table_and_is_fitted(model, data):
    found = select(model, data.X_train, data.y_train, TAUS, "train")
    table = found.table
    assert list(table["tau_instance"]) == [5.0, 20.0, None]
    assert table["score"].max() == found.best_score
    assert table["chosen"].sum() == 1
    assert table["tau_instance"][table["chosen"]].item() == found.best_params["tau_instance"]
    R = found.best_model.transform(data.X_train)
    assert embedding_score("train", R, data.y_train) == found.best_score


def test_the_chosen_model_is_what_fit_makes_of_the_chosen_parameters(model, data):
    found = select(model, data.X_train, data.y_train, TAUS)
    again = clone(model).set_params(**found.best_params).fit(data.X_train)
    expected = again.transform(data.X_test)
    np.testing.assert_array_equal(found.best_model.transform(data.X_test), expected)


def test_the_model_that_is_handed_in_stays_as_it_was(model, data):
    before = model.get_params()
    select(model, data.X_train, data.y_train, TAUS)
    assert model.get_params() == before
    assert not hasattr(model, "module_")


def test_everything_is_trained_in_one_go(model, data, monkeypatch):
    calls = []

    def spy(models, *args, **kwargs):
        calls.append(len(models))
        return softclt.fit_many(models, *args, **kwargs)

    monkeypatch.setattr(comparison, "fit_many", spy)
    found = select(model, data.X_train, data.y_train, TAUS, seeds=2)
    assert calls == [6]
    assert [len(member.scores) for member in found.members] == [2, 2, 2]


def test_a_choice_without_labels_is_the_same_whatever_the_labels(model, data, rng):
    without = select(model, data.X_train, None, TAUS, "unlabelled")
    shuffled = select(model, data.X_train, rng.permutation(data.y_train), TAUS, "unlabelled")
    assert without.table.equals(shuffled.table)
    assert without.best == shuffled.best


@pytest.mark.parametrize("given", [False, True])
def test_neighbours_are_those_of_the_series_that_the_network_sees(model, data, rng, given):
    loud = 1000 * rng.normal(size=data.X_train.shape)
    X = np.concatenate([data.X_train, loud], axis=1)  # two channels of very different size
    D = pairwise_distance(apply_scale(X, *channel_scale(X)))
    found = select(model, X, None, TAUS, "neighbours", distances=D if given else None)
    R = found.best_model.transform(X)
    assert found.best_score == pytest.approx(embedding_score("neighbours", R, distances=D))
    unseen = embedding_score("neighbours", R, distances=pairwise_distance(X))
    assert found.best_score != pytest.approx(unseen)


def test_stability_compares_the_seeds_of_a_configuration(model, data):
    found = select(model, data.X_train, None, TAUS, "stability", seeds=[3, 9])
    again = [
        clone(model).set_params(**found.best_params, random_state=seed).fit(data.X_train)
        for seed in (3, 9)
    ]
    R, S = (one.transform(data.X_train) for one in again)
    assert found.best_score == pytest.approx(embedding_score("stability", R, others=[S]), rel=1e-6)
    assert found.best_model.random_state == 3


def test_default_is_the_model_as_it_is_and_nothing_is_compared(model, data):
    found = select(model, data.X_train, strategy="default")
    assert len(found.members) == 1
    assert found.best_params == {}
    assert np.isnan(found.best_score)
    expected = clone(model).fit(data.X_train).transform(data.X_test)
    np.testing.assert_array_equal(found.best_model.transform(data.X_test), expected)


def test_the_repr_says_how_it_was_chosen(model, data):
    text = repr(select(model, data.X_train, data.y_train, TAUS))
    assert "strategy='train' (by loo)" in text
    assert "of 3" in text
    assert "not compared" in repr(select(model, data.X_train, strategy="default"))


def test_without_a_grid_nine_pairs_of_taus_and_hard_are_tried(model, data):
    found = select(model, data.X_train, data.y_train)
    assert [member.params for member in found.members] == list(DEFAULT_GRID)
    assert len(found.members) == 10
    assert found.members[-1].params == {"tau_instance": None, "tau_temporal": None}


def test_among_equals_the_models_own_parameters_win_then_the_first():
    assert choose([0.5, 0.9, 0.9, 0.9]) == 1
    assert choose([0.5, 0.9, 0.9, 0.9], preferred=3) == 3
    assert choose([0.5, 0.9, 0.9, 0.9], preferred=0) == 1
    assert choose([float("nan"), -5.0]) == 1
    assert choose([float("nan")] * 2) == 0
    assert choose([0.0, -1e-300 * 0]) == 0


def test_untrained_models_are_equal_so_the_models_own_are_kept(model, data):
    model.set_params(max_iter=0, tau_instance=20.0)
    found = select(model, data.X_train, data.y_train, TAUS)
    assert len({member.score for member in found.members}) == 1
    assert found.best_params == {"tau_instance": 20.0}


@pytest.mark.parametrize("probe", ["svm", "knn", "linear"])
def test_other_probes_score_by_folds(model, data, probe):
    found = select(model, data.X_train, data.y_train, {"tau_instance": [None]}, probe=probe)
    R = found.best_model.transform(data.X_train)
    assert found.criterion == f"cross-validated {probe}"
    assert found.best_score == cross_validated(probe, R, data.y_train)


def test_folds_leave_a_series_out_of_its_own_probe(rng):
    R, y = rng.normal(size=(60, 40)), np.arange(60) % 2
    assert cross_validated("knn", R, y) < 0.8  # on what it was fitted on it is always right
    assert cross_validated("knn", R + 100 * y[:, None], y) == 1.0


def test_folds_take_a_class_with_one_member():
    R = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0]])
    assert cross_validated("knn", R, [0, 0, 0, 1, 1, 1, 2]) == pytest.approx(6 / 7)


def test_grids_are_mappings_of_lists_or_lists_of_mappings(model, data):
    listed = select(model, data.X_train, data.y_train, [{"alpha": 0.25}, {"tau_instance": None}])
    assert [m.params for m in listed.members] == [{"alpha": 0.25}, {"tau_instance": None}]
    assert configurations({"a": [1, 2], "b": np.array([3])}) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]


def test_series_of_varying_length_are_welcome(model, data):
    ragged = [x[:, : 12 + i] for i, x in enumerate(data.X_train[:10])]
    found = select(model, ragged, None, TAUS, "unlabelled")
    assert np.isfinite(found.best_score)


def test_the_chosen_model_works_in_a_pipeline_and_in_an_ensemble(model, data):
    found = select(model, data.X_train, data.y_train, TAUS)
    pipeline = make_pipeline(clone(model).set_params(**found.best_params), SVC())
    assert pipeline.fit(data.X_train, data.y_train).predict(data.X_test).shape == (
        len(data.X_test),
    )
    ensemble = EmbeddingEnsemble(found.best_model, n_members=2).fit(data.X_train)
    assert {m.tau_instance for m in ensemble.members_} == {found.best_params["tau_instance"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "y is None.*strategy='unlabelled'"),
        ({"strategy": "oracle"}, "unknown strategy 'oracle'"),
        ({"strategy": "stability"}, "seeds=2"),
        ({"strategy": "unlabelled", "grid": {}}, "grid is empty"),
        ({"strategy": "unlabelled", "grid": []}, "grid is empty"),
        ({"strategy": "unlabelled", "grid": {"tau_instance": []}}, "grid is empty"),
        ({"strategy": "unlabelled", "grid": {"tau_instance": 5.0}}, "expected a list"),
        ({"strategy": "unlabelled", "grid": {"distance": "dtw"}}, "expected a list"),
        ({"strategy": "unlabelled", "grid": {"taus": [1]}}, "taus"),
        ({"strategy": "unlabelled", "grid": {"tau_instance": [-1.0]}}, "tau_instance"),
        ({"strategy": "unlabelled", "seeds": 0}, "seeds"),
        ({"strategy": "unlabelled", "seeds": []}, "seeds is empty"),
        ({"strategy": "unlabelled", "search": "random"}, "search"),
        ({"y": np.zeros(15)}, "do not differ"),
        ({"y": np.arange(3)}, "y has shape"),
        ({"y": np.arange(15), "probe": "forest"}, "unknown probe"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_trained(
    model, data, arguments, words, monkeypatch
):
    monkeypatch.setattr("softclt.methods.many._fit_group", lambda *a: pytest.fail("was trained"))
    with pytest.raises(ValueError, match=words):
        select(model, data.X_train[:15], **arguments)


def test_one_series_cannot_be_compared(model, data):
    with pytest.raises(ValueError, match="one series"):
        select(model, data.X_train[:1], strategy="unlabelled")


def test_an_ensemble_is_told_what_to_do_instead(data):
    with pytest.raises(TypeError, match=r"EmbeddingEnsemble\(selection\.best_model\)"):
        select(EmbeddingEnsemble(), data.X_train)


def test_optuna_is_asked_for_by_name_where_it_is_missing(model, data, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ImportError, match=r"softclt\[tune\]"):
        select(model, data.X_train, data.y_train, search="optuna")


@pytest.mark.slow
def test_optuna_searches_ranges_and_begins_with_the_models_own(model, data):
    pytest.importorskip("optuna")
    ranges = {"tau_instance": (1.0, 50.0), "alpha": [0.25, 0.5]}
    found = [
        select(model, data.X_train, data.y_train, ranges, search="optuna", n_trials=10)
        for _ in range(2)
    ]
    tried = [member.params for member in found[0].members]
    assert len(tried) == 10
    assert tried[0] == {"tau_instance": 20.0, "alpha": 0.5}
    assert all(1.0 <= one["tau_instance"] <= 50.0 for one in tried)
    assert len({one["tau_instance"] for one in tried}) == 10
    assert tried == [member.params for member in found[1].members]
    assert found[0].best_score == max(member.score for member in found[0].members)


@pytest.mark.parametrize("grid", [{"tau_instance": (5.0, 1.0)}, {"tau_instance": 3.0}, [{}], {}])
def test_optuna_wants_ranges(model, data, grid):
    pytest.importorskip("optuna")
    with pytest.raises(ValueError, match=r"range|mapping"):
        select(model, data.X_train, data.y_train, grid, search="optuna")


def test_the_code_of_the_page_on_choosing_runs(data):
    page = (Path(__file__).parents[2] / "docs" / "choosing-tau.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    names = {"X_train": data.X_train, "y_train": data.y_train, "X_new": data.X_test}
    small = "TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=1, "
    with as_before(criteria):
        for block in blocks:
            exec(compile(block.replace("TS2Vec(", small), "choosing-tau.md", "exec"), names)
    assert names["R_new"].shape == (len(data.X_test), 8)
    assert names["selection"].strategy == "spread"
