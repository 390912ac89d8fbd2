"""CSV, Parquet and frames, wide and long."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softclt.data import DataError, from_frame, load, read_series, read_table
from softclt.validation import LARGEST

NAN = np.nan


@pytest.fixture
def write(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_wide_table_with_id_and_label(write):
    table = read_table(write("id,s0,s1,label\na,1,2,up\nb,3,,down\n"))
    np.testing.assert_array_equal(table.X, [[[1, 2]], [[3, NAN]]])
    assert table.ids == ["a", "b"]
    assert table.labels == ["up", "down"]
    assert table.y.tolist() == [1, 0]


def test_wide_table_of_plain_numbers_needs_no_header(write, caplog):
    table = read_table(write("1.5,2\n3,4\n"))
    np.testing.assert_array_equal(table.X[:, 0], [[1.5, 2], [3, 4]])
    assert "read as data" in caplog.text


def test_a_first_line_that_counts_from_zero_is_a_header(write):
    table = read_table(write("0,1,2\n5,6,7\n"))
    np.testing.assert_array_equal(table.X[:, 0], [[5, 6, 7]])


def test_columns_of_a_table_without_header_are_named_by_position(write):
    table = read_table(write("7,1.5,2\n9,3,4\n"), label="0")
    np.testing.assert_array_equal(table.X[:, 0], [[1.5, 2], [3, 4]])
    assert table.labels == ["7", "9"]


def test_unnamed_index_of_pandas_is_the_id_of_a_wide_table(tmp_path):
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["p", "q"])
    frame.to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv")
    assert table.ids == ["p", "q"]
    assert table.X.shape == (2, 1, 2)


def test_unnamed_index_of_pandas_is_left_out_of_a_long_table(tmp_path):
    pd.DataFrame({"t": [0, 1], "x": [5.0, 6.0]}).to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv")
    np.testing.assert_array_equal(table.X, [[[5, 6]]])
    assert table.channels == ["x"]


def test_long_table_is_sorted_by_time_and_keeps_the_order_of_ids(write):
    text = "Series_ID,Time,u,v,class\nb,2,20,21,k\nb,1,10,11,k\na,5,50,,m\n"
    table = read_table(write(text))
    np.testing.assert_array_equal(table.X, [[[10, 20], [11, 21]], [[50, NAN], [NAN, NAN]]])
    np.testing.assert_array_equal(table.times, [[1, 2], [5, NAN]])
    assert table.ids == ["b", "a"]
    assert table.channels == ["u", "v"]
    assert table.labels == ["k", "m"]


def test_long_table_without_id_is_one_series(write):
    table = read_table(write("date,OT\n2016-07-02,2\n2016-07-01 12:00:00,1\n"))
    np.testing.assert_array_equal(table.X, [[[1, 2]]])
    assert table.times[0, 1] == np.datetime64("2016-07-02")


@pytest.mark.parametrize("columns", ["unique_id,ds,y", "item_id,timestamp,target"])
def test_values_of_forecasting_tables_are_no_labels(write, columns):
    table = read_table(write(f"{columns}\na,1,0.5\na,2,0.7\n"))
    np.testing.assert_array_equal(table.X, [[[0.5, 0.7]]])
    assert table.y is None


def test_times_with_zones_are_compared_in_utc(write):
    text = "time,x\n2024-10-27T02:30:00+01:00,2\n2024-10-27T02:30:00+02:00,1\n"
    np.testing.assert_array_equal(read_table(write(text)).X, [[[1, 2]]])


def test_dates_in_the_form_of_the_first_are_read(write):
    table = read_table(write("date,x\n31/01/2024 10:00,1\n01/02/2024 10:00,2\n"))
    assert table.times[0].astype("datetime64[D]").astype(str).tolist() == [
        "2024-01-31",
        "2024-02-01",
    ]


def test_named_columns_win_over_usual_names(write):
    path = write("name,t,who,kind,y\nfoo,1,a,p,7\nbar,2,a,p,8\n")
    table = read_table(path, id="who", time="t", label="kind", values="y")
    np.testing.assert_array_equal(table.X, [[[7, 8]]])
    assert table.ids == ["a"]
    assert table.labels == ["p"]


def test_an_empty_name_says_that_there_is_no_such_column(write):
    path = write("id,y,x\n1,2,3\n4,5,6\n")
    table = read_table(path, id="", label="")
    np.testing.assert_array_equal(table.X[:, 0], [[1, 2, 3], [4, 5, 6]])
    assert table.y is None
    assert not table.has_ids


def test_form_long_without_time_keeps_the_order_of_rows(write):
    table = read_table(write("id,x\na,1\nb,5\na,0\n"), form="long")
    np.testing.assert_array_equal(table.X[:, 0], [[1, 0], [5, NAN]])


def test_form_wide_makes_a_time_column_a_step(write):
    assert read_table(write("t,u\n1,2\n"), form="wide").X.shape == (1, 1, 2)


def test_ids_and_labels_keep_their_letters(write):
    table = read_table(write("id,s0,label\n007,1,NA\nNA,2,01\n"))
    assert table.ids == ["007", "NA"]
    assert table.labels == ["NA", "01"]


def test_a_label_column_that_is_empty_throughout_means_no_labels(write):
    assert read_table(write("s0,s1,label\n1,2,\n3,4,\n")).y is None


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_separate_as_well(write, separator):
    text = "id,s0,s1\na,1,2\n".replace(",", separator)
    np.testing.assert_array_equal(read_table(write(text)).X, [[[1, 2]]])


def test_quoted_cells_may_hold_commas(write):
    table = read_table(write('id,s0,s1\n"a, b",1,"2"\n'))
    assert table.ids == ["a, b"]
    np.testing.assert_array_equal(table.X, [[[1, 2]]])


def test_gzipped_csv_is_read(write):
    path = write(gzip.compress(b"s0,s1\n1,2\n"), "table.csv.gz")
    np.testing.assert_array_equal(read_series(path).X, [[[1, 2]]])


@pytest.mark.parametrize("token", ["", "?", "NaN", "NA", "null", "None", " "])
def test_missing_values_have_many_names(write, token):
    np.testing.assert_array_equal(read_table(write(f"a,b\n1,{token}\n")).X, [[[1, NAN]]])


finite = st.one_of(st.just(NAN), st.floats(-LARGEST, LARGEST))


@settings(max_examples=30, deadline=None)
@given(X=arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 5)), elements=finite))
def test_wide_csv_round_trip(tmp_path_factory, X):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    frame = pd.DataFrame(X, columns=[f"s{i}" for i in range(X.shape[1])])
    frame.insert(0, "id", range(len(X)))
    frame.to_csv(path, index=False)
    np.testing.assert_array_equal(read_table(path).X[:, 0], X)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    n_channels=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
def test_long_frame_in_any_row_order_round_trip(lengths, n_channels, seed):
    rng = np.random.default_rng(seed)
    series = [rng.normal(size=(length, n_channels)) for length in lengths]
    frame = pd.concat(
        pd.DataFrame(s, columns=[f"c{j}" for j in range(n_channels)]).assign(id=i, t=range(len(s)))
        for i, s in enumerate(series)
    ).sample(frac=1.0, random_state=seed)
    table = from_frame(frame, id="id", time="t")
    for i, s in enumerate(series):
        row = table.X[table.ids.index(i)]
        np.testing.assert_array_equal(row[:, : len(s)], s.T)
        assert np.isnan(row[:, len(s) :]).all()


def test_frame_with_times_in_its_index():
    index = pd.MultiIndex.from_product(
        [[3, 1], pd.date_range("2024-01-01", periods=2, tz="Europe/Berlin")], names=["key", "when"]
    )
    frame = pd.DataFrame({"x": [1, 2, 3, None], "kind": ["u", "u", "v", "v"]}, index=index)
    table = from_frame(frame, id="key", time="when", values="x", label="kind")
    np.testing.assert_array_equal(table.X[:, 0], [[1, 2], [3, NAN]])
    assert table.ids == [3, 1]
    assert table.labels == ["u", "v"]
    assert table.times[0, 0] == np.datetime64("2023-12-31T23:00")


def test_frame_errors_name_the_row():
    frame = pd.DataFrame({"id": ["a", "a"], "t": [0, 0], "x": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"the frame, row 1: time 0\.0 of id 'a' stands at row 0"):
        from_frame(frame)
    frame = pd.DataFrame({"t": [0, 1], "x": [1.0, "high"]})
    with pytest.raises(DataError, match="the frame, row 1: 'high' in column 'x' is no number"):
        from_frame(frame)
    with pytest.raises(DataError, match=r"the frame, row 1: .*NaT.* is no time"):
        from_frame(pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None]), "x": [1.0, 2.0]}))
    with pytest.raises(DataError, match="the frame: has no rows"):
        from_frame(pd.DataFrame({"t": [], "x": []}))


def test_parquet_wide_and_long(tmp_path):
    pytest.importorskip("pyarrow")
    wide = pd.DataFrame({"id": [7, 8], "s0": [1.0, 2.0], "s1": [3.0, None], "label": ["a", "b"]})
    wide.to_parquet(tmp_path / "wide.parquet")
    table = read_table(tmp_path / "wide.parquet")
    np.testing.assert_array_equal(table.X[:, 0], [[1, 3], [2, NAN]])
    assert table.ids == [7, 8]
    assert table.labels == ["a", "b"]
    long = pd.DataFrame({"ds": pd.date_range("2024", periods=3)[::-1], "y": [3, 2, 1]})
    long.to_parquet(tmp_path / "long.parquet")
    np.testing.assert_array_equal(load(tmp_path / "long.parquet").X_train, [[[1, 2, 3]]])


def test_rubbish_parquet_is_refused(write):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"table\.parquet: is no Parquet file"):
        read_table(write(b"PAR1 rubbish", "table.parquet"))


def test_parquet_without_pyarrow_names_the_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r'pip install "softclt\[data\]"'):
        read_table(write(b"PAR1", "table.parquet"))


MALFORMED = {
    "empty": ("", "the file is empty"),
    "one line": ("id,s0,s1\n", "line 1: the header is all there is"),
    "short row": ("a,b,c\n1,2,3\n1,2\n", "line 3: 2 cells, but the first line has 3"),
    "long row": ("a,b\n1,2,3\n", "line 2: 3 cells, but the first line has 2"),
    "text in a number": ("a,b\n1,2\n\n1,two\n", "line 4: 'two' in column 'b' is no number"),
    "decimal comma": ("a;b\n1,5;2\n", "line 2: '1,5' in column 'a' .* decimal points"),
    "infinity": ("a,b\n1,2\n1,-inf\n", "line 3: a value is infinite"),
    "column twice": ("a,b,a\n1,2,3\n", "line 1: the column 'a' is there twice"),
    "no values": ("id,time\n1,2\n", "line 1: no column of values beside 'id', 'time'"),
    "empty id": ("id,t,x\na,1,2\n,1,2\n", "line 3: the id is empty"),
    "empty label": ("a,b,label\n1,2,x\n1,2,\n", "line 3: the label is empty"),
    "labels differ": (
        "id,t,x,label\na,1,2,u\nb,1,2,u\na,2,3,w\n",
        "line 4: the label 'w' differs from 'u'",
    ),
    "time twice": (
        "id,t,x\na,1,2\nb,1,3\na,1,4\n",
        r"line 4: time 1 of id 'a' stands at line 2.*duplicates=\)$",
    ),
    "no time": ("t,x\n1,2\nsoon,3\n", "line 3: 'soon' is no time"),
    "bad date": ("date,x\n2024-01-01,2\n2024-13-01,3\n", "line 3: '2024-13-01' is no time"),
    "empty time": ("t,x\n1,2\n,3\n", "line 3: '' is no time; expected numbers in all rows"),
    "open quote": ('a,b\n1,"2\n3,4\n', "line [23]"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00", "is binary"),
    "not UTF-8": (b"a,b\n1,2\n\xe9,3\n", "line 3: byte 0xe9 is not UTF-8"),
    "damaged gzip": (gzip.compress(b"a,b\n1,2\n" * 99)[:-9], "is a damaged gzip file"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_csv_names_file_line_and_fault(case, write):
    text, message = MALFORMED[case]
    with pytest.raises(DataError, match=message) as caught:
        read_table(write(text))
    assert "table.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_columns_are_told_the_known_ones(write):
    path = write("a,b\n1,2\n")
    with pytest.raises(DataError, match="no column 'c'; the table has a, b"):
        read_table(path, label="c")
    with pytest.raises(DataError, match="belongs to a long table"):
        read_table(path, time="a", form="wide")
    with pytest.raises(ValueError, match="form is 'tall'"):
        read_table(path, form="tall")


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["2024-01-31", "2024-02-01"], "%Y-%m-%d"),
        (["2024-01-31T00:00:00", "2024-02-01T00:00:00"], "%Y-%m-%dT%H:%M:%S"),
        (["01.02.2024 00:00", "13.02.2024 00:00"], "%d.%m.%Y %H:%M"),
        (["01/02/2024", "01/13/2024"], "%m/%d/%Y"),
        (["2024-01-31T00:00:00+0200", "2024-02-01T00:00:00+0200"], "%Y-%m-%dT%H:%M:%S%z"),
        (["2024-01-31", "2024-02-01 12:00"], ""),  # not of one form
    ],
)
def test_dates_are_written_as_the_file_writes_them(tmp_path, texts, form):
    path = tmp_path / "a.csv"
    path.write_text("time,x\n" + "".join(f"{text},1\n" for text in texts))
    table = read_table(path)
    assert table.time_format == form
    if form and "%z" not in form:
        assert table.as_written(table.times[0]) == texts


def test_zoned_dates_are_written_in_utc_and_whole_numbers_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,x\n2024-01-31T01:00:00+0200,1\n2024-02-01T01:00:00+0200,1\n")
    table = read_table(path)
    assert table.as_written(table.times[0])[0] == "2024-01-30T23:00:00+0000"
    path.write_text("time,x\n10,1\n20,1\n")
    assert read_table(path).as_written(np.array([30.0])) == [30]
    assert read_table(path).as_written(np.array([30.5])) == [30.5]


def test_the_first_row_out_of_order_is_remembered(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,time,x\na,1,1\nb,0,1\na,2,1\na,0,1\n")
    assert read_table(path).unsorted_at == "line 5"
    path.write_text("id,time,x\na,1,1\nb,0,1\na,2,1\n")
    assert read_table(path).unsorted_at == ""
