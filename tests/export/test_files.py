"""What is in an exported file, what is refused, and what the commands do."""

import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from onnx import helper
from sklearn.exceptions import NotFittedError
from torch import nn
from typer.testing import CliRunner

import softclt
from softclt.cli import app
from softclt.encoders import DilatedEncoder
from softclt.export import ExportError, OnnxModel, export_onnx
from softclt.export.graph import Graph
from softclt.methods import EmbeddingEnsemble, TS2Vec, methods
from tables import as_before

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "random_state": 0}
SMALL |= {"tau_instance": None, "device": "cpu"}


@pytest.fixture(scope="module")
def series():
    return np.random.default_rng(0).normal(size=(8, 2, 30))


@pytest.fixture(scope="module")
def model(series):
    return TS2Vec(**SMALL).fit(series)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "m.onnx"
    export_onnx(model, path)
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "base.onnx"
    export_onnx("base", path)
    return path


def test_the_file_says_what_it_is(path, base, model, tmp_path):
    file = onnx.load(path)
    onnx.checker.check_model(file, full_check=True)
    assert [own.version for own in file.opset_import] == [20]
    assert file.ir_version == 9
    assert "NaN where a value is missing" in file.doc_string
    model.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    facts = OnnxModel(path).facts
    assert facts["softclt.sha256"] == config["sha256"]
    assert facts["softclt.method"] == "ts2vec"
    assert facts["softclt.version.torch"] == torch.__version__
    facts = OnnxModel(base).facts
    assert facts["softclt.model"] == softclt.load_pretrained("base").weights_
    assert facts["softclt.sha256"] == softclt.load_pretrained("base").digest_


