"""``softclt forecast`` from a CSV to a table and a picture, and what it says to bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt.cli import app

TINY = [
    word
    for setting in ("output_dims=4", "hidden_dims=4", "depth=1", "max_iter=2")
    for word in ("--set", setting)
]


def forecast(*words, code=0):
    result = CliRunner().invoke(app, ["forecast", *(str(word) for word in words)])
    assert result.exit_code == code, result.output
    return result


def refused(*words):
    """The one line of a refusal."""
    result = forecast(*words, code=2)
    (line,) = result.stderr.strip().splitlines()
    assert result.stdout == ""
    assert line.startswith("softclt: ")
    return line


def load_table(days=20, form="%d.%m.%Y %H:%M"):
    times = pd.date_range("2024-01-01", periods=24 * days, freq="h")
    hours = np.arange(len(times))
    noise = np.random.default_rng(0).normal(size=len(times))
    load = 100 + 30 * np.sin(2 * np.pi * hours / 24) + 3 * noise
    return pd.DataFrame({"time": times.strftime(form), "load": load, "price": load / 7 + noise})


@pytest.fixture
def load_csv(tmp_path):
    load_table().to_csv(tmp_path / "load.csv", index=False)
    return tmp_path / "load.csv"


def test_a_csv_becomes_a_table_and_a_picture_in_its_own_time_format(load_csv, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need the `report` extra")
    out, plot = tmp_path / "next.csv", tmp_path / "next.png"
    result = forecast(load_csv, "--horizon", 12, "--out", out, "--plot", plot, *TINY)
    table = pd.read_csv(out)
    assert list(table) == ["time", "channel", "forecast", "lower", "upper"]
    assert len(table) == 12 * 2
    assert table.time[0] == "21.01.2024 00:00"
    assert table.time[2] == "21.01.2024 01:00"
    assert table.channel[:2].tolist() == ["load", "price"]
    assert (table.lower < table.forecast).all()
    assert (table.forecast < table.upper).all()
    truth = 100 + 30 * np.sin(2 * np.pi * np.arange(12) / 24)
    assert np.abs(table.forecast[table.channel == "load"] - truth).mean() < 10
    assert "24 forecasts in" in result.stdout
    assert "the last day again by" in result.stdout
    assert plot.stat().st_size > 10_000


def test_several_series_keep_their_ids_and_numbers_stay_whole(tmp_path):
    table = load_table()
    parts = [
        pd.DataFrame({"store": name, "step": np.arange(len(table)) * 5, "sold": table.load * k})
        for name, k in (("north", 1), ("south", 3))
    ]
    pd.concat(parts).to_csv(tmp_path / "sold.csv", index=False)
    out = tmp_path / "next.csv"
    words = ["--id", "store", "--time", "step", "--horizon", 6, "--out", out, "--json"]
    told = json.loads(forecast(tmp_path / "sold.csv", *words, *TINY).stdout)
    found = pd.read_csv(out)
    assert found.id.tolist() == ["north"] * 6 + ["south"] * 6
    assert found.time[:2].tolist() == [480 * 5, 481 * 5]
    assert told["rows"] == 12
    assert set(told["validation"]) == {"mae", "naive"}


def test_a_model_that_was_fitted_before_is_used(load_csv, tmp_path):
    fit = ["fit", str(load_csv), "--out", str(tmp_path / "model"), *TINY]
    assert CliRunner().invoke(app, fit).exit_code == 0
    words = [load_csv, "--model", tmp_path / "model", "--out", tmp_path / "next.csv"]
    forecast(*words, "--horizon", 6)
    assert len(pd.read_csv(tmp_path / "next.csv")) == 12
    assert "leave --preset and --set out" in refused(*words, *TINY)
    assert "fitted with 2 channel(s)" in refused(*words, "--values", "load", "--force")


def broken(kind):
    table = load_table(form="%Y-%m-%d %H:%M")
    if kind == "unsorted":
        return pd.concat([table[100:], table[:100]])
    if kind == "repeated":
        return pd.concat([table[:50], table[49:]])
    if kind == "constant":
        return table.assign(load=5.0, price=5.0)
    if kind == "missing":
        return table.assign(load=np.nan, price=np.nan)
    return table[:50]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("unsorted", "line 382: the time is earlier than that of the row before"),
        ("repeated", "line 52: time 2024-01-03 01:00 stands at line 51 already"),
        ("constant", "series 0 is constant (5 throughout)"),
        ("missing", "series 0 has no values, all are missing"),
        ("short", "the longest series has 50 steps; to learn to forecast 24 steps, one needs"),
    ],
)
def test_bad_input_gets_one_clear_line_and_no_file(tmp_path, kind, message):
    broken(kind).to_csv(tmp_path / "bad.csv", index=False)
    assert message in refused(tmp_path / "bad.csv", "--out", tmp_path / "next.csv", *TINY)
    assert not (tmp_path / "next.csv").exists()


def test_wrong_options_are_refused_before_any_work(load_csv, tmp_path):
    out = tmp_path / "next.csv"
    assert "expected .csv or .parquet" in refused(load_csv, "--out", tmp_path / "next.txt")
    assert "expected .png" in refused(load_csv, "--out", out, "--plot", tmp_path / "a.doc")
    assert "--horizon" in refused(load_csv, "--out", out, "--horizon", 0)
    assert "no column 'wind'" in refused(load_csv, "--out", out, "--values", "wind")
