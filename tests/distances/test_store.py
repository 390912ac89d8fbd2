"""A store holds the matrix, refuses other data, finds damage, and survives kills."""

import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from softclt.distances import DistanceStore, distances, open_store, pairwise_distance, per_pair
from softclt.distances import store as making
from softclt.distances.engine import tile_distances
from softclt.distances.measure import Measure
from softclt.distances.store import StoreError, matrix_of
from tables import as_before


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of four series, so that a small store has many."""
    monkeypatch.setattr(making, "_TILE_CELLS", 1.0)


@pytest.fixture
def X(rng):
    X = rng.standard_normal((18, 2, 12)).cumsum(axis=-1)
    X[3, :, 8:] = np.nan
    return X


@pytest.fixture
def store(X, tmp_path):
    store = DistanceStore.create(tmp_path / "store", X)
    store.fill(n_jobs=1)
    return store


@pytest.fixture
def new_metric():
    """Register a function of two series for the length of a test."""

    def register(name, function, symmetric):
        tags = {"elastic": True, "symmetric": symmetric, "window": False}
        distances.register(name, **tags)(per_pair(function))

    with as_before(distances):
        yield register


def on_disk(store):
    """What tells a file that was left alone from one that was written again."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in store.tile_folder.iterdir()}


def flip_a_bit(path, place=-40):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("metric", distances.names())
def test_the_matrix_is_that_of_pairwise_distance(X, tmp_path, metric):
    how = {} if distances.tags(metric)["elastic"] else {"unequal": "resample"}
    store = DistanceStore.create(tmp_path, X, metric, **how)
    filled = store.fill(n_jobs=2)
    expected = pairwise_distance(X, metric=metric, **how).astype(np.float32)
    np.testing.assert_array_equal(store.matrix(), expected)
    np.testing.assert_array_equal(np.asarray(store), expected)
    assert (filled.made, filled.found, filled.damaged) == (len(store.tiles()), 0, [])


def test_window_and_parameters_reach_the_metric(X, tmp_path):
    store = DistanceStore.create(tmp_path, X, "dtw", 0.2, squared=True)
    store.fill(n_jobs=1)
    expected = pairwise_distance(X, window=0.2, squared=True)
    np.testing.assert_allclose(store.matrix(), expected, rtol=1e-6)


def test_of_a_symmetric_metric_one_half_is_kept(store):
    assert len(store.tiles()) == 15  # of 5 x 5
    assert len(list(store.tile_folder.iterdir())) == 15


def test_a_metric_that_is_not_symmetric_is_kept_in_full(X, tmp_path, new_metric):
    new_metric("lopsided", lambda x, y: abs(x.mean()) + 2 * abs(y.mean()), symmetric=False)
    store = DistanceStore.create(tmp_path, X, "lopsided")
    store.fill(n_jobs=1)
    assert len(store.tiles()) == 25
    expected = pairwise_distance(X, metric="lopsided").astype(np.float32)
    assert not np.allclose(expected, expected.T)
    np.testing.assert_array_equal(store.matrix(), expected)
    rows, cols = [17, 2, 9], [1, 16]
    np.testing.assert_array_equal(store.block(rows, cols), expected[np.ix_(rows, cols)])


def test_one_series_is_a_matrix_of_one_zero(tmp_path):
    store = DistanceStore.create(tmp_path, [[1.0, 2.0]])
    store.fill(n_jobs=1)
    np.testing.assert_array_equal(store.matrix(), [[0.0]])


@pytest.mark.parametrize(
    ("rows", "cols"),
    [
        ([0, 17, 5, 5], [16, 3]),
        (slice(2, 11), slice(None)),
        (np.array([-1]), [0, 1]),
        ([], [2]),
    ],
    ids=str,
)
def test_a_block_is_a_part_of_the_matrix(store, rows, cols):
    expected = store.matrix()[rows][:, cols] if len(np.arange(18)[rows]) else np.empty((0, 1))
    np.testing.assert_array_equal(open_store(store.folder).block(rows, cols), expected)


def test_a_block_opens_only_the_tiles_it_needs(store):
    kept = store.path(store.tiles()[0])
    for path in store.tile_folder.iterdir():
        if path != kept:
            path.unlink()
    assert open_store(store.folder).block([1, 2], [3]).shape == (2, 1)
    with pytest.raises(StoreError, match=r"14 of 15 tiles .* are missing"):
        open_store(store.folder).block([1], [4])


