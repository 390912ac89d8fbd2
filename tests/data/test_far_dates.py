"""Dates that do not fit into nanoseconds, 1677 to 2262, are refused where they stand."""

import numpy as np
import pandas as pd
import pytest

from softclt.data import DataError, from_frame, read_series, read_table
from softclt.data.times import check_times


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("far", ["9999-12-31", "1492-10-12", "0001-01-01"])
def test_a_far_date_in_a_csv_is_refused_with_its_line(tmp_path, far):
    path = write(tmp_path, f"id,time,x\na,2024-01-01,1\na,{far},2\na,2024-01-03,3\n")
    with pytest.raises(DataError, match=rf"table.csv, line 3: .*{far}.*1677.*2262"):
        read_table(path)


def test_dates_at_both_ends_of_the_range_keep_their_order(tmp_path):
    path = write(tmp_path, "time,x\n1677-09-22,1\n2024-01-01,2\n2262-04-10,3\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.X[0, 0], [1, 2, 3])
    assert str(table.times[0, 2])[:10] == "2262-04-10"


def test_a_far_date_in_a_parquet_table_is_refused_with_its_row(tmp_path):
    pytest.importorskip("pyarrow")
    dates = np.array(["2024-01-01", "9999-12-31"], "datetime64[us]")
    pd.DataFrame({"time": dates, "x": [1.0, 2.0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a.parquet, row 1: .*9999-12-31"):
        read_table(tmp_path / "a.parquet")


def test_a_far_date_in_a_frame_is_refused():
    dates = np.array(["2024-01-01", "1066-10-14"], "datetime64[s]")
    with pytest.raises(DataError, match=r"row 1: .*1066-10-14"):
        from_frame(pd.DataFrame({"time": dates, "x": [1.0, 2.0]}))


def test_a_far_date_in_a_ts_file_is_refused_with_its_line(tmp_path):
    text = "@timestamps true\n@data\n(2024-01-01,1),(9999-12-31,2)\n"
    with pytest.raises(DataError, match=r"a.ts, line 3: .*9999-12-31"):
        read_series(write(tmp_path, text, "a.ts"))


@pytest.mark.parametrize(
    "times",
    [
        np.array(["2024-01-01", "9999-12-31"], "datetime64[D]"),
        ["2024-01-01", "9999-12-31"],
    ],
)
def test_far_times_given_to_python_are_refused(times):
    with pytest.raises(ValueError, match=r"9999-12-31.*1677"):
        check_times(times, np.array([2]), 2)
