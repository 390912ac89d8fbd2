import json

import numpy as np
import pytest
import torch

import softclt
from softclt import TS2Vec, pairwise_distance
from softclt.distances import batches
from softclt.methods import between

SMALL = {
    "output_dims": 6,
    "hidden_dims": 4,
    "depth": 2,
    "max_iter": 4,
    "random_state": 0,
    "device": "cpu",
}


@pytest.fixture
def series(rng):
    return rng.normal(size=(20, 2, 24))


def fitted(X, mode, **parameters):
    return TS2Vec(**SMALL | parameters, distance_mode=mode).fit(X)


def peak(x, y):
    return float(abs(x.max() - y.max()))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"distance": "tam", "distance_params": {"window": 0.2}},
        {"distance": peak},
        {"distance_scale": "series", "distance_normalize": "max"},
        {"max_train_length": 12},
        {"precision": "float64"},
    ],
    ids=", ".join,  # not their values: a function's name has its address
)
def test_lazy_and_dense_train_alike_where_the_sample_has_all_pairs(series, parameters):
    series[3, :, 15:] = series[7, 0, 4:9] = np.nan
    lazy, dense = (fitted(series, mode, **parameters) for mode in ("lazy", "dense"))
    np.testing.assert_allclose(lazy.history_["loss"], dense.history_["loss"], rtol=1e-6)
    assert (lazy.history_["distance_mode"], dense.history_["distance_mode"]) == ("lazy", "dense")
    np.testing.assert_allclose(lazy.transform(series), dense.transform(series), atol=1e-5)


def test_the_weights_of_lazy_matter(series):
    lazy = fitted(series, "lazy").history_["loss"]
    assert not np.allclose(lazy, fitted(series, "lazy", tau_instance=None).history_["loss"])
    assert not np.allclose(lazy, fitted(series, "lazy", distance="euclidean").history_["loss"])


def test_history_says_what_was_computed_and_survives_json(series):
    lazy, dense = (fitted(series, mode).history_ for mode in ("lazy", "dense"))
    facts, all_pairs = lazy["distances"], 20 * 19 // 2
    assert facts["engine"] == dense["distances"]["engine"] == "cpu"
    assert facts["pairs_before"] == dense["distances"]["pairs_before"] == all_pairs
    assert facts["pairs_in_batches"] == 4 * (8 * 7 // 2)
    assert dense["distances"]["pairs_in_batches"] == 0
    scaled = (series - series.mean(axis=(0, 2), keepdims=True)) / series.std(
        axis=(0, 2), keepdims=True
    )
    D = pairwise_distance(scaled)
    assert facts["high"] == pytest.approx(D.max(), rel=1e-5)
    assert facts["low"] == pytest.approx(D[~np.eye(20, dtype=bool)].min(), rel=1e-5)
    assert 0 < facts["seconds_in_training"] < lazy["seconds"]["training"]
    for history in (lazy, dense, fitted(series, "lazy", tau_instance=None).history_):
        assert json.loads(json.dumps(history)) == history


def test_auto_is_dense_for_little_data_and_lazy_beyond_the_limits(series, monkeypatch):
    assert fitted(series, "auto").history_["distance_mode"] == "dense"
    monkeypatch.setattr(batches, "MOST_SERIES", 19)
    assert fitted(series, "auto").history_["distance_mode"] == "lazy"
    assert fitted(series, "dense").history_["distance_mode"] == "dense"
    columns = fitted(series, "auto", distance_normalize="column")
    assert columns.history_["distance_mode"] == "dense"


def test_auto_counts_the_steps_that_are_planned(series, monkeypatch):
    monkeypatch.setattr(batches, "FEW_CELLS", 0)
    monkeypatch.setattr(batches, "SAMPLE_SIZE", 10)
    enough = 7  # 7 steps of 28 pairs, more than the 180 that the sample leaves
    assert fitted(series, "auto", max_iter=enough).history_["distance_mode"] == "dense"
    assert fitted(series, "auto", max_iter=enough - 1).history_["distance_mode"] == "lazy"


@pytest.mark.parametrize("hard", [{"tau_instance": None}, {"instance_assignment": "hard"}], ids=str)
def test_nothing_is_computed_where_the_instance_part_is_hard(series, hard, monkeypatch):
    monkeypatch.setattr(between, "BatchDistances", lambda *_, **__: pytest.fail("computed"))
    history = fitted(series, "lazy", **hard).history_
    assert history["distance_mode"] is None
    assert history["distances"] is None


def test_given_distances_are_dense_and_refused_with_lazy(series):
    D = pairwise_distance(series)
    given = TS2Vec(**SMALL).fit(series, distances=D).history_
    assert given["distance_mode"] == "dense"
    assert given["distances"]["pairs_before"] == 0
    with pytest.raises(ValueError, match="distances are given and the mode is 'lazy'"):
        TS2Vec(**SMALL, distance_mode="lazy").fit(series, distances=D)
    hard = TS2Vec(**SMALL, distance_mode="lazy", tau_instance=None)
    assert hard.fit(series, distances=D).history_["distance_mode"] is None


def test_one_series_needs_no_distances_in_any_mode(rng):
    with pytest.warns(UserWarning, match="one series only"):
        model = fitted(rng.normal(size=(1, 1, 40)), "lazy")
    assert model.history_["distance_mode"] is None


def test_lazy_training_goes_on_after_files_as_if_never_stopped(series, tmp_path):
    exact = {"precision": "float64", "warm_start": True}
    straight = fitted(series, "lazy", **exact)
    half = fitted(series, "lazy", max_iter=2, **exact)
    half.save(tmp_path, training=True)
    loaded = softclt.load_model(tmp_path)
    assert loaded.history_ == half.history_
    loaded.fit(series)
    np.testing.assert_allclose(loaded.history_["loss"], straight.history_["loss"], rtol=1e-9)
    assert loaded.history_["distances"]["high"] == straight.history_["distances"]["high"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_lazy_training_on_a_gpu_computes_distances_there(series):
    there, here = (fitted(series, "lazy", device=device) for device in ("cuda", "cpu"))
    assert there.history_["distances"]["engine"] == "cuda"
    assert there.history_["distances"]["seconds_in_training"] is None
    assert there.history_["distances"]["high"] == pytest.approx(
        here.history_["distances"]["high"], rel=1e-4
    )
