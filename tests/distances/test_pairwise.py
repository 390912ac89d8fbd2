import functools
import threading

import numpy as np
import pytest
import torch

from softclt.distances import distances, normalize_distances, pairwise_distance, per_pair
from tables import registered

X = np.random.default_rng(7).normal(size=(5, 2, 11))


def absolute_difference_of_means(x, y, factor=1.0):
    return factor * abs(x.mean() - y.mean())


def test_result_is_float64_for_float32_lists_and_tensors():
    expected = pairwise_distance(X.astype(np.float32))
    for form in (list(X.astype(np.float32)), torch.tensor(X, dtype=torch.float32)):
        got = pairwise_distance(form)
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, expected)


def test_input_is_left_alone():
    series = X.copy()
    series[0, 0, 3] = np.nan
    before = series.copy()
    for metric in distances.names():
        pairwise_distance(series, metric=metric)
        pairwise_distance(series, metric=lambda x, y: float(x.fill(0) is None))
    np.testing.assert_array_equal(series, before)


@pytest.mark.parametrize("how", ["minmax", "max", "column"])
def test_normalize_is_applied_to_the_matrix(how):
    np.testing.assert_array_equal(
        pairwise_distance(X, normalize=how), normalize_distances(pairwise_distance(X), how)
    )


def test_normalize_is_refused_with_Y():
    with pytest.raises(ValueError, match=r"normalize='minmax'.*with Y"):
        pairwise_distance(X, X, normalize="minmax")


def test_a_function_gets_the_series_without_missing_steps():
    seen = []

    def metric(x, y):
        seen.append((x.shape, y.shape, x.dtype, bool(np.isnan(x).any())))
        return 1.0

    pairwise_distance([[1.0, np.nan, 2.0], [3.0]], [[4.0, 5.0, 6.0, np.nan]], metric=metric)
    assert seen == [((1, 2), (1, 3), np.float64, False), ((1, 1), (1, 3), np.float64, False)]


def test_a_function_is_called_in_both_orders_and_its_parameters_reach_it():
    def directed(x, y, factor):
        return factor * max(0.0, x.sum() - y.sum())

    got = pairwise_distance([[1.0], [4.0]], metric=directed, factor=2.0)
    np.testing.assert_array_equal(got, [[0.0, 0.0], [6.0, 0.0]])


def test_a_function_runs_in_the_calling_thread():
    threads = set()

    def metric(x, y):
        threads.add(threading.current_thread())
        return 0.0

    pairwise_distance(X, metric=metric, n_jobs=2)
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.5])
def test_an_impossible_result_of_a_function_names_the_pair(wrong):
    def metric(x, y):
        return wrong if x[0, 0] == 2 and y[0, 0] == 1 else 1.0

    with pytest.raises(ValueError, match=r"metric gave .* for X\[1\] and X\[0\]"):
        pairwise_distance([[1.0], [2.0], [3.0]], metric=metric)


def test_rounding_below_zero_is_zero():
    assert pairwise_distance([[1.0], [2.0]], metric=lambda x, y: -1e-16).max() == 0.0


def test_a_plain_function_can_be_registered():
    tags = {"elastic": True, "symmetric": True, "window": False}
    with registered(distances, "means", per_pair(absolute_difference_of_means), **tags):
        got = pairwise_distance(X, metric="means", factor=3.0, n_jobs=2)
    means = X.mean(axis=(1, 2))
    np.testing.assert_allclose(got, 3 * abs(means[:, None] - means), atol=1e-15)


@pytest.mark.parametrize("metric", ["dwt", "", "DTW"])
def test_unknown_metric_names_the_known_ones(metric):
    with pytest.raises(
        ValueError, match=r"known: cosine, dtw, euclidean, fastdtw, tam; .*aeon:NAME.*plugin"
    ):
        pairwise_distance(X, metric=metric)


def test_a_metric_that_is_neither_name_nor_function_is_refused():
    with pytest.raises(ValueError, match="metric is 3; expected a function or one of cosine"):
        pairwise_distance(X, metric=3)


@pytest.mark.parametrize("window", [-0.1, 1.5, np.nan, "wide", True])
def test_a_window_outside_the_unit_interval_is_refused(window):
    with pytest.raises(ValueError, match="window is"):
        pairwise_distance(X, window=window)