def test_a_store_opens_again_with_all_that_it_knew(store, X):
    again = open_store(str(store.folder))
    assert again.measure == Measure("dtw")
    assert len(again) == 18
    np.testing.assert_array_equal(again.series[3], X[3, :, :8])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).matrix(), store.matrix())
    assert "dtw of 18 series" in repr(again)


def test_ids_are_kept(store):
    assert store.ids is None
    store.keep_ids(["a", np.int64(7), *range(16)])
    assert open_store(store.folder).ids == ["a", "7", *range(16)]


def test_matrix_of_takes_a_folder_a_store_or_an_array(store):
    matrix = store.matrix()
    for given in (store, store.folder, str(store.folder), matrix):
        np.testing.assert_array_equal(matrix_of(given), matrix)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "tam"}, "the metric is 'dtw' there and 'tam' here"),
        ({"window": 0.5}, "the window is None there and 0.5 here"),
        ({"squared": True}, "parameters of the metric is {} there and {'squared': True} here"),
        ({"value": 1.0}, "the fingerprint of the series is"),
        ({"nan": True}, "the fingerprint of the series is"),
        ({"drop": True}, "the number of series is 18 there and 17 here"),
        ({"dtype": np.float32}, "the precision of the series is 'float64' there and 'float32'"),
    ],
    ids=str,
)
def test_other_distances_are_refused_with_what_differs(store, X, change, message):
    if change.pop("value", None):
        X[0, 0, 0] += 1e-9
    if change.pop("nan", None):
        X[0, 0, 3] = np.nan
    if change.pop("drop", None):
        X = X[:-1]
    X = X.astype(change.pop("dtype", np.float64))
    before = on_disk(store)
    with pytest.raises(StoreError, match="holds other distances") as refusal:
        DistanceStore.create(store.folder, X, **change)
    assert message in str(refusal.value)
    assert on_disk(store) == before


def test_another_version_of_the_kernels_is_refused(store, X, monkeypatch):
    monkeypatch.setattr("softclt.distances.measure.KERNEL_VERSION", 99)
    with pytest.raises(StoreError, match="version of the kernels is 1 there and 99 here"):
        DistanceStore.create(store.folder, X)


def test_functions_and_strange_parameters_are_refused(X, tmp_path):
    with pytest.raises(ValueError, match="register it"):
        DistanceStore.create(tmp_path, X, lambda x, y: 0.0)
    with pytest.raises(StoreError, match="JSON"):
        DistanceStore.create(tmp_path, X, squared=object())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_things_is_refused(X, tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StoreError, match="not empty and no store"):
        DistanceStore.create(tmp_path, X)
    with pytest.raises(StoreError, match="is a file"):
        DistanceStore.create(tmp_path / "thesis.tex", X)
    with pytest.raises(StoreError, match=r"manifest\.json is missing"):
        open_store(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "damaged"), ('{"format": 9}', "not of format 1"), ('{"format": 1}', "lacks half")],
)
def test_a_manifest_that_cannot_be_read_is_refused(store, content, message):
    (store.folder / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=message):
        open_store(store.folder)


def test_tiles_without_their_manifest_are_never_taken_for_others(store, X):
    (store.folder / "manifest.json").unlink()
    other = DistanceStore.create(store.folder, 2 * X)
    assert len(other.missing()) == 15


def test_a_second_fill_makes_nothing(store):
    before = on_disk(store)
    filled = store.fill(n_jobs=1)
    assert (filled.made, filled.found, filled.cells) == (0, 15, 0)
    assert on_disk(store) == before


def test_an_incomplete_store_has_no_matrix_and_is_filled_where_it_lacks(store):
    expected = store.matrix()
    store.path(store.tiles()[4]).unlink()
    before = on_disk(store)
    assert len(store.missing()) == 1
    with pytest.raises(StoreError, match="1 of 15 tiles"):
        store.matrix()
    assert store.fill(n_jobs=1).made == 1
    after = on_disk(store)
    assert {name: after[name] for name in before} == before
    np.testing.assert_array_equal(store.matrix(), expected)


@pytest.mark.parametrize("place", [0, 20, -40, -1])  # magic, header, values, checksum
def test_a_flipped_bit_is_found_and_repaired(store, place):
    expected, victim = store.matrix(), store.path(store.tiles()[4])
    flip_a_bit(victim, place)
    with pytest.raises(StoreError, match=f"{victim.name} is damaged"):
        store.matrix()
    with pytest.raises(StoreError, match="is damaged"):
        open_store(store.folder).block(slice(None), slice(None))
    before = on_disk(store)
    filled = open_store(store.folder).fill(n_jobs=1)
    assert (filled.made, filled.damaged) == (1, [victim.name])
    assert [name for name, own in on_disk(store).items() if own != before[name]] == [victim.name]
    np.testing.assert_array_equal(store.matrix(), expected)


