"""Decimal commas, repeated times, cells that are no numbers, and steps of equal length."""

import gzip

import numpy as np
import pandas as pd
import pytest

from softclt.data import DataError, from_frame, load, open_series, read_series, read_table

NAN = np.nan


@pytest.fixture
def write(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


REPEATED = "id,t,x\na,1,1\nb,1,7\na,0,0\na,1,5\na,2,NaN\na,2,4\n"


def test_decimal_commas_are_read_when_they_are_announced(write):
    path = write("id;t;x;y\na;0;1,5;2\na;0,5;-0,25;3e0\n")
    table = read_table(path, decimal=",")
    np.testing.assert_array_equal(table.X, [[[1.5, -0.25], [2, 3]]])
    np.testing.assert_array_equal(table.times, [[0, 0.5]])


def test_tabs_separate_cells_with_decimal_commas(write):
    path = write("a\tb\n1,5\t2,25\n")
    np.testing.assert_array_equal(read_table(path, decimal=",").X[:, 0], [[1.5, 2.25]])


def test_a_point_among_decimal_commas_is_ambiguous_and_refused(write):
    with pytest.raises(DataError, match=r"line 2: '1.234,5' in column 'x' is no number"):
        read_table(write("id;t;x\na;0;1.234,5\n"), decimal=",")


def test_a_comma_in_a_cell_is_told_of_the_option(write):
    with pytest.raises(DataError, match=r"decimal=','.*--decimal ,"):
        read_table(write("id;t;x\na;0;1,5\n"))


def test_the_first_of_repeated_times_is_kept(write):
    table = read_table(write(REPEATED), duplicates="first")
    np.testing.assert_array_equal(table.X[:, 0], [[0, 1, NAN], [7, NAN, NAN]])
    np.testing.assert_array_equal(table.times[0], [0, 1, 2])


def test_the_mean_of_repeated_times_leaves_missing_values_out(write):
    table = read_table(write(REPEATED), duplicates="mean")
    np.testing.assert_array_equal(table.X[:, 0], [[0, 3, 4], [7, NAN, NAN]])


def test_repeated_times_are_an_error_that_names_the_option(write):
    with pytest.raises(DataError, match=r"line 5: time 1 of id 'a'.*--duplicates first or mean"):
        read_table(write(REPEATED))


def test_repeated_times_of_a_frame_go_by_the_same_rule():
    frame = pd.DataFrame({"id": ["a"] * 3, "t": [1, 1, 2], "x": [1.0, 3.0, 5.0]})
    assert from_frame(frame, duplicates="mean").X.tolist() == [[[2.0, 5.0]]]


def test_bad_cells_become_missing_values_and_are_counted(write, caplog):
    path = write("id,t,x\na,0,1\na,1,broken\na,2,inf\na,3,#REF!\n")
    table = read_table(path, bad_values="nan")
    np.testing.assert_array_equal(table.X[0, 0], [1, NAN, NAN, NAN])
    assert "3 cells" in caplog.text
    assert "line 3" in caplog.text
    with pytest.raises(DataError, match=r"line 3: 'broken'.*--bad-values nan"):
        read_table(path)


def test_bad_cells_of_parquet_become_missing_values(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": ["a", "a"], "t": [0, 1], "x": ["1,5", "?!"]})
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", bad_values="nan", decimal=",")
    np.testing.assert_array_equal(table.X[0, 0], [1.5, NAN])


def test_resampled_steps_are_means_on_even_times(write):
    path = write(
        "id,time,x\na,2024-01-01 00:10,1\na,2024-01-01 00:50,3\na,2024-01-01 02:05,5\n"
        "b,2024-01-01 05:00,7\n"
    )
    table = read_table(path, resample="1h")
    np.testing.assert_array_equal(table.X[:, 0], [[2, NAN, 5], [7, NAN, NAN]])
    times = [str(time)[:16] for time in table.times[0]]
    assert times == ["2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T02:00"]
    assert np.isnat(table.times[1, 1])


def test_resampling_counts_numbers_in_their_own_unit(write):
    table = read_table(write("t,x\n-1,1\n0,2\n4,4\n5,6\n"), resample="5")
    np.testing.assert_array_equal(table.times[0], [-5, 0, 5])
    np.testing.assert_array_equal(table.X[0, 0], [1, 3, 6])


@pytest.mark.parametrize(
    ("text", "step", "message"),
    [
        ("t,x\n0,1\n1,2\n", "1h", "numbers.*--resample 5"),
        ("time,x\n2024-01-01,1\n", "5", "unit.*1h"),
        ("time,x\n2024-01-01,1\n", "soon", "no length of time"),
        ("time,x\n2024-01-01,1\n", "-1h", "longer than 0"),
        ("a,b\n1,2\n", "1h", "no times"),
        ("time,x\n2024-01-01,1\n2025-01-01,2\n", "1s", "would make .* of 2 rows"),
    ],
)
def test_steps_that_make_no_sense_are_refused_with_the_file(write, text, step, message):
    with pytest.raises(DataError, match=f"table.csv.*{message}"):
        read_table(write(text), resample=step)


STAMPED = "@timestamps true\n@classLabel true a b\n@data\n(2,20),(0,0),(1,10):a\n(0,5),(1,6):b\n"


def test_ts_steps_are_sorted_by_time(write):
    table = read_series(write(STAMPED, "a.ts"))
    np.testing.assert_array_equal(table.X[:, 0], [[0, 10, 20], [5, 6, NAN]])
    np.testing.assert_array_equal(table.times[0], [0, 1, 2])
    assert table.unsorted_at == "line 4, step 2"
    assert table.labels == ["a", "b"]


def test_repeated_ts_times_are_refused_or_merged(write):
    text = "@timestamps true\n@data\n(0,1),(1,2),(1,4):(0,1),(1,2),(1,?)\n"
    with pytest.raises(DataError, match=r"a.ts, line 3, step 3: time 1.0 .* line 3, step 2"):
        read_series(write(text, "a.ts"))
    table = read_series(write(text, "a.ts"), duplicates="mean")
    np.testing.assert_array_equal(table.X, [[[1, 3], [1, 2]]])


def test_ts_times_are_resampled_too(write):
    text = "@timestamps true\n@data\n(2024-01-01 00:00:00,1),(2024-01-01 00:30:00,3)\n"
    assert read_series(write(text, "a.ts"), resample="1h").X.tolist() == [[[2.0]]]


@pytest.mark.parametrize("options", [{"decimal": ","}, {"resample": "1h"}, {"duplicates": "mean"}])
def test_options_that_a_form_has_no_use_for_are_refused(write, options, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 5)))
    with pytest.raises(DataError, match=next(iter(options))):
        read_series(tmp_path / "a.npy", **options)
    with pytest.raises(DataError, match=next(iter(options))):
        load("synthetic/waves", **options)


def test_unknown_choices_are_told_the_known_ones(write):
    path = write("a,b\n1,2\n")
    for option in ({"duplicates": "last"}, {"bad_values": "zero"}, {"decimal": ";"}):
        with pytest.raises(ValueError, match="expected one of"):
            read_table(path, **option)


def test_a_folder_of_parquet_files_merges_repeated_times(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": ["a"] * 3, "t": [0, 0, 1], "x": [1.0, 3.0, 5.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    source = open_series(tmp_path, duplicates="mean")
    np.testing.assert_array_equal(source.take(np.array([0]))[0, 0, :2], [2, 5])
    with pytest.raises(DataError, match="resample"):
        open_series(tmp_path, resample="1h")


def test_gzipped_tables_know_the_options_too(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(REPEATED.encode()))
    assert read_table(path, duplicates="first").X.shape == (2, 1, 3)
