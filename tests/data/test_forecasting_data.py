"""Forecasting sets in their published forms, made small."""

import gzip

import numpy as np
import pandas as pd
import pytest

from softclt.data import DataError, available, load, read_electricity, read_forecasting_csv


def ett(n_rows=5):
    times = pd.date_range("2016-07-01", periods=n_rows, freq="h")
    return pd.DataFrame({"date": times, "HUFL": np.arange(n_rows) * 1.5, "OT": np.arange(n_rows)})


def test_a_csv_is_one_series_with_its_times(tmp_path):
    ett().to_csv(tmp_path / "ETTh1.csv", index=False)
    data = read_forecasting_csv(tmp_path / "ETTh1.csv")
    assert data.X_train.shape == (1, 2, 5)
    np.testing.assert_array_equal(data.X_train[0, 0], np.arange(5) * 1.5)
    assert data.meta["channels"] == ["HUFL", "OT"]
    assert data.meta["times_train"].shape == (1, 5)
    assert data.meta["times_train"][0, 1] == np.datetime64("2016-07-01T01:00")


def test_archives_lie_in_a_folder_of_their_name(tmp_path, monkeypatch):
    folder = tmp_path / "forecasting"
    folder.mkdir()
    ett().to_csv(folder / "ETTh1.csv.gz", index=False)
    monkeypatch.setenv("SOFTCLT_DATA", str(tmp_path))
    assert {"forecasting/ETTh1", "forecasting/ETTh1-univariate"} <= set(available())
    assert load("forecasting/ETTh1").meta["name"] == "forecasting/ETTh1"
    alone = load("forecasting/ETTh1-univariate")
    assert alone.meta["channels"] == ["OT"]
    assert alone.X_train.shape == (1, 1, 5)
    with pytest.raises(DataError, match="unknown data set"):
        load("forecasting/ETTh2")


def test_weather_has_latin_1_names_and_a_time_twice(tmp_path):
    text = "date,SWDR (W/m²),OT\n2020-01-01 00:10:00,0,1\n2020-01-01 00:10:00,-9999,2\n"
    (tmp_path / "weather.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    data = read_forecasting_csv(tmp_path / "weather.csv.gz")
    np.testing.assert_array_equal(data.X_train[0], [[0, -9999], [1, 2]])


def test_wth_has_american_dates(tmp_path):
    (tmp_path / "WTH.csv").write_text("date,WetBulbCelsius\n1/2/2010 0:00,1\n1/2/2010 1:00,2\n")
    data = read_forecasting_csv(tmp_path / "WTH.csv", "WetBulbCelsius")
    assert data.meta["times_train"][0, 0] == np.datetime64("2010-01-02")
    assert data.meta["name"] == "forecasting/WTH-univariate"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date\n2020-01-01\n", "one column only"),
        ("date,OT\nyesterday,1\n", "no time"),
        ("date,OT\n2020-01-01,much\n", "no number"),
        ("", "no CSV"),
    ],
)
def test_a_damaged_csv_is_refused_with_its_name(tmp_path, text, message):
    (tmp_path / "ETTh1.csv").write_text(text)
    with pytest.raises(DataError, match=rf"ETTh1.csv.*{message}"):
        read_forecasting_csv(tmp_path / "ETTh1.csv")


@pytest.fixture(scope="module")
def electricity(tmp_path_factory):
    """Quarters of hours from mid-December 2011 on, of three clients; one begins in 2013."""
    path = tmp_path_factory.mktemp("electricity") / "LD2011_2014.txt"
    times = pd.date_range("2011-12-31 00:15", "2012-01-02 00:00", freq="15min")
    table = pd.DataFrame(
        {"MT_001": np.arange(len(times)) + 0.5, "MT_002": 0.0, "MT_003": 1.25}, index=times
    )
    table.to_csv(path, sep=";", decimal=",")
    return path


def test_electricity_is_added_up_by_the_hour_from_2012_on(electricity):
    data = read_electricity(electricity)
    assert data.X_train.shape == (2, 1, 24)  # without the client that used nothing
    assert data.meta["ids_train"] == ["MT_001", "MT_003"]
    assert data.meta["times_train"][0, 0] == np.datetime64("2012-01-01T00:00")
    # The quarters at 00:15, 00:30, 00:45 and 01:00 of January 1st are rows 96 to 99.
    assert data.X_train[0, 0, 0] == pytest.approx(sum(i + 0.5 for i in range(96, 100)))
    assert (data.X_train[1] == 5.0).all()


def test_one_client_of_electricity_is_the_univariate_set(electricity):
    data = read_electricity(electricity, "MT_001")
    assert data.X_train.shape == (1, 1, 24)
    assert data.meta["name"] == "forecasting/electricity-univariate"
    with pytest.raises(DataError, match="MT_002"):
        read_electricity(electricity, "MT_002")


def test_another_file_is_not_electricity(tmp_path):
    (tmp_path / "LD2011_2014.txt").write_text("a,b\nc,d\n")
    with pytest.raises(DataError, match="LD2011"):
        read_electricity(tmp_path / "LD2011_2014.txt")
