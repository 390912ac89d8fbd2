"""``softclt index``, ``search`` and ``cluster`` from file to table; slips in one line."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt import SeriesIndex
from softclt.cli import app


def softclt(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def refused(*words):
    """The one line of a refusal."""
    done = softclt(*words, code=2)
    (line,) = done.stderr.strip().splitlines()
    return line


def long_table(names, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {"store": name, "day": t, "price": x, "region": f"r{i % 2}", "area": i}
            for i, name in enumerate(names)
            for t, x in enumerate(rng.normal(size=24).cumsum())
        ]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten series in a long table, three of them once more as queries, an index of all."""
    folder = tmp_path_factory.mktemp("search")
    table = long_table([f"s{i}" for i in range(10)])
    table.to_csv(folder / "sales.csv", index=False)
    query = table[table["store"].isin(["s1", "s4", "s7"])]
    query.to_csv(folder / "query.csv", columns=["store", "day", "price"], index=False)
    softclt("index", folder / "sales.csv", *COLUMNS, *ABOUT, "--out", folder / "index")
    return folder


COLUMNS = ["--id", "store", "--time", "day"]
ABOUT = ["--column", "region", "--column", "area"]


def test_each_query_finds_itself_first(folder, tmp_path):
    out, plot = tmp_path / "hits.csv", tmp_path / "hits.png"
    words = ["search", folder / "index", folder / "query.csv", *COLUMNS, "-k", 3, "--out", out]
    told = json.loads(softclt(*words, "--plot", plot, "--json").stdout)
    assert told == {"out": str(out), "plot": str(plot), "queries": 3, "hits": 9}
    hits = pd.read_csv(out)
    assert list(hits.columns) == ["query", "rank", "id", "distance", "region", "area"]
    first = hits[hits["rank"] == 1]
    assert first["id"].tolist() == first["query"].tolist() == ["s1", "s4", "s7"]
    assert plot.read_bytes()[:4] == b"\x89PNG"


def test_conditions_and_a_second_look_reach_the_search(folder, tmp_path):
    words = ["search", folder / "index", folder / "query.csv", *COLUMNS, "-k", 2]
    out = tmp_path / "hits.parquet"
    more = ["--where", "region = 'r0' AND area > 2", "--rerank", "dtw", "--candidates", 5]
    softclt(*words, *more, "--out", out)
    hits = pd.read_parquet(out)
    assert set(hits["region"]) == {"r0"}
    assert hits["area"].min() > 2
    queries = pd.read_csv(folder / "query.csv")
    index = SeriesIndex.load(folder / "index")
    own = queries[queries["store"] == "s4"]["price"].to_numpy()[None]
    wanted = index.search(own, 2, "region = 'r0' AND area > 2", rerank="dtw", candidates=5)
    assert hits[hits["query"] == "s4"]["id"].tolist() == wanted["id"].tolist()


def test_new_series_are_added_and_old_ones_replaced(folder, tmp_path):
    index = tmp_path / "index"
    words = [*COLUMNS, *ABOUT, "--out", index]
    softclt("index", folder / "sales.csv", *words)
    assert "is not empty" in refused("index", folder / "sales.csv", *words)
    more = tmp_path / "more.csv"
    long_table(["s9", "new"], seed=1).to_csv(more, index=False)
    assert "has series 's9' already" in refused("index", more, *words, "--add")
    told = json.loads(softclt("index", more, *words, "--update", "--json").stdout)
    assert told["series"] == 11
    told = json.loads(softclt("index", more, *words, "--force", "--json").stdout)
    assert told["series"] == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_table_beside_the_data_has_columns_by_id(folder, tmp_path):
    about = tmp_path / "about.csv"
    about.write_text(
        "id,owner\n" + "".join(f"s{i},{'ann' if i < 5 else 'bob'}\n" for i in range(9))
    )
    words = ["index", folder / "sales.csv", *COLUMNS, "--values", "price", "--metadata", about]
    told = json.loads(softclt(*words, "--out", tmp_path / "index", "--json").stdout)
    assert told["columns"] == {"owner": "string"}
    hits = SeriesIndex.load(tmp_path / "index").search(np.arange(24.0)[None], 10, "owner = 'bob'")
    assert sorted(hits["id"]) == ["s5", "s6", "s7", "s8"]


def test_labels_are_columns_and_names_of_data_will_do(tmp_path):
    words = ["index", "synthetic/waves", "--out", tmp_path / "index", "--json"]
    told = json.loads(softclt(*words).stdout)
    assert told["columns"] == {"label": "string"}
    assert told["model"] == "base-1"


