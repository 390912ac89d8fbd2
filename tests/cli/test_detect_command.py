"""``softclt detect`` from a CSV to alarms and a picture, and what it says to bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt.cli import app

TINY = [
    word
    for setting in ("output_dims=8", "hidden_dims=8", "depth=3", "max_iter=5")
    for word in ("--set", setting)
]
QUICK = ["--scorer", "masked", "--context", 20, *TINY]
PEAK = 450


def detect(*words, code=0):
    result = CliRunner().invoke(app, ["detect", *(str(word) for word in words)])
    assert result.exit_code == code, result.output
    return result


def refused(*words):
    """The one line of a refusal."""
    result = detect(*words, code=2)
    (line,) = result.stderr.strip().splitlines()
    assert result.stdout == ""
    assert line.startswith("softclt: ")
    return line


def load_table(steps=600, form="%Y/%m/%d %H:%M"):
    times = pd.date_range("2024-01-01", periods=steps, freq="5min")
    noise = np.random.default_rng(0).normal(size=steps)
    load = 100 + 30 * np.sin(np.arange(steps) / 4) + 3 * noise
    load[PEAK:] = np.where(np.arange(steps - PEAK) == 0, 400, load[PEAK:])
    return pd.DataFrame({"time": times.strftime(form), "load": load})


@pytest.fixture
def write(tmp_path):
    def write(table, name="load.csv"):
        table.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


@pytest.fixture
def out(tmp_path):
    return tmp_path / "alarms.csv"


@pytest.mark.slow
def test_a_csv_becomes_alarms_in_its_own_time_format_and_a_picture(write, out, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need the `report` extra")
    plot, scores = tmp_path / "alarms.png", tmp_path / "scores.csv"
    result = detect(write(load_table()), "--out", out, "--plot", plot, "--scores", scores, *QUICK)
    table = pd.read_csv(out)
    assert list(table) == ["start", "end", "severity", "steps"]
    worst = table.loc[table.severity.idxmax()]
    assert worst.start == load_table().time[PEAK]
    assert worst.severity > 1.5
    assert worst.start in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    steps = pd.read_csv(scores)
    assert list(steps) == ["time", "score", "level", "alarm"]
    assert len(steps) == 300
    assert steps.time[0] == load_table().time[300]
    assert steps.alarm[PEAK - 300] == 1


def test_a_column_alone_is_one_series_with_steps_for_times(write, out):
    detect(write(load_table()[["load"]]), "--out", out, *QUICK)
    assert PEAK in pd.read_csv(out).start.tolist()


def test_several_series_keep_their_ids_and_a_constant_one_is_left_out(write, out):
    parts = [load_table().assign(id=name) for name in ("a", "b", "flat")]
    parts[0].loc[PEAK, "load"] = 100.0
    parts[1]["load"] *= 1000
    parts[2]["load"] = 7.0
    result = detect(write(pd.concat(parts)), "--out", out, *QUICK)
    table = pd.read_csv(out)
    assert (table.loc[table.severity.idxmax(), ["id", "start"]] == ["b", parts[1].time[PEAK]]).all()
    assert "left out: series 'flat' never changes" in result.stderr


def test_labels_of_steps_are_left_out_of_the_values(write, out):
    table = load_table().assign(label=lambda t: (t.index == PEAK).astype(int))
    result = detect(write(table), "--out", out, "--json", *QUICK)
    found = json.loads(result.stdout)
    assert found["judged_steps"] == 300
    assert table.time[PEAK] in [alarm["start"] for alarm in found["alarms"]]


@pytest.mark.slow
def test_gaps_and_irregular_times_are_put_on_a_grid_and_said(write, out):
    table = load_table().drop(index=range(100, 110))
    gaps = detect(write(table), "--out", out, *QUICK)
    assert "10 missing steps were left empty" in gaps.stderr
    assert load_table().time[PEAK] in pd.read_csv(out).start.tolist()
    seconds = np.arange(600) * 60 + np.random.default_rng(0).integers(-20, 20, 600)
    uneven = pd.DataFrame({"time": seconds, "load": load_table().load})
    result = detect(write(uneven), "--out", out, "--force", *QUICK)
    assert "the times are irregular: 600 rows were put on a grid of" in result.stderr
    assert seconds[PEAK] in pd.read_csv(out).start.tolist()


def test_a_model_from_elsewhere_starts_cold(write, out, tmp_path):
    data = write(load_table())
    fitted = CliRunner().invoke(app, ["fit", str(data), "--out", str(tmp_path / "m"), *TINY])
    assert fitted.exit_code == 0, fitted.output
    masked = ["--scorer", "masked", "--context", 20]
    result = detect(data, "--model", tmp_path / "m", *masked, "--out", out, "--json")
    assert json.loads(result.stdout)["judged_steps"] == 540
    assert load_table().time[PEAK] in pd.read_csv(out).start.tolist()
    line = refused(data, "--model", tmp_path / "m", "--out", out, "--set", "max_iter=1")
    assert "--model is trained already" in line


def test_a_baseline_decides_itself(write, out):
    detect(write(load_table()), "--scorer", "spot", "--threshold", "own", "--out", out)
    assert load_table().time[PEAK] in pd.read_csv(out).start.tolist()


def test_nothing_strange_is_an_empty_table(write, out):
    table = load_table()
    table.loc[PEAK, "load"] = 100.0
    result = detect(write(table), "--scorer", "spot", "--threshold", "own", "--out", out)
    assert len(pd.read_csv(out)) == 0
    assert "0 alarms in 300 steps: nothing is strange here" in result.stdout


def test_unsorted_rows_are_sorted_and_a_few_repeated_times_averaged_with_a_word(write, out):
    table = load_table()
    table.loc[[5, 6]] = table.loc[[6, 5]].to_numpy()
    table.loc[20, "time"] = table.loc[19, "time"]
    result = detect(write(table), "--out", out)
    assert "the rows were sorted by time; the first out of order is line 8" in result.stderr
    assert "1 row repeats the time of another; those of one time were averaged" in result.stderr
    assert "1 missing step was left empty" in result.stderr
    assert "False alarms to expect: at most about" in result.stdout
    worst = pd.read_csv(out).sort_values("severity").iloc[-1]
    assert worst.start <= load_table().time[PEAK] <= worst.end


def test_many_repeated_times_are_refused_as_several_series(write, out):
    line = refused(write(pd.concat([load_table(), load_table()])), "--out", out)
    assert "stands at line" in line


def test_the_channels_that_explain_an_alarm_are_named_and_alarms_must_last(write, out):
    table = load_table().assign(other=lambda t: np.cos(np.arange(600) / 4))
    found = json.loads(detect(write(table), "--out", out, "--json").stdout)
    worst = max(found["alarms"], key=lambda alarm: alarm["severity"])
    assert worst["channels"] == "load"
    assert found["false_alarms_a_week"] > 0
    detect(write(table), "--out", out, "--persist", "150/150", "--force")
    assert len(pd.read_csv(out)) == 0
    assert "--persist is '3'" in refused(write(table), "--out", out, "--force", "--persist", "3")


def test_a_name_of_weights_embeds_the_patches(write, out):
    result = detect(write(load_table()), "--model", "synthetic", "--out", out, "--json")
    assert json.loads(result.stdout)["judged_steps"] == 300


def test_a_constant_series_is_refused(write, out):
    line = refused(write(load_table().assign(load=3.0)), "--out", out)
    assert "never changes in its first 300 steps" in line


def test_a_series_too_short_for_the_context_is_refused_with_the_way_out(write, out):
    line = refused(write(load_table(400).iloc[:300]), "--scorer", "masked", "--out", out)
    assert "has 150 known steps in its first part of 150" in line
    assert "more than 222 are needed with --context 200" in line
    assert "a smaller --context" in line


def test_a_series_without_values_is_refused(write, out):
    line = refused(write(load_table().assign(load=np.nan)), "--out", out)
    assert "has no step at which all its columns have a value" in line


def test_wrong_options_are_refused_before_any_work(write, out, tmp_path):
    data = write(load_table())
    assert "unknown scorer 'mask'" in refused(data, "--scorer", "mask", "--out", out)
    assert "unknown threshold 'x'" in refused(data, "--threshold", "x", "--out", out)
    assert "expected .csv or .parquet" in refused(data, "--out", tmp_path / "alarms.txt")
    assert "expected .png or .pdf or .svg" in refused(
        data, "--out", out, "--plot", tmp_path / "p.gif"
    )
