"""``softclt explore`` from file to page, and its slips in one line."""

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt.cli import app
from softclt.data.synthetic import waves


def softclt(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def refused(*words):
    """The one line of a refusal."""
    result = softclt(*words, code=2)
    lines = result.stderr.strip().splitlines()
    assert result.stdout == ""
    assert len(lines) == 1, result.stderr
    return lines[0]


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long table of twelve series with a text and a number for each, and a model."""
    folder = tmp_path_factory.mktemp("explore")
    data = waves(n_per_class=4, length=20, random_state=0)
    rows = [
        {"store": f"s{i}", "day": t, "price": x[0, t], "region": f"r{i % 2}", "area": i, "kind": y}
        for i, (x, y) in enumerate(zip(data.X_train, data.y_train, strict=True))
        for t in range(20)
    ]
    pd.DataFrame(rows).to_csv(folder / "sales.csv", index=False)
    tiny = ["output_dims=4", "hidden_dims=4", "depth=1", "max_iter=1", "tau_instance=None"]
    words = [word for setting in tiny for word in ("--set", setting)]
    values = ["--id", "store", "--time", "day", "--values", "price"]
    softclt("fit", folder / "sales.csv", *values, "--out", folder / "model", *words)
    return folder


COLUMNS = ["--id", "store", "--time", "day", "--label", "kind"]
COLORS = ["--column", "region", "--column", "area"]


@pytest.mark.parametrize(
    ("asked", "names"),
    [([], ["cluster found"]), (["--column", "region"], ["region", "cluster found"])],
)
def test_without_labels_clusters_are_found_and_follow_what_was_asked(
    folder, tmp_path, asked, names
):
    words = ["explore", folder / "model", folder / "sales.csv", "--id", "store", "--time", "day"]
    words += ["--values", "price", *asked, "--projection", "pca", "--out", tmp_path / "map.html"]
    assert json.loads(softclt(*words, "--json").stdout)["columns"] == names


def test_a_table_becomes_a_page_with_its_columns(folder, tmp_path):
    out = tmp_path / "new" / "map.html"
    words = ["explore", folder / "model", folder / "sales.csv", *COLUMNS, *COLORS]
    told = json.loads(softclt(*words, "--out", out, "--neighbors", 3, "--json").stdout)
    assert told["series"] == 12
    assert told["columns"] == ["label", "region", "area"]
    assert told["bytes"] == out.stat().st_size
    data = data_of(out)
    assert data["ids"] == [f"s{i}" for i in range(12)]
    assert data["series"]["channels"] == ["price"]  # region and area are no values
    assert data["columns"][1]["names"] == ["r0", "r1"]


def test_the_parts_of_a_data_set_are_a_column(folder, tmp_path):
    out = tmp_path / "map.html"
    words = ["explore", folder / "model", "synthetic/waves", "--projection", "pca", "--out", out]
    softclt(*words, "--split", "all")
    columns = {column["name"]: column for column in data_of(out)["columns"]}
    assert columns["part"]["names"] == ["test", "train"]
    softclt(*words, "--force")
    assert [column["name"] for column in data_of(out)["columns"]] == ["label"]


def test_another_table_gives_colours_by_id(folder, tmp_path):
    about, out = tmp_path / "about.csv", tmp_path / "map.html"
    about.write_text("id,owner\ns3,ann\ns5,bob\n")
    words = ["explore", folder / "model", folder / "sales.csv", *COLUMNS, "--values", "price"]
    softclt(*words, "--colors", about, "--out", out)
    assert data_of(out)["columns"][1]["names"] == ["ann", "bob"]
    about.write_text("id,label\ns3,ann\n")
    words = [*words, "--force"]
    softclt(*words, "--colors", about, "--out", out)
    assert [column["name"] for column in data_of(out)["columns"]] == ["label", "label (2)"]
    about.write_text("id,owner\nx,ann\n")
    assert "no id of it is an id of the data" in refused(*words, "--colors", about, "--out", out)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--out", "map.png"], "expected .html"),
        (["--out", "map.html", "--projection", "mds"], "'mds' is not one of"),
        (["--out", "map.html", "--column", "none"], "no column 'none'"),
        (["--out", "map.html", "--colors", "none.csv"], "no such file"),
        (["--out", "map.html", "--neighbors", "0"], "--neighbors"),
    ],
)
def test_a_slip_is_one_line(folder, tmp_path, monkeypatch, words, line):
    monkeypatch.chdir(tmp_path)
    table = [folder / "sales.csv", *COLUMNS, "--values", "price"]
    assert line in refused("explore", folder / "model", *table, *words)
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_model_is_refused(folder, tmp_path):
    out = tmp_path / "map.html"
    assert "model" in refused("explore", tmp_path, folder / "sales.csv", *COLUMNS, "--out", out)


def test_help_has_examples():
    assert "softclt explore base ucr/GunPoint" in softclt("explore", "--help").stdout
