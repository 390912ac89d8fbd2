"""The table below an index: large ones are partitioned, and their recall is measured."""

import numpy as np
import pyarrow as pa
import pytest

import naive
from softclt.search import store as store_module
from softclt.search.store import DISTANCE, QUERY, VECTOR, RowStore


def rows_of(V, first=0):
    ids = np.arange(first, first + len(V))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(V.ravel()), V.shape[1])
    return pa.table({"id": ids, "start": np.zeros(len(V), int), VECTOR: vectors, "kind": ids % 100})


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(store_module, "EXACT_BELOW", 500)
    monkeypatch.setattr(store_module, "_MEASURED", 50)


@pytest.fixture
def V(rng):
    V = rng.normal(size=(1000, 12)).astype(np.float32)
    return V / np.linalg.norm(V, axis=1, keepdims=True)


@pytest.fixture
def store(V, tmp_path):
    made = RowStore.create(tmp_path, "rows", rows_of(V).schema)
    made.add(rows_of(V))
    return made


def test_the_nearest_rows_are_those_of_a_loop(V, store):
    found = store.nearest(V[:2], 5, ["id"])
    wanted = naive.nearest_by_cosine(V[:2], V, 5)
    assert found[QUERY].to_pylist() == [0] * 5 + [1] * 5
    assert found["id"].to_pylist() == [i for own in wanted for _, i in own]
    np.testing.assert_allclose(found[DISTANCE], [d for own in wanted for d, _ in own], atol=1e-6)


def test_few_rows_are_compared_one_by_one(store):
    assert store.tend({}) == {"kind": "exact"}


def test_many_rows_are_partitioned_until_the_recall_is_there(V, store, few_are_many):
    how = store.tend({})
    assert (how["kind"], how["rows"], how["partitions"]) == ("ivf_sq", 1000, 8)
    assert how["recall"] >= 0.97
    some = store.nearest(V[:50], 10, ["id"], probes=how["probes"])["id"].to_pylist()
    true = store.nearest(V[:50], 10, ["id"])["id"].to_pylist()
    shared = [len(set(some[i : i + 10]) & set(true[i : i + 10])) for i in range(0, 500, 10)]
    assert np.mean(shared) / 10 >= 0.95
    assert store.tend(how) == how  # nothing is due
    one = store.nearest(V[:50], 10, ["id"], probes=1)["id"].to_pylist()
    assert one != true  # or the measure above would say nothing


def test_a_rare_row_is_found_in_whatever_partition_it_is(V, store, few_are_many):
    store.tend({})
    found = store.nearest(V[:1], 10, ["id", "kind"], "kind = 7", probes=1)
    assert len(found) == 10
    assert set(found["kind"].to_pylist()) == {7}
    true = store.nearest(V[:1], 10, ["id", "kind"], "kind = 7")
    assert found["id"].to_pylist() == true["id"].to_pylist()


def test_rows_that_are_in_no_partition_yet_are_found(V, store, few_are_many, rng):
    how = store.tend({})
    new = -V[:20]
    store.add(rows_of(new, 1000))
    assert store.tend(how) == how  # so few need no work
    assert store.nearest(new, 1, ["id"], probes=how["probes"])["id"].to_pylist() == [
        *range(1000, 1020)
    ]
    more = rng.normal(size=(1200, 12)).astype(np.float32)
    store.add(rows_of(more / np.linalg.norm(more, axis=1, keepdims=True), 2000))
    again = store.tend(how)
    assert again["rows"] == 2220
    assert again["recall"] >= 0.97


def test_many_small_changes_are_joined(V, store, monkeypatch):
    monkeypatch.setattr(store_module, "_MOST_FILES", 5)
    for i in range(8):
        store.add(rows_of(V[:1], 1000 + i))
        store.tend({})
    assert store._table.stats()["fragment_stats"]["num_fragments"] <= 6
    assert len(store) == 1008


def test_changes_take_many_ids_at_once(V, store):
    store.put(rows_of(-V), list(range(1000)))
    assert len(store) == 1000
    assert store.nearest(-V[:3], 1, ["id"])["id"].to_pylist() == [0, 1, 2]
    store.delete(list(range(990)))
    assert store.column("id").to_pylist() == list(range(990, 1000))
