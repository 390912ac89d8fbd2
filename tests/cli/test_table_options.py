"""The options for reading tables: the same in all commands, and they reach the reader."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from softclt.cli import app

SMALL = [w for s in ("output_dims=4", "hidden_dims=4", "depth=1") for w in ("--set", s)]
TINY = [*SMALL, "--set", "max_iter=1"]
OPTIONS = ("--id", "--time", "--label", "--values", "--decimal", "--duplicates", "--bad-values")


def reading():
    """Commands that read a file of series: whatever is registered with such an argument."""
    for command, click in get_command(app).commands.items():
        metavars = {one.metavar for one in click.params} & {"DATA", "[DATA]", "QUERY"}
        files = [one for one in click.params if one.name == "data" and "A file" in (one.help or "")]
        if metavars or files:
            yield command


READING = sorted(reading())


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def test_the_commands_that_read_tables_are_found():
    known = {"check", "classify", "detect", "distances", "embed", "evaluate", "explore", "figures"}
    assert known | {"fit", "forecast"} <= set(READING)


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_tables_has_all_options_for_them(command):
    shown = softclt(command, "--help").stdout
    assert all(option in shown for option in (*OPTIONS, "--resample"))


def test_a_german_sheet_with_all_its_faults_is_read(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text(
        "id;time;x\n"
        + "".join(f"{name};2024-01-01 {h:02d}:30;{h},5\n" for name in "ab" for h in range(8))
        + "a;2024-01-01 03:30;9,5\nb;2024-01-01 09:10;#NV!\n"
    )
    words = ("--decimal", ",", "--duplicates", "mean", "--bad-values", "nan", "--resample", "1h")
    out = tmp_path / "d"
    told = softclt("distances", path, *words, "--metric", "euclidean", "--out", out, "--json")
    assert json.loads(told.stdout)["series"] == 2
    assert "1 cell is no number" in told.stderr


def stacked(tmp_path, n=120):
    """A sheet whose last row is an earlier step: of one series, and of two with ids."""
    rows = [(f"2024-01-{1 + h // 24:02d} {h % 24:02d}:00", np.sin(h / 3)) for h in range(n)]
    one = pd.DataFrame([*rows[:20], *rows[21:], rows[20]], columns=["time", "x"])
    one.to_csv(tmp_path / "one.csv", index=False)
    two = pd.concat([one.assign(id="a"), one.assign(id="b")])
    two.to_csv(tmp_path / "two.csv", index=False)


def test_detect_sorts_steps_and_says_where_the_first_is(tmp_path):
    stacked(tmp_path)
    words = ["--scorer", "sr", "--out", tmp_path / "out.csv"]
    told = softclt("detect", tmp_path / "one.csv", *words).stderr
    assert "the rows were sorted by time; the first out of order is line 121" in told


def test_steps_out_of_order_are_sorted_where_they_are_surely_of_one_series(tmp_path):
    """The advice to name the ids is for those who did not."""
    stacked(tmp_path)
    name, *words = ["forecast", "--horizon", "3", "--lags", "5", "--context", "5", *TINY]
    words += ["--out", tmp_path / "out.csv", "--force"]
    assert (
        "name the column of the series with --id"
        in softclt(name, tmp_path / "one.csv", *words, code=2).stderr
    )
    told = softclt(name, tmp_path / "two.csv", *words).stderr
    assert "two.csv, line 121: times are not in order; they were sorted" in told
    softclt(name, tmp_path / "one.csv", "--resample", "2h", *words)


def test_figures_are_drawn_of_such_a_sheet(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "sheet.csv"
    rows = [f"s{i};{t};{(i * t) % 7},5" for i in range(6) for t in range(20)]
    path.write_text("\n".join(["id;time;x", *rows]))
    words = ["figures", "hierarchy", "--data", path, "--out", tmp_path, "--steps", 1, *SMALL]
    assert "--decimal" in softclt(*words, code=2).stderr
    softclt(*words, "--decimal", ",")


def test_repeated_times_are_refused_unless_told_what_to_do(tmp_path):
    table = pd.DataFrame({"id": ["a", "a", "b", "b"], "t": [0, 0, 0, 1], "x": np.arange(4.0)})
    table.to_csv(tmp_path / "a.csv", index=False)
    words = ("distances", tmp_path / "a.csv", "--out", tmp_path / "d")
    assert "--duplicates first or mean" in softclt(*words, code=2).stderr
    softclt(*words, "--duplicates", "first", "--metric", "dtw")
