"""An index of series: what is put in is found, with its ids, and nothing else changes."""

import numpy as np
import pandas as pd
import pytest

import naive
import softclt
from softclt import SeriesIndex, TS2Vec
from softclt.data import open_series
from softclt.search import index as index_module
from softclt.search.description import DESCRIPTION, IndexFileError

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "random_state": 0}
SMALL |= {"tau_instance": None, "device": "cpu"}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(12, 1, 30)).cumsum(axis=-1)


@pytest.fixture(scope="module")
def model(X):
    return TS2Vec(**SMALL).fit(X)


@pytest.fixture
def index(X, model):
    about = {"region": ["north", "south"] * 6, "area": range(12)}
    return SeriesIndex(model).add(X, ids=[f"s{i}" for i in range(12)], metadata=about)


def same(one, other):
    """Two tables of hits, whose distances may differ by rounding: that of rows found in a batch."""
    pd.testing.assert_frame_equal(one, other, atol=1e-6)


def test_hits_are_those_that_loops_over_embeddings_find(index, X, model):
    queries = X[:3] + 0.1
    hits = index.search(queries, k=4)
    found = naive.nearest_by_cosine(model.transform(queries), model.transform(X), 4)
    assert list(hits.columns) == ["query", "rank", "id", "distance", "region", "area"]
    assert hits["id"].tolist() == [f"s{i}" for own in found for _, i in own]
    np.testing.assert_allclose(hits["distance"], [d for own in found for d, _ in own], atol=1e-6)
    assert hits["query"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert hits["rank"].tolist() == [1, 2, 3, 4] * 3


def test_one_query_and_one_series_are_enough(model, X):
    index = SeriesIndex(model).add(X[:1])
    hits = index.search(X[:1], k=5)
    assert hits[["query", "rank", "id"]].to_numpy().tolist() == [[0, 1, 0]]
    assert hits["distance"][0] == pytest.approx(0, abs=1e-6)


def test_queries_are_called_by_their_ids(index, X):
    frame = pd.DataFrame(X[:2, 0], index=["a", "b"])
    assert index.search(frame, k=1)["query"].tolist() == ["a", "b"]


def test_a_condition_keeps_rows_out_before_the_nearest_are_counted(index, X):
    hits = index.search(X[:2], k=4, where="region = 'south' AND area > 3")
    assert len(hits) == 8
    assert set(hits["region"]) == {"south"}
    assert hits["area"].min() > 3
    none = index.search(X[:2], where="area > 99")
    assert len(none) == 0
    assert list(none.columns) == list(hits.columns)


@pytest.mark.parametrize(
    "where",
    [
        "regio = 1",
        "region = ",
        "",
        "area = 'x'",
        "area",
        "sum(area) > 3",
        "area / 0 = 1",
        "'",
        "\0",
    ],
)
def test_a_bad_condition_is_named_with_the_columns_there_are(index, X, where):
    with pytest.raises(ValueError, match="is no condition on the columns id, start, end, region"):
        index.search(X[:1], where=where)


def test_a_condition_that_would_end_the_process_is_refused(index, X):
    with pytest.raises(ValueError, match="at most 1000"):
        index.search(X[:1], where="area = " + "area + " * 2000 + "area")
    deepest = "area = " + "+".join(["area"] * 198)
    assert len(deepest) < 1000
    index.search(X[:1], where=deepest)


def test_series_added_one_by_one_are_found_like_all_at_once(index, X, model):
    one_by_one = SeriesIndex(model)
    for i, x in enumerate(X):
        about = {"region": [["north", "south"][i % 2]], "area": [i]}
        one_by_one.add(x[None], ids=[f"s{i}"], metadata=about)
    same(one_by_one.search(X, k=5), index.search(X, k=5))
    assert one_by_one.ids() == index.ids()


def test_series_without_ids_get_numbers_that_go_on(model, X):
    index = SeriesIndex(model).add(X[:3]).add(X[3:5])
    assert index.ids() == [0, 1, 2, 3, 4]
    index.delete([1, 4]).add(X[5:6])
    assert index.ids() == [0, 2, 3, 4]  # the largest and one
    with pytest.raises(ValueError, match="type string"):
        index.add(X[:1], ids=["a"])


def test_named_series_need_names_for_those_that_follow(index, X):
    with pytest.raises(ValueError, match="give ids"):
        index.add(X[:1], metadata={"region": ["x"], "area": [1]})


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a", "b", "s3"], "has series 's3' already"),
        (["a", "b", "a"], "'a' stands for several"),
        (["a", "b"], "2 ids for 3 series"),
        (["a", 1, "b"], "types int, str"),
        ([1.5, 2.5, 3.5], "types float"),
        ([True, False, True], "types bool"),
    ],
)
def test_ids_that_are_not_new_or_not_ids_are_refused(index, X, ids, words):
    with pytest.raises(ValueError, match=words):
        index.add(X[:3], ids=ids, metadata={"region": ["x"] * 3, "area": [1] * 3})
    assert len(index) == 12


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (None, "columns none; the index has 'region', 'area'"),
        ({"region": ["x"]}, "give the same"),
        ({"region": ["x"], "area": ["large"]}, "'area' is of type string, in the index"),
        ({"region": ["x", "y"], "area": [1, 2]}, "2 row.s. for 1 series"),
        ({"region": ["x"], "area": [object()]}, "makes no table"),
        ({"region": ["x"], "rank": [1]}, "'rank', a name that the index uses"),
        ({"region": ["x"], "_vector": [1]}, "'_vector', a name that the index uses"),
    ],
)
def test_metadata_of_another_kind_is_refused(index, X, metadata, words):
    with pytest.raises(ValueError, match=words):
        index.add(X[:1], ids=["new"], metadata=metadata)
    assert len(index) == 12


