"""Anomaly data in their published forms, made small."""

import json

import numpy as np
import pandas as pd
import pytest

from softclt.data import (
    AnomalyData,
    AnomalySeries,
    DataError,
    available,
    load,
    read_kpi,
    read_nab,
    read_yahoo,
)


def kpi_table():
    return pd.DataFrame(
        {
            "timestamp": [60, 0, 120, 0, 60],
            "value": [2.0, 1.0, 3.0, 5.0, 6.0],
            "label": [1, 0, 0, 0, 1],
            "KPI ID": ["b", "b", "b", "a", "a"],
        }
    )


def test_kpi_is_read_from_csv_by_id_in_the_order_of_time(tmp_path):
    kpi_table().to_csv(tmp_path / "phase2_train.csv", index=False)
    data = read_kpi(tmp_path / "phase2_train.csv")
    assert [series.name for series in data.series] == ["a", "b"]
    second = data.series[1]
    assert second.values.tolist() == [[1.0, 2.0, 3.0]]
    assert second.times.tolist() == [0, 60, 120]
    assert second.labels.tolist() == [False, True, False]
    assert data.meta["delay"] == 7
    assert data.X_train.shape == (2, 1, 3)
    assert np.isnan(data.X_train[0, 0, 2])


def test_both_published_parts_of_kpi_give_series_of_their_own(tmp_path):
    folder = tmp_path / "KPI"
    folder.mkdir()
    kpi_table().to_csv(folder / "phase2_train.csv.gz", index=False)
    kpi_table().to_csv(folder / "phase2_ground_truth.csv", index=False)
    names = [series.name for series in read_kpi(folder).series]
    assert names == ["a_t1", "b_t1", "a_t2", "b_t2"]


def test_the_hdf_of_kpi_is_read_or_says_what_it_needs(tmp_path):
    path = tmp_path / "phase2_ground_truth.hdf"
    try:
        kpi_table().to_hdf(path, key="data")
    except ImportError:
        path.write_bytes(b"")
        with pytest.raises(ModuleNotFoundError, match="needs PyTables: pip install tables"):
            read_kpi(path)
        return
    assert [series.name for series in read_kpi(path).series] == ["a", "b"]


def test_kpi_is_read_from_npz_and_found_by_name(tmp_path, monkeypatch):
    folder = tmp_path / "anomaly"
    folder.mkdir()
    np.savez(
        folder / "KPI.npz",
        id=np.array(["a", "b"]),
        length=np.array([2, 3]),
        timestamp_delta=np.array([100, 60, 50, 60, 120]),
        value=np.arange(5, dtype=np.float32),
        label=np.array([0, 1, 0, 0, 1], np.int8),
    )
    monkeypatch.setenv("SOFTCLT_DATA", str(tmp_path))
    assert "anomaly/KPI" in available()
    data = load("anomaly/KPI")
    assert isinstance(data, AnomalyData)
    assert data.series[1].times.tolist() == [50, 110, 230]
    assert data.series[0].labels.tolist() == [False, True]
    assert repr(data) == "AnomalyData(anomaly/KPI: 2 series, 5 steps, 40.0% strange)"


def test_yahoo_is_read_from_its_folders_with_the_hours_of_a1_rebuilt(tmp_path):
    for name in ("A1Benchmark", "A3Benchmark"):
        (tmp_path / name).mkdir()
    a1 = pd.DataFrame({"timestamp": [1, 2, 3], "value": [1.0, 2.0, 3.0], "is_anomaly": [0, 0, 1]})
    for number in (10, 2):
        a1.to_csv(tmp_path / "A1Benchmark" / f"real_{number}.csv", index=False)
    a3 = pd.DataFrame({"timestamps": [7200, 3600], "value": [2.0, 1.0], "anomaly": [1, 0]})
    a3["changepoint"] = 0
    a3.to_csv(tmp_path / "A3Benchmark" / "A3Benchmark-TS1.csv", index=False)
    a3.to_csv(tmp_path / "A3Benchmark" / "A3Benchmark_all.csv", index=False)
    data = read_yahoo(tmp_path)
    assert [series.name for series in data.series] == [
        "A1Benchmark/real_2",
        "A1Benchmark/real_10",
        "A3Benchmark/A3Benchmark-TS1",
    ]
    assert data.series[0].times.tolist() == [0, 3600, 7200]
    assert data.series[2].labels.tolist() == [False, True]
    assert data.meta["delay"] == 3


@pytest.fixture
def nab(tmp_path):
    for folder in ("NAB/data/realA", "NAB/data/realB", "NAB/labels"):
        (tmp_path / folder).mkdir(parents=True)
    times = ["2014-04-01 00:00:00", "2014-04-01 00:05:00", "2014-04-01 00:10:00"]
    table = pd.DataFrame({"timestamp": times, "value": [1.0, 2.0, 3.0]})
    for name in ("realA/one", "realB/two"):
        table.to_csv(tmp_path / "NAB" / "data" / f"{name}.csv", index=False)
    windows = {"realA/one.csv": [[f"{times[1]}.000000", f"{times[2]}.000000"]], "realB/two.csv": []}
    (tmp_path / "NAB" / "labels" / "combined_windows.json").write_text(json.dumps(windows))
    return tmp_path


def test_nab_has_its_windows_as_labels(nab):
    data = read_nab(nab / "NAB")
    assert data.series[0].labels.tolist() == [False, True, True]
    assert not data.series[1].labels.any()
    assert data.meta["delay"] is None


def test_nab_and_each_of_its_categories_are_found_by_name(nab, monkeypatch):
    (nab / "anomaly").mkdir()
    (nab / "NAB").rename(nab / "anomaly" / "NAB")
    monkeypatch.setenv("SOFTCLT_DATA", str(nab))
    assert {"anomaly/NAB", "anomaly/NAB-realA"} <= set(available())
    data = load("anomaly/NAB-realA")
    assert isinstance(data, AnomalyData)
    assert [series.name for series in data.series] == ["realA/one"]


def test_the_fingerprint_changes_with_a_label():
    values, times = np.arange(4.0), np.arange(4)
    one = AnomalyData.of([AnomalySeries("a", values, times, np.array([0, 0, 1, 0]))])
    other = AnomalyData.of([AnomalySeries("a", values, times, np.array([0, 0, 0, 1]))])
    assert one.fingerprint != other.fingerprint


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_kpi(tmp_path / "KPI.npz")
    np.savez(tmp_path / "KPI.npz", id=np.array(["a"]))
    with pytest.raises(DataError, match="expected id, length, timestamp_delta, value, label"):
        read_kpi(tmp_path / "KPI.npz")
    pd.DataFrame({"timestamp": [0], "value": [1.0]}).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(DataError, match="has no column 'label'; there are timestamp, value"):
        read_kpi(tmp_path / "bad.csv")
    with pytest.raises(DataError, match="has no CSV files in A1Benchmark"):
        read_yahoo(tmp_path)
    with pytest.raises(DataError, match="expected the labels of NAB"):
        read_nab(tmp_path)
    with pytest.raises(DataError, match="expected one of each a step"):
        AnomalySeries("a", np.zeros(3), np.arange(2), np.zeros(3))
