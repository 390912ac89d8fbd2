"""``softclt report`` from files of results to a file to look at."""

import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_results import DATASETS, fake_results
from softclt.cli import app


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(result.to_json() + "\n" for result in fake_results())
    Path("results").mkdir()
    Path("results/ucr.jsonl").write_text(lines)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_results_become_a_page_without_any_option(folder):
    pytest.importorskip("matplotlib")
    done = run()
    assert done.exit_code == 0, done.output
    assert "softness helps" in done.stdout
    assert "report: report.html" in done.stdout
    text = Path("report.html").read_text(encoding="utf-8")
    assert re.search(r">\s*softclt report\s*<", text)


def test_baselines_peers_and_the_interval_are_in_the_command_to_run_again(folder):
    peers = "d,A,B\n" + "".join(f"{name},80,90\n" for name in DATASETS)
    Path("my peers.csv").write_text(peers)
    done = run(
        *("results/ucr.jsonl", "--baselines", "my peers.csv", "--peer", "B"),
        *("--interval", "bootstrap", "--no-figures", "--out", "r.md"),
    )
    assert done.exit_code == 0, done.output
    text = Path("r.md").read_text(encoding="utf-8")
    command = "softclt report results/ucr.jsonl --baselines 'my peers.csv' --peer B --interval"
    assert f"\n{command} bootstrap --no-figures --out r.md\n" in text
    assert "bootstrap of the data sets" in text
    assert "| B | not stated |" in text
    assert "| A |" not in text


def test_json_has_means_ranks_and_differences(folder):
    done = run("--out", "r.csv", "--json")
    assert done.exit_code == 0, done.output
    (part,) = json.loads(done.stdout)["parts"]
    rows = {row["row"]: row for row in part["rows"]}
    assert rows["soft oracle"]["rank"] is None
    assert rows["soft train"]["rank"] < rows["hard"]["rank"]
    assert part["against_control"][0]["low"] > 0
    assert part["failed"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "r.docx"], "--out r.docx ends with '.docx'"),
        (["--metric", "mse"], "no result has the metric 'mse'; there are accuracy"),
        (["--suite", "uea"], "no result belongs to the suite uea; there are ucr"),
        (["nowhere.jsonl"], "no such file or folder: nowhere.jsonl"),
        (["--baselines", "none.csv"], "no such file or folder: none.csv"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_nothing(folder, words, message):
    done = run(*words)
    assert done.exit_code == 2
    (line,) = done.stderr.strip().splitlines()
    assert message in line
    assert not Path("report.html").exists()


def test_without_results_the_next_step_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run()
    assert done.exit_code == 2
    assert "run 'softclt bench quick' first" in done.stderr


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_named_with_its_pip_command(folder, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    done = run()
    assert done.exit_code == 2
    assert "pip install 'softclt[report]'" in done.stderr
    assert not Path("report.html").exists()


def asked(**more):
    values = {"command": "softclt bench mine.toml --seeds 3", "suite": "ucr", "seeds": 3}
    values |= {"rows": ["hard", "soft", "never"], "sets": [*DATASETS, "ucr/SetZ"]}
    return values | {"absent": ["ucr/Gone"]} | more


def test_the_commands_that_made_the_results_are_those_to_run_again(folder):
    lines = [asked(), asked(), asked(command="softclt bench ucr --sets 'ucr/S*'")]
    Path("results/ucr.commands").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert run("--no-figures", "--out", "r.md").exit_code == 0
    text = Path("r.md").read_text(encoding="utf-8")
    commands = text.split("```bash\n")[1].split("\n```")[0].splitlines()
    assert commands == [
        "softclt bench mine.toml --seeds 3",
        "softclt bench ucr --sets 'ucr/S*'",
        "softclt report --no-figures --out r.md",
    ]


def test_rows_and_sets_that_never_ran_are_listed(folder):
    Path("results/ucr.commands").write_text(json.dumps(asked()) + "\nrubbish\n")
    done = run("results/ucr.jsonl", "--no-figures", "--out", "r.md")
    assert done.exit_code == 0
    assert "ucr.commands, line 2" in done.stderr
    text = Path("r.md").read_text(encoding="utf-8")
    assert "Never run in ucr: the row never." in text
    assert "Never run in ucr: the data set ucr/SetZ." in text
    assert "Not there when ucr was run: ucr/Gone." in text
    assert "45 of the 117 runs that ucr was asked for are missing." in text


def test_without_the_commands_of_a_bench_none_is_made_up(folder):
    assert run("--no-figures", "--out", "r.md").exit_code == 0
    assert "softclt bench" not in Path("r.md").read_text(encoding="utf-8")


def test_figures_beside_a_document_are_kept_unless_forced(folder):
    Path("r-figures").mkdir()
    Path("r-figures/mine.svg").write_text("mine")
    done = run("--out", "r.md")
    assert done.exit_code == 2
    assert "r-figures is not empty" in done.stderr
    assert run("--out", "r.md", "--no-figures").exit_code == 0