def test_metadata_come_as_frames_rows_or_columns(model, X):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {"region": ["a", None], "area": [1, 2]}
    rows = [{"region": "a", "area": 1}, {"region": None, "area": 2}]
    frame = pd.DataFrame(columns).astype({"region": "category"})
    for metadata in (columns, rows, frame, pl.DataFrame(columns), pa.table(columns)):
        hits = SeriesIndex(model).add(X[:2], metadata=metadata).search(X[:2], k=1)
        assert hits["area"].tolist() == [1, 2]
        assert hits["region"][0] == "a"
        assert pd.isna(hits["region"][1])


def test_update_puts_series_in_place_and_adds_new_ones(index, X):
    new = X[:2] * -1
    about = {"region": ["west"] * 2, "area": [0, 0]}
    index.update(new, ids=["s5", "new"], metadata=about)
    assert sorted(index.ids()) == sorted([f"s{i}" for i in range(12)] + ["new"])
    hits = index.search(new, k=1)
    assert hits["id"].tolist() == ["s5", "new"]
    assert hits["region"].tolist() == ["west", "west"]
    with pytest.raises(ValueError, match="needs ids"):
        index.update(X[:1], metadata={"region": ["x"], "area": [1]})


def test_delete_takes_all_or_none(index, X):
    with pytest.raises(ValueError, match="no series 'x'"):
        index.delete(["s1", "x"])
    assert len(index) == 12
    index.delete(["s1", "s2"])
    assert len(index) == 10
    assert "s1" not in set(index.search(X, k=12)["id"])


def test_ids_are_text_whatever_they_hold(model, X):
    ids = ["o'hara", "'; DROP TABLE rows; --", "ü\n", ""]
    index = SeriesIndex(model).add(X[:4], ids=ids)
    assert index.ids() == ids
    index.update(X[4:6], ids=ids[:2])
    index.delete(ids[1:3])
    assert index.ids() in ([ids[0], ""], ["", ids[0]])


def test_what_fails_while_series_are_read_adds_none_and_says_why(index, X):
    bad = X[:3].copy()
    bad[2] = np.nan
    about = {"region": ["x"] * 3, "area": [1] * 3}
    with pytest.raises(ValueError, match="series 2 of X has no step"):
        index.add(bad, ids=["a", "b", "c"], metadata=about)
    with pytest.raises(ValueError, match="channel"):
        index.add(np.zeros((3, 2, 30)), ids=["a", "b", "c"], metadata=about)
    assert len(index) == 12


