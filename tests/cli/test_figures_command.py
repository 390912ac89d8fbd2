"""`softclt figures` writes what it names, and says what it leaves out."""

import json

import pytest
from typer.testing import CliRunner

from softclt.cli import app

pytest.importorskip("matplotlib")

TINY = ["--steps", "1", "--set", "output_dims=4", "--set", "hidden_dims=4", "--set", "depth=1"]


def softclt(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<")])
def test_a_file_is_written_in_the_asked_format(kind, start, tmp_path):
    shown = softclt("figures", "lags", "--out", tmp_path, "--format", kind).stdout
    assert shown.startswith(f"{tmp_path / 'lags'}.{kind}: Soft assignments over lag. ")
    assert (tmp_path / f"lags.{kind}").read_bytes().startswith(start)


def test_models_are_trained_on_the_asked_data_with_the_asked_settings(tmp_path):
    words = ("figures", "training", "layers", "--data", "synthetic/waves", "--out", tmp_path)
    first, second = json.loads(softclt(*words, "--seed", 4, "--json", *TINY).stdout)
    assert [first["name"], second["name"]] == ["training", "layers"]
    for made in (first, second):
        assert "synthetic/waves, 60 training series" in made["caption"]
        assert "1 steps of training, seed 4" in made["caption"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layers.png", "training.png"]


def test_without_names_what_has_no_data_is_named_and_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("softclt.data.available", lambda: [])
    result = softclt("figures", "--out", tmp_path / "new")
    assert "softclt: seasonal is left out, ucr/Adiac is not here; --data helps" in result.stderr
    drawn = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert drawn == ["designs.png", "lags.png", "synthetic.png"]  # which need none


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("figures tsne", "unknown figure 'tsne'; known: designs"),
        ("figures lags --format gif", "gif"),
        ("figures lags --set tau=1", "no parameter 'tau'"),
        ("figures lags --out {file}", "is a file; expected a folder"),
        ("figures training --data ucr/Nowhere", "unknown data set 'ucr/Nowhere'"),
    ],
)
def test_a_slip_is_told_in_one_line(words, message, tmp_path):
    (tmp_path / "file").touch()
    result = softclt(*words.format(file=tmp_path / "file").split(), code=2)
    (line,) = result.stderr.splitlines()
    assert message in line


def test_list_names_the_figures():
    names = json.loads(softclt("list", "figures", "--json").stdout)["figures"]
    assert {"lags", "designs", "hierarchy", "layers", "timestamps", "training"} <= set(names)
