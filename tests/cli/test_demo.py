"""The demo from end to end, on synthetic series and with next to no training."""

import sys

import pytest
from typer.testing import CliRunner

from softclt.cli import app
from softclt.cli.demo import configurations
from softclt.tasks import read_results

pytestmark = pytest.mark.slow


def run(*words):
    return CliRunner().invoke(app, ["demo", *map(str, words)])


@pytest.fixture
def small(monkeypatch):
    pytest.importorskip("aeon")
    pytest.importorskip("matplotlib")
    demo = sys.modules["softclt.cli.demo"]
    monkeypatch.setattr(demo, "DATASETS", ("synthetic/waves", "synthetic/ragged"))
    monkeypatch.setattr(demo, "PICTURED", "synthetic/ragged")
    monkeypatch.setattr(demo, "QUICK_ITERATIONS", 1)


def test_soft_and_hard_differ_in_the_taus_alone():
    models = configurations()
    soft, hard = (models[name].get_params() for name in ("soft", "hard"))
    assert {key for key in soft if soft[key] != hard[key]} == {"tau_instance", "tau_temporal"}
    assert models["untrained"].max_iter == 0


def test_the_demo_leaves_results_and_a_figure_where_it_says(small, tmp_path):
    out = tmp_path / "demo"
    done = run("--out", out, "--quick", "--seeds", 2)
    assert done.exit_code == 0, done.output
    assert len(read_results(out / "results.jsonl")) == 2 * (1 + 3 * 2)
    assert done.stdout.startswith("Accuracy (%) without any training")
    assert (out / "soft-and-hard.png").read_bytes().startswith(b"\x89PNG")
    for word in ("untrained", "soft − hard", "2 seed(s)", "defaults", "SVM", str(out)):
        assert word in done.stdout
    again = run("--out", out, "--quick", "--seeds", 2)
    assert again.exit_code == 0, again.output
    assert len(read_results(out / "results.jsonl")) == 2 * (1 + 3 * 2)


@pytest.mark.parametrize("package", ["aeon", "matplotlib"])
def test_without_its_extras_the_demo_names_the_pip_command(package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    done = run("--out", tmp_path / "demo")
    assert done.exit_code == 2
    assert done.stderr.strip().splitlines() == [
        f"softclt: the demo needs {package}: pip install 'softclt[data,report]'"
    ]
    assert not (tmp_path / "demo").exists()
