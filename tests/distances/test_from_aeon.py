"""Distances of aeon keep the contract of ours, and their values are aeon's own."""

import subprocess
import sys

import numpy as np
import pytest

from softclt.distances import distances, from_aeon, pairwise_distance
from softclt.distances.measure import Measure

aeon = pytest.importorskip("aeon.distances")

NAMES = from_aeon.names()
LEAST = 3  # steps that every one of them can work with
every_metric = pytest.mark.parametrize("metric", NAMES)
channels = pytest.mark.parametrize("d", [1, 3])


def series(d, n=6, t=14, seed=3):
    return np.random.default_rng(seed).normal(size=(n, d, t))


def tags(metric):
    return Measure(metric).tags


def by_pairs(X, metric, **params):
    """aeon's own function, called so that it need not be compiled for other types than ours."""
    function = aeon.get_distance_function(metric.removeprefix("aeon:"))
    params = from_aeon._parameters(function) | params
    X = [np.ascontiguousarray(x) for x in X]
    return np.array([[function(x, y, *params.values()) for y in X] for x in X])


def test_all_distances_between_series_are_there_and_those_between_symbols_are_not():
    others = {"dft_sfa", "paa_sax", "sax", "sfa", "mpdist"}  # mpdist: of subsequences, until 1.4
    expected = set(aeon.get_distance_function_names()) - others
    assert {name.removeprefix("aeon:") for name in NAMES} == expected


@pytest.mark.slow
def test_they_are_no_registered_names():
    pairwise_distance(series(1), metric="aeon:msm")
    assert not any(name.startswith("aeon") for name in distances.names())


@channels
@every_metric
@pytest.mark.slow
def test_values_are_those_of_aeon(metric, d):
    X = series(d)
    expected = by_pairs(X, metric)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(pairwise_distance(X, metric=metric), expected, rtol=1e-12)


@every_metric
def test_float32_series_are_compared_in_float64(metric):
    X = series(2).astype(np.float32)
    np.testing.assert_array_equal(
        pairwise_distance(X, metric=metric), pairwise_distance(X.astype(float), metric=metric)
    )


@channels
@every_metric
def test_square_matrix_is_non_negative_with_an_exact_zero_diagonal(metric, d):
    D = pairwise_distance(series(d), metric=metric)
    assert D.dtype == np.float64
    assert (D[~np.eye(6, dtype=bool)] > 0).all()
    np.testing.assert_array_equal(np.diag(D), 0.0)


@every_metric
def test_distance_of_equal_series_is_exactly_zero(metric):
    X = np.concatenate([series(2), np.full((1, 2, 14), 5.0), np.zeros((1, 2, 14))])
    for x in X:
        assert pairwise_distance(x[None], x[None].copy(), metric=metric) == 0.0


@every_metric
def test_only_those_that_are_symmetric_say_so(metric):
    X = series(2, n=12)
    there = pairwise_distance(X, X, metric=metric)
    if tags(metric)["symmetric"]:
        np.testing.assert_allclose(there, there.T, rtol=1e-12, atol=1e-15)
        square = pairwise_distance(X, metric=metric)
        np.testing.assert_array_equal(square, square.T)
    else:
        assert (there != there.T).any()


@every_metric
def test_elastic_ones_that_are_symmetric_are_so_between_different_lengths(metric):
    if tags(metric)["elastic"] and tags(metric)["symmetric"]:
        X = [x[:, : LEAST + 2 * i] for i, x in enumerate(series(2))]
        there = pairwise_distance(X, X, metric=metric)
        np.testing.assert_allclose(there, there.T, rtol=1e-12, atol=1e-15)


@every_metric
def test_order_of_the_series_is_the_order_of_rows_and_columns(metric):
    X, order = series(2), [3, 0, 5, 1, 4, 2]
    full = pairwise_distance(X, metric=metric)
    permuted = pairwise_distance(X[order], metric=metric)
    np.testing.assert_allclose(permuted, full[np.ix_(order, order)], rtol=1e-12)
    np.testing.assert_array_equal(pairwise_distance(X[:2], X[2:], metric=metric), full[:2, 2:])


