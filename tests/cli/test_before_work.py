"""What can be known before the work is checked before it, in every command alike."""

import inspect
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from softclt import load_model
from softclt.cli import app
from softclt.cli import output as cli_output

TINY = [
    word
    for setting in ("output_dims=4", "hidden_dims=4", "depth=1", "max_iter=1")
    for word in ("--set", setting)
]


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def refused(*words):
    done = softclt(*words, code=2)
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    rng = np.random.default_rng(0)
    rows = [{"id": f"s{i}", "time": t, "x": rng.normal()} for i in range(4) for t in range(30)]
    pd.DataFrame(rows).to_csv(folder / "data.csv", index=False)
    few = pd.DataFrame({"id": ["s0", "s1", "s2", "s3"], "label": ["a", "b", "a", "b"]})
    few.to_csv(folder / "few.csv", index=False)
    softclt("fit", folder / "data.csv", "--out", folder / "model", *TINY)
    softclt("index", folder / "data.csv", "--out", folder / "index")
    return folder


CLASSIFY = "classify {f}/data.csv --labels {f}/few.csv --out {t}/p.csv --report {t}/r.html"

# Command, arguments before the output, its option, the name of the output.
WRITING = [
    ("fit", "{f}/data.csv", "--out", "m"),
    ("fit", "{f}/data.csv --out {t}/other", "--checkpoint", "kept"),
    ("pretrain", "synthetic", "--out", "m"),
    ("pretrain", "synthetic", "--gather", "corpus.npz"),
    ("pretrain", "synthetic --out {t}/other", "--checkpoint", "kept"),
    ("embed", "{f}/model {f}/data.csv", "--out", "e.csv"),
    ("index", "{f}/data.csv", "--out", "i"),
    ("search", "{f}/index {f}/data.csv", "--out", "h.csv"),
    ("search", "{f}/index {f}/data.csv --out {t}/h.csv", "--plot", "h.png"),
    ("cluster", "{f}/data.csv", "--out", "c.csv"),
    ("cluster", "{f}/data.csv --out {t}/c.csv", "--plot", "c.png"),
    ("explore", "{f}/model {f}/data.csv", "--out", "e.html"),
    ("evaluate", "classification synthetic/waves", "--out", "r.jsonl"),
    ("bench", "quick", "--out", "results"),
    ("report", "{f}/results", "--out", "r.md"),
    ("classify", "{f}/data.csv --labels {f}/few.csv", "--out", "p.csv"),
    ("classify", "{f}/data.csv --labels {f}/few.csv --out {t}/p.csv", "--report", "r.html"),
    ("classify", "{f}/data.csv --labels {f}/few.csv --out {t}/p.csv", "--checkpoint", "kept"),
    ("export", "{f}/model", "--out", "m.onnx"),
    ("detect", "{f}/data.csv", "--out", "a.csv"),
    ("detect", "{f}/data.csv --out {t}/a.csv", "--plot", "a.png"),
    ("detect", "{f}/data.csv --out {t}/a.csv", "--scores", "s.csv"),
    ("detect", "{f}/data.csv --out {t}/a.csv", "--report", "r.html"),
    ("forecast", "{f}/data.csv", "--out", "f.csv"),
    ("forecast", "{f}/data.csv --out {t}/f.csv", "--plot", "f.png"),
    ("distances", "{f}/data.csv", "--out", "d"),
    ("figures", "designs", "--out", "figures"),
    ("demo", "", "--out", "demo"),
]
GOES_ON = {("fit", "--checkpoint"), ("evaluate", "--out"), ("bench", "--out")}
GOES_ON |= {("classify", "--checkpoint"), ("pretrain", "--checkpoint")}
GOES_ON |= {("distances", "--out"), ("figures", "--out"), ("demo", "--out")}
FILES = [one for one in WRITING if "." in one[3] and (one[0], one[2]) not in GOES_ON]


# Options that name a file or folder which is read.
READ = {"--baselines", "--colors", "--data", "--distances", "--labels", "--model"}
READ |= {"--metadata", "--token-file"}


