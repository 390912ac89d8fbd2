"""Search in long series: where windows lie, and that a piece is found at its place, once."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import naive
from softclt import SeriesIndex
from softclt.search.windows import pieces_of, rows_in_one_place, without_overlaps


@pytest.mark.parametrize(("window", "stride"), [(4, 1), (4, 3), (5, 5), (3, 7), (20, 2), (2, 1)])
def test_windows_are_those_of_a_loop_and_hold_their_steps(window, stride, rng):
    X = rng.normal(size=(3, 2, 17))
    X[1, :, 9:] = np.nan
    X[2, :, 1:] = np.nan
    lengths = [17, 9, 1]
    found = []
    for owner, start, end, values in pieces_of(X, window, stride):
        for i, first, last, x in zip(owner, start, end, values, strict=True):
            found.append((int(i), int(first), int(last)))
            np.testing.assert_array_equal(x[:, : last - first], X[i, :, first:last])
            assert np.isnan(x[:, last - first :]).all()
    wanted = [
        (i, *w) for i, n in enumerate(lengths) for w in naive.windows(range(n), window, stride)
    ]
    assert found == wanted


def test_windows_without_a_whole_step_are_left_out(rng):
    X = rng.normal(size=(1, 2, 12))
    X[0, 0, 4:8] = np.nan
    (pieces,) = pieces_of(X, 4, 4)
    assert pieces.start.tolist() == [0, 8]


def test_many_windows_come_in_parts(rng, monkeypatch):
    monkeypatch.setattr("softclt.data.preparation._BLOCK", 50)
    X = rng.normal(size=(2, 1, 40))
    parts = list(pieces_of(X, 10, 1))
    assert len(parts) > 5
    assert sum(len(own.owner) for own in parts) == 2 * 31


@pytest.mark.parametrize("seed", range(5))
def test_of_overlapping_hits_the_nearest_stays(seed):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 60, 40)
    hits = [
        (str(name), int(s), int(s) + 10)
        for name, s in zip(rng.integers(0, 3, 40), start, strict=True)
    ]
    table = pd.DataFrame(hits, columns=["id", "start", "end"])
    kept = without_overlaps(table)
    assert list(kept.itertuples(index=False, name=None)) == naive.without_overlaps(hits)


@pytest.mark.parametrize(("window", "stride"), [(8, 1), (8, 3), (8, 8), (8, 9), (9, 4)])
def test_no_more_windows_than_said_overlap_with_one(window, stride):
    places = naive.windows(range(100), window, stride)
    most = max(sum(s < end and start < e for start, end in places) for s, e in places)
    assert most <= rows_in_one_place(window, stride)


def test_a_piece_is_found_at_its_place_once_in_each_series(rng):
    X = rng.normal(size=(3, 1, 400)).cumsum(axis=-1)
    motif = 6 * np.sin(np.linspace(0, 18, 48))
    X[1, 0, 200:248] = X[1, 0, 200] + motif
    index = SeriesIndex("base", window=48, stride=8).add(X, ids=["a", "b", "c"])
    assert len(index) == 3
    hits = index.search(motif[None], k=3)
    assert list(hits.columns) == ["query", "rank", "id", "distance", "start", "end"]
    assert (hits["id"][0], hits["start"][0], hits["end"][0]) == ("b", 200, 248)
    for _, own in hits.groupby("id"):
        places = sorted(zip(own["start"], own["end"], strict=True))
        assert all(one[1] <= other[0] for one, other in pairwise(places))
    (values,) = index.series(hits[:1])
    np.testing.assert_array_equal(values, X[1, :, 200:248])
    again = index.search(motif[None], k=3, rerank="dtw")
    assert again["start"][0] == 200
    assert again["distance"][0] == pytest.approx(0, abs=1e-6)
    assert index.search(motif[None], where="start >= 208").iloc[0]["start"] != 200


def test_updates_and_deletes_take_all_windows_of_a_series(rng):
    X = rng.normal(size=(2, 1, 100)).cumsum(axis=-1)
    index = SeriesIndex("base", window=20, stride=5).add(X, ids=["a", "b"])
    assert index.facts()["rows"] == 2 * 17
    index.update(X[:1, :, :30], ids=["a"])  # has fewer windows now
    assert index.facts()["rows"] == 3 + 17
    index.delete(["b"])
    assert (len(index), index.facts()["rows"]) == (1, 3)
