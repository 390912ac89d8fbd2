"""Suites, results and plugins that somebody else wrote."""

import gzip
import json
import logging
import time
from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

from softclt import registry
from softclt.bench.suites import read_suite, shipped_suites
from softclt.cli.app import app
from softclt.registry import Registry
from softclt.tasks import read_results
from softclt.tasks.result import Result

SUITE = """
[mine]
data = ["synthetic/waves"]
{suite}
[mine.configurations.one]
params = {{ max_iter = 0, output_dims = 4, hidden_dims = 4, depth = 1 }}
{one}
"""

VALUES = ", ".join(str(0.1 + k / 1000) for k in range(200))
MANY = f"grid = {{ tau_instance = [{VALUES}], tau_temporal = [{VALUES}], alpha = [{VALUES}] }}"

OF_A_SUITE = {
    "seeds are too many": "seeds = 100_000_000",
    "seeds are none": "seeds = 0",
    "seeds are a text": 'seeds = "3"',
    "seeds are true": "seeds = true",
    "seeds have too many digits": "seeds = " + "9" * 5000,
    "about is a list": "about = []",
    "task is a list": "task = []",
    "task is unknown": 'task = "mine too"',
    "groups are a number": "groups = 3",
    "groups are numbers": "groups = [1, 2]",
    "criteria are a text": 'criteria = "yes"',
    "parameters by data set are a number": "sets = { a = 3 }",
    "probe is a number": "probe = 3",
    "select is a text": 'select = "train"',
    "method is a table": "method = {}",
    "preset is a number": "preset = 1",
    "options are a list": "options = []",
    "a table is unknown": "unheard = 1",
}
OF_A_CONFIGURATION = {
    "replicas are a thousand million": "replicas = 1_000_000_000",
    "replicas are none": "replicas = 0",
    "replicas are a fraction": "replicas = 2.5",
    "members are a number": "members = 3",
    "members are numbers": "members = [1, 2]",
    "members have no parameters": "members = []",
    "a grid has eight million points": MANY,
    "a grid has no points": "grid = { alpha = [] }",
    "a grid is a list": "grid = []",
    "a grid has a number": "grid = { alpha = 3 }",
    "a grid has lists": "grid = { alpha = [[1], [2]] }",
    "like is a number": "like = 3",
    "like is itself": 'like = "one"',
    "among is a text": 'among = "one"',
    "control is a list": "control = []",
}
PARAMS = {
    "a size is huge": "params.output_dims = 1_000_000_000_000",
    "a size is beyond any index": "params.hidden_dims = 4_611_686_018_427_387_904",
    "depth is huge": "params.depth = 1_000_000_000",
    "depth is a text": 'params.depth = "10"',
    "pooling is a number": "params.pooling = 5",
    "schedule is a list": "params.lr_schedule = []",
    "a parameter is unknown": "params.unheard = 3",
}


@pytest.fixture
def bench(tmp_path):
    """Write a suite, and plan it."""
    read_suite("quick")  # what the first suite imports is not what is measured

    def plan(text, *more):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        began = time.perf_counter()
        out = ["--out", str(tmp_path / "results")]
        ran = CliRunner().invoke(app, ["bench", str(path), "--dry-run", *out, *more])
        return ran, time.perf_counter() - began

    return plan


def refused(ran, seconds):
    assert ran.exit_code == 2, ran.output
    assert "Traceback" not in ran.output
    assert "mistake in softclt" not in ran.output
    assert seconds < 10  # one second alone, but not beside other work
    return ran.output


def test_the_suite_that_the_others_spoil_is_planned(bench):
    ran, _ = bench(SUITE.format(suite="", one=""))
    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize("line", OF_A_SUITE.values(), ids=OF_A_SUITE)
def test_a_suite_of_wrong_types_or_sizes_is_refused_when_it_is_planned(bench, line):
    assert "mine" in refused(*bench(SUITE.format(suite=line, one="")))


@pytest.mark.parametrize("line", OF_A_CONFIGURATION.values(), ids=OF_A_CONFIGURATION)
def test_so_is_a_configuration(bench, line):
    assert "one" in refused(*bench(SUITE.format(suite="", one=line)))


@pytest.mark.parametrize("line", PARAMS.values(), ids=PARAMS)
def test_so_are_parameters_that_no_memory_holds(bench, line):
    text = f'[mine]\ndata = ["synthetic/waves"]\n[mine.configurations.one]\n{line}\n'
    assert "one" in refused(*bench(text))