def test_every_output_of_every_command_is_among_those_that_are_tried():
    """A path is an output unless it is known to be read: a new option has to be put on a list."""
    found = set()
    for name, command in get_command(app).commands.items():
        kinds = inspect.signature(command.callback).parameters
        for option in command.params:
            is_path = option.name in kinds and "Path" in str(kinds[option.name].annotation)
            if is_path and option.opts[0].startswith("--"):
                found.add((name, option.opts[0]))
    assert ("export", "--out") in found
    tried = {(case[0], case[2]) for case in WRITING}
    assert {one for one in found - tried if one[1] not in READ} == set()


def words_of(case, folder, tmp_path, target):
    command, before, option, _ = case
    given = before.format(f=folder, t=tmp_path).split()
    return [command, *given, option, target]


@pytest.mark.parametrize("case", WRITING, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    case, folder, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / case[3]
    line = refused(*words_of(case, folder, tmp_path, target))
    assert f"{case[2]} {target} cannot be written" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_read_only_disk_is_found_out_beforehand(folder, tmp_path, monkeypatch):
    def read_only(**asked):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(cli_output.tempfile, "TemporaryFile", read_only)
    line = refused("fit", folder / "data.csv", "--out", tmp_path / "m", *TINY)
    assert "Read-only file system" in line
    assert str(tmp_path) in line


@pytest.mark.parametrize("case", FILES, ids=lambda case: f"{case[0]} {case[2]}")
def test_a_file_that_is_there_is_kept_unless_forced(case, folder, tmp_path):
    target = tmp_path / case[3]
    target.write_text("mine")
    line = refused(*words_of(case, folder, tmp_path, target))
    assert str(target) in line
    assert "--force" in line
    assert target.read_text() == "mine"


def test_force_replaces_what_is_there(folder, tmp_path):
    out = tmp_path / "e.csv"
    out.write_text("mine")
    softclt("embed", folder / "model", folder / "data.csv", "--out", out, "--force")
    assert out.read_text().startswith("id,emb_0")


def test_an_output_never_replaces_an_input_or_another_output(folder, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes((folder / "data.csv").read_bytes())
    line = refused("embed", folder / "model", data, "--out", data, "--force")
    assert "would replace" in line
    both = tmp_path / "both.csv"
    assert "would replace" in refused("detect", data, "--out", both, "--scores", both)


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("matplotlib", "detect {f}/data.csv --out {t}/a.csv --plot {t}/a.png"),
        ("matplotlib", "forecast {f}/data.csv --out {t}/a.csv --plot {t}/a.svg"),
        ("matplotlib", "figures designs --out {t}/figures"),
        ("matplotlib", "report {f} --out {t}/r.md"),
        (
            "matplotlib",
            "classify {f}/data.csv --labels {f}/few.csv --out {t}/p.csv --report {t}/r.html",
        ),
        (
            "jinja2",
            "classify {f}/data.csv --labels {f}/few.csv --out {t}/p.csv --report {t}/r.html",
        ),
        ("jinja2", "explore {f}/model {f}/data.csv --out {t}/m.html"),
        ("jinja2", "report {f} --out {t}/r.html"),
        ("pyarrow", "embed {f}/model {f}/data.csv --out {t}/e.parquet"),
        ("pyarrow", "detect {f}/data.csv --out {t}/a.csv --scores {t}/s.parquet"),
        ("umap", "explore {f}/model {f}/data.csv --out {t}/m.html --projection umap"),
        ("ray", "distances {f}/data.csv --out {t}/d --ray local"),
        ("ray", "bench quick --out {t}/r --ray local"),
        ("ray", "embed {f}/model {f} --out {t}/parts --ray local"),
    ],
)
def test_a_missing_extra_is_named_before_anything_is_done(
    package, words, folder, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)
    line = refused(*words.format(f=folder, t=tmp_path).split())
    assert package.removesuffix("2") in line
    assert "pip install" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["fit", "embed", "explore", "index", "cluster", "detect", "forecast", "classify"]
)
def test_a_file_that_is_not_there_is_found_before_torch_is_loaded(command, tmp_path):
    import subprocess

    model = [tmp_path] if command in ("embed", "explore") else []
    (tmp_path / "config.json").write_text("{}")
    out = {"fit": "m", "index": "i", "explore": "m.html"}.get(command, "o.csv")
    call = ["softclt", command, *model, tmp_path / "none.csv", "--out", tmp_path / out]
    code = (
        f"import sys; sys.argv = {[str(word) for word in call]}\n"
        "from softclt.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n"
        "    sys.exit(99 if 'torch' in sys.modules or 'sklearn' in sys.modules else end.code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "none.csv: no such file" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "embed {f}/model {t}/two.csv --out {t}/e.csv",
        "explore {f}/model {t}/two.csv --out {t}/e.html --projection pca",
        "forecast {t}/two.csv --out {t}/f.csv",
        "distances {t}/two.csv --metric euclidean --jobs 0 --out {t}/d",
        "fit {t}/two.csv --out {t}/m --set batch_size=0",
        "detect {t}/two.csv --out {t}/a.csv",
        "classify {t}/two.csv --out {t}/p.csv",
        "evaluate classification {t}/two.csv --set output_dims=4",
    ],
)
def test_every_message_names_the_file(words, folder, tmp_path):
    rows = [{"id": f"s{i}", "time": t, "x": t, "y": -t} for i in range(3) for t in range(20)]
    pd.DataFrame(rows).to_csv(tmp_path / "two.csv", index=False)
    assert "two.csv" in refused(*words.format(f=folder, t=tmp_path).split())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("report {t}/bad.jsonl --out {t}/r.md", "bad.jsonl"),
        ("info {t}", "config.json"),
        ("bench {t}/bad.toml --out {t}/r", "bad.toml"),
        ("pretrain {t}/bad.toml --out {t}/m", "bad.toml"),
        ("classify {f}/data.csv --labels {t}/bad.toml --out {t}/p.csv", "bad.toml"),
        ("fit {f}/data.csv --out {t}/m --distances {t} --set tau_instance=1", "{t}"),
        ("cache verify --folder {t}", "{t}"),
        ("evaluate classification synthetic/waves --out {t}/bad.jsonl", "bad.jsonl"),
    ],
)
def test_a_damaged_file_is_wrong_use_and_named(words, named, folder, tmp_path):
    (tmp_path / "bad.jsonl").write_text("{not json\n{}\n")
    (tmp_path / "bad.toml").write_text("= nothing")
    (tmp_path / "config.json").write_text("{")
    line = refused(*words.format(f=folder, t=tmp_path).split())
    assert named.format(t=tmp_path) in line


def test_a_fit_that_goes_on_needs_no_force(folder, tmp_path):
    words = ["fit", folder / "data.csv", *TINY, "--checkpoint", tmp_path / "kept"]
    softclt(*words, "--out", tmp_path / "one")
    softclt(*words, "--out", tmp_path / "two")
    assert load_model(tmp_path / "two").max_iter == 1


def test_results_and_distances_go_on_without_force(folder, tmp_path):
    out = tmp_path / "r.jsonl"
    words = ["evaluate", "classification", "synthetic/waves", *TINY, "--seeds", 1, "--out", out]
    softclt(*words)
    softclt(*words)
    assert len(out.read_text().splitlines()) == 1
    for _ in range(2):
        softclt("distances", folder / "data.csv", "--out", tmp_path / "d")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_fills_up_is_a_failure_not_wrong_use(folder, tmp_path, monkeypatch):
    def full(*words, **more):
        raise OSError(28, "No space left on device", str(tmp_path / "e.csv"))

    monkeypatch.setattr(os, "replace", full)
    words = ["embed", folder / "model", folder / "data.csv", "--out", tmp_path / "e.csv"]
    assert "No space left on device" in softclt(*words, code=1).stderr
