"""``softclt distances`` and ``softclt cache`` as a user types them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt import load_model
from softclt.cli import app
from softclt.distances import cache, open_store, pairwise_distance
from softclt.distances import store as making
from softclt.distances.cache import cached_matrix
from softclt.distances.measure import Measure


def softclt(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def refused(*words):
    """The one line of a refusal."""
    result = softclt(*words, code=2)
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    return line


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SOFTCLT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(making, "_TILE_CELLS", 1.0)
    monkeypatch.setattr(cache, "_WORTH_KEEPING", 0.0)


@pytest.fixture
def X(rng, tmp_path):
    X = rng.standard_normal((9, 1, 12))
    np.save(tmp_path / "X.npy", X)
    return X


@pytest.fixture
def command(X, tmp_path):
    return ["distances", tmp_path / "X.npy", "--out", tmp_path / "out", "--jobs", 1]


def damage(folder):
    victim = next(path for path in folder.glob("tiles*/*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1])
    return victim.name


def test_the_folder_holds_the_distances(command, X, tmp_path):
    said = softclt(*command, "--metric", "dtw", "--window", 0.3, "--set", "squared=true").stdout
    assert said.startswith("9 series: 6 tile(s) made, 0 were there; ")
    assert "cells/s; in " in said
    expected = pairwise_distance(X, window=0.3, squared=True)
    np.testing.assert_allclose(open_store(tmp_path / "out").matrix(), expected, rtol=1e-6)


def test_the_same_command_again_says_that_it_is_complete(command, tmp_path):
    softclt(*command, "--metric", "euclidean")
    said = softclt(*command, "--metric", "euclidean").stdout
    assert "0 tile(s) made, 6 were there" in said
    assert said.strip().endswith("is complete")


def test_damage_is_made_good_by_the_same_command(command, tmp_path):
    softclt(*command, "--metric", "euclidean")
    damage(tmp_path / "out")
    said = softclt(*command, "--metric", "euclidean").stdout
    assert "1 tile(s) made, 5 were there, 1 damaged ones made again" in said


def test_json_has_the_numbers(command):
    told = json.loads(softclt(*command, "--metric", "euclidean", "--json").stdout)
    assert (told["series"], told["made"], told["found"], told["damaged"]) == (9, 6, 0, [])
    assert told["cells"] == 36 * 12


def test_ids_of_a_table_are_kept(tmp_path):
    table = pd.DataFrame(
        {"name": ["b", "b", "a", "a"], "day": [0, 1, 0, 1], "price": [1.0, 2.0, 3.0, 5.0]}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["distances", tmp_path / "t.csv", "--id", "name", "--time", "day", "--jobs", 1]
    softclt(*words, "--metric", "euclidean", "--out", tmp_path / "out")
    store = open_store(tmp_path / "out")
    assert sorted(store.ids) == ["a", "b"]
    assert store.matrix()[0, 1] == pytest.approx(np.sqrt(2**2 + 3**2))


def test_lengths_may_be_made_equal(tmp_path):
    np.savez(tmp_path / "X.npz", X=np.array([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]]))
    words = ["distances", tmp_path / "X.npz", "--metric", "euclidean", "--out", tmp_path / "out"]
    assert "unequal='resample'" in refused(*words)
    softclt(*words, "--set", "unequal=resample")
    np.testing.assert_allclose(open_store(tmp_path / "out").matrix()[0, 1], np.sqrt(1.25))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "dwt"], "unknown distance 'dwt'; known: "),
        (["--window", "2"], "window"),
        (["--set", "radius=1"], "dtw has no parameter 'radius'"),
        (["--jobs", "0"], "n_jobs is 0"),
        (["--device", "abacus"], "device is 'abacus'"),
        (["--processes", "0"], "--processes"),
        (["--processes", "2", "--ray", "local"], "exclude each other"),
    ],
    ids=str,
)
def test_slips_are_told_in_one_line(command, words, message):
    assert message in refused(*command, *words)


def test_another_metric_in_the_same_folder_is_refused(command):
    softclt(*command, "--metric", "euclidean")
    line = refused(*command, "--metric", "cosine")
    assert "the metric is 'euclidean' there and 'cosine' here" in line


@pytest.fixture
def kept(X):
    """Two stores in the cache."""
    for name in ("euclidean", "cosine"):
        measure = Measure(name)
        cached_matrix(measure, measure.prepare(X)[0], workers=1)
    return {store.manifest["metric"]: store for store in cache.cached_stores()}


def test_cache_list_shows_what_is_kept(kept):
    kept["cosine"].path(kept["cosine"].tiles()[0]).unlink()
    told = json.loads(softclt("cache", "list", "--json").stdout)
    assert told["limit"] == 10e9
    entries = {entry["metric"]: entry for entry in told["stores"]}
    assert entries["euclidean"]["complete"] == 1
    assert entries["cosine"]["complete"] == pytest.approx(5 / 6)
    assert entries["cosine"]["series"] == 9
    shown = softclt("cache", "list").stdout
    assert "100 %" in shown
    assert "83 %" in shown
    assert "of 10 GB" in shown


def test_cache_verify_finds_damage_and_removes_it(kept):
    assert "2 store(s) checked, 0 damaged" in softclt("cache", "verify").stdout
    name = damage(kept["cosine"].folder)
    said = softclt("cache", "verify", code=1).stdout
    assert f"damaged and removed: {kept['cosine'].folder}: {name}" in said
    assert len(kept["cosine"].missing()) == 1
    told = json.loads(softclt("cache", "verify", "--json").stdout)
    assert told["damaged"][str(kept["cosine"].folder)] == []


def test_cache_verify_checks_any_folder_of_distances(command, tmp_path):
    softclt(*command, "--metric", "euclidean")
    softclt("cache", "verify", "--folder", tmp_path / "out")
    damage(tmp_path / "out")
    softclt("cache", "verify", "--folder", tmp_path / "out", code=1)
    assert "is no store of distances" in refused("cache", "verify", "--folder", tmp_path)


def test_cache_clear_says_what_was_freed(kept):
    name = kept["cosine"].folder.name
    assert "MB freed" in softclt("cache", "clear", name).stdout
    assert [store.manifest["metric"] for store in cache.cached_stores()] == ["euclidean"]
    assert "no 'cosine-" in refused("cache", "clear", name)
    assert json.loads(softclt("cache", "clear", "--json").stdout)["freed"] > 0
    assert cache.cached_stores() == []


def test_cache_alone_shows_its_commands():
    shown = softclt("cache").stdout
    assert all(name in shown for name in ("list", "verify", "clear"))


def test_fit_uses_a_folder_of_distances_and_refuses_one_that_is_none(command, tmp_path):
    softclt(*command)
    tiny = [
        word
        for setting in ("output_dims=4", "hidden_dims=4", "depth=1", "max_iter=2")
        for word in ("--set", setting)
    ]
    fit = ["fit", tmp_path / "X.npy", "--out", tmp_path / "model", *tiny]
    softclt(*fit, "--distances", tmp_path / "out")
    history = load_model(tmp_path / "model").history_
    assert history["distances"]["engine"] is None  # nothing was computed
    assert history["distances"]["high"] == pytest.approx(
        float(open_store(tmp_path / "out").matrix().max())
    )
    assert "no store of distances" in refused(
        *fit, "--force", "--distances", tmp_path / "elsewhere"
    )