@pytest.mark.parametrize("kept", [0, 3, 60])
def test_a_shortened_tile_is_found(store, kept):
    victim = store.path(store.tiles()[2])
    victim.write_bytes(victim.read_bytes()[:kept])
    assert store.verify() == [victim.name]
    assert not victim.exists()
    assert store.verify() == []


def test_damaged_series_are_found_and_written_again_from_the_data(store, X):
    flip_a_bit(store.folder / "series.npz", 300)
    store.path(store.tiles()[0]).unlink()
    with pytest.raises(StoreError, match="given the same data"):
        open_store(store.folder).fill(n_jobs=1)
    assert DistanceStore.create(store.folder, X).fill(n_jobs=1).made == 1
    np.testing.assert_array_equal(open_store(store.folder).series[0], X[0])


def test_what_killed_processes_left_is_removed_once_it_is_old(store):
    old, new = (store.tile_folder / f".00000-00001-{i}.npy" for i in ("abc", "def"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    store.verify()
    assert not old.exists()
    assert new.exists()
    assert store.missing() == []


def test_two_may_fill_one_store_at_the_same_time(X, tmp_path):
    def slowly(measure, x, tile, half):
        time.sleep(0.01)
        return tile_distances(measure, x, x, tile, half)

    made = []

    def fill():
        store = DistanceStore.create(tmp_path, X)
        made.append(store.fill(n_jobs=1, compute=slowly).made)

    threads = [threading.Thread(target=fill) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(made) >= 3  # both worked,
    assert sum(made) <= 24  # and did less than all twice
    expected = pairwise_distance(X).astype(np.float32)
    np.testing.assert_array_equal(open_store(tmp_path).matrix(), expected)


def test_a_pair_without_a_distance_is_named_as_in_the_data(X, tmp_path, new_metric):
    X[[9, 17]] += 1e6
    new_metric("shy", lambda x, y: np.nan if min(x.max(), y.max()) > 1e5 else 1.0, symmetric=True)
    store = DistanceStore.create(tmp_path, X, "shy")
    with pytest.raises(ValueError, match=r"shy gave nan for X\[9\] and X\[17\]"):
        store.fill(n_jobs=2)


def test_distances_beyond_float32_are_refused(tmp_path):
    store = DistanceStore.create(tmp_path, [[0.0, 0.0], [1e120, 0.0]])
    with pytest.raises(ValueError, match="scale the series"):
        store.fill(n_jobs=1)
    assert len(store.missing()) == 1


def test_a_device_that_is_not_there_is_refused_before_anything_is_written(X, tmp_path):
    with pytest.raises(ValueError, match="device is 'abacus'"):
        DistanceStore.create(tmp_path / "store", X, device="abacus")
    assert not (tmp_path / "store").exists()


def test_tiles_are_counted_not_timed(monkeypatch, rng, tmp_path):
    monkeypatch.undo()
    X = rng.standard_normal((2000, 1, 500)).astype(np.float32)
    store = DistanceStore.create(tmp_path, X)
    assert len(store.tiles()) == 136
    assert store.manifest["tile"] == 128
    assert json.loads((tmp_path / "manifest.json").read_text())["tile"] == 128


@pytest.mark.slow
def test_a_killed_command_goes_on_where_it_was(rng, tmp_path):
    X = rng.standard_normal((300, 1, 500)).cumsum(axis=-1).astype(np.float32)
    np.save(tmp_path / "walks.npy", X)
    command = [sys.executable, "-m", "softclt", "distances", str(tmp_path / "walks.npy")]
    command += ["--out", str(tmp_path / "out"), "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while len(list(tmp_path.glob("out/tiles*/0*.npy"))) < 2:
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.01)
        process.kill()
    store = open_store(tmp_path / "out")
    before = {name: own for name, own in on_disk(store).items() if not name.startswith(".")}
    assert 2 <= len(before) < 6
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{6 - len(before)} tile(s) made, {len(before)} were there" in done.stdout
    after = on_disk(store)
    assert {name: after[name] for name in before} == before
    rows, cols = np.array([0, 130, 299]), np.array([7, 200, 298])
    expected = pairwise_distance(X[rows], X[cols])
    np.testing.assert_allclose(store.matrix()[np.ix_(rows, cols)], expected, rtol=1e-6)