@every_metric
def test_number_of_threads_changes_nothing(metric, monkeypatch):
    X = series(1, n=15)
    one = pairwise_distance(X, metric=metric, n_jobs=1)
    monkeypatch.setattr("softclt.distances.engine.tile_size", lambda cells: 4)
    np.testing.assert_array_equal(pairwise_distance(X, metric=metric, n_jobs=2), one)


@channels
@every_metric
def test_padding_behind_a_series_is_a_shorter_series(metric, d):
    X, lengths = series(d), [14, 9, 3, 14, 5, 4]
    padded = np.concatenate([X, np.full((6, d, 5), np.nan)], axis=2)
    expected = pairwise_distance(X, metric=metric)
    np.testing.assert_array_equal(pairwise_distance(padded, metric=metric), expected)
    for x, length in zip(padded, lengths, strict=True):
        x[:, length:] = np.nan
    cut = [x[:, :length] for x, length in zip(X, lengths, strict=True)]
    np.testing.assert_array_equal(
        pairwise_distance(padded, metric=metric, unequal="resample"),
        pairwise_distance(cut, metric=metric, unequal="resample"),
    )


@channels
@every_metric
def test_missing_steps_never_reach_aeon(metric, d):
    X = series(d)
    gapped = X.copy()
    gapped[0, 0, 0] = gapped[1, -1, 4:7] = np.nan
    got = pairwise_distance(gapped, metric=metric)
    assert np.isfinite(got).all()
    if tags(metric)["elastic"]:
        cut = [np.delete(X[0], 0, axis=1), np.delete(X[1], [4, 5, 6], axis=1), *X[2:]]
        expected = by_pairs(cut, metric)[0, 1]
    else:  # the steps that both have
        expected = by_pairs(np.delete(X[:2], [0, 4, 5, 6], axis=2), metric)[0, 1]
    assert got[0, 1] == pytest.approx(expected, rel=1e-12)


@every_metric
def test_elastic_distances_take_different_lengths_and_the_others_refuse(metric):
    X = [x[:, : LEAST + i] for i, x in enumerate(series(2))]
    if tags(metric)["elastic"]:
        expected = by_pairs(X, metric)
        np.fill_diagonal(expected, 0.0)
        got = pairwise_distance(X, X, metric=metric)
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)
    else:
        with pytest.raises(ValueError, match="elastic"):
            pairwise_distance(X, metric=metric)


@every_metric
def test_series_of_one_step_work_or_are_refused_with_the_least_number(metric):
    X = [[1.0], [3.0], [3.0]]
    if metric in ("aeon:ddtw", "aeon:wddtw"):
        with pytest.raises(ValueError, match="at least 3 steps; the shortest has 1"):
            pairwise_distance(X, metric=metric)
    else:
        assert pairwise_distance(X, metric=metric)[1, 2] == 0.0


def test_series_without_a_common_step_are_named():
    X = series(2)
    X[0, 0, 4:] = X[1, 0, :4] = np.nan  # the other channel goes on to the end
    with pytest.raises(ValueError, match=r"X\[0\] and X\[1\] have no observed step in common"):
        pairwise_distance(X, metric="aeon:manhattan")


@pytest.mark.parametrize("metric", ["aeon:sbd", "aeon:shift_scale"])
@pytest.mark.filterwarnings("ignore:.*fft convolution:RuntimeWarning")
def test_a_pair_for_which_aeon_finds_no_distance_is_named(metric):
    with pytest.raises(ValueError, match=r"gave (nan|inf) for X\[0\] and X\[1\]"):
        pairwise_distance([[1.0, 2.0, 1.0], [0.0, 0.0, 0.0]], metric=metric)


PARAMETERS = [
    ("aeon:msm", {"c": 0.5}, {}),
    ("aeon:msm", {"c": 2, "independent": False}, {"c": 2.0}),
    ("aeon:twe", {"nu": 0.1, "lmbda": 0.5}, {}),
    ("aeon:erp", {"g_arr": [0.5, 1.0]}, {"g_arr": np.array([0.5, 1.0])}),
    ("aeon:minkowski", {"p": 3}, {"p": 3.0}),
    ("aeon:dtw", {"itakura_max_slope": 0.5}, {}),
    ("aeon:msm", {"window": 0.2}, {}),
]


