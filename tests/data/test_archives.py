"""Readers of .ts and .tsv files: what they read, and how they refuse."""

from pathlib import Path

import numpy as np
import pytest

from softclt.data import DataError, read_ts, read_tsv

HEADER = "# words\n@problemName Tiny\n@univariate false\n@dimensions 2\n@equalLength false\n"


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes, name: str = "Tiny_TRAIN.ts") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_ts_of_varying_length_with_missing_values(write):
    table = read_ts(write(HEADER + "@classLabel true b a\n@data\n1,?,3:4,5,NaN:b\n7:8:a\n"))
    nan = np.nan
    expected = [[[1, nan, 3], [4, 5, nan]], [[7, nan, nan], [8, nan, nan]]]
    np.testing.assert_array_equal(table.X, expected)
    assert table.classes == ["a", "b"]
    assert table.y.tolist() == [1, 0]


def test_ts_without_labels_has_no_y(write):
    table = read_ts(write("@univariate true\n@classLabel false\n@data\n1,2\n3,4\n"))
    assert table.y is None
    assert table.X.shape == (2, 1, 2)


def test_ts_target_of_a_regression_file_is_left_out(write):
    table = read_ts(write("@univariate true\n@targetlabel true\n@data\n1,2,3:0.5\n"))
    assert table.y is None
    np.testing.assert_array_equal(table.X, [[[1, 2, 3]]])


def test_ts_reads_windows_line_ends_and_a_byte_order_mark(write):
    table = read_ts(write(b"\xef\xbb\xbf@univariate true\r\n@data\r\n1,2\r\n\r\n3,4\r\n"))
    np.testing.assert_array_equal(table.X[:, 0], [[1, 2], [3, 4]])


def test_ts_timestamps_become_times(write):
    text = (
        "@timestamps true\n@univariate false\n@dimensions 2\n@classLabel true 1\n@data\n"
        "(2024-01-01 00:00:00,1.5),(2024-01-01 06:30:00,2):"
        "(2024-01-01 00:00:00,3), (2024-01-01 06:30:00,?):1\n"
    )
    table = read_ts(write(text))
    np.testing.assert_array_equal(table.X, [[[1.5, 2], [3, np.nan]]])
    assert table.times[0, 1] == np.datetime64("2024-01-01T06:30")
    assert table.labels == ["1"]


def test_ts_timestamps_may_be_numbers_and_lengths_vary(write):
    table = read_ts(write("@timestamps true\n@univariate true\n@data\n(0,5),(1.5,6)\n(2,7)\n"))
    np.testing.assert_array_equal(table.times, [[0, 1.5], [2, np.nan]])
    np.testing.assert_array_equal(table.X[:, 0], [[5, 6], [7, np.nan]])


def test_tsv_has_the_label_first(write):
    table = read_tsv(write("2\t1.5\t2.5\n-1\t3\tNaN\n", "a.tsv"))
    np.testing.assert_array_equal(table.X[:, 0], [[1.5, 2.5], [3, np.nan]])
    assert table.classes == ["-1", "2"]
    assert table.y.tolist() == [1, 0]


UNI = "@univariate true\n@classLabel true 1 2\n@data\n"

