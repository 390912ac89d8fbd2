"""Finite values that arithmetic cannot hold are refused before work begins, by series and step."""

import numpy as np
import pytest

import softclt
from softclt import AnomalyDetector, Forecaster, TS2Vec
from softclt.data import read_series
from softclt.data.sources import open_series
from softclt.methods import methods

SMALL = {"max_iter": 2, "output_dims": 4, "hidden_dims": 4, "depth": 2, "device": "cpu"}
HUGE = r"1e\+300.*series 3, channel 0, step 7"


@pytest.fixture
def X(rng):
    return rng.normal(size=(8, 1, 60)).cumsum(axis=-1)


def with_cell(X, value):
    X = X.copy()
    X[3, 0, 7] = value
    return X


def model(**parameters):
    return TS2Vec(**SMALL | {"random_state": 0} | parameters)


@pytest.mark.parametrize(
    "work",
    [
        lambda X: model().fit(X),
        lambda X: model(scale=None).fit(X),
        lambda X: AnomalyDetector(model()).fit(X),
        lambda X: AnomalyDetector(scorer="spectral_residual").fit(X),
        lambda X: Forecaster(model(), horizon=3).fit(X),
        lambda X: softclt.pairwise_distance(X),
        lambda X: softclt.load_pretrained("base").transform(X),
    ],
)
def test_a_value_whose_square_is_no_number_is_refused_by_its_place(X, work):
    with pytest.raises(ValueError, match=HUGE):
        work(with_cell(X, 1e300))


def test_a_file_larger_than_memory_is_no_other_door(X, tmp_path):
    np.save(tmp_path / "X.npy", with_cell(X, -1e300))
    with pytest.raises(ValueError, match=r"-1e\+300.*series 3, channel 0, step 7"):
        model().fit(open_series(tmp_path / "X.npy"))


def test_a_fitted_model_refuses_what_its_network_cannot_hold(X):
    scaled, plain = model().fit(X), model(scale=None).fit(X)
    with pytest.raises(ValueError, match=r"1e\+40: series 3, channel 0, step 7.*deviation"):
        scaled.transform(with_cell(X, 1e40))
    for level in ("instance", "timestamp"):
        with pytest.raises(ValueError, match=r"1e\+39: series 3, channel 0, step 7"):
            plain.encode(with_cell(X, 1e39), level)


@pytest.mark.parametrize("level", ["instance", "timestamp", "window"])
@pytest.mark.parametrize("causal", [False, True])
def test_an_embedding_that_overflows_is_no_embedding(X, level, causal):
    """The values fit into float32, but what the network makes of them does not."""
    window = {"window": 5} if level == "window" else {}
    with pytest.raises(ValueError, match="series 3 of X has values so large"):
        model(scale=None).fit(X).encode(with_cell(X, 3e38), level, causal=causal, **window)


@pytest.mark.parametrize("name", ["tstcc", "cost", "series-contrast"])
def test_other_networks_are_right_or_say_so_too(name, X):
    own = {"output_dims": 8, "hidden_dims": 4, "depth": 2} if name == "cost" else {}
    fitted = methods[name](max_iter=0, device="cpu", **own).fit(X)
    try:
        R = fitted.transform(with_cell(X, 3e38))
    except ValueError as error:
        words = str(error)
    else:
        words = "series 3" if np.isfinite(R).all() else "no words"
    assert "series 3" in words


@pytest.mark.parametrize("unit", [1e-140, 1e-30, 1e30, 1e90])
def test_the_unit_of_the_data_does_not_matter(X, unit):
    R = model().fit(X).transform(X)
    np.testing.assert_allclose(model().fit(X * unit).transform(X * unit), R, atol=1e-4)


@pytest.mark.parametrize(
    "work",
    [
        lambda X: model().fit(X),
        lambda X: model(scale=None).fit(X),
        lambda X: AnomalyDetector(model()).fit(X),
        lambda X: AnomalyDetector(scorer="spectral_residual").fit(X),
        lambda X: Forecaster(model(), horizon=3).fit(X),
    ],
)
def test_values_too_small_to_differ_are_refused(X, work):
    with pytest.raises(ValueError, match=r"channel 0.*too small.*multiply"):
        work(X * 1e-200)


def test_a_channel_of_zeros_is_none_that_is_too_small(X):
    both = np.concatenate([X, X * 0], axis=1)
    for scale in ("channel", None):
        assert np.isfinite(model(scale=scale).fit(both).transform(both * 1e-60)).all()


def test_a_model_of_large_values_can_be_saved(X, tmp_path):
    model().fit(with_cell(X, 1e99)).save(tmp_path / "model")
    assert np.isfinite(softclt.load_model(tmp_path / "model").transform(X)).all()


def test_a_table_with_such_a_value_names_its_place(tmp_path):
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,3\n4,1e300,6\n")
    with pytest.raises(ValueError, match=r"wide.csv.*1e\+300.*series 1, channel 0, step 1"):
        read_series(tmp_path / "wide.csv")
