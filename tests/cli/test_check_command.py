"""``softclt check``: what is in a file, and what each command would do with it."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt.cli import app


def check(*words, code=0):
    done = CliRunner().invoke(app, ["check", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def facts(*words, code=0):
    return json.loads(check(*words, "--json", code=code).stdout)


@pytest.fixture
def sheet(tmp_path):
    """Three machines: one whole, one with a gap and an outlier, one short whose heat is still."""
    rng = np.random.default_rng(0)
    rows = []
    for name, length in (("a", 60), ("b", 60), ("c", 20)):
        for t in range(length):
            heat = 5.0 if name == "c" else rng.normal()
            rows.append({"machine": name, "time": t, "heat": heat, "load": rng.normal()})
    table = pd.DataFrame(rows)
    table.loc[(table.machine == "b") & table.time.between(10, 14), "heat"] = np.nan
    table.loc[(table.machine == "b") & (table.time == 40), "load"] = 1e6
    table = table[~((table.machine == "a") & (table.time == 30))]
    table.to_csv(tmp_path / "sheet.csv", index=False)
    return tmp_path / "sheet.csv"


def test_it_says_what_is_in_a_file(sheet):
    found = facts(sheet, "--id", "machine")
    assert (found["series"], found["channels"]) == (3, ["heat", "load"])
    assert (found["shortest"], found["longest"]) == (20, 60)
    assert found["missing"]["values"] == 5
    assert found["missing"]["series"] == 1
    assert found["missing"]["longest_gap"] == {
        "series": "b",
        "channel": "heat",
        "step": 10,
        "steps": 5,
    }
    assert found["times"]["uneven_series"] == ["a"]
    assert found["times"]["usual_step"] == 1.0
    assert found["constant"] == [{"series": "c", "channel": "heat"}]
    (outlier,) = found["outliers"]
    assert (outlier["series"], outlier["channel"], outlier["step"]) == ("b", "load", 40)
    assert outlier["value"] == 1e6


def test_it_says_what_each_command_would_do(sheet):
    would = facts(sheet, "--id", "machine")["commands"]
    assert {"fit", "embed", "classify", "detect", "forecast", "distances", "explore"} <= set(would)
    assert would["classify"].startswith("needs labels")
    assert "too few" in would["detect"]
    assert "horizon" in would["forecast"]
    assert would["distances"].startswith("3 distances")


def test_a_person_reads_it_in_words(sheet):
    shown = check(sheet, "--id", "machine").stdout
    assert "3 series of 2 channels, 20 to 60 steps" in shown
    for words in ("5 values missing", "uneven", "never changes", "far out", "softclt fit"):
        assert words in shown


def test_nothing_strange_is_said_to_be_so(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(5, 1, 30)))
    assert "nothing strange" in check(tmp_path / "a.npy").stdout


def test_a_file_that_needs_an_option_is_looked_at_all_the_same(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,t,x\na,0,1\na,0,2\na,1,oops\na,2,3\n")
    done = check(path, code=2)
    assert "line 4: 'oops'" in done.stderr
    assert "--duplicates first --bad-values nan" in done.stdout
    assert "1 series of 1 channel, 3 steps" in done.stdout
    check(path, "--duplicates", "mean", "--bad-values", "nan")


def test_of_the_options_that_a_file_needs_those_are_named_with_which_most_of_it_is_read(tmp_path):
    """A bad cell, a time that stands twice and commas: --bad-values alone would empty the file."""
    path = tmp_path / "a.csv"
    rows = [f"{name};{t};{t},5" for name in "ab" for t in range(9)]
    path.write_text("\n".join(["id;t;x", *rows, "a;3;oops", "b;9;oops"]))
    done = check(path, code=2)
    assert "--decimal , --duplicates first --bad-values nan" in done.stdout
    assert "0 steps" not in done.stdout
    assert len(done.stderr.strip().splitlines()) == 2


def test_what_cannot_be_read_at_all_is_one_line(tmp_path):
    (tmp_path / "a.csv").write_text("id,t,x\na,0\n")
    done = check(tmp_path / "a.csv", code=2)
    assert done.stdout == ""
    assert "line 2: 2 cells" in done.stderr


def test_labels_are_counted(tmp_path):
    found = facts("synthetic/waves")
    assert sum(found["labels"].values()) == found["series"]
    assert "3 classes" in found["commands"]["classify"]


def test_checking_trains_nothing(sheet, monkeypatch):
    from softclt.methods import TS2Vec

    monkeypatch.setattr(TS2Vec, "fit", None)
    check(sheet, "--id", "machine")


def test_a_folder_of_parquet_files_is_looked_at_in_parts(tmp_path):
    pytest.importorskip("pyarrow")
    for name in "ab":
        frame = pd.DataFrame({"id": name, "t": range(5), "x": np.arange(5.0)})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    found = facts(tmp_path)
    assert (found["series"], found["longest"], found["complete"]) == (2, 5, True)
    assert "2 series of 1 channel(s), 5 to 5 steps" in check(tmp_path).stdout
