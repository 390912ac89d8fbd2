import numpy as np
import pandas as pd
import pytest

from softclt.data import ChannelSets, DataError, fingerprint, from_frame, open_series
from softclt.data.preparation import channel_scale
from softclt.data.sources import arrays, left_on_disk, open_if_large, opening, parquet


@pytest.fixture
def series(rng):
    X = rng.normal(size=(30, 3, 20)) + 100.0
    X[4, :, 12:] = X[5, 1, 3] = np.nan
    return X


@pytest.fixture
def mapped(series, tmp_path):
    np.save(tmp_path / "x.npy", series)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def long_frame(rng, ids, channels=("a", "b"), low=5, high=15):
    parts = []
    for id in ids:
        n = int(rng.integers(low, high))
        own = pd.DataFrame(rng.normal(size=(n, len(channels))), columns=list(channels))
        parts.append(own.assign(id=id, t=np.arange(n)[::-1]))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def folder(rng, tmp_path):
    """Three files of five series each, in row groups that no series respects."""
    frames = [long_frame(rng, [f"s{i}-{j}" for j in range(5)]) for i in range(3)]
    for i, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"part{i}.parquet", row_group_size=7)
    return tmp_path, from_frame(pd.concat(frames, ignore_index=True)).X


# ------------------------------------------------------------------------------------------- .npy


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", "<f2", "<i2", "|u1", "|b1"])
def test_a_file_gives_the_rows_of_its_array_whatever_its_type(tmp_path, rng, dtype):
    X = (rng.random((9, 2, 7)) * 3).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    source = open_series(tmp_path / "x.npy")
    rows = np.array([8, 0, 3, 3])
    np.testing.assert_array_equal(source.take(rows), X[rows].astype(np.float64))
    np.testing.assert_array_equal(source.take(rows, 2, 5), X[rows, :, 2:5].astype(np.float64))
    assert source.take(rows).dtype == (np.float32 if dtype == "<f4" else np.float64)


@pytest.mark.parametrize(
    "part",
    [
        lambda X: X[3:20:2],
        lambda X: X[:, 1:],
        lambda X: X[:, 1],
        lambda X: X[..., 2:-3],
        lambda X: X.swapaxes(1, 2),
        lambda X: X[10:11],
    ],
)
def test_a_part_of_a_map_is_read_from_its_place_in_the_file(mapped, part):
    view = part(mapped)
    source = open_series(view)
    expected = np.array(view if view.ndim == 3 else view[:, None])
    rows = np.arange(len(expected))[::-1]
    np.testing.assert_array_equal(source.take(rows), expected[rows])
    np.testing.assert_array_equal(source.take(rows[::-1]), expected)  # one read for all
    np.testing.assert_array_equal(source.take(rows, 1, 3), expected[rows][..., 1:3])
    np.testing.assert_array_equal(
        source.by_channel().take(np.array([0])), expected[:1, :1], strict=True
    )


def test_channels_of_a_file_become_series_without_a_copy(mapped, series):
    single = open_series(mapped).by_channel()
    assert isinstance(single, arrays.NpySource)
    rows = np.array([89, 0, 7, 31])
    np.testing.assert_array_equal(single.take(rows), series.reshape(90, 1, 20)[rows])
    assert single.survey.moments.count.shape == (1,)


@pytest.mark.parametrize("at_once", [1, 50, 200, 4_000_000])
def test_one_look_finds_what_arrays_in_memory_have(mapped, series, monkeypatch, at_once):
    monkeypatch.setattr("softclt.data.preparation._BLOCK", at_once)
    survey = open_series(mapped).survey
    for own, expected in zip(survey.moments.scale(), channel_scale(series), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-14)
        if at_once >= 60:  # a whole series: the very same sums
            np.testing.assert_array_equal(own, expected)
    assert (survey.shortest, survey.longest, survey.complete) == (12, 20, False)
    assert survey.some.all()
    if at_once >= 60:
        assert survey.fingerprint == fingerprint(series)


def test_a_look_knows_series_without_values(tmp_path):
    X = np.ones((4, 2, 5))
    X[1, 0], X[2, :, 3:] = np.nan, np.nan
    np.save(tmp_path / "x.npy", X)
    survey = open_series(tmp_path / "x.npy").survey
    assert survey.some.tolist() == [True, False, True, True]
    assert survey.shortest == 3


