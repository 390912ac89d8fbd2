"""The wheel alone, without what extras bring: every command works, or names its extra first."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from typer.main import get_command

import softclt
from softclt.cli.app import app

ROOT = Path(__file__).parents[2]


def extras():
    """Modules that the extras bring, as far as they are called like their packages."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["project"]["optional-dependencies"]
    names = {re.match(r"[\w-]+", one)[0] for group in groups.values() for one in group}
    return sorted({name.replace("-", "_") for name in names} - {"softclt"})


HIDDEN = [*extras(), "tensorboard", "umap"]

# Runs each command in turn, as a child that has imported what all need: seconds instead of minutes.
RUNNER = """
import io, json, os, sys
from pathlib import Path
site, work, hidden, commands = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:5])
sys.path.insert(0, site)
from importlib.machinery import PathFinder
class Hiding(PathFinder):
    @staticmethod
    def find_spec(name, *more):
        return None if name.partition(".")[0] in hidden else PathFinder.find_spec(name, *more)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
import softclt
assert Path(softclt.__file__).is_relative_to(site), softclt.__file__
from typer.testing import CliRunner
from softclt.cli.app import app
os.chdir(work)
for args in commands:
    before = {str(p) for p in Path(".").rglob("*")}
    ran = CliRunner().invoke(app, args)
    new = sorted({str(p) for p in Path(".").rglob("*")} - before)
    print(json.dumps([args, ran.exit_code, ran.output, new]), file=sys.__stdout__, flush=True)
"""