MALFORMED_TS = {
    "empty": ("", "the file is empty"),
    "blank": (" \n\n", "the file is empty"),
    "one line": ("1,2,3:1\n", "line 1: '1,2,3:1' stands before @data"),
    "no data line": ("@univariate true\n", "line 1: the file ends without @data"),
    "no series": (UNI, "line 3: no line follows @data"),
    "header flag": ("@univariate maybe\n@data\n1\n", "line 1: @univariate is 'maybe'"),
    "header number": ("@dimensions two\n@data\n1\n", "line 1: @dimensions is 'two'"),
    "text in a number": (UNI + "1,2:1\n1,x:1\n", "line 5: value 2 'x' is no number"),
    "empty value": (UNI + "1,,2:1\n", "line 4: value 2 is empty"),
    "infinity": (UNI + "1,inf:1\n", "line 4: a value is infinite"),
    "no label": (UNI + "1,2\n", "line 4: no colon found"),
    "empty label": (UNI + "1,2:\n", "line 4: the label is empty"),
    "foreign label": (UNI + "1,2:3\n", "line 4: the label '3' is none of the header's"),
    "too many channels": (UNI + "1,2:3,4:1\n", "line 4: 2 channel\\(s\\), expected 1"),
    "ragged channels": (HEADER + "@data\n1,2:3\n", "line 7: the channels .* 1 to 2 steps"),
    "channels differ": ("@univariate false\n@data\n1:2\n1:2:3\n", "line 4: 3 channel.*expected 2"),
    "wrong length": (
        "@univariate true\n@equalLength true\n@seriesLength 3\n@data\n1,2,3\n1,2\n",
        "line 6: 2 steps, expected 3",
    ),
    "stamps without brackets": ("@timestamps true\n@data\n1,2\n", "line 3: '1,2' is not \\(time"),
    "stamp without value": ("@timestamps true\n@data\n(1)\n", "line 3: '1' is not a time and"),
    "stamp is no time": ("@timestamps true\n@data\n(soon,1)\n", "line 3: 'soon' is no time"),
    "stamps differ": ("@timestamps true\n@data\n(1,1):(2,1)\n", "line 3: .*different times"),
    "stamps mixed": ("@timestamps true\n@data\n(1,1)\n(2024-01-01,1)\n", "line 4: .*are mixed"),
    "binary": (b"PK\x03\x04\x00\x00\x80", "line 1: is binary"),
    "not UTF-8": (b"@univariate true\n# caf\xe9\n@data\n1\n", "line 2: byte 0xe9 is not UTF-8"),
}


@pytest.mark.parametrize("case", MALFORMED_TS)
def test_malformed_ts_names_file_line_and_fault(case, write):
    text, message = MALFORMED_TS[case]
    with pytest.raises(DataError, match=message) as caught:
        read_ts(write(text))
    assert "Tiny_TRAIN.ts" in str(caught.value)
    assert "\n" not in str(caught.value)


MALFORMED_TSV = {
    "empty": ("", "the file is empty"),
    "no tabs": ("1,2,3\n", "line 1: '1,2,3' is no series"),
    "header": ("label\tt0\n1\t2\n", "line 1: .*a table with a header belongs into a .csv file"),
    "ragged row": ("1\t2\t3\n1\t2\n", "line 2: 1 values, but the first line has 2"),
    "empty label": ("1\t2\n\t2\n", "line 2: the label is empty"),
    "trailing tab": ("1\t2\t\n", "line 1: value 2 is empty"),
    "not UTF-8": (b"1\t2\n1\t\xff\n", "line 2: byte 0xff"),
}


@pytest.mark.parametrize("case", MALFORMED_TSV)
def test_malformed_tsv_names_file_line_and_fault(case, write):
    text, message = MALFORMED_TSV[case]
    with pytest.raises(DataError, match=message) as caught:
        read_tsv(write(text, "bad.tsv"))
    assert "bad.tsv" in str(caught.value)


@pytest.mark.parametrize("read", [read_ts, read_tsv])
def test_missing_file_and_folder_are_named(read, tmp_path):
    with pytest.raises(DataError, match="nowhere: no such file"):
        read(tmp_path / "nowhere")
    with pytest.raises(DataError, match="is a folder; expected a file"):
        read(tmp_path)


def test_five_megabytes_of_ts_take_no_more_than_seconds(write, rng):
    import time

    rows = [",".join(f"{v:.7f}" for v in rng.normal(size=1000)) + ":1" for _ in range(500)]
    path = write(UNI + "\n".join(rows))
    start = time.perf_counter()
    assert read_ts(path).X.shape == (500, 1, 1000)
    assert time.perf_counter() - start < 5.0  # about 0.2 s on an idle machine