def test_an_infinite_value_is_named(tmp_path):
    X = np.zeros((6, 2, 5), np.float32)
    X[4, 1, 3] = np.inf
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(DataError, match="infinity: series 4, channel 1, step 3"):
        open_series(tmp_path / "x.npy").look()


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros((3, 4), complex), "dtype complex128; expected real numbers"),
        (np.array([["a", "b"]]), "dtype <U1"),
        (np.zeros(5), r"shape \(5,\); expected series as \(N, D, T\)"),
        (np.zeros((2, 2, 2, 2)), "shape"),
        (np.zeros((0, 1, 4)), "shape"),
        (np.asfortranarray(np.zeros((30, 2, 9))), "save it with the series as the first axis"),
    ],
    ids=str,
)
def test_a_file_of_something_else_is_refused(tmp_path, array, told):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(DataError, match=told):
        open_series(tmp_path / "x.npy")


def test_truncated_and_damaged_files_are_refused(tmp_path, mapped):
    path, whole = tmp_path / "x.npy", (tmp_path / "x.npy").read_bytes()
    source = open_series(path)
    path.write_bytes(whole[:-100])
    with pytest.raises(DataError, match="truncated"):
        open_series(path)
    with pytest.raises(DataError, match="ends before its last series"):
        source.take(np.array([29]))
    path.write_bytes(b"no numbers")
    with pytest.raises(DataError, match=r"is no \.npy file"):
        open_series(path)
    np.save(path, np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"x\.npy"):
        open_series(path)


def test_a_map_that_may_hide_its_file_is_refused(tmp_path, mapped):
    with pytest.raises(DataError, match="mode 'c'"):
        open_series(np.load(tmp_path / "x.npy", mmap_mode="c"))


# ---------------------------------------------------------------------------------------- Parquet


def test_long_tables_give_the_series_of_the_frame(folder):
    path, X = folder
    source = open_series(path)
    assert source.shape == X.shape
    assert len(source.shards) > 4  # more pieces than files
    rows = np.array([14, 0, 7, 7, 3])
    np.testing.assert_array_equal(source.take(rows), X[rows])
    np.testing.assert_array_equal(source.take(rows, 2, 8), X[rows, :, 2:8])
    assert source.survey.fingerprint == fingerprint(X)
    single = source.by_channel()
    np.testing.assert_array_equal(single.take(np.array([5, 28])), X[[2, 14], [1, 0], None])
    assert single.shards[-1] == 30


def test_series_whose_rows_are_mixed_are_read_file_by_file(folder, tmp_path):
    path, X = folder
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for file in path.glob("*.parquet"):
        pd.read_parquet(file).sort_values("t").to_parquet(mixed / file.name, row_group_size=7)
    source = open_series(mixed)
    assert source.shards.tolist() == [0, 5, 10, 15]
    got = source.take(np.arange(15))
    np.testing.assert_allclose(np.nansum(got, axis=(1, 2)).sum(), np.nansum(X))
    assert source.shape == X.shape


def test_wide_tables_have_a_row_a_series(rng, tmp_path):
    X = rng.normal(size=(20, 12)).astype(np.float32)
    for i in range(2):
        frame = pd.DataFrame(X[10 * i : 10 * i + 10]).rename(columns=str)
        frame.assign(id=range(10), label="a").to_parquet(
            tmp_path / f"{i}.parquet", row_group_size=4
        )
    source = open_series(tmp_path)
    assert source.dtype == np.float32
    assert source.shards.tolist() == [0, 4, 8, 10, 14, 18, 20]
    np.testing.assert_array_equal(source.take(np.arange(20))[:, 0], X)


def test_files_without_an_id_are_a_series_each(rng, tmp_path):
    for i, n in enumerate((5, 9)):
        pd.DataFrame({"time": range(n), "v": rng.normal(size=n)}).to_parquet(
            tmp_path / f"{i}.parquet", row_group_size=2
        )
    source = open_series(tmp_path)
    assert source.shape == (2, 1, 9)
    assert source.survey.shortest == 5


def test_few_row_groups_are_held(folder, monkeypatch):
    path, X = folder
    source = open_series(path)
    size = X[:1].nbytes * 2
    monkeypatch.setattr(parquet.ParquetSource, "held_bytes", 3 * size)
    for row in [0, 14, 7, 0, 3]:
        np.testing.assert_array_equal(source.take(np.array([row])), X[[row]])
        assert sum(values.nbytes for values in source._held.values()) <= 3 * size


def test_a_series_in_two_files_is_refused(folder, rng):
    path, _ = folder
    long_frame(rng, ["other", "s1-3"]).to_parquet(path / "part9.parquet")
    with pytest.raises(DataError, match=r"part9.*that part1\.parquet has too.*within one file"):
        open_series(path)


