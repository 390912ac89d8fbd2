"""The README's stories and the recipes run as they are written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from softclt.assignments import assignments
from softclt.data import datasets
from softclt.distances import distances
from softclt.methods import methods
from softclt.tasks import tasks
from tables import as_before

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def blocks(document, language):
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def title(block):
    return re.sub(r"\W+", " ", block).strip()[:40]


@pytest.fixture
def registries_as_before():
    """Recipes register things that no other test should meet."""
    with as_before(assignments, datasets, distances, methods, tasks):
        yield


def run_in(folder, block):
    os.chdir(folder)
    exec(compile(block, "<document>", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", blocks("CONTRIBUTING.md", "python"), ids=title)
def test_each_recipe_runs(block, registries_as_before, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_in(tmp_path, block)


def test_a_method_is_forty_lines_and_no_line_of_the_guide_is_too_long():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (method,) = [b for b in blocks("CONTRIBUTING.md", "python") if "@methods.register" in b]
    assert len(method.splitlines()) <= 40
    assert [line for line in text.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize("block", blocks("README.md", "python"), ids=title)
def test_each_story_of_the_readme_runs(block, tmp_path, monkeypatch):
    pytest.importorskip("aeon", reason="the stories use sample data of the `data` extra")
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "examples", tmp_path / "examples")
    run_in(tmp_path, block)


@pytest.mark.parametrize(
    ("page", "package"),
    [
        ("docs/classify.md", "matplotlib"),
        ("docs/frames.md", "polars"),
        ("docs/export.md", "onnxscript"),
    ],
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, package, tmp_path, monkeypatch):
    pytest.importorskip(package, reason="the page shows it")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(page, "python")), page, "exec"), {"__name__": "__main__"})


def run_commands(block, folder):
    """The lines of a block of commands, as they are written."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as in conftest.py
    for line in block.splitlines():
        command = [sys.executable, "-m", *shlex.split(line, comments=True)]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_commands_of_the_page_on_export_run(tmp_path):
    pytest.importorskip("onnxscript")
    os.symlink(ROOT / "examples", tmp_path / "examples")
    for block in blocks("docs/export.md", "bash"):
        run_commands(block, tmp_path)
    assert len((tmp_path / "embeddings.csv").read_text().splitlines()) == 1 + 12


def test_the_page_on_many_machines_embeds_a_folder_and_reads_it(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow")
    table = pd.read_csv(ROOT / "examples" / "sensors.csv")
    for name, rows in table.groupby(table["machine"].str.split("-").str[0]):
        path = tmp_path / "series" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        rows.rename(columns={"machine": "id"}).to_parquet(path, index=False)
    monkeypatch.chdir(tmp_path)
    run_commands(blocks("docs/cluster.md", "bash")[0], tmp_path)
    run_in(tmp_path, blocks("docs/cluster.md", "python")[0])
    assert "True 12 " in capsys.readouterr().out


def test_the_python_of_the_page_on_search_runs(tmp_path, monkeypatch):
    pytest.importorskip("lancedb", reason="the page needs the `search` extra")
    monkeypatch.chdir(tmp_path)
    page = "\n".join(blocks("docs/search.md", "python"))
    exec(compile(page, "docs/search.md", "exec"), {"__name__": "__main__"})


def test_the_commands_of_the_page_on_search_run(tmp_path, monkeypatch):
    pytest.importorskip("lancedb", reason="the page needs the `search` extra")
    pytest.importorskip("aeon", reason="the page uses sample data of the `data` extra")
    from typer.testing import CliRunner

    from softclt.cli import app

    monkeypatch.chdir(tmp_path)
    for line in "\n".join(blocks("docs/search.md", "bash")).splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    written = {path.name for path in tmp_path.iterdir()}
    assert {"index", "hits.csv", "hits.png", "by-dtw.csv", "clusters.csv"} <= written


def test_the_commands_of_the_readme_make_embeddings_of_a_csv(tmp_path):
    (story,) = [block for block in blocks("README.md", "bash") if "softclt embed" in block]
    os.symlink(ROOT / "examples", tmp_path / "examples")
    run_commands(story, tmp_path)
    table = (tmp_path / "embeddings.csv").read_text().splitlines()
    assert table[0].startswith("id,emb_0,")
    assert len(table) == 1 + 12
    assert table[1].startswith("pump-00,")


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
