"""`softclt pretrain`, and names of pre-trained models where a folder is asked for."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt import load_model, pretrained
from softclt.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pretrained.md").read_text(encoding="utf-8")
CORPUS = """
length = 32
[[sets]]
data = "synthetic/waves"
[synthetic]
count = 20
[training]
max_iter = 3
width = 4
least_length = 16
"""


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def table(tmp_path, rng):
    """Twelve wide series in a CSV file, with ids and a kind."""
    X = rng.normal(size=(12, 30)).cumsum(axis=1)
    frame = pd.DataFrame(X, columns=[f"t{t}" for t in range(30)])
    frame.insert(0, "kind", ["a", "b"] * 6)
    frame.insert(0, "id", [f"s{i}" for i in range(12)])
    frame.to_csv(tmp_path / "series.csv", index=False)
    return tmp_path / "series.csv"


def test_a_corpus_becomes_a_model_with_a_manifest(tmp_path, table):
    (tmp_path / "corpus.toml").write_text(CORPUS)
    out = tmp_path / "model"
    told = softclt("pretrain", tmp_path / "corpus.toml", "--out", out, "--json").stdout
    assert json.loads(told[told.index("{") :])["steps"] == 3
    manifest = json.loads((out / "manifest.json").read_text())
    assert [one["name"] for one in manifest["corpus"]["sets"]] == ["synthetic/waves"]
    assert load_model(out).transform(np.ones((2, 3, 10))).shape == (2, 3 * 24)
    softclt("embed", out, table, "--id", "id", "--label", "kind", "--out", tmp_path / "e.csv")
    assert list(pd.read_csv(tmp_path / "e.csv").columns[:2]) == ["id", "emb_0"]


def test_settings_win_over_the_file_and_a_used_folder_is_refused(tmp_path):
    (tmp_path / "corpus.toml").write_text(CORPUS)
    command = ["pretrain", tmp_path / "corpus.toml", "--out", tmp_path / "m"]
    softclt(*command, "--set", "max_iter=1")
    assert load_model(tmp_path / "m").transform([[1.0, 2.0, 0.0]]).shape == (1, 24)
    again = softclt(*command, code=2)
    assert "--force" in again.stderr


def test_a_corpus_can_be_gathered_here_and_learned_from_elsewhere(tmp_path):
    (tmp_path / "corpus.toml").write_text(CORPUS)
    kept = tmp_path / "corpus.npz"
    told = softclt("pretrain", tmp_path / "corpus.toml", "--gather", kept).stdout
    assert f"softclt pretrain {kept} --out model/" in told
    softclt("pretrain", kept, "--out", tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert manifest["corpus"]["synthetic"]["device"] in ("cpu", "cuda")
    done = softclt("pretrain", kept, code=2)
    assert "a folder for the model is missing" in done.stderr


def test_pretraining_that_was_stopped_goes_on(tmp_path):
    (tmp_path / "corpus.toml").write_text(CORPUS)
    command = ["pretrain", tmp_path / "corpus.toml", "--checkpoint", tmp_path / "kept"]
    softclt(*command, "--out", tmp_path / "one")
    done = softclt(*command, "--out", tmp_path / "same", "--json").stdout  # it has ended already
    assert json.loads(done[done.index("{") :])["steps"] == 3
    one, same = (load_model(tmp_path / name) for name in ("one", "same"))
    X = np.linspace(0, 1, 40)[None, None] ** 2
    np.testing.assert_array_equal(one.transform(X), same.transform(X))


def test_a_corpus_that_is_not_there_is_one_line(tmp_path):
    done = softclt("pretrain", "nowhere.toml", "--out", tmp_path / "m", code=2)
    assert "nowhere.toml: cannot be read" in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_name_embeds_and_classifies_without_training(tmp_path, table):
    softclt("embed", "base", table, "--id", "id", "--label", "kind", "--out", tmp_path / "e.csv")
    embedded = pd.read_csv(tmp_path / "e.csv")
    assert embedded.shape == (12, 1 + 240)
    assert embedded["id"][3] == "s3"
    out = tmp_path / "p.csv"
    softclt("classify", table, "--id", "id", "--label", "kind", "--model", "base", "--out", out)
    assert set(pd.read_csv(out)["label"]) == {"a", "b"}


def test_a_wrong_name_is_answered_with_the_known_ones(tmp_path, table):
    done = softclt("embed", "bsae", table, "--out", tmp_path / "e.csv", code=2)
    assert "did you mean 'base'?" in done.stderr
    clash = ["--model", "base", "--method", "tstcc", "--out", tmp_path / "p.csv"]
    done = softclt("classify", table, "--label", "kind", *clash, code=2)
    assert "leave --method and --preset out" in done.stderr


def test_models_are_listed_with_what_they_have_seen():
    told = softclt("list", "models").stdout
    assert "The newest: base-" in told
    assert "Licence: Apache-2.0. Sources: UCR and UEA sets (" in told
    found = json.loads(softclt("list", "models", "--json").stdout)["models"]
    assert set(found) == set(pretrained.names())
    assert found["base"]["tags"]["sha256"] == pretrained.find_weights("base").digest
    assert json.loads(softclt("info", "base", "--json").stdout)["method"] == "series-contrast"


@pytest.mark.slow
def test_the_page_runs_as_it_is_written(tmp_path, monkeypatch):
    pytest.importorskip("aeon", reason="the page uses sample data of the `data` extra")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "<page>", "exec"), names)
    (corpus,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "corpus.toml").write_text(corpus)
    for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            softclt(*shlex.split(line)[1:])
    assert (tmp_path / "embeddings.csv").exists()
    assert (tmp_path / "map.html").exists()