@pytest.mark.parametrize("metric", [*distances.names(window=False), absolute_difference_of_means])
def test_a_window_for_a_metric_without_one_is_refused(metric):
    with pytest.raises(ValueError, match="has no window; dtw, tam have"):
        pairwise_distance(X, metric=metric, window=0.1)


def test_a_function_with_its_own_window_gets_it_by_partial():
    bound = functools.partial(absolute_difference_of_means, factor=2.0)
    assert pairwise_distance(X, metric=bound).max() > 0


@pytest.mark.parametrize(
    ("metric", "known"), [("dtw", "squared, per_step, bound"), ("fastdtw", "radius")]
)
def test_unknown_parameters_are_refused_with_the_known_ones(metric, known):
    with pytest.raises(ValueError, match=f"{metric} has no parameter 'radus'; known: {known}"):
        pairwise_distance(X, metric=metric, radus=2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda"), "auto", 0])
def test_a_device_that_is_not_there_is_an_error_and_no_silent_fallback(device):
    with pytest.raises(ValueError, match=r"device is .*use device=None or 'cpu'"):
        pairwise_distance(X, device=device)


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
def test_the_cpu_is_a_device(device):
    assert pairwise_distance(X, device=device).shape == (5, 5)


@pytest.mark.parametrize(
    ("name", "value"), [("normalize", "rows"), ("unequal", "pad"), ("n_jobs", 0), ("n_jobs", 1.5)]
)
def test_other_bad_arguments_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value!r}"):
        pairwise_distance(X, **{name: value})


def test_Y_with_other_channels_is_refused():
    with pytest.raises(ValueError, match=r"X has 2 channel\(s\) and Y has 3"):
        pairwise_distance(X, np.zeros((4, 3, 11)))


@pytest.mark.parametrize("metric", distances.names())
def test_a_series_without_any_observed_step_is_named(metric):
    Y = X.copy()
    Y[3, 1] = np.nan  # one channel is enough: no step is whole
    with pytest.raises(ValueError, match=r"X\[3\] has no step at which all channels have a value"):
        pairwise_distance(Y, metric=metric)
    Y[3] = np.nan
    with pytest.raises(ValueError, match=r"Y\[3\] has no step"):
        pairwise_distance(X, Y, metric=metric)


def test_values_too_large_to_square_are_refused():
    with pytest.raises(ValueError, match="too large to square"):
        pairwise_distance([[1e200, 0.0], [0.0, 0.0]])


def test_torch_keeps_its_number_of_threads():
    before = torch.get_num_threads()
    pairwise_distance(X, n_jobs=1)
    pairwise_distance(X, n_jobs=2)
    assert torch.get_num_threads() == before


def test_many_tiles_fill_the_matrix_completely(monkeypatch, rng):
    series = rng.normal(size=(23, 1, 6))
    one_tile = pairwise_distance(series, n_jobs=1)
    monkeypatch.setattr("softclt.distances.engine.tile_size", lambda cells: 5)
    np.testing.assert_array_equal(pairwise_distance(series, n_jobs=3), one_tile)
    np.testing.assert_array_equal(pairwise_distance(series, series[4:], n_jobs=3), one_tile[:, 4:])


def test_an_error_in_a_thread_reaches_the_caller():
    series = X.copy()
    series[0, 0, 4:] = series[1, 0, :4] = np.nan  # the other channel goes on to the end
    with pytest.raises(ValueError, match="no observed step in common"):
        pairwise_distance(series, metric="euclidean", n_jobs=2)


def test_progress_goes_to_standard_error_and_only_on_request(rng, capfd, monkeypatch):
    monkeypatch.setattr("softclt.progress.EVERY", 1e-3)
    series = rng.normal(size=(100, 1, 200))  # enough work for a line
    quiet = pairwise_distance(series)
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(pairwise_distance(series, progress=True), quiet)
    out, err = capfd.readouterr()
    assert out == ""
    assert "dtw distances" in err
    assert " of 4950" in err


def test_float32_of_too_wide_a_range_is_compared_in_float64_everywhere(rng):
    series = rng.normal(size=(20, 1, 30)).astype(np.float32)
    series[:2] *= 1e-24
    exact = pairwise_distance(series.astype(np.float64))
    np.testing.assert_array_equal(pairwise_distance(series), exact)
    assert exact[0, 1] > 0
    np.testing.assert_allclose(
        pairwise_distance(series[2:]), exact[2:, 2:], rtol=1e-5
    )  # in float32
    assert not np.array_equal(pairwise_distance(series[2:]), exact[2:, 2:])
