"""The door for arrays: what comes in as series, and what is refused in which words."""

import math

import numpy as np
import pytest
import torch

from softclt.validation import (
    check_choice,
    check_distances,
    check_random_state_seed,
    check_range,
    check_series,
    observed_steps,
    series_lengths,
    warn_if_axes_look_swapped,
)


def test_three_axes_stay_as_they_are(rng):
    X = rng.normal(size=(4, 2, 9))
    np.testing.assert_array_equal(check_series(X), X)


def test_two_axes_are_series_of_one_channel(rng):
    X = rng.normal(size=(4, 9))
    np.testing.assert_array_equal(check_series(X), X[:, None, :])


@pytest.mark.parametrize("channels", [None, 2])
def test_series_of_varying_length_are_padded_with_nan_at_the_end(rng, channels):
    shape = () if channels is None else (channels,)
    series = [rng.normal(size=(*shape, t)) for t in (5, 3, 8)]
    X = check_series(series)
    assert X.shape == (3, channels or 1, 8)
    for row, x in zip(X, series, strict=True):
        np.testing.assert_array_equal(row[:, : x.shape[-1]], np.atleast_2d(x))
        assert np.isnan(row[:, x.shape[-1] :]).all()


@pytest.mark.parametrize(
    ("given", "kept"),
    [("float32", "float32"), ("float64", "float64"), ("int32", "float64"), ("bool", "float64")],
)
def test_single_precision_stays_and_all_else_becomes_double(given, kept):
    assert check_series(np.ones((2, 3), dtype=given)).dtype == kept
    assert check_series([np.ones(3, dtype=given), np.ones(2, dtype=given)]).dtype == kept


def test_tensors_and_nested_lists_are_series_too():
    assert check_series(torch.ones(2, 3, requires_grad=True)).shape == (2, 1, 3)
    assert check_series([[1, 2, 3], [4, 5, 6]]).shape == (2, 1, 3)
    assert check_series([[[1, 2, 3], [4, 5, 6]]]).shape == (1, 2, 3)
    assert check_series(np.array([[1, "2"]], dtype=object)).tolist() == [[[1.0, 2.0]]]


def test_the_callers_array_is_never_changed(rng):
    X = rng.normal(size=(2, 1, 5))
    before = X.copy()
    check_series(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(5), r"X has shape \(5,\); .*single series is X.reshape\(1, -1\)"),
        (np.zeros((2, 2, 2, 2)), r"shape \(2, 2, 2, 2\); expected series as \(N, D, T\)"),
        (np.zeros((0, 5)), r"0 sample\(s\)"),
        (np.zeros((2, 0)), r"0 feature\(s\)"),
        ([], r"X is empty: 0 sample\(s\)"),
        ([np.zeros((2, 4)), np.zeros((3, 4))], r"different numbers of channels \(\[2, 3\]\)"),
        ([np.zeros((2, 4)), np.zeros(4)], r"holds arrays of shape \[\(2, 4\), \(4,\)\]"),
        ([["a", "b"]], r"X\[0\] is not numeric"),
        ([[10**400, 1]], r"is not numeric \(int too large"),
        (np.array([[b"\xff", b"1"]]), "is not numeric"),
        (np.array([[1 + 2j]]), "Complex data not supported"),
        (np.array([[1.0, math.inf]]), r"infinity: series 0, channel 0, step 1; use NaN"),
        (np.zeros((2, 3), dtype="datetime64[s]"), r"dtype datetime64\[s\]"),
    ],
)
def test_what_is_no_collection_of_series_is_refused_in_words(X, words):
    with pytest.raises(ValueError, match=words):
        check_series(X)


def test_a_sparse_matrix_is_told_how_to_become_dense():
    sparse = pytest.importorskip("scipy.sparse").csr_matrix((3, 3))
    with pytest.raises(TypeError, match=r"sparse .*X\.toarray\(\)"):
        check_series(sparse)


