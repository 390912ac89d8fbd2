import numpy as np
import pytest
import torch

from softclt import TS2Vec, load_model, pairwise_distance

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 3, "random_state": 0}


@pytest.fixture
def series(rng):
    return rng.normal(size=(10, 1, 20))


def losses(X, **parameters):
    return TS2Vec(**SMALL | parameters).fit(X).history_["loss"]


def test_it_is_soft_by_default_and_none_is_the_original(series):
    soft, hard = losses(series), losses(series, tau_instance=None, tau_temporal=None)
    assert not np.allclose(soft, hard)
    by_name = losses(series, instance_assignment="hard", temporal_assignment="hard")
    np.testing.assert_allclose(by_name, hard)


def test_very_sharp_assignments_are_hard(series):
    hard = losses(series, tau_instance=None, tau_temporal=None)
    sharp = losses(series, tau_instance=1e9, tau_temporal=1e4, distance_normalize="max")
    np.testing.assert_allclose(sharp, hard, rtol=1e-5)


def test_given_distances_save_computing_them_and_change_nothing(series):
    scaled = (series - series.mean()) / series.std()
    D = pairwise_distance(scaled)
    given = TS2Vec(**SMALL).fit(series, distances=D)
    np.testing.assert_allclose(given.history_["loss"], losses(series), rtol=1e-5)
    assert given.history_["distance_mode"] == "dense"


def test_distances_are_ignored_when_the_instance_part_is_hard(series):
    model = TS2Vec(**SMALL, tau_instance=None).fit(series, distances="nonsense")
    assert model.history_["distance_mode"] is None


@pytest.mark.parametrize(
    ("D", "words"),
    [
        (np.zeros((9, 9)), r"expected \(10, 10\)"),
        (np.full((10, 10), np.nan), "finite and non-negative"),
        (-np.ones((10, 10)), "finite and non-negative"),
    ],
)
def test_distances_of_another_kind_are_refused(series, D, words):
    with pytest.raises(ValueError, match=words):
        TS2Vec(**SMALL).fit(series, distances=D)


def test_distances_of_series_that_get_cut_are_refused_with_the_reason(series):
    with pytest.raises(ValueError, match="cut into sections"):
        TS2Vec(**SMALL, max_train_length=10).fit(series, distances=np.ones((10, 10)))
    assert len(losses(series, max_train_length=10)) == 3


def test_one_series_trains_its_temporal_part_and_warns(rng):
    X = rng.normal(size=(1, 1, 40))
    with pytest.warns(UserWarning, match="one series only"):
        soft = losses(X)
    assert all(value > 0 for value in soft)
    np.testing.assert_allclose(losses(X, tau_instance=None), soft)


def test_raw_values_work_because_scaling_belongs_to_the_model(series):
    plain = TS2Vec(**SMALL).fit(series)
    shifted = TS2Vec(**SMALL).fit(1e6 + 1e3 * series)
    np.testing.assert_allclose(
        plain.transform(series), shifted.transform(1e6 + 1e3 * series), atol=1e-4
    )
    assert TS2Vec(**SMALL, scale=None).fit(series).scale_ is None


def test_series_by_their_own_scale_have_neither_level_nor_size(series, tmp_path):
    other = series * np.arange(1, 1 + len(series))[:, None, None] + 1e3 * series[:, :, :1]
    one, two = (TS2Vec(**SMALL, scale="series").fit(X) for X in (series, other))
    R = one.transform(series)
    np.testing.assert_allclose(one.history_["loss"], two.history_["loss"], rtol=1e-4)
    np.testing.assert_allclose(two.transform(other), R, atol=1e-3)
    assert not np.allclose(TS2Vec(**SMALL).fit(series).transform(series), R, atol=1e-3)
    one.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").transform(series), R)
    with pytest.raises(ValueError, match="scale is 'series', which looks at whole series"):
        one.encode(series, "timestamp", causal=True)
    assert np.isfinite(one.encode(series, "timestamp")).all()


def test_ragged_series_with_gaps_train_to_finite_embeddings(rng):
    X = rng.normal(size=(8, 2, 30))
    X[2, :, 11:] = np.nan
    X[5, 1, 3:9] = np.nan
    for mask_padding in (True, False):
        model = TS2Vec(**SMALL, mask_padding=mask_padding).fit(X)
        assert np.isfinite(model.history_["loss"]).all()
        assert np.isfinite(model.transform(X)).all()


def test_training_does_not_see_padding_behind_all_series(rng):
    X = rng.normal(size=(6, 1, 16))
    X[2, :, 9:] = np.nan
    padded = np.concatenate([X, np.full((6, 1, 7), np.nan)], axis=-1)
    np.testing.assert_allclose(losses(padded), losses(X))


@pytest.mark.parametrize("distance", ["euclidean", lambda x, y: float(abs(x - y).max())])
def test_any_distance_by_name_or_function(series, distance):
    assert np.isfinite(losses(series, distance=distance)).all()


def test_readouts_have_the_sizes_they_should(series):
    model = TS2Vec(**SMALL, layers="all").fit(series)
    assert model.transform(series).shape == (10, 2 * 4 + 6)
    assert model.encode(series, layer=0).shape == (10, 4)
    assert model.encode(series, level="timestamp", layer=2).shape == (10, 20, 6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"tau_instance": 0}, "tau_instance is 0"),
        ({"tau_temporal": -1.0}, "tau_temporal is -1.0"),
        ({"alpha": 2.0}, "alpha is 2.0"),
        ({"lam": 1.5}, "lam is 1.5"),
        ({"instance_assignment": "neighbor"}, "not for instance weights"),
        ({"temporal_assignment": "cosine"}, "unknown assignment 'cosine'; known: gaussian"),
        ({"distance": "dwt"}, "unknown distance 'dwt'; known: cosine, dtw"),
        ({"distance_mode": "eager"}, "'auto', 'dense', 'lazy'"),
        ({"distance_mode": "lazy", "distance_normalize": "column"}, "needs the whole matrix"),
        ({"distance_normalize": None}, "distance_normalize is None"),
        ({"scale": "serie"}, "scale is 'serie'"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"max_iter": -1}, "max_iter is -1"),
        ({"precision": "int8"}, "precision is 'int8'"),
        ({"device": "abacus"}, "expected 'auto', 'cpu' or 'cuda'"),
        ({"random_state": -3}, "random_state is -3"),
    ],
)
def test_wrong_parameters_are_explained_at_fit(series, parameters, words):
    with pytest.raises(ValueError, match=words):
        TS2Vec(**SMALL | parameters).fit(series)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_an_error_not_a_fallback(series):
    with pytest.raises(ValueError, match="no GPU is available"):
        TS2Vec(**SMALL, device="cuda").fit(series)


def test_a_random_state_object_is_taken_and_saved_as_its_seed(series, tmp_path):
    model = TS2Vec(**SMALL | {"random_state": np.random.RandomState(0)}).fit(series)
    model.save(tmp_path)
    assert TS2Vec.load(tmp_path).random_state == model.seed_
