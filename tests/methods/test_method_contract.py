"""What every registered method has to do; a new one is tested by being registered."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import get_tags

import softclt
from estimator_checks import failed_checks
from softclt.methods import TNC, RepresentationLearner, SeriesContrast, methods
from softclt.methods.labelled import LabelLearner

# Small and short, for any method that has the parameter.
SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "random_state": 0}
SMALL |= {"widths": (4, 6), "label_iter": 2, "length": 64}

ANOTHER_LENGTH_IS_LEGAL = "features are steps here, and series of another length are legal"
EXPECTED_FAILURES = {
    "check_n_features_in": "n_features_in_ counts channels, and (N, T) has one",
    "check_n_features_in_after_fitting": ANOTHER_LENGTH_IS_LEGAL,
    "check_transformer_general": ANOTHER_LENGTH_IS_LEGAL,
}

# Sums over a batch of another size differ in their last bits, which here can be more than 1e-7.
ROUNDING = dict.fromkeys(
    [
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_transformer_data_not_an_array",
    ],
    "a part is embedded as in the whole up to 1e-6, not in bits",
)

every_method = pytest.mark.parametrize("name", methods.names())


def small(name, **changes):
    method = methods[name]
    known = method().get_params()
    return method(**{k: v for k, v in (SMALL | changes).items() if k in known})


def fitted(model, X):
    """With labels where the method cannot do without."""
    y = np.arange(len(X)) % 2 if get_tags(model).target_tags.required else None
    return model.fit(X, y)


@pytest.fixture
def series(rng):
    return rng.normal(size=(12, 2, 20))


@pytest.fixture
def ragged(rng):
    return [rng.normal(size=(2, n)) for n in (20, 7, 13, 2, 20, 16, 9, 20, 11)]


@every_method
@pytest.mark.slow
def test_scikit_learns_own_checks_pass(name):
    rounding = ROUNDING if isinstance(small(name), (SeriesContrast, TNC)) else {}
    failed = failed_checks(small(name), EXPECTED_FAILURES | rounding)
    assert failed.keys() <= rounding.keys()


@every_method
@pytest.mark.slow
def test_same_seed_gives_the_same_bits_and_another_seed_others(name, series):
    first, second = (fitted(small(name), series).transform(series) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = fitted(small(name, random_state=1), series).transform(series)
    assert not np.allclose(first, other)


@every_method
def test_the_callers_random_state_is_left_alone(name, series):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - the global state is what is tested
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fitted(small(name, random_state=None), series).transform(series)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


@every_method
def test_checking_parameters_builds_nothing(name, monkeypatch):
    def build(*args, **kwargs):
        pytest.fail("something was built")

    model = small(name)
    monkeypatch.setattr(torch.nn.Module, "__init__", build)
    monkeypatch.setattr(RepresentationLearner, "__init__", build)
    model._check_parameters()


@every_method
def test_a_fit_that_fails_leaves_a_fitted_model_as_it_was(name, series, rng):
    model = fitted(small(name), series)
    before, made = model.transform(series), set(vars(model))

    def fail(progress):
        raise RuntimeError("of a callback")

    others = rng.normal(5, 3, size=(10, 3, 24))
    labelled = get_tags(model).target_tags.required or isinstance(model, LabelLearner)
    y = np.arange(10) % 2 if labelled else None
    with pytest.raises(RuntimeError, match="of a callback"):
        model.fit(others, y, callbacks=[fail])
    assert model.n_features_in_ == 2
    assert set(vars(model)) == made
    np.testing.assert_array_equal(model.transform(series), before)


@every_method
def test_an_embedding_depends_neither_on_padding_nor_on_batch_mates(name, ragged):
    model = fitted(small(name), ragged)
    together = model.transform(ragged)
    assert np.isfinite(together).all()
    alone = np.concatenate([model.transform([series]) for series in ragged])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@every_method
def test_a_list_of_equal_series_is_the_array(name, series):
    as_array, as_list = (fitted(small(name), X).transform(X) for X in (series, list(series)))
    np.testing.assert_array_equal(as_array, as_list)


@every_method
def test_clone_pickle_and_files_keep_the_model(name, series, tmp_path):
    model = fitted(small(name), series)
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), softclt.load_model(tmp_path / "model")):
        np.testing.assert_array_equal(copy.transform(series), model.transform(series))


@every_method
@pytest.mark.slow
def test_it_works_in_a_pipeline_and_a_grid_search(name, series):
    y = np.arange(12) % 2
    pipeline = make_pipeline(small(name), SVC())
    step = pipeline.steps[0][0]
    search = GridSearchCV(pipeline, {f"{step}__lr": [1e-3, 1e-2]}, cv=2).fit(series, y)
    assert search.predict(series).shape == (12,)


@every_method
def test_names_of_features_match_the_embedding(name, series):
    model = fitted(small(name), series)
    assert model.n_features_in_ == 2
    for pooling, layers in (("max", "last"), ("max+mean", "all")):
        model.set_params(pooling=pooling, layers=layers)
        assert len(model.get_feature_names_out()) == model.transform(series).shape[1]


@every_method
def test_the_embedding_comes_as_a_frame_where_that_is_wanted(name, series):
    model = fitted(small(name), series)
    R, frame = model.transform(series), model.set_output(transform="pandas").transform(series)
    np.testing.assert_array_equal(frame, R)
    assert list(frame.columns) == list(model.get_feature_names_out())


@every_method
def test_fit_refuses_an_empty_series_before_work_begins_as_transform_does(name, series):
    model, gap = fitted(small(name), series), series.copy()
    gap[4] = np.nan
    words = "series 4 of X has no step .*1 such series.; leave it out"
    with pytest.raises(ValueError, match=words):
        fitted(small(name), gap)
    with pytest.raises(ValueError, match=words):
        model.transform(gap)


@every_method
def test_labels_of_other_series_are_refused_even_where_they_are_not_used(name, series):
    with pytest.raises(ValueError, match=r"11 labels for 12 series|12 series, but y has 11"):
        small(name).fit(series, np.arange(11) % 2)


@every_method
def test_untrained_is_zero_iterations(name, series):
    model = fitted(small(name, max_iter=0), series)
    assert model.history_["loss"] == []
    assert np.isfinite(model.transform(series)).all()


@every_method
@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.full((3, 1, 8), np.nan), "nothing can be learned"),
        (np.ones((3, 1, 1)), "at least 2 steps"),
        (np.full((3, 8), np.inf), "infinity: series 0, channel 0, step 0"),
        (np.ones(8), "Reshape your data"),
        ([], "0 sample"),
        ([np.ones((1, 5)), np.ones((2, 5))], "different numbers of channels"),
    ],
)
def test_data_that_cannot_be_learned_from_is_refused_with_words_that_help(name, X, words):
    with pytest.raises(ValueError, match=words):
        fitted(small(name), X)


@every_method
def test_other_channels_than_fitted_are_refused(name, series):
    model = fitted(small(name), series)
    with pytest.raises(ValueError, match=r"3 channel.* fitted with 2"):
        model.transform(np.ones((4, 3, 20)))
    with pytest.raises(ValueError, match="axes look swapped"):
        model.transform(np.ones((4, 20, 2)))
    with pytest.raises(ValueError, match="series 1 of X has no step"):
        model.transform(np.stack([np.ones((2, 5)), np.full((2, 5), np.nan)]))


@every_method
@pytest.mark.slow
def test_more_channels_than_steps_warn_of_swapped_axes(name, rng):
    with pytest.warns(UserWarning, match="from_channels_last"):
        fitted(small(name), rng.normal(size=(5, 20, 6)))


@every_method
def test_every_method_says_where_it_is_from(name):
    if methods[name].__module__.startswith("softclt."):
        assert methods.tags(name)["paper"]