SMALL = [
    "--set",
    "max_iter=2",
    "--set",
    "output_dims=4",
    "--set",
    "hidden_dims=4",
    "--set",
    "depth=1",
]
WORKS = [
    ["fit", "a.csv", "--out", "model", *SMALL],
    ["embed", "model", "a.csv", "--out", "emb.csv"],
    ["embed", "base", "a.csv", "--out", "emb.npz"],
    ["info", "model"],
    ["doctor"],
    ["list"],
    ["list", "distances"],
    ["cache"],
    ["cache", "list"],
    ["cache", "verify"],
    ["cache", "clear"],
    ["check", "a.csv"],
    ["evaluate", "classification", "synthetic/waves", "--seeds", "1", "--out", "r.jsonl", *SMALL],
    ["bench", "mine.toml", "--out", "results", "--workers", "1"],
    ["bench", "mine.toml", "--dry-run"],
    ["distances", "a.csv", "--metric", "euclidean", "--out", "store", "--jobs", "1"],
    ["classify", "a.csv", "--labels", "few.csv", "--out", "p.csv", *SMALL],
    ["classify", "labelled.csv", "--out", "p2.csv"],
    ["detect", "long.csv", "--scorer", "sr", "--threshold", "own", "--out", "alarms.csv"],
    ["forecast", "long.csv", "--horizon", "2", "--context", "5", "--out", "f.csv", *SMALL],
    ["cluster", "a.csv", "--out", "c.csv"],
    ["pretrain", "corpus.toml", "--out", "own", "--set", "max_iter=1", "--set", "width=4"],
]
NEEDS = {
    "data": [
        ["embed", "model", "a.csv", "--out", "emb.parquet"],
        ["fit", "a.parquet", "--out", "m2"],
        ["distances", "a.csv", "--metric", "aeon:msm", "--out", "store2"],
        ["demo", "--out", "demo"],
    ],
    "report": [
        ["report", "r.jsonl", "--out", "page.html"],
        ["explore", "model", "a.csv", "--out", "map.html"],
        ["classify", "labelled.csv", "--out", "p3.csv", "--report", "p.html"],
        ["classify", "a.csv", "--labels", "few.csv", "--out", "p3.csv", "--report", "p.html"],
        ["figures", "synthetic", "--out", "figures"],
        ["detect", "long.csv", "--scorer", "sr", "--out", "b.csv", "--plot", "a.png"],
        ["forecast", "long.csv", "--horizon", "2", "--out", "g.csv", "--plot", "a.png", *SMALL],
    ],
    "export": [
        ["export", "model", "--out", "model.onnx"],
        ["embed", "a.onnx", "a.csv", "--out", "e.csv"],
        ["info", "a.onnx"],
    ],
    "ray": [
        ["distances", "a.csv", "--out", "store3", "--ray", "local"],
        ["bench", "mine.toml", "--out", "results2", "--ray", "local"],
    ],
    "search": [
        ["index", "a.csv", "--out", "index"],
        ["search", "index", "a.csv", "--out", "h.csv"],
    ],
    "serve": [["serve", "base"]],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with what the wheel holds."""
    pytest.importorskip("hatchling", reason="the wheel is built with it")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q"]
    subprocess.run([*build, "-w", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("softclt-*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def ran(site, tmp_path_factory):
    """Exit code, words and new files of every command."""
    work = tmp_path_factory.mktemp("work")
    rows = [[f"s{i}", *((i % 2) + (i * t % 7) / 7 for t in range(30))] for i in range(8)]
    header = ",".join(["id", *(f"t{t}" for t in range(30))])
    (work / "a.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    (work / "few.csv").write_text("id,label\ns0,a\ns1,b\ns2,a\ns3,b\n")
    long = [f"{t},{(t % 12) + 0.01 * t}" for t in range(200)]
    (work / "long.csv").write_text("\n".join(["time,x", *long]))
    labelled = [f"{','.join(map(str, row))},{'ab'[i % 2]}" for i, row in enumerate(rows)]
    (work / "labelled.csv").write_text("\n".join([f"{header},label", *labelled]))
    (work / "a.onnx").write_bytes(b"any")
    (work / "a.parquet").write_bytes(b"PAR1")
    (work / "mine.toml").write_text(
        '[mine]\ndata = ["synthetic/waves"]\nseeds = 1\n[mine.configurations.one]\n'
        "params = { max_iter = 1, output_dims = 4, hidden_dims = 4, depth = 1 }\n"
    )
    (work / "corpus.toml").write_text('[[sets]]\ndata = ["synthetic/waves"]\n')
    every = [*WORKS, *(args for group in NEEDS.values() for args in group)]
    command = [sys.executable, "-c", RUNNER, str(site), str(work)]
    command += [json.dumps(HIDDEN), json.dumps(every)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    assert len(lines) == len(every), done.stderr[-2000:]
    return {" ".join(args): (code, text, new) for args, code, text, new in lines}


@pytest.mark.slow
def test_the_wheel_holds_all_that_is_read(site):
    for name in ("py.typed", "bench/suites.toml", "methods/presets.toml"):
        assert (site / "softclt" / name).is_file(), name
    assert list((site / "softclt" / "pretrained").glob("*/model.safetensors"))


@pytest.mark.slow
def test_the_archive_of_the_sources_holds_what_a_build_needs(tmp_path):
    pytest.importorskip("build", reason="the archive is built with it")
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (archive,) = tmp_path.glob("softclt-*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CITATION.cff", "SECURITY.md"} <= names
    assert {"src/softclt/py.typed", "src/softclt/reports/explore.css", "tests/naive.py"} <= names
    assert not [name for name in names if name.startswith(("docs/", "benchmarks/"))]


def test_the_citation_names_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {softclt.__version__}\n" in text


@pytest.mark.slow
@pytest.mark.parametrize("args", WORKS, ids=" ".join)
def test_without_extras_a_command_works(ran, args):
    code, text, _ = ran[" ".join(args)]
    assert code == 0, text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "args"),
    [(extra, args) for extra, group in NEEDS.items() for args in group],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_needs_an_extra_names_it_and_writes_nothing(ran, extra, args):
    code, text, new = ran[" ".join(args)]
    words = " ".join(text.split())
    assert code == 2, text
    assert re.search(rf"softclt\[[^\]]*{extra}", words), text
    assert "Traceback" not in words
    assert new == []


def commands(group, way=()):
    """Every command that is registered, also those of groups, as the words that call it."""
    for name, command in group.commands.items():
        yield (*way, name)
        yield from commands(command, (*way, name)) if hasattr(command, "commands") else ()


def test_every_command_is_among_those_that_are_tried():
    every = [*WORKS, *(args for group in NEEDS.values() for args in group)]
    tried = {tuple(args[:n]) for args in every for n in (1, 2)}
    assert set(commands(get_command(app))) - tried == set()


def test_what_the_extras_bring_is_hidden():
    """Else a command would work here that does not where an extra is missing."""
    assert {"aeon", "pyarrow", "matplotlib", "onnxruntime", "lancedb", "fastapi"} <= set(HIDDEN)
