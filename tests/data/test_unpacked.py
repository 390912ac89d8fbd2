"""Large CSV and .npz files, read in parts, are what they are when they are read as a whole."""

import gzip
import os

import numpy as np
import pandas as pd
import pytest

from softclt.data import DataError, read_table
from softclt.data.sources import open_if_large, open_to_read_once, opening, unpacked
from softclt.data.sources.unpacked import CsvSource


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(opening, "IN_MEMORY", 0)
    monkeypatch.setattr(unpacked, "_GROUP", 20)  # values of a row group
    monkeypatch.setattr("softclt.data.csvfile._BLOCK", 10)


def assert_same(path, **columns):
    source, table = open_to_read_once(path, **columns), read_table(path, **columns)
    assert source.shape == table.X.shape
    np.testing.assert_array_equal(source.take(np.arange(len(source))), table.X)
    assert source.ids() == table.ids
    middle = len(source) // 2
    assert source.ids_of(1, middle) == table.ids[1:middle]
    return source


@pytest.fixture
def wide(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(30, 4)).round(3), columns=list("pqrs"))
    frame.iloc[3, 2] = np.nan
    frame.insert(0, "name", [f"00{i}" for i in range(30)])
    frame.insert(3, "label", "x")
    frame.to_csv(tmp_path / "wide.csv", index=False)
    return tmp_path / "wide.csv"


def test_a_wide_csv_is_the_same(wide):
    source = assert_same(wide)
    assert len(source.pieces) > 3
    assert source.name == str(wide)
    packed = wide.with_name("packed.csv.gz")
    packed.write_bytes(gzip.compress(b"\n\n" + wide.read_bytes().replace(b"\n", b"\r\n")))
    assert_same(packed)
    assert_same(wide, values=["s", "p"], id="")


@pytest.mark.parametrize("dates", [False, True])
def test_a_long_csv_is_the_same(rng, tmp_path, dates):
    rows = [
        {"id": f"s{i}", "time": f"2024-01-{t + 1:02}" if dates else t, "a": rng.normal(), "b": t}
        for i in range(12)
        for t in reversed(range(2 + i % 5))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "long.csv", index=False)
    assert len(assert_same(tmp_path / "long.csv").pieces) > 2
    assert_same(tmp_path / "long.csv", values="b")


def test_decimal_commas_and_cells_that_are_no_numbers_are_the_same(tmp_path, caplog):
    (tmp_path / "x.csv").write_text("id;time;v\na;0,5;1,5\na;0,25;?\nb;1;broken\nb;2;7,25\n")
    options = {"decimal": ",", "bad_values": "nan"}
    with caplog.at_level("WARNING"):
        assert_same(tmp_path / "x.csv", **options)
    assert "1 cell is no number and was read as missing, the first at line 4" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a,b\nx,1,2\ny,3,oops\n", r"bad\.csv, line 3: 'oops' in column 'b' is no number"),
        ("id,a,b\nx,1,2\ny,3\n", r"bad\.csv, line 3: 2 cells, but the first line has 3"),
        ("id,a,b\n", "the header is all there is"),
        ("id,a\nx,1\n,2\n", "the id is empty"),
    ],
)
def test_what_is_wrong_in_a_csv_is_told_with_its_line(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        open_to_read_once(tmp_path / "bad.csv").look()


def test_a_csv_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "bad.csv").write_bytes("id,a\nmüller,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="byte 0xfc is not UTF-8"):
        open_to_read_once(tmp_path / "bad.csv")


@pytest.mark.parametrize("with_ids", [False, True])
def test_an_npz_file_is_the_same(rng, tmp_path, with_ids):
    X = rng.normal(size=(9, 2, 5)).astype(np.float32)
    ids = {"ids": np.array([f"m{i}" for i in range(9)])} if with_ids else {}
    np.savez_compressed(tmp_path / "x.npz", X=X, **ids)
    source = open_to_read_once(tmp_path / "x.npz")
    np.testing.assert_array_equal(source.take(np.array([8, 2])), X[[8, 2]])
    assert source.ids() == [f"m{i}" if with_ids else str(i) for i in range(9)]
    assert source.name == str(tmp_path / "x.npz")


def test_a_damaged_npz_file_is_named(rng, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, X=rng.normal(size=(9, 2, 5)))
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 255
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"x\.npz: is no NumPy file, or a damaged one"):
        open_to_read_once(path)


def test_files_with_a_test_part_and_tables_to_resample_are_read_as_a_whole(wide, tmp_path):
    np.savez(tmp_path / "x.npz", x_train=np.zeros((2, 3)), x_test=np.zeros((2, 3)))
    assert open_to_read_once(tmp_path / "x.npz") is None
    np.savez(tmp_path / "columns.npz", X=np.asfortranarray(np.zeros((2, 3))))
    assert open_to_read_once(tmp_path / "columns.npz") is None
    assert open_to_read_once(wide, resample="2") is None
    assert open_if_large(wide) is None  # elsewhere a CSV is read as a whole


def test_the_temporary_files_go_with_the_source(wide):
    source = CsvSource(wide)
    folder = source._folder.name
    assert list(os.listdir(folder)) == ["wide.csv.parquet"]
    del source
    assert not os.path.exists(folder)