@pytest.mark.parametrize(
    "text",
    [
        "mine = 3",
        "[mine]",
        "[mine]\ndata = 3\n[mine.configurations.one]",
        "[mine]\ndata = [3]\n[mine.configurations.one]",
        "[mine]\ndata = [{ }]\n[mine.configurations.one]",
        '[mine]\ndata = [{ rule = "smallest" }]\n[mine.configurations.one]',
        '[mine]\ndata = [{ rule = "no", from = "a" }]\n[mine.configurations.one]',
        '[mine]\ndata = [{ rule = "smallest", from = "a", n = "3" }]\n[mine.configurations.one]',
        '[mine]\ndata = [{ rule = "smallest", from = "a", to = 3 }]\n[mine.configurations.one]',
        "[mine]\nconfigurations = 3",
        "[mine]\nconfigurations = { one = 3 }",
        "[archives]\nucr = 3\n[mine]\n[mine.configurations.one]",
        "a = " + "[" * 50_000,
        "\n".join(
            [
                '[mine]\ndata = ["synthetic/waves"]',
                *(f'configurations.c{k}.like = "c{k + 1}"' for k in range(3000)),
            ]
        ),
    ],
    ids=lambda text: text[:40],
)
def test_so_is_a_file_of_another_form(bench, text):
    refused(*bench(text))


def test_so_is_a_file_that_is_no_text(bench, tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe\x00")
    ran = CliRunner().invoke(app, ["bench", str(tmp_path / "a.toml"), "--dry-run"])
    refused(ran, 0)


def test_so_are_seeds_on_the_command_line(bench):
    refused(*bench(SUITE.format(suite="", one=""), "--seeds", "100000000"))


@pytest.mark.parametrize("name", sorted(shipped_suites()))
def test_the_suites_of_the_package_are_as_they_should_be(name):
    assert read_suite(name).rows


LINE = json.loads(
    Result(
        task="classification",
        dataset="a",
        fingerprint="0",
        method="ts2vec",
        params={},
        tau_choice="default",
        seed=0,
        metrics={"accuracy": 0.5},
    ).to_json()
)
WRONG = [
    {"task": 3},
    {"dataset": []},
    {"params": "none"},
    {"seed": "0"},
    {"seed": -1},
    {"seed": 0.5},
    {"metrics": []},
    {"metrics": {"accuracy": "high"}},
    {"metrics": {"accuracy": True}},
    {"metrics": {"accuracy": 10**400}},
    {"metrics": 5},
    {"seconds": {"fit": []}},
    {"seconds": None},
    {"versions": ["0.1"]},
    {"groups": {"length": 3}},
    {"groups": None},
    {"created": 20260101},
    {"configuration": None},
    {"trained_together": 0},
    {"error": False},
]


@pytest.mark.parametrize("change", WRONG, ids=lambda change: str(change)[:40])
def test_a_line_of_results_of_another_form_is_named(tmp_path, change):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | change) + "\n")
    with pytest.raises(ValueError, match=r"results\.jsonl, line 2: not a result"):
        read_results(path)
    ran = CliRunner().invoke(app, ["report", str(path), "--out", str(tmp_path / "page.html")])
    refused(ran, 0)


@pytest.mark.parametrize(
    "line", ["[" * 100_000, "3", "[]", "null", '"text"', '{"metrics": {}}', "9" * 5000]
)
def test_so_is_one_that_is_no_result_at_all(tmp_path, line):
    path = tmp_path / "results.jsonl"
    path.write_text(line + "\n" + json.dumps(LINE) + "\n")
    with pytest.raises(ValueError, match="line 1"):
        read_results(path)


def test_lines_without_end_are_not_read(tmp_path):
    with gzip.open(tmp_path / "a.jsonl.gz", "wb") as file:
        for _ in range(64):
            file.write(b" " * 2**20)
    with pytest.raises(ValueError, match="no results"):
        read_results(tmp_path / "a.jsonl.gz")


def test_what_may_be_in_results_is_read(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(LINE | {"metrics": {"a": None, "b": 1}}) + "\n" + "{")
    (result,) = read_results(path)
    assert result.metrics["b"] == 1.0


@pytest.fixture
def plugins(monkeypatch, tmp_path):
    """Modules that a package outside names as its plugins."""
    monkeypatch.setattr(registry, "_failed", {})
    monkeypatch.syspath_prepend(tmp_path)

    def make(**modules):
        points = []
        for name, text in modules.items():
            (tmp_path / f"{name}_things.py").write_text(text)
            points.append(EntryPoint(name, f"{name}_things", registry.PLUGIN_GROUP))
        monkeypatch.setattr(registry, "entry_points", lambda group: points)

    return make


@pytest.mark.parametrize(
    "text",
    [
        "import not_installed",
        "raise RuntimeError('broken')",
        "import sys; sys.exit(3)",
        "this is no Python",
        "assert False",
    ],
)
def test_a_plugin_that_fails_is_named_and_the_others_are_loaded(plugins, text, caplog):
    shapes = Registry("shape")
    shapes.register("cube")("a cube")
    plugins(broken=text, sound="LOADED = True")
    with caplog.at_level(logging.WARNING):
        assert shapes.names() == ["cube"]
        assert Registry("other").names() == []
    (record,) = caplog.records  # once for all registries
    assert "plugin 'broken' (broken_things) cannot be imported and is left out" in record.message
    with pytest.raises(ValueError, match=r"unknown shape 'ball'.*plugin 'broken'"):
        shapes["ball"]
    import sound_things

    assert sound_things.LOADED
