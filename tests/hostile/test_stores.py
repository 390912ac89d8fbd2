"""Folders of distances that somebody else wrote, or that are damaged."""

import json

import numpy as np
import pytest

from softclt.distances import DistanceStore, open_store
from softclt.distances.manifest import StoreError

X = np.random.default_rng(0).normal(size=(5, 1, 8))


@pytest.fixture
def folder(tmp_path):
    store = DistanceStore.create(tmp_path / "store", X, metric="euclidean")
    store.fill(n_jobs=1)
    store.keep_ids(list("abcde"))
    return tmp_path / "store"


def edit(folder, **changes):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


WRONG = [
    *({"tile": 4.5}, {"tile": 0}, {"tile": -1}, {"tile": "4"}, {"tile": None}, {"tile": True}),
    *({"n_series": "5"}, {"n_series": 5.0}, {"n_series": 0}, {"half": "no"}, {"half": 1}),
    *({"metric": 3}, {"metric": ["dtw"]}, {"window": "0.1"}, {"window": []}, {"params": []}),
    *({"unequal": {}}, {"series": 7}, {"version": {}}, {"precision": None}),
    {"n_series": 10**12, "tile": 1},
    {"n_series": 2**62},
]


@pytest.mark.parametrize("changes", WRONG, ids=str)
def test_a_manifest_of_another_form_is_refused_and_named(folder, changes):
    edit(folder, **changes)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        open_store(folder)


@pytest.mark.parametrize("changes", [{"metric": "unheard"}, {"window": 7.0}, {"params": {"a": 1}}])
def test_a_measure_that_there_is_not_is_refused(folder, changes):
    edit(folder, **changes)
    with pytest.raises(ValueError, match=r"unheard|window|no parameter|not complete|tiles|metric"):
        open_store(folder).matrix()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1}', '["a"]', "3", "{", "null"])
def test_ids_of_another_form_are_refused_and_named(folder, text):
    (folder / "ids.json").write_text(text)
    with pytest.raises(StoreError, match=r"ids\.json"):
        _ = open_store(folder).ids


def test_a_manifest_that_json_chokes_on_is_refused(folder):
    (folder / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(StoreError, match="damaged"):
        open_store(folder)
    with (folder / "manifest.json").open("r+b") as file:
        file.truncate(2**40)  # no space is taken
    with pytest.raises(StoreError, match="longer than any manifest"):
        open_store(folder)
