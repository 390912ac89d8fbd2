"""``softclt bench``: plans, runs, goes on after kill -9, and ends with the right code."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from softclt.cli import app
from softclt.tasks import read_results

pytestmark = pytest.mark.slow

SUITE = """
[mine]
about = "two sets that are there, one that is not"
data = ["ucr/A", "ucr/B", "ucr/Absent"]
seeds = 2
groups = ["length"]
probe = "ridge"
params = { output_dims = 4, hidden_dims = 4, depth = 1, max_iter = STEPS }
[mine.configurations]
untrained = { params = { tau_instance = "none", tau_temporal = "none", max_iter = 0 } }
hard = { params = { tau_instance = "none", tau_temporal = "none" } }
soft = { control = "hard", params = { distance = "euclidean" } }
tau = { control = "hard", grid = { tau_instance = [1.0, 20.0] }, select = ["train"] }
"""


def softclt(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def root(tmp_path, monkeypatch, rng):
    """Two data sets of an archive, the second with one series that is shorter."""
    (tmp_path / "ucr").mkdir()
    for name in ("A", "B"):
        X = rng.normal(size=(12, 16)) + np.arange(12)[:, None] % 2
        if name == "B":
            X[0, 10:] = np.nan
        y = np.arange(12) % 2
        np.savez(tmp_path / "ucr" / f"{name}.npz", x_train=X, y_train=y, x_test=X, y_test=y)
    monkeypatch.setenv("SOFTCLT_DATA", "")
    return tmp_path


@pytest.fixture
def command(root):
    def words(*more, steps=2):
        (root / "mine.toml").write_text(SUITE.replace("STEPS", str(steps)))
        place = ("--data", root, "--out", root / "results", "--device", "cpu")
        return ("bench", root / "mine.toml", *place, *more)

    return words


def test_a_dry_run_says_what_is_there_what_to_go_and_writes_nothing(command, root):
    result = softclt(*command("--dry-run"))
    assert "two sets that are there" in result.stdout
    assert "0 runs are in" in result.stdout
    assert "24 to go: about" in result.stdout
    assert "rule of thumb" in result.stdout
    assert "not here, left out: ucr/Absent" in result.stderr
    assert not (root / "results").exists()
    plan = json.loads(softclt(*command("--dry-run", "--json")).stdout)
    assert plan["sets"]["ucr/A"] == {"done": 0, "todo": 12}
    assert plan["missing"] == ["ucr/Absent"]
    assert plan["groups"]["ucr/B"] == {"length": "short"}
    assert plan["configurations"][-2:] == ["tau(20)", "tau train"]


def test_a_suite_runs_tells_what_failed_and_ends_with_1(command, root):
    result = softclt(*command(), code=1)
    assert "failed: ucr/B, soft, seed 0: ValueError: " in result.stdout
    assert "22 new run(s), 0 were there, 2 failed" in result.stdout
    assert f"softclt report {root / 'results'}" in result.stdout
    results = read_results(root / "results" / "mine.jsonl")
    assert len(results) == 24
    assert {r.suite for r in results} == {"mine"}
    again = json.loads(softclt(*command("--json"), code=1).stdout)
    assert (again["there"], again["new"], len(again["failed"])) == (22, 2, 2)
    assert len(read_results(root / "results" / "mine.jsonl")) == 24


def test_options_take_a_part_of_a_suite(command, root):
    part = ("--sets", "A,C*", "--seeds", 1, "--configurations", "hard", "--configurations", "tau")
    softclt(*command(*part, "--select", "unlabelled,oracle", "--methods", "ts2vec"))
    found = {
        (r.dataset, r.configuration, r.seed) for r in read_results(root / "results/mine.jsonl")
    }
    names = ("hard", "tau(1)", "tau(20)", "tau unlabelled", "tau oracle")
    assert found == {("ucr/A", name, 0) for name in names}


def test_what_is_wrong_is_one_line_and_code_2(command, root):
    def line(*words):
        return softclt(*words, code=2).stderr.strip().splitlines()[-1]

    assert "unknown suite 'quik'; known: quick" in line("bench", "quik")
    assert "select is 'best'" in line(*command("--select", "best"))
    assert "no data set of the suite 'mine' is here" in line(*command("--sets", "Z*"))
    assert "no such folder" in line("bench", "quick", "--data", root / "nowhere")


def test_a_damaged_data_set_is_told_and_the_others_run(command, root):
    (root / "ucr" / "B.npz").write_bytes(b"rubbish")
    result = softclt(*command("--configurations", "hard"), code=1)
    assert "ucr/B is left out: " in result.stderr
    assert len(read_results(root / "results" / "mine.jsonl")) == 2


def test_killed_in_the_middle_the_same_command_goes_on(command, root):
    words = [str(word) for word in command("--sets", "A", steps=100)]
    file = root / "results" / "mine.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "softclt", *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 120
        while not file.exists() or len(file.read_bytes().splitlines()) < 4:
            assert process.poll() is None, "it ended before it was killed"
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = file.read_text().splitlines()
    assert 4 <= len(before) < 12
    result = softclt(*words)
    assert f"{12 - len(before)} new run(s), {len(before)} were there, 0 failed" in result.stdout
    after = file.read_text().splitlines()
    assert after[: len(before)] == before
    assert len({r.identity() for r in read_results(file)}) == len(after) == 12