def test_the_same_model_gives_the_same_file(path, model, tmp_path):
    export_onnx(model, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


def test_the_graph_gives_nan_for_a_series_without_values(path, base):
    for file in (path, base):
        session = onnxruntime.InferenceSession(file)
        X = np.random.default_rng(0).normal(size=(3, 2, 20))
        X[1] = np.nan
        (R,) = session.run(None, {"series": X})
        assert np.isnan(R).all(axis=1).tolist() == [False, True, False]


def test_the_runner_refuses_what_the_model_refuses(path, base, model, series):
    half, empty = series.copy(), series.copy()
    half[3, 0] = empty[3] = np.nan
    for wrong, words in [(half, "series 3 of X has no step at which"), (series[:, :1], "channel")]:
        told = []
        for own in (model, OnnxModel(path)):
            with pytest.raises(ValueError, match=words) as error:
                own.transform(wrong)
            told.append(str(error.value))
        assert told[0] == told[1]
    with pytest.raises(ValueError, match="series 0 of X has values so large"):
        OnnxModel(path).transform(np.full_like(series, 1e120))
    with pytest.raises(ValueError, match="series 3 of X has no step with a value"):
        OnnxModel(base).transform(empty)


def test_series_on_disk_are_read_in_parts(path, model, series, tmp_path):
    np.save(tmp_path / "series.npy", series)
    source = softclt.data.open_series(tmp_path / "series.npy")
    np.testing.assert_allclose(
        OnnxModel(path).transform(source), model.transform(series), atol=1e-5
    )


def test_what_cannot_be_exported_says_why_and_leaves_no_file(series, tmp_path, model):
    class Twice(TS2Vec):
        def transform(self, X):
            return 2 * super().transform(X)

    class Other(DilatedEncoder.__base__):
        mask_padding, widths, n_layers, output_dims = True, [6], 1, 6

        def __init__(self):
            super().__init__()
            self.inner = DilatedEncoder(2, 6, 4, 2)

        def forward(self, x, *args, **options):
            return self.inner(x, *args, **options)

        all_layers = forward

    twice = Twice(**SMALL).fit(series)
    strange = TS2Vec(**SMALL).fit(series)
    strange.module_ = Other()
    for wrong, words in [
        (EmbeddingEnsemble(TS2Vec(**SMALL), 1).fit(series), "a EmbeddingEnsemble cannot be"),
        (strange, "the encoder Other has no ONNX form"),
    ]:
        with pytest.raises(ExportError, match=words):
            export_onnx(wrong, tmp_path / "m.onnx")
    with as_before(methods):
        methods.register("twice")(Twice)
        with pytest.raises(ExportError, match="does not give what its transform gives"):
            export_onnx(twice, tmp_path / "m.onnx")
    with pytest.raises(NotFittedError):
        export_onnx(TS2Vec(), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


class LooksAtValues(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 4)

    def forward(self, x):
        z = self.linear(x.transpose(1, 2))
        return z * 2 if z.sum() > 0 else z


@pytest.mark.slow
def test_a_module_that_torch_cannot_write_is_refused_in_one_line(series, tmp_path):
    model = TS2Vec(**SMALL, encoder=LooksAtValues()).fit(series)
    with pytest.raises(ExportError, match="torch cannot write the encoder LooksAtValues") as error:
        export_onnx(model, tmp_path / "m.onnx")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_models_of_ours_are_refused(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(ValueError, match="no ONNX file that 'softclt export' wrote"):
        OnnxModel(tmp_path / "bad.onnx")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        OnnxModel(tmp_path / "none.onnx")
    graph = Graph()
    x = graph.input("x", np.float32, ["n"])
    onnx.save(graph.model(x + 1, "y", ["n"]), tmp_path / "other.onnx")
    with pytest.raises(ValueError, match="no ONNX file that 'softclt export' wrote"):
        OnnxModel(tmp_path / "other.onnx")


def softclt_command(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(6, 30)), columns=[f"t{t}" for t in range(30)])
    frame.insert(0, "id", [f"s{i}" for i in range(6)])
    frame.to_csv(tmp_path / "series.csv", index=False)
    return tmp_path / "series.csv"


def test_the_commands_export_a_model_and_embed_with_the_file(tmp_path, table):
    told = softclt_command("export", "base", "--out", tmp_path / "base.onnx", "--json").stdout
    facts = json.loads(told[told.index("{") :])
    assert facts["largest_difference"] < 1e-5
    assert facts["bytes"] == (tmp_path / "base.onnx").stat().st_size
    tables = []
    for own in (tmp_path / "base.onnx", "base"):
        softclt_command("embed", own, table, "--id", "id", "--out", tmp_path / "e.csv", "--force")
        tables.append(pd.read_csv(tmp_path / "e.csv", index_col="id"))
    pd.testing.assert_frame_equal(*tables, atol=1e-5, rtol=0)
    assert tables[0].index.tolist() == [f"s{i}" for i in range(6)]
    assert "sha256: " in softclt_command("info", tmp_path / "base.onnx").stdout


def test_embedding_with_a_file_imports_no_torch(base, table, tmp_path):
    words = ["embed", str(base), str(table), "--id", "id", "--out", str(tmp_path / "e.csv")]
    code = f"""
import sys
from softclt.cli import app
app({words}, standalone_mode=False)
from softclt import OnnxModel
OnnxModel({str(base)!r}).transform([[1.0, 2.0, 4.0]])
assert "onnxruntime" in sys.modules
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "e.csv").is_file()


def test_a_file_embeds_a_folder_part_by_part(base, table, tmp_path):
    (tmp_path / "folder").mkdir()
    pd.read_csv(table).to_parquet(tmp_path / "folder" / "x.parquet")
    words = ["embed", base, tmp_path / "folder", "--out"]
    softclt_command(*words, tmp_path / "parts")
    softclt_command(*words, tmp_path / "one.parquet")
    one, part = (pd.read_parquet(tmp_path / name) for name in ("one.parquet", "parts/x.parquet"))
    pd.testing.assert_frame_equal(part, one, atol=1e-6)
    manifest = json.loads((tmp_path / "parts" / "_manifest.json").read_text())
    assert manifest["sha256"] == OnnxModel(base).facts["softclt.sha256"]


def test_commands_say_in_a_line_what_a_file_cannot_do(base, table, tmp_path):
    out = tmp_path / "e.csv"
    done = softclt_command("embed", base, table, "--out", out, "--level", "timestamp", code=2)
    assert "gives one embedding for each series" in done.stderr
    done = softclt_command("explore", base, table, "--out", tmp_path / "e.html", code=2)
    assert "is an ONNX file, which 'softclt embed' takes" in done.stderr
    done = softclt_command("export", "base", "--out", tmp_path / "m.bin", code=2)
    assert "expected .onnx" in done.stderr
    done = softclt_command("export", "base", "--out", base, code=2)
    assert "add --force" in done.stderr
    done = softclt_command("export", tmp_path / "nowhere", "--out", tmp_path / "m.onnx", code=2)
    assert "is not a model folder" in done.stderr


def test_without_onnxruntime_the_extra_is_named(base, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModuleNotFoundError, match=r"softclt\[export\]"):
        OnnxModel(base)


def test_a_graph_keeps_the_same_arithmetic_once():
    graph = Graph()
    x = graph.input("x", np.float32, ["n"])
    y = (x + 1) * (x + 1) + graph.constant(1, np.float32)
    assert [node.op_type for node in graph.nodes] == ["Add", "Mul", "Add"]
    session = onnxruntime.InferenceSession(graph.model(y, "y", ["n"]).SerializeToString())
    (found,) = session.run(None, {"x": np.array([2.0], np.float32)})
    assert found.tolist() == [10.0]
    assert helper.np_dtype_to_tensor_dtype(np.dtype("float64")) == graph.type_of(np.float64)
