"""What is dear is kept in the cache, within its limit; the rest never touches the disk."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from softclt.distances import cache, pairwise_distance
from softclt.distances import store as making
from softclt.distances.cache import cache_folder, cache_limit, cached_matrix, cached_stores
from softclt.distances.measure import Measure


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache of its own, in which everything is worth keeping."""
    monkeypatch.setenv("SOFTCLT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SOFTCLT_CACHE_LIMIT", raising=False)
    monkeypatch.setattr(cache, "_WORTH_KEEPING", 0.0)
    monkeypatch.setattr(making, "_TILE_CELLS", 1.0)
    return tmp_path / "cache" / "distances"


@pytest.fixture
def X(rng):
    return rng.standard_normal((10, 1, 6))


def matrix(X, metric="euclidean", **kwargs):
    measure = Measure(metric)
    return cached_matrix(measure, measure.prepare(X)[0], workers=1, **kwargs)


def is_unused_for(store, seconds):
    for path in (store.folder / "manifest.json", store.tile_folder):
        os.utime(path, (time.time() - seconds,) * 2)


def test_small_matrices_never_touch_the_disk(X, folder, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("SOFTCLT_CACHE", str(folder))
    np.testing.assert_array_equal(matrix(X), pairwise_distance(X, metric="euclidean"))
    assert not folder.exists()


def test_large_matrices_are_kept_and_come_back(X, monkeypatch):
    expected = pairwise_distance(X, metric="euclidean").astype(np.float32)
    np.testing.assert_array_equal(matrix(X), expected)
    (store,) = cached_stores()
    assert store.folder.name.startswith("euclidean-")
    assert store.missing() == []
    monkeypatch.setattr(making, "tile_distances", None)  # nothing is computed again
    np.testing.assert_array_equal(matrix(X), expected)


def test_what_a_killed_fit_left_is_used(X):
    expected = matrix(X)
    (store,) = cached_stores()
    kept = store.path(store.tiles()[0])
    store.path(store.tiles()[1]).unlink()
    before = kept.stat().st_ino
    np.testing.assert_array_equal(matrix(X), expected)
    assert kept.stat().st_ino == before


def test_damage_in_the_cache_is_repaired(X):
    expected = matrix(X)
    (store,) = cached_stores()
    store.path(store.tiles()[1]).write_bytes(b"noise")
    np.testing.assert_array_equal(matrix(X), expected)


def test_other_data_or_another_metric_has_a_store_of_its_own(X):
    matrix(X)
    matrix(X + 1)
    matrix(X, "cosine")
    assert len(cached_stores()) == 3


def test_results_of_functions_are_not_kept(X, folder):
    D = matrix(X, lambda x, y: float(abs(x.sum() - y.sum())))
    assert D[0, 1] == pytest.approx(abs(X[0].sum() - X[1].sum()))
    assert not folder.exists()


@pytest.mark.parametrize("limit", ["0", "0.000001"])
def test_without_room_nothing_is_kept_and_the_matrix_is_the_same(X, monkeypatch, limit):
    expected = matrix(X)
    cache.clear_cache()
    monkeypatch.setenv("SOFTCLT_CACHE_LIMIT", limit)
    if limit == "0":  # as the user wants it
        found = matrix(np.repeat(X, 40, axis=0))
    else:
        with pytest.warns(UserWarning, match="set SOFTCLT_CACHE_LIMIT to more gigabytes"):
            found = matrix(np.repeat(X, 40, axis=0))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found[::40, ::40], expected)
    assert cached_stores() == []


def test_a_cache_that_cannot_be_written_is_done_without(X, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SOFTCLT_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="cannot be written") as warned:
        found = matrix(X)
    assert len(warned) == 1
    np.testing.assert_allclose(found, pairwise_distance(X, metric="euclidean"), rtol=1e-6)


def test_a_full_disk_is_done_without(X, monkeypatch):
    def full(path, block):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(making, "write_tile", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert matrix(X).shape == (10, 10)


def test_the_least_recently_used_is_dropped_for_a_new_one(X, monkeypatch):
    for shift, age in ((0, 9000), (1, 5000), (2, 7000)):
        matrix(X + shift)
        is_unused_for(cached_stores()[0], age)
    matrix(X)  # used again, so the oldest is now X + 2
    one = max(store.n_bytes for store in cached_stores())
    monkeypatch.setenv("SOFTCLT_CACHE_LIMIT", str(3.2 * one / 1e9))
    oldest = cached_stores()[-1].folder
    matrix(X + 3)
    assert len(cached_stores()) == 3
    assert not oldest.exists()
    assert sum(store.n_bytes for store in cached_stores()) <= cache_limit()


def test_what_is_in_use_is_not_dropped(X, monkeypatch):
    matrix(X)
    (store,) = cached_stores()
    monkeypatch.setenv("SOFTCLT_CACHE_LIMIT", str(1.1 * store.n_bytes / 1e9))
    with pytest.warns(UserWarning, match="or is in use"):
        matrix(X + 1)
    assert [s.folder for s in cached_stores()] == [store.folder]


def test_what_a_killed_process_was_dropping_is_gone_with_the_next_store(X, folder):
    leftover = folder / ".dropped-123"
    leftover.mkdir(parents=True)
    assert cached_stores() == []
    matrix(X)
    assert not leftover.exists()


def test_clear_drops_one_or_all(X, folder):
    for shift in range(3):
        matrix(X + shift)
    first, second, third = cached_stores()
    size = first.n_bytes
    assert cache.clear_cache(first.folder.name) == size
    assert {store.folder for store in cached_stores()} == {second.folder, third.folder}
    with pytest.raises(ValueError, match="has no 'nothing'; there: euclidean-"):
        cache.clear_cache("nothing")
    assert cache.clear_cache() > size
    assert list(folder.iterdir()) == []
    assert cache.clear_cache() == 0


@pytest.mark.parametrize("limit", ["much", "-1", "nan"])
def test_a_limit_must_be_a_number(monkeypatch, limit):
    monkeypatch.setenv("SOFTCLT_CACHE_LIMIT", limit)
    with pytest.raises(ValueError, match="expected gigabytes"):
        cache_limit()


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/softclt"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/softclt"),
        ("darwin", {}, "home/Library/Caches/softclt"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/softclt/Cache"),
        ("win32", {"SOFTCLT_CACHE": "mine"}, "mine"),
    ],
)
def test_the_folder_is_where_the_system_keeps_caches(monkeypatch, platform, variables, expected):
    for name in ("SOFTCLT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert cache_folder() == Path(expected) / "distances"
