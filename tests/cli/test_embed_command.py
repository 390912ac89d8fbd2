"""``softclt embed``: large files piece by piece, and folders part by part."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt import TS2Vec
from softclt.cli import app
from softclt.data.sources import opening
from softclt.embedding import recipe

TINY = {"output_dims": 3, "hidden_dims": 4, "depth": 1, "max_iter": 0, "tau_instance": None}


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def refused(*words):
    done = softclt(*words, code=2)
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two models that differ in their weights."""
    folder = tmp_path_factory.mktemp("models")
    X = np.random.default_rng(0).normal(size=(6, 1, 20))
    for seed in (0, 1):
        TS2Vec(**TINY, device="cpu", random_state=seed).fit(X).save(folder / str(seed))
    return folder


@pytest.fixture
def model(models):
    return models / "0"


@pytest.fixture
def frame(rng):
    frame = pd.DataFrame(rng.normal(size=(7, 20)), columns=[f"t{t}" for t in range(20)])
    frame.insert(0, "id", ["=1+1", *"bcdefg"])
    return frame


@pytest.fixture
def data(frame, tmp_path):
    (tmp_path / "data").mkdir()
    frame[:4].to_parquet(tmp_path / "data" / "x.parquet")
    frame[4:].to_parquet(tmp_path / "data" / "y.parquet")
    return tmp_path / "data"


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_a_large_file_gives_the_table_of_a_small_one(model, frame, tmp_path, monkeypatch, kind):
    path = tmp_path / f"series.{kind}"
    if kind == "npz":
        X = np.ascontiguousarray(frame.iloc[:, 1:].to_numpy())
        np.savez(path, X=X, ids=frame["id"].to_numpy(str))
    else:
        getattr(frame, f"to_{kind}")(path, index=False)
    for suffix in ("parquet", "csv", "npz"):
        outs = [tmp_path / f"{name}.{suffix}" for name in ("whole", "pieces")]
        with monkeypatch.context() as patch:
            softclt("embed", model, path, "--out", outs[0], "--safe-csv")
            patch.setattr(opening, "IN_MEMORY", 0)
            patch.setattr(recipe, "_AT_ONCE", 2048)  # two series
            patch.setattr("softclt.data.read_series", None)  # not asked
            said = softclt("embed", model, path, "--out", outs[1], "--safe-csv").stderr
        assert "series/s" in said
        if suffix == "npz":
            whole, pieces = (np.load(out) for out in outs)
            assert whole["ids"].tolist() == pieces["ids"].tolist() == frame["id"].tolist()
            np.testing.assert_allclose(pieces["embeddings"], whole["embeddings"], atol=1e-6)
            continue
        whole, pieces = (getattr(pd, f"read_{suffix}")(out) for out in outs)
        pd.testing.assert_frame_equal(pieces, whole, atol=1e-6)
        assert pieces["id"][0] == ("'=1+1" if suffix == "csv" else "=1+1")


def test_a_folder_becomes_a_folder_of_parts_and_goes_on(model, data, frame, tmp_path):
    out = tmp_path / "out"
    told = softclt("embed", model, data, "--out", out).stdout
    assert told.startswith("2 part(s) made, 0 were there; 7 series, ")
    assert told.strip().endswith(f"{out} is complete")
    (out / "y.parquet").unlink()
    again = json.loads(softclt("embed", model, data, "--out", out, "--json").stdout)
    assert (again["made"], again["found"], again["series"]) == (1, 1, 3)
    softclt("embed", model, data, "--out", tmp_path / "one.parquet")
    one = pd.read_parquet(tmp_path / "one.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(out), one, atol=1e-6)
    assert one["id"].tolist() == frame["id"].tolist()
    softclt("embed", model, f"file://{data}", "--out", tmp_path / "two.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "two.parquet"), one)
    seen = json.loads((out / "_manifest.json").read_text())
    config = json.loads((model / "config.json").read_text())
    assert seen["sha256"] == config["sha256"]
    assert seen["model"]["pooling"] == "max"


def test_a_folder_of_another_model_needs_force(models, data, tmp_path):
    out = tmp_path / "out"
    softclt("embed", models / "0", data, "--out", out)
    line = refused("embed", models / "1", data, "--out", out)
    assert "holds other embeddings: the SHA-256 of the weights is" in line
    assert "--force" in line
    told = softclt("embed", models / "1", data, "--out", out, "--force").stdout
    assert told.startswith("2 part(s) made, 0 were there")


def test_slips_are_told_in_a_line_before_any_work(model, data, frame, tmp_path):
    out, words = tmp_path / "out", ["embed", model]
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert "has no suffix, so it is a folder" in refused(*words, tmp_path / "x.csv", "--out", out)
    line = refused(*words, data, "--out", tmp_path / "e.csv", "--ray", "local")
    assert "--ray works on parts" in line
    line = refused("embed", tmp_path / "m.onnx", data, "--out", out, "--ray", "local")
    assert "m.onnx is not sent to a cluster" in line
    (tmp_path / "empty").mkdir()
    line = refused(*words, tmp_path / "empty", "--out", out)
    assert "empty: the folder holds no .parquet file" in line
    assert "no such file or folder" in refused(*words, f"file://{tmp_path}/no", "--out", out)
    frame.drop(columns="t3").to_parquet(data / "z.parquet")
    assert "z.parquet: has the columns" in refused(*words, data, "--out", out)
    assert not out.exists()