def test_a_piece_is_looked_for_in_long_series(tmp_path):
    X = np.random.default_rng(0).normal(size=(2, 1, 300)).cumsum(axis=-1)
    np.save(tmp_path / "long.npy", X)
    np.save(tmp_path / "piece.npy", X[1:, :, 96:128])
    words = ["index", tmp_path / "long.npy", "--window", 32, "--out", tmp_path / "index"]
    softclt(*words)
    out = tmp_path / "hits.csv"
    words = ["search", tmp_path / "index", tmp_path / "piece.npy", "-k", 4, "--out", out]
    softclt(*words, "--plot", tmp_path / "hits.svg")
    hits = pd.read_csv(out)
    assert hits.loc[0, ["id", "start", "end"]].tolist() == [1, 96, 128]
    svg = (tmp_path / "hits.svg").read_text()
    assert svg.count('<g id="axes_') == 5


def test_a_large_file_is_read_in_parts(folder, tmp_path, monkeypatch):
    path = tmp_path / "sales.parquet"
    pd.read_csv(folder / "sales.csv").drop(columns=["region", "area"]).to_parquet(path)
    monkeypatch.setattr("softclt.data.sources.opening.IN_MEMORY", 10)
    about = tmp_path / "about.csv"
    about.write_text("id,owner\n" + "".join(f"s{i},ann\n" for i in range(10)))
    words = ["index", path, *COLUMNS, "--out", tmp_path / "index"]
    assert "give the columns with --metadata" in refused(*words, "--column", "price")
    told = json.loads(softclt(*words, "--metadata", about, "--json").stdout)
    assert told["series"] == 10
    assert SeriesIndex.load(tmp_path / "index").ids() == [f"s{i}" for i in range(10)]


def test_series_become_clusters_with_a_picture(folder, tmp_path):
    out, plot = tmp_path / "clusters.csv", tmp_path / "clusters.png"
    words = ["cluster", folder / "sales.csv", *COLUMNS, "--values", "price", "--out", out]
    told = json.loads(softclt(*words, "-k", 3, "--plot", plot, "--json").stdout)
    table = pd.read_csv(out)
    assert list(table.columns) == ["id", "cluster", "confidence", "distance", "medoid", "odd"]
    assert table["id"].tolist() == [f"s{i}" for i in range(10)]
    assert table["cluster"].value_counts().sort_index().tolist() == [
        c["series"] for c in told["clusters"]
    ]
    assert table[table["medoid"]].sort_values("cluster")["id"].tolist() == [
        c["medoid"] for c in told["clusters"]
    ]
    assert plot.read_bytes()[:4] == b"\x89PNG"
    shown = softclt(*words, "--force").stdout
    assert "best mean silhouette" in shown


INDEX = ["index", "{f}/sales.csv", *COLUMNS, "--values", "price", "--out", "{t}/i"]
SEARCH = ["search", "{f}/index", "{f}/query.csv", *COLUMNS]
CLUSTER = ["cluster", "{f}/sales.csv", *COLUMNS, "--values", "price"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([*INDEX, "--add", "--update"], "give one"),
        ([*INDEX, "--add"], "is not an index"),
        ([*INDEX[:-1], "{f}/index", "--add", "--window", "4"], "are decided in"),
        (
            [*INDEX[:-1], "{f}/index", "--add", "--model", "synthetic"],
            "synthetic-1 is another model",
        ),
        ([*INDEX, "--stride", "4"], "give window"),
        ([*INDEX, "--model", "bass"], "did you mean 'base'"),
        ([*INDEX, "--column", "none"], "no column 'none'"),
        ([*INDEX, "--metadata", "{t}/none.csv"], "no such file"),
        ([*SEARCH, "--out", "{t}/h.txt"], "expected .csv or .parquet"),
        ([*SEARCH, "--out", "{t}/h.csv", "--where", "regio = 1"], "No field named regio"),
        ([*SEARCH, "--out", "{t}/h.csv", "--where", "x" * 600], "at most 500"),
        ([*SEARCH, "--out", "{t}/h.csv", "--rerank", "dwt"], "unknown distance 'dwt'"),
        ([*SEARCH, "--out", "{t}/h.csv", "-k", "0"], "-k"),
        (["search", "{t}", "{f}/query.csv", "--out", "{t}/h.csv"], "is not an index"),
        (["search", "{f}/index", "{t}/none.csv", "--out", "{t}/h.csv"], "no such file"),
        ([*CLUSTER, "-k", "3", "--method", "hdbscan", "--out", "{t}/c.csv"], "leave -k out"),
        ([*CLUSTER, "-k", "99", "--out", "{t}/c.csv"], "k"),
        ([*CLUSTER, "--out", "{t}/c.csv", "--plot", "{t}/c.html"], "expected .png"),
    ],
)
def test_a_slip_is_one_line_and_writes_nothing(folder, tmp_path, words, line):
    assert line in refused(*(word.format(f=folder, t=tmp_path) for word in words))
    assert [path.name for path in tmp_path.iterdir()] == []


def test_without_lancedb_one_is_told_how_to_get_it(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    words = [word.format(f=folder, t=tmp_path) for word in INDEX]
    assert "pip install 'softclt[search]'" in refused(*words)
