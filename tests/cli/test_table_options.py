"""The options for reading tables: the same in all commands, and they reach the reader."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt.cli import app

OPTIONS = ("--id", "--time", "--label", "--values", "--decimal", "--duplicates", "--bad-values")
READING = ("fit", "embed", "explore", "evaluate", "classify", "detect", "forecast", "distances")
READING += ("index", "search", "cluster")


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("command", [*READING, "check"])
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


def test_repeated_times_are_refused_unless_told_what_to_do(tmp_path):
    table = pd.DataFrame({"id": ["a", "a", "b", "b"], "t": [0, 0, 0, 1], "x": np.arange(4.0)})
    table.to_csv(tmp_path / "a.csv", index=False)
    words = ("distances", tmp_path / "a.csv", "--out", tmp_path / "d")
    assert "--duplicates first or mean" in softclt(*words, code=2).stderr
    softclt(*words, "--duplicates", "first", "--metric", "dtw")