def test_other_columns_are_refused(folder, rng):
    path, _ = folder
    long_frame(rng, ["x"], channels=("a", "c")).to_parquet(path / "part9.parquet")
    with pytest.raises(DataError, match=r"part9\.parquet: has the columns 'a', 'c'.*expected 'a'"):
        open_series(path)


def test_rows_that_cannot_be_held_are_refused_with_a_remedy(folder, tmp_path, monkeypatch):
    path, _ = folder
    monkeypatch.setattr(parquet, "MOST_VALUES", 60)
    open_series(path)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    frame = pd.read_parquet(path / "part0.parquet")
    frame.to_parquet(mixed / "one.parquet")
    with pytest.raises(DataError, match="smaller row groups"):
        open_series(mixed)
    frame.sort_values("t").to_parquet(mixed / "one.parquet", row_group_size=7)
    with pytest.raises(DataError, match="sort its rows by the id"):
        open_series(mixed)


def test_a_long_series_among_many_short_ones_is_refused(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "MOST_VALUES", 200)
    frame = pd.concat([long_frame(rng, range(20), "a", 2, 3), long_frame(rng, [20], "a", 90, 91)])
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"21 series .* the longest has 90 steps: too much, padded"):
        open_series(tmp_path)


def test_values_keep_the_precision_of_the_most_precise_file(rng, tmp_path):
    wide = pd.DataFrame(rng.normal(size=(3, 4))).rename(columns=str)
    wide.astype(np.float32).to_parquet(tmp_path / "a.parquet")
    assert open_series(tmp_path).dtype == np.float32
    wide.to_parquet(tmp_path / "b.parquet")
    source = open_series(tmp_path)
    np.testing.assert_array_equal(source.take(np.arange(3, 6))[:, 0], wide.to_numpy())


def test_errors_of_rows_name_the_row_of_the_file(folder, rng):
    path, _ = folder
    frame = long_frame(rng, ["x", "y"])
    frame.loc[9, "a"] = np.inf
    frame.to_parquet(path / "part9.parquet", row_group_size=4)
    with pytest.raises(DataError, match=r"part9\.parquet, row 9: a value is infinite"):
        open_series(path).look()
    frame.loc[3, "id"] = None
    frame.to_parquet(path / "part9.parquet", row_group_size=2)
    with pytest.raises(DataError, match=r"part9\.parquet, row 3: the id is empty"):
        open_series(path)


def test_folders_and_files_without_tables_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no \.parquet file"):
        open_series(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        open_series(tmp_path / "nowhere.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 or so")
    with pytest.raises(DataError, match="is no Parquet file"):
        open_series(tmp_path)
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(DataError, match="cannot be read piece by piece"):
        open_series(tmp_path / "a.csv")


# ------------------------------------------------------------------------------------------- sets


def test_a_list_of_sets_has_every_channel_as_a_series(mapped, series, folder):
    path, X = folder
    sets = open_series([mapped, np.ones((4, 9)), path])
    assert isinstance(sets, ChannelSets)
    assert [own.shape for own in sets.sets] == [(90, 1, 20), (4, 1, 9), (30, 1, X.shape[-1])]
    assert sets.shape == (124, 1, 20)
    with pytest.raises(DataError, match="empty"):
        open_series([])
    with pytest.raises(DataError, match="one list"):
        open_series([sets])


# ------------------------------------------------------------------------------ what is left there


def test_only_large_maps_are_left_on_disk(mapped, monkeypatch):
    assert left_on_disk(mapped) is None
    assert left_on_disk(np.array(mapped)) is None
    monkeypatch.setattr(opening, "IN_MEMORY", mapped.size - 1)
    assert left_on_disk(mapped).shape == mapped.shape
    assert left_on_disk(mapped + 1) is None  # of the class of a map, but computed
    assert left_on_disk(np.array(mapped)) is None


def test_large_files_and_folders_of_tables_are_opened(folder, tmp_path, mapped, monkeypatch):
    path, _ = folder
    assert open_if_large(tmp_path / "x.npy") is None
    assert open_if_large(path / "part0.parquet") is None
    assert open_if_large("ucr/GunPoint") is None
    assert open_if_large(path).shape[0] == 15
    monkeypatch.setattr(opening, "IN_MEMORY", 100)
    assert open_if_large(tmp_path / "x.npy").shape == mapped.shape
    assert open_if_large(path / "part0.parquet").shape[0] == 5
    (path / "Set_TRAIN.ts").touch()
    assert open_if_large(path) is None