def test_too_few_steps_are_refused():
    with pytest.raises(ValueError, match=r"series of 1 step.* at least 2 steps are needed"):
        check_series(np.zeros((3, 1)), min_length=2)
    assert check_series(np.zeros((3, 2)), min_length=2).shape == (3, 1, 2)


def test_other_channels_than_fitted_are_refused_and_swapped_axes_recognised():
    with pytest.raises(ValueError, match=r"X has 3 channel\(s\) .* fitted with 2$"):
        check_series(np.zeros((1, 3, 5)), n_channels=2)
    with pytest.raises(ValueError, match=r"look swapped, use X\.swapaxes\(1, 2\)"):
        check_series(np.zeros((1, 5, 2)), n_channels=2)
    assert check_series(np.zeros((1, 2, 5)), n_channels=2).shape == (1, 2, 5)


def test_the_name_of_the_argument_is_in_the_words():
    with pytest.raises(ValueError, match=r"^X_test has shape"):
        check_series(np.zeros(5), name="X_test")


def test_more_channels_than_steps_are_worth_a_warning(recwarn):
    with pytest.warns(UserWarning, match=r"more channels \(5\) than steps \(3\).*channels_last"):
        warn_if_axes_look_swapped(np.zeros((2, 5, 3)))
    warn_if_axes_look_swapped(np.zeros((2, 3, 3)))
    assert len(recwarn) == 0


def test_a_step_is_observed_when_every_channel_is():
    X = np.array([[[1.0, math.nan, 3.0], [1.0, 2.0, 3.0]]])
    assert observed_steps(X).tolist() == [[True, False, True]]


def test_a_series_ends_at_its_last_value_in_any_channel():
    nan = math.nan
    X = np.array([[[1.0, nan, nan], [nan, 2.0, nan]], [[nan] * 3] * 2, [[1, 2, 3], [nan] * 3]])
    assert series_lengths(X).tolist() == [2, 0, 3]


def test_distances_are_a_square_of_finite_numbers():
    d = [[0, 1], [1, 0]]
    for given in (d, np.array(d), torch.tensor(d, dtype=torch.float64)):
        np.testing.assert_array_equal(check_distances(given, 2), d)
    with pytest.raises(ValueError, match=r"shape \(2, 2\); expected \(3, 3\)"):
        check_distances(d, 3)
    for wrong in (math.nan, math.inf, -1.0):
        with pytest.raises(ValueError, match="finite and non-negative"):
            check_distances([[0, wrong], [1, 0]], 2)


def test_a_seed_comes_from_whatever_scikit_learn_accepts():
    assert check_random_state_seed(7) == check_random_state_seed(np.int64(7)) == 7
    assert check_random_state_seed(np.random.RandomState(0)) == check_random_state_seed(
        np.random.RandomState(0)
    )
    assert check_random_state_seed(np.random.default_rng(0)) == check_random_state_seed(
        np.random.default_rng(0)
    )
    assert check_random_state_seed(None) != check_random_state_seed(None)


def test_no_seed_leaves_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    check_random_state_seed(None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("wrong", [-1, "seed", 1.5])
def test_a_seed_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match=r"random_state is .*; expected None, an integer >= 0"):
        check_random_state_seed(wrong)


def test_a_choice_names_the_choices():
    check_choice("a", ("a", "b"), "letter")
    with pytest.raises(ValueError, match="letter is 'c'; expected one of 'a', 'b'"):
        check_choice("c", ("a", "b"), "letter")


def test_a_range_includes_its_ends_unless_open():
    for value in (0, 1, 0.5, np.float32(0.25)):
        check_range(value, "x", 0, 1)
    with pytest.raises(ValueError, match="x is 0; expected a number > 0 and at most 1"):
        check_range(0, "x", 0, 1, open_low=True)
    with pytest.raises(ValueError, match="x is 2; expected a number >= 0 and at most 1"):
        check_range(2, "x", 0, 1)


@pytest.mark.parametrize("wrong", ["1", None, True, math.nan, [1]])
def test_what_is_no_number_is_in_no_range(wrong):
    with pytest.raises(ValueError, match="expected a number >= 0"):
        check_range(wrong, "x", 0)
