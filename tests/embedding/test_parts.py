"""A folder of Parquet files becomes a folder of parts: each row once, whatever dies in between."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest

from mortal import Moments
from softclt.data import DataError
from softclt.data.sources import ParquetSource
from softclt.embedding import PartsError, Recipe, embed_parts
from softclt.files import held

TESTS = str(Path(__file__).parents[1])
SHA = "0" * 64


def wide(rng, names, length=6):
    frame = pd.DataFrame(rng.normal(size=(len(names), length)), columns=list("abcdefgh")[:length])
    frame.insert(0, "id", names)
    return frame


@pytest.fixture
def data(rng, tmp_path):
    """Three files of 4, 3 and 2 series, one of them in a subfolder."""
    folder = tmp_path / "data"
    (folder / "later").mkdir(parents=True)
    for i, name in enumerate(["b", "a", "later/c"]):
        names = [f"{name}-{j}" for j in range(4 - i)]
        wide(rng, names).to_parquet(folder / f"{name}.parquet", row_group_size=2)
    return folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def embed(data, out, by=None, **options):
    recipe = options.pop("recipe", None) or Recipe(by or Moments())
    columns = options.pop("columns", {})
    source = ParquetSource(data, **columns)
    return embed_parts(recipe, source, out, **{"sha256": SHA} | options)


def manifest(out):
    return json.loads((out / "_manifest.json").read_text())


def rows(out):
    """All rows in the order of the manifest."""
    return pd.concat(
        [pd.read_parquet(out / part["file"]) for part in manifest(out)["parts"]], ignore_index=True
    )


def expected(data):
    parts = [pd.read_parquet(path) for path in sorted(data.rglob("*.parquet"))]
    frame = pd.concat(parts, ignore_index=True)
    values = frame.drop(columns="id").to_numpy()[:, None]
    numbers = pd.DataFrame(Moments().transform(values), columns=["emb_0", "emb_1"])
    return pd.concat([frame[["id"]], numbers], axis=1)


def assert_complete(data, out):
    pd.testing.assert_frame_equal(rows(out), expected(data))
    assert manifest(out)["done"]


def test_each_file_becomes_a_part_with_a_row_for_each_series(data, out):
    made = embed(data, out)
    assert (made.made, made.found, made.damaged, made.series) == (3, 0, [], 9)
    assert_complete(data, out)
    seen = manifest(out)
    assert [part["file"] for part in seen["parts"]] == ["a.parquet", "b.parquet", "later/c.parquet"]
    assert [part["series"] for part in seen["parts"]] == [3, 4, 2]
    assert seen["sha256"] == SHA
    assert seen["series"] == 9
    assert len(pd.read_parquet(out)) == 9  # the manifest is in nobody's way


def test_the_same_call_again_makes_nothing_and_new_files_only_their_parts(data, out, rng):
    embed(data, out)
    assert embed(data, out).made == 0
    wide(rng, ["new"]).to_parquet(data / "0.parquet")
    assert (embed(data, out).made, len(rows(out))) == (1, 10)
    assert_complete(data, out)


def test_missing_and_damaged_parts_are_made_again(data, out):
    embed(data, out)
    (out / "a.parquet").unlink()
    whole = (out / "b.parquet").read_bytes()
    (out / "b.parquet").write_bytes(whole[:-20])
    made = embed(data, out)
    assert (made.made, made.found, made.damaged) == (2, 1, ["b.parquet"])
    assert_complete(data, out)


def test_long_tables_of_one_folder_become_a_row_for_each_series(tmp_path, out, rng):
    (tmp_path / "long").mkdir()
    whole = {}
    for file, ids in {"x": ["s", "r"], "y": ["q"]}.items():
        frames = []
        for id in ids:
            whole[id] = rng.normal(size=int(rng.integers(3, 9)))
            frames.append(pd.DataFrame({"id": id, "t": range(len(whole[id])), "v": whole[id]}))
        pd.concat(frames).to_parquet(tmp_path / "long" / f"{file}.parquet", index=False)
    embed(tmp_path / "long", out)
    found = rows(out)
    assert found["id"].tolist() == ["s", "r", "q"]
    np.testing.assert_allclose(found["emb_0"], [whole[id].mean() for id in found["id"]], rtol=1e-6)


class Windows:
    """Means of windows, as far as a window is there."""

    def encode(self, X, level, window, stride, causal, context):
        starts = range(0, X.shape[-1] - window + 1, stride or window)
        return np.stack([np.nanmean(X[..., s : s + window], -1) for s in starts], axis=1)


def test_windows_longer_than_all_series_of_a_file_end_early_there(tmp_path, out, rng):
    (tmp_path / "w").mkdir()
    for name, n in (("long", 8), ("short", 3)):
        frame = pd.DataFrame({"id": name, "t": range(n), "v": np.arange(n) * 1.0})
        frame.to_parquet(tmp_path / "w" / f"{name}.parquet", index=False)
    embed(tmp_path / "w", out, recipe=Recipe(Windows(), level="window", window=4))
    found = rows(out)
    assert found[["id", "step"]].to_numpy().tolist() == [["long", 0], ["long", 4], ["short", 0]]
    assert found["emb_0"].tolist() == [1.5, 5.5, 1.0]


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_url_is_read_like_a_folder(data, out, kind):
    url = f"file://{data}"
    if kind == "memory":  # a file system that fsspec knows and pyarrow does not
        url = f"memory://{secrets.token_hex(8)}"
        system = fsspec.filesystem("memory")
        for path in data.rglob("*.parquet"):
            system.pipe(f"{url}/{path.relative_to(data).as_posix()}", path.read_bytes())
    embed(url, out)
    assert_complete(data, out)
    assert manifest(out)["source"] == url
    one = out.with_name("one")
    embed(f"{url}/b.parquet", one)
    assert [part["file"] for part in manifest(one)["parts"]] == ["b.parquet"]
    with pytest.raises(DataError, match="no such file or folder"):
        ParquetSource(f"{url}/nothing")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "1" * 64}, "the SHA-256 of the weights is .* there and .* here"),
        ({"model": {"pooling": "max"}}, "the model is null there and"),
        ({"recipe": Recipe(Moments(), causal=True)}, "the level is"),
        ({"columns": {"values": ["a", "b"]}}, "how the tables are read is"),
    ],
    ids=["weights", "model", "level", "columns"],
)
def test_a_folder_of_other_embeddings_is_refused_and_stays(data, out, change, words):
    embed(data, out)
    with pytest.raises(PartsError, match=f"holds other embeddings: {words}"):
        embed(data, out, **change)
    assert_complete(data, out)
    assert embed(data, out, **change, anew=True).made == 3


def test_folders_that_hold_something_else_are_refused(data, out):
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    with pytest.raises(PartsError, match="is not empty, and holds no _manifest"):
        embed(data, out, anew=True)
    (out / "letter.txt").unlink()
    (out / "_manifest.json").write_text("{")
    with pytest.raises(PartsError, match="is damaged"):
        embed(data, out)
    (out / "_manifest.json").write_text('{"format": 9}')
    with pytest.raises(PartsError, match="is not of format 1"):
        embed(data, out)
    with pytest.raises(PartsError, match=r"lies in .*, which is read"):
        embed(data, data / "out")


def test_files_that_change_or_go_after_they_were_embedded_are_told(data, out, rng):
    embed(data, out)
    shutil.copy(data / "b.parquet", data.with_name("kept"))
    wide(rng, ["x"]).to_parquet(data / "b.parquet")
    with pytest.raises(PartsError, match=r"b\.parquet has changed since it was embedded: it had 4"):
        embed(data, out)
    (data / "b.parquet").unlink()
    with pytest.raises(PartsError, match=r"holds b\.parquet, and .* has no such file any more"):
        embed(data, out)
    shutil.copy(data.with_name("kept"), data / "b.parquet")
    assert embed(data, out).made == 0


def test_files_of_other_columns_are_refused_before_any_work(data, out, rng):
    wide(rng, ["x"], length=5).to_parquet(data / "z.parquet")
    with pytest.raises(DataError, match=r"z\.parquet: has the columns .*; expected"):
        embed(data, out)
    assert not out.exists()


def test_two_processes_do_not_write_to_one_folder(data, out):
    with held(out / ".lock"), pytest.raises(PartsError, match="another process writes to"):
        embed(data, out)


def test_what_fails_in_a_part_names_the_file_and_leaves_the_finished_ones(data, out):
    class Fails(Moments):
        def transform(self, X):
            if len(X) == 4:
                raise ValueError("not these")
            return super().transform(X)

    with pytest.raises(ValueError, match=r"b\.parquet, series 0 to 3: not these"):
        embed(data, out, Fails())
    assert sorted(path.name for path in out.rglob("*.parquet")) == ["a.parquet"]
    assert embed(data, out).found == 1
    assert_complete(data, out)


def test_blocks_of_a_part_are_put_together_in_order(data, out, monkeypatch):
    monkeypatch.setattr("softclt.embedding.recipe._AT_ONCE", 1)  # a series at a time
    embed(data, out)
    assert_complete(data, out)


def wait_until(condition, process, seconds=100):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        assert process.poll() is None, "the process ended before"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_process_loses_what_it_was_at_and_the_same_call_goes_on(data, out, rng):
    for i in range(6):
        wide(rng, [f"more-{i}"]).to_parquet(data / f"m{i}.parquet")
    code = (
        f"import sys; sys.path.insert(0, {TESTS!r})\n"
        "from mortal import Moments\n"
        "from softclt.data.sources import ParquetSource\n"
        "from softclt.embedding import Recipe, embed_parts\n"
        f"embed_parts(Recipe(Moments(seconds=0.3)), ParquetSource({str(data)!r}), {str(out)!r}, "
        f"sha256={SHA!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        wait_until(lambda: len(list(out.rglob("[!.]*.parquet"))) >= 2, process)
        process.kill()
    (out / ".a-0123456789ab.parquet").write_bytes(b"begun")
    made = embed(data, out)
    assert made.found >= 2
    assert made.made >= 1
    assert_complete(data, out)
    assert not list(out.rglob(".*"))


@pytest.mark.slow
def test_ray_makes_all_parts_although_a_worker_dies(data, out, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")  # others may need all memory
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [TESTS, known])))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        made = embed(data, out, Moments(marker=str(tmp_path / "died")), ray="auto")
        assert (tmp_path / "died").exists()
        assert made.made == 3
        assert_complete(data, out)
        assert embed(data, out, Moments(), ray="auto").made == 0
        (out / "b.parquet").unlink()
        (data / "b.parquet").write_bytes(b"no table")
        with pytest.raises(DataError, match=r"b\.parquet: is no Parquet file"):
            embed(data, out, ray="auto")
    finally:
        ray.shutdown()