def test_a_failure_in_a_later_piece_adds_none(model, X, monkeypatch):
    monkeypatch.setattr(
        "softclt.search.rows.blocks_of", lambda shape: iter([slice(0, 2), slice(2, 4)])
    )
    index = SeriesIndex(model).add(X[:4], ids=list("abcd"))
    bad = X[:4].copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match="series 2 to 3: series 1 of X has no step"):
        index.add(bad, ids=list("efgh"))
    assert index.ids() == list("abcd")
    same(index.search(X[:4], k=4), SeriesIndex(model).add(X[:4], ids=list("abcd")).search(X[:4], 4))


def test_series_on_disk_are_read_piece_by_piece(model, X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    from_disk = SeriesIndex(model).add(open_series(tmp_path / "x.npy"))
    in_memory = SeriesIndex(model).add(X, ids=[str(i) for i in range(12)])
    same(from_disk.search(X[:4]), in_memory.search(X[:4]))


def test_gaps_lengths_constants_and_channels_are_fine(X):
    rng = np.random.default_rng(1)
    series = [rng.normal(size=(2, t)) for t in (30, 17, 2, 40)]
    series[0][:, 5:9] = np.nan
    series.append(np.zeros((2, 20)))
    index = SeriesIndex("base").add(series)
    hits = index.search(series, k=1)
    assert hits["id"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(hits["distance"], 0, atol=1e-6)
    kept = index.series(hits)
    assert [x.shape for x in kept] == [(2, 30), (2, 17), (2, 2), (2, 40), (2, 20)]
    np.testing.assert_array_equal(kept[0], series[0])


def test_dtw_measures_the_nearest_again(index, X):
    hits = index.search(X[:2] + 0.1, k=3, rerank="dtw", candidates=12)
    spread = X.std(axis=-1, keepdims=True)
    Z = (X - X.mean(axis=-1, keepdims=True)) / spread
    D = softclt.pairwise_distance(Z[:2], Z, metric="dtw")
    assert hits["id"].tolist() == [f"s{i}" for own in D for i in np.argsort(own)[:3]]
    np.testing.assert_allclose(hits["distance"], np.sort(D, axis=1)[:, :3].ravel(), atol=1e-6)
    with pytest.raises(ValueError, match="unknown distance"):
        index.search(X[:1], rerank="dwt")


def test_an_index_may_leave_the_values_out(model, X):
    index = SeriesIndex(model, keep_series=False).add(X)
    assert index.search(X[:1], k=1)["id"].tolist() == [0]
    with pytest.raises(ValueError, match="does not keep"):
        index.search(X[:1], rerank="dtw")
    with pytest.raises(ValueError, match="does not keep"):
        index.series(index.search(X[:1]))


def test_an_empty_index_says_so(model, X, tmp_path):
    index = SeriesIndex(model)
    assert len(index) == 0
    assert index.ids() == []
    with pytest.raises(ValueError, match="no series yet"):
        index.search(X[:1])
    with pytest.raises(ValueError, match="no series 'a'"):
        index.delete(["a"])
    index.save(tmp_path / "index").add(X)
    assert len(SeriesIndex.load(tmp_path / "index")) == 12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"window": 1}, "window"),
        ({"stride": 4}, "give window"),
        ({"window": 8, "stride": 0}, "stride"),
        ({"model": 3}, "expected a fitted model"),
        ({"model": "bass"}, "did you mean 'base'"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SeriesIndex(**arguments)


def test_k_is_a_number_from_one_on(index, X):
    with pytest.raises(ValueError, match="k"):
        index.search(X[:1], k=0)
    assert len(index.search(X[:1], k=100)) == 12


def test_a_saved_index_is_the_same_and_goes_on_on_disk(index, X, tmp_path):
    before = index.search(X, k=3)
    index.save(tmp_path / "new" / "index")
    loaded = SeriesIndex.load(tmp_path / "new" / "index")
    same(loaded.search(X, k=3), before)
    loaded.add(X[:1] + 1, ids=["late"], metadata={"region": ["x"], "area": [1]})
    assert len(index) == 13  # both are that folder now
    assert index.facts()["columns"] == {"region": "string", "area": "int64"}


def test_saving_over_another_index_replaces_it(index, model, X, tmp_path):
    old = SeriesIndex(model).add(X[:2]).save(tmp_path / "index")
    (tmp_path / "index" / "mine.txt").write_text("kept")
    index.save(tmp_path / "index")
    assert len(SeriesIndex.load(tmp_path / "index")) == 12
    assert len(old) == 12
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "index").iterdir())
    assert names == ["index.json", "mine.txt", "model", "rows"]