@pytest.mark.parametrize(("metric", "given", "typed"), PARAMETERS)
@pytest.mark.slow
def test_parameters_and_window_reach_aeon(metric, given, typed):
    X = series(2)
    got = pairwise_distance(X, metric=metric, **given)
    np.testing.assert_allclose(got, by_pairs(X, metric, **(given | typed)), rtol=1e-12)
    assert (got != pairwise_distance(X, metric=metric)).any()


@every_metric
def test_window_is_taken_where_aeon_has_one(metric):
    if not tags(metric)["window"]:
        with pytest.raises(ValueError, match="no window"):
            Measure(metric, window=0.2)
    else:
        assert Measure(metric, window=0.2).window == 0.2


@pytest.mark.parametrize("name", ["mms", "sax", "", "DTW"])
def test_unknown_names_list_the_known_ones(name):
    with pytest.raises(ValueError, match=f"'aeon:{name}'; known: aeon:adtw.*aeon:msm.*aeon:wdtw"):
        pairwise_distance(series(1), metric=f"aeon:{name}")


@pytest.mark.parametrize(
    ("metric", "known"),
    [
        ("aeon:msm", "independent, c, itakura_max_slope"),
        ("aeon:shape_dtw", "descriptor, reach, itakura_max_slope"),
        ("aeon:euclidean", "none"),
    ],
)
def test_unknown_parameters_are_refused_with_the_known_ones(metric, known):
    with pytest.raises(ValueError, match=f"{metric} has no parameter 'q'; known: {known}$"):
        Measure(metric, params={"q": 1})


@pytest.mark.slow
def test_parameters_that_cannot_work_are_named():
    X = series(1)
    with pytest.raises(ValueError, match=r"aeon:msm cannot work with {'c': 'large'}.*wrong type"):
        pairwise_distance(X, metric="aeon:msm", c="large")
    with pytest.raises(ValueError, match=r"itakura_max_slope': 0.01.*14 steps: division by zero"):
        pairwise_distance(X, metric="aeon:dtw", itakura_max_slope=0.01)
    unequal = [x[:, : 5 + i] for i, x in enumerate(X)]
    with pytest.raises(ValueError, match="itakura_max_slope is for series of one length"):
        pairwise_distance(unequal, metric="aeon:dtw", itakura_max_slope=0.5)


@pytest.mark.slow
def test_a_model_learns_with_a_distance_of_aeon():
    from softclt import TS2Vec

    def model(**settings):
        return TS2Vec(output_dims=4, hidden_dims=4, depth=1, max_iter=2, random_state=0, **settings)

    X = series(1, n=8, t=16)
    fitted = model(distance="aeon:msm", distance_params={"c": 0.5, "window": 0.2}).fit(X)
    own = pairwise_distance(fitted._seen(X), metric="aeon:msm", c=0.5, window=0.2, normalize=None)
    same = model(distance="euclidean").fit(X, distances=own)
    np.testing.assert_allclose(fitted.transform(X), same.transform(X), rtol=1e-5)


def test_the_command_line_takes_the_name(tmp_path):
    from typer.testing import CliRunner

    from softclt.cli.app import app

    np.savez(tmp_path / "series.npz", X=series(1, n=8, t=16))
    command = f"fit {tmp_path / 'series.npz'} --out {tmp_path / 'model'} --set distance=aeon:twe"
    small = "--set max_iter=1 --set depth=1 --set hidden_dims=4 --set output_dims=4"
    result = CliRunner().invoke(app, f"{command} {small}".split())
    assert result.exit_code == 0, result.output
    assert '"aeon:twe"' in (tmp_path / "model" / "config.json").read_text()
    assert "aeon:NAME" in CliRunner().invoke(app, ["list", "distances"]).stdout


def test_without_aeon_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "aeon.distances", None)
    monkeypatch.setattr(from_aeon, "_functions", from_aeon._functions.__wrapped__)
    from_aeon.find.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=r"need aeon: pip install 'softclt\[data\]'"):
        pairwise_distance(series(1), metric="aeon:msm")


def test_aeon_is_not_imported_before_it_is_asked_for():
    code = "import sys, softclt.distances; sys.exit('aeon' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
