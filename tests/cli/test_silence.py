"""Piped commands say what begins, how far it is, and where results went."""

import json
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt import data, progress
from softclt.bench import estimates
from softclt.cli import app, heartbeat, output

TINY = [
    word
    for setting in ("output_dims=4", "hidden_dims=4", "depth=1", "max_iter=1")
    for word in ("--set", setting)
]


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silence")
    rng = np.random.default_rng(0)
    rows = [{"id": f"s{i}", "time": t, "x": rng.normal()} for i in range(4) for t in range(30)]
    pd.DataFrame(rows).to_csv(folder / "data.csv", index=False)
    softclt("fit", folder / "data.csv", "--out", folder / "model", *TINY)
    return folder


def test_a_fit_says_what_how_many_how_long_and_where(folder, tmp_path):
    told = softclt("fit", folder / "data.csv", "--out", tmp_path / "m", *TINY).stderr
    first, last = told.splitlines()
    assert "fitting ts2vec on 4 series of 1 channel(s) and up to 30 steps" in first
    assert re.search(r"1 steps? on cpu, about \d+ s", first)
    assert last == f"model in {tmp_path / 'm'}"


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("embed {f}/model {f}/data.csv --out {t}/e.csv", "embedding 4 series", "{t}/e.csv"),
        (
            "explore {f}/model {f}/data.csv --projection pca --out {t}/e.html",
            "embedding 4 series",
            "{t}/e.html",
        ),
    ],
)
def test_embedding_says_so_at_the_start_and_the_end(words, first, last, folder, tmp_path):
    told = softclt(*words.format(f=folder, t=tmp_path).split()).stderr.splitlines()
    assert told[0].startswith(first)
    assert "about" in told[0]
    assert last.format(t=tmp_path) in told[-1]


def test_stdout_is_for_results_alone(folder, tmp_path):
    done = softclt("fit", folder / "data.csv", "--out", tmp_path / "m", *TINY, "--json")
    assert json.loads(done.stdout)["series"] == 4


def test_quiet_leaves_results_and_errors(folder, tmp_path):
    words = ["fit", folder / "data.csv", "--out", tmp_path / "m", *TINY]
    done = softclt(*words, "--quiet", "--json")
    assert done.stderr == ""
    assert json.loads(done.stdout)["series"] == 4
    assert "--force" in softclt(*words, "-q", code=2).stderr


def test_quiet_ends_with_its_command(folder, tmp_path):
    words = ["fit", folder / "data.csv", *TINY, "--out"]
    softclt(*words, tmp_path / "quiet", "--quiet")
    assert "model in" in softclt(*words, tmp_path / "loud").stderr


def test_nobody_draws_a_bar_or_writes_a_line_quietly(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress.quietly(), progress.progress_bar("working", 3, enabled=True) as advance:
        advance(1)
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_an_error_within_a_second_is_the_one_line(folder, tmp_path):
    words = ["fit", folder / "data.csv", "--out", tmp_path / "m", "--set", "lr=-1"]
    (line,) = softclt(*words, code=2).stderr.strip().splitlines()
    assert "lr is -1" in line


def test_a_note_waits_for_a_second_at_most(capsys):
    output.note("begins")
    assert capsys.readouterr().err == ""
    time.sleep(1.3)
    assert capsys.readouterr().err == "begins\n"


def test_work_without_any_progress_of_its_own_is_no_silence(folder, tmp_path, monkeypatch):
    from softclt import forecasting

    class Slow(forecasting.Forecaster):
        def fit(self, *args, **kwargs):
            time.sleep(0.5)
            raise ValueError("enough")

    monkeypatch.setattr(forecasting, "Forecaster", Slow)
    monkeypatch.setattr(progress, "EVERY", 0.1)
    words = ["forecast", folder / "data.csv", "--out", tmp_path / "f.csv", "--horizon", 2, *TINY]
    told = softclt(*words, "--context", 5, code=1).stderr
    assert re.search(r"softclt: learning to forecast .*: still at work after \d+ s", told)


def test_a_slow_file_is_said_to_be_read(folder, monkeypatch):
    monkeypatch.setattr(data, "read_series", lambda *args, **kwargs: time.sleep(0.5))
    monkeypatch.setattr(progress, "EVERY", 0.1)
    done = CliRunner().invoke(app, ["check", str(folder / "data.csv")])
    assert "softclt: reading and checking: still at work after" in done.stderr


def test_who_speaks_is_not_interrupted(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.3)
    with heartbeat.never_silent(lambda: "work"):
        for _ in range(6):
            output.tell("a line")
            time.sleep(0.1)
    assert "still at work" not in capsys.readouterr().err


def test_what_waits_to_be_asked_is_silent(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.1)
    output.wait_for_others()
    with heartbeat.never_silent(output.doing):
        time.sleep(0.4)
    output.begin_notes()
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_slow_fit_in_a_pipe_shows_how_far_it_is(folder, tmp_path):
    code = (
        "import sys; from softclt import progress; progress.EVERY = 0.2\n"
        f"sys.argv = {['softclt', 'fit', str(folder / 'data.csv'), '--out', str(tmp_path / 'm')]}"
        "+ ['--set', 'max_iter=40']\n"
        "from softclt.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(r"softclt: training: after \d+ s \d+ of 40", done.stderr)


@pytest.mark.slow
def test_an_estimate_follows_the_measured_second():
    estimates.slowness.cache_clear()
    measured = estimates.slowness("cpu")
    assert measured > 0
    assert estimates.slowness("cuda") == 1.0
    model = estimates.TS2Vec(tau_instance=None, max_iter=10_000, device="cpu")
    words = estimates.training_words(model, (10, 1, 100))
    expected = 10_000 * 100 * estimates.TRAIN_STEP["cpu"] * measured
    assert estimates.time_in_words(expected) in words


def test_a_dry_run_says_that_it_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates, "slowness", lambda kind, one_core=False: 1e6)
    (tmp_path / "mine.toml").write_text(
        '[mine]\nabout = "x"\ndata = ["synthetic/waves"]\nseeds = 1\n'
        "[mine.configurations]\nhard = { params = { tau_instance = 'none' } }\n"
    )
    words = ["bench", tmp_path / "mine.toml", "--out", tmp_path / "r", "--device", "cpu"]
    shown = softclt(*words, "--dry-run").stdout
    assert "by a second of training here" in shown
    assert json.loads(softclt(*words, "--dry-run", "--json").stdout)["seconds"] > 1e6
