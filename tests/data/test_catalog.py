"""Where data are looked for: names, roots, files, folders, aeon's samples."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softclt.data import DataError, available, datasets, load, read_series
from softclt.data import catalog as catalog_module
from softclt.data.catalog import AEON_SAMPLES

UNI = "@univariate true\n@classLabel true 1 2\n@data\n"
SHIPPED = [f"{archive}/{name}" for archive in AEON_SAMPLES for name in AEON_SAMPLES[archive]]


@pytest.fixture
def roots(tmp_path, monkeypatch):
    """Two roots: one with archive folders, one with the files themselves."""
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "ucr").mkdir(parents=True)
    (first / "uea" / "Multi").mkdir(parents=True)
    second.mkdir()
    np.savez(first / "ucr" / "Tiny.npz", x_train=np.ones((2, 3)), x_test=np.zeros((1, 3)))
    for part in ("TRAIN", "TEST"):
        text = "@univariate false\n@data\n1,2:3,4\n"
        (first / "uea" / "Multi" / f"Multi_{part}.ts").write_text(text)
        (second / f"Flat_{part}.tsv").write_text("1\t2\t3\n2\t3\t4\n")
        (second / f"Tiny_{part}.tsv").write_text("1\t2\t3\n2\t3\t4\n")
    monkeypatch.setenv("SOFTCLT_DATA", os.pathsep.join([str(first), str(second)]))
    return first, second


def test_names_are_found_in_several_roots(roots):
    data = load("ucr/Tiny")
    assert data.meta["archive"] == "ucr"
    assert data.meta["source"] == str(roots[0] / "ucr" / "Tiny.npz")
    assert load("uea/Multi").X_train.shape == (1, 2, 2)
    assert load("Multi").meta["name"] == "uea/Multi"
    flat = load("Flat")
    assert flat.meta["name"] == "ucr/Flat"
    assert flat.meta["classes"] == ["1", "2"]
    assert flat.y_test.tolist() == [0, 1]


def test_the_first_root_wins(roots):
    np.testing.assert_array_equal(load("Tiny").X_train, np.ones((2, 1, 3)))


def test_your_own_folder_wins_over_aeon(roots):
    np.savez(roots[0] / "ucr" / "GunPoint.npz", x_train=np.ones((2, 3)), x_test=np.ones((2, 3)))
    assert load("ucr/GunPoint").X_train.shape == (2, 1, 3)


def test_available_names_can_all_be_loaded(roots):
    names = available()
    assert {"ucr/Tiny", "uea/Multi", "Flat", "synthetic/waves"} <= set(names)
    for name in names:
        if name not in SHIPPED:
            assert len(load(name).X_train) > 0


def test_an_unknown_name_is_told_the_places_and_close_names(roots, monkeypatch):
    with pytest.raises(DataError, match="unknown data set 'ucr/Tinny'") as caught:
        load("ucr/Tinny")
    message = str(caught.value)
    assert str(roots[0]) in message
    assert str(roots[1]) in message
    assert "did you mean" in message
    assert "Tiny" in message
    monkeypatch.setenv("SOFTCLT_DATA", str(roots[0] / "gone"))
    with pytest.raises(DataError, match=r"gone \(no such folder\)"):
        load("Tiny")


def test_without_aeon_its_samples_name_the_extra(monkeypatch):
    monkeypatch.delenv("SOFTCLT_DATA", raising=False)
    monkeypatch.setattr(catalog_module, "find_spec", lambda name: None)
    for name in ("ucr/GunPoint", "GunPoint"):
        with pytest.raises(
            DataError, match=r'not installed.*pip install "softclt\[data\]".*one of aeon'
        ) as caught:
            load(name)
        assert "did you mean" not in str(caught.value)
    with pytest.raises(DataError, match="did you mean ucr/GunPoint"):
        load("ucr/gunpoint")
    assert "ucr/GunPoint" not in available()


def test_registered_names_are_loaded_by_calling_them():
    assert "synthetic/waves" in datasets.names()
    assert load("synthetic/waves", split="train").X_test is None
    assert read_series("synthetic/waves", split="all").X.shape == (120, 1, 96)


def test_train_file_finds_its_test_file(tmp_path):
    (tmp_path / "Pair_TRAIN.ts").write_text(UNI + "1,2,3:2\n")
    with pytest.raises(DataError, match=r"Pair_TRAIN.ts: Pair_TEST.ts is not beside it"):
        load(tmp_path / "Pair_TRAIN.ts")
    assert load(tmp_path / "Pair_TRAIN.ts", split="train").X_test is None
    (tmp_path / "Pair_TEST.ts").write_text(UNI + "1,2:2\n4,5:1\n")
    data = load(str(tmp_path / "Pair_TRAIN.ts"))
    assert data.X_test.shape == (2, 1, 3)
    assert data.y_test.tolist() == [0, 1]
    assert data.meta["classes"] == ["2", "1"]  # class 1 is the test set's alone
    assert data.meta["name"] == "Pair"


def test_read_series_takes_a_file_as_it_stands(tmp_path):
    (tmp_path / "Pair_TEST.ts").write_text(UNI + "1,2:2\n4,5:1\n")
    assert len(read_series(tmp_path / "Pair_TEST.ts")) == 2


@pytest.mark.parametrize("folder_name", ["Pair", "elsewhere"])
def test_folder_with_one_data_set(tmp_path, folder_name, monkeypatch):
    folder = tmp_path / folder_name
    folder.mkdir()
    for part in ("TRAIN", "TEST"):
        (folder / f"Pair_{part}.tsv").write_text("1\t2\t3\n")
    (folder / "Pair_TRAIN.ts").write_text(UNI + "9,9:1\n")  # has no test part
    data = load(folder)
    np.testing.assert_array_equal(data.X_train, [[[2, 3]]])
    assert read_series(folder, split="test").X.shape == (1, 1, 2)
    monkeypatch.chdir(tmp_path)
    assert load(folder_name).fingerprint == data.fingerprint


def test_folder_without_or_with_several_data_sets_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no data set"):
        load(tmp_path)
    for name in ("A", "B"):
        np.savez(tmp_path / f"{name}.npz", x_train=np.ones((1, 2)))
    with pytest.raises(DataError, match=r"holds 2 data sets \(A, B\)"):
        load(tmp_path)


def test_wrong_use_is_told_what_to_do(tmp_path):
    (tmp_path / "a.xlsx").write_text("x")
    (tmp_path / "bare").write_text("x")
    (tmp_path / "a.tsv").write_text("1\t2\n")
    with pytest.raises(DataError, match=r"unknown suffix '.xlsx'; expected .ts"):
        load(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match=r"unknown suffix ''"):
        load(str(tmp_path / "bare"))
    with pytest.raises(DataError, match="no such file"):
        load("nowhere/a.csv")
    with pytest.raises(DataError, match="label= is for CSV and Parquet tables"):
        load(tmp_path / "a.tsv", label="x")
    assert len(load(tmp_path / "a.tsv", label=None, values=[], form="auto").X_train) == 1
    with pytest.raises(DataError, match="read_series has 'test'"):
        load(tmp_path / "a.tsv", split="test")
    with pytest.raises(ValueError, match="split is 'half'"):
        read_series(tmp_path / "a.tsv", split="half")


def test_table_columns_reach_the_reader(tmp_path):
    (tmp_path / "a.csv").write_text("kind,u,v\np,1,2\nq,3,4\n")
    data = load(tmp_path / "a.csv", label="kind")
    assert data.meta["classes"] == ["p", "q"]
    assert data.X_test is None


def test_data_room_imports_no_heavy_package():
    heavy = {"torch", "pandas", "aeon", "pyarrow", "sklearn", "scipy", "matplotlib"}
    code = f"import sys, softclt.data; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@settings(max_examples=60, deadline=None)
@given(
    rubbish=st.binary(max_size=60),
    suffix=st.sampled_from([".ts", ".tsv", ".arff", ".csv", ".npz", ".npy", ".parquet"]),
)
def test_rubbish_is_refused_by_a_data_error_that_names_the_file(tmp_path_factory, rubbish, suffix):
    path = tmp_path_factory.mktemp("rubbish") / f"rubbish{suffix}"
    path.write_bytes(b"\xff" + rubbish)  # no UTF-8, no format's first byte
    with pytest.raises(DataError, match="rubbish"):
        read_series(path)