def test_a_save_that_dies_before_its_end_leaves_the_index_before(
    index, model, X, tmp_path, monkeypatch
):
    SeriesIndex(model).add(X[:2]).save(tmp_path / "index")
    with monkeypatch.context() as patched:
        patched.setattr(index_module.Description, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.save(tmp_path / "index")
    assert len(SeriesIndex.load(tmp_path / "index")) == 2
    index.save(tmp_path / "index")  # and takes away what the first one left
    assert len(list((tmp_path / "index").glob("rows-*"))) == 1


def test_another_model_is_refused(index, model, X, tmp_path):
    index.save(tmp_path / "index")
    SeriesIndex.load(tmp_path / "index", model=model)
    other = TS2Vec(**{**SMALL, "random_state": 1}).fit(X)
    with pytest.raises(ValueError, match="is another model"):
        SeriesIndex.load(tmp_path / "index", model=other)
    with pytest.raises(ValueError, match="base-1 is another model"):
        SeriesIndex.load(tmp_path / "index", model="base")


def test_an_index_of_a_model_of_the_package_keeps_its_name_alone(X, tmp_path):
    index = SeriesIndex("base").add(X[:2]).save(tmp_path / "index")
    assert index.facts()["model"] == "base-1"
    assert not list((tmp_path / "index").glob("model*"))
    SeriesIndex.load(tmp_path / "index", model="base-1")
    rich = softclt.load_pretrained("base", readout="rich")
    with pytest.raises(ValueError, match="another model"):
        SeriesIndex.load(tmp_path / "index", model=rich)
    path = tmp_path / "index" / DESCRIPTION
    path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0')[:-1].replace("0", "1"))
    with pytest.raises(IndexFileError):
        SeriesIndex.load(tmp_path / "index")


def test_weights_that_have_changed_are_refused(X, tmp_path):
    SeriesIndex("base").add(X[:2]).save(tmp_path / "index")
    path = tmp_path / "index" / DESCRIPTION
    digest = softclt.load_pretrained("base").digest_
    path.write_text(path.read_text().replace(digest, digest[::-1]))
    with pytest.raises(ValueError, match="base-1 of this version of softclt is another model"):
        SeriesIndex.load(tmp_path / "index")


def test_settings_of_a_model_are_kept_with_it(X, tmp_path):
    rich = softclt.load_pretrained("base", readout="rich")
    before = SeriesIndex(rich).add(X).save(tmp_path / "index").search(X[:3])
    loaded = SeriesIndex.load(tmp_path / "index", model=rich)
    assert loaded.model.readout == "rich"
    same(loaded.search(X[:3]), before)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 9}', "{" * 5000, '{"format": 1}'])
def test_a_damaged_description_is_named(index, tmp_path, text):
    index.save(tmp_path / "index")
    (tmp_path / "index" / DESCRIPTION).write_text(text)
    with pytest.raises(IndexFileError, match="index.json"):
        SeriesIndex.load(tmp_path / "index")


def test_a_description_leads_to_no_other_folder(index, tmp_path):
    index.save(tmp_path / "index")
    path = tmp_path / "index" / DESCRIPTION
    path.write_text(path.read_text().replace('"rows": "rows', '"rows": "../rows'))
    with pytest.raises(IndexFileError, match="expected the name of a table"):
        SeriesIndex.load(tmp_path / "index")


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(IndexFileError, match="is not an index"):
        SeriesIndex.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"):
        SeriesIndex("base").save(tmp_path / "file")
