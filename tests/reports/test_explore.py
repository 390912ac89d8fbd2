"""What the page is made of: planes, neighbours, packed series, columns."""

import base64
import json
import re
import sys
import types

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softclt.data import DataError, SeriesTable, read_series
from softclt.reports.explore import explore_page
from softclt.reports.metadata import columns_by_id, columns_of_file, columns_of_series
from softclt.reports.packing import LEVELS, pack_series, quantise, thin
from softclt.reports.projection import (
    TSNE_AT_MOST,
    kept_neighbours,
    nearest_neighbours,
    place,
    standardise,
)


@pytest.fixture
def R(rng):
    """Three clouds of twenty embeddings."""
    return standardise(rng.normal(size=(60, 8)) + np.repeat(np.eye(3, 8) * 9, 20, axis=0))


# Planes and neighbours


@pytest.mark.parametrize("projection", ["pca", "tsne"])
def test_the_same_seed_gives_the_same_plane(R, projection):
    first, second = (place(R, projection, seed=3) for _ in range(2))
    assert first.points.shape == (60, 2)
    np.testing.assert_array_equal(first.points, second.points)


def test_pca_says_how_much_of_the_variance_it_shows(R):
    plane = place(R, "pca")
    share = plane.points.var(axis=0).sum() / R.var(axis=0).sum()
    assert f"hold {100 * share:.0f} %" in plane.words


def test_auto_is_tsne_until_that_takes_too_long(rng):
    assert place(rng.normal(size=(20, 3))).words.startswith("t-SNE")
    assert place(rng.normal(size=(TSNE_AT_MOST + 1, 3))).words.startswith("PCA")


@pytest.mark.parametrize("projection", ["pca", "tsne"])
def test_equal_embeddings_are_one_dot(projection):
    plane = place(np.zeros((5, 4)), projection)
    np.testing.assert_array_equal(plane.points, np.zeros((5, 2)))
    assert "equal" in plane.words


def test_embeddings_of_one_dimension_have_a_plane(rng):
    R = rng.normal(size=(9, 1))
    np.testing.assert_allclose(np.abs(place(R, "pca").points[:, 0]), np.abs(R - R.mean()).ravel())


def test_umap_gets_the_seed_and_is_asked_for_by_name(R, monkeypatch):
    class UMAP:
        def __init__(self, **params):
            self.params = params

        def fit_transform(self, axes):
            assert self.params["random_state"] == 5
            return axes[:, :2]

    module = types.ModuleType("umap")
    module.UMAP = UMAP
    monkeypatch.setitem(sys.modules, "umap", module)
    assert place(R, "umap", seed=5).words.startswith("UMAP")
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ModuleNotFoundError, match="pip install umap-learn"):
        place(R, "umap")


def test_two_series_make_no_map():
    with pytest.raises(ValueError, match="at least 3"):
        place(np.eye(2))


def test_neighbours_are_those_of_a_search_through_all_pairs(rng):
    R = rng.normal(size=(40, 6)) + 1e3  # far off: rounding of squares would show
    rows, distances = nearest_neighbours(R, 5)
    for i in range(40):
        far = [(float(np.sqrt(((R[i] - R[j]) ** 2).sum())), j) for j in range(40) if j != i]
        expected = sorted(far)[:5]
        assert rows[i].tolist() == [j for _, j in expected]
        np.testing.assert_allclose(distances[i], [d for d, _ in expected], rtol=1e-12)


def test_a_twin_is_a_neighbour_but_never_the_series_itself():
    rows, distances = nearest_neighbours(np.array([[1.0], [1.0], [4.0]]), 9)
    assert rows.shape == (3, 2)  # no more than there are others
    assert rows[0, 0] == 1
    assert distances[0, 0] == 0.0
    assert all(i not in row for i, row in enumerate(rows))


def test_a_plane_keeps_all_neighbours_of_itself_and_few_of_noise(rng):
    points = rng.normal(size=(200, 2))
    rows, _ = nearest_neighbours(points, 5)
    assert kept_neighbours(rows, points) == 1.0
    assert kept_neighbours(rows, rng.normal(size=(200, 2))) < 0.1


# Packed series


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False)), min_size=1, max_size=30),
)
def test_a_packed_value_is_off_by_half_a_level_at_most(values):
    X = np.array([[[np.nan if v is None else v for v in values]]])
    packed = quantise(X, X.shape[-1])
    shares = (packed.codes.astype(float) - 1) / LEVELS  # as the page reads them
    back = packed.low[..., None] + shares * (packed.high - packed.low)[..., None]
    back[packed.codes == 0] = np.nan
    np.testing.assert_array_equal(np.isnan(back), np.isnan(X))
    real = ~np.isnan(X)
    half = (packed.high - packed.low).max() / 508
    assert (np.abs(back - X)[real] <= half * (1 + 1e-9) + 1e-9).all()


def test_thinning_keeps_every_peak_and_the_order_of_time(rng):
    X = rng.normal(size=(3, 2, 1000))
    X[1, 0, 777] = 50.0
    thinned = thin(X, 100)
    assert thinned.shape == (3, 2, 100)
    np.testing.assert_array_equal(thinned.min(axis=-1), X.min(axis=-1))
    np.testing.assert_array_equal(thinned.max(axis=-1), X.max(axis=-1))
    assert thinned[1, 0].argmax() in (76, 77, 78)
    rising = thin(np.arange(1000.0).reshape(1, 1, -1), 100)
    assert (np.diff(rising) > 0).all()


def test_short_series_stay_as_they_are_and_gaps_stay_gaps():
    X = np.array([[[1.0, np.nan, 3.0]]])
    assert thin(X, 3) is X
    X = np.concatenate([np.arange(50.0), np.full(50, np.nan)]).reshape(1, 1, -1)
    assert np.isnan(thin(X, 20)[0, 0, 10:]).all()
    assert not np.isnan(thin(X, 20)[0, 0, :10]).any()


def test_series_take_no_more_bytes_than_they_may(rng):
    X = rng.normal(size=(10, 4, 300))
    assert pack_series(X).codes.shape == (10, 4, 200)
    assert pack_series(X, max_bytes=4000).codes.shape == (10, 4, 100)
    few = pack_series(X, max_bytes=320)  # not even 16 points of each channel
    assert few.codes.shape == (10, 2, 16)
    assert few.steps == 300


# Columns


def test_the_loader_s_columns_are_label_part_and_steps():
    series = SeriesTable([[1.0, 2.0], [3.0, 4.0], [5.0]], np.array(["b", "a", "b"]))
    columns = columns_of_series(series, n_train=1)
    assert columns["label"].tolist() == ["b", "a", "b"]
    assert columns["part"].tolist() == ["train", "test", "test"]
    assert columns["steps"].tolist() == [2, 2, 1]
    assert columns_of_series(SeriesTable([[1.0], [2.0]])).columns.tolist() == []


def test_columns_of_a_long_table_have_a_row_a_series(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("id,t,x,kind,load\nb,0,1,hot,1\na,0,2,cold,5\nb,1,3,hot,2\n")
    columns, values = columns_of_file(path, ["kind", "load"], {"id": None})
    assert columns.to_dict("list") == {"kind": ["hot", "cold"], "load": [1.5, 5.0]}
    assert values == ["x"]
    with pytest.raises(DataError, match=r"no column 'kid'; the table has id, t, x, kind, load"):
        columns_of_file(path, ["kid"], {})
    path.write_text("id,t,x,kind\nb,0,1,hot\nb,1,3,cold\n")
    with pytest.raises(DataError, match="'kind' changes within series 'b'"):
        columns_of_file(path, ["kind"], {})
    with pytest.raises(DataError, match="no column of values is left"):
        columns_of_file(path, ["kind", "x"], {})


def test_columns_of_a_wide_table_are_its_own_rows(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("name;site;x0;x1\np;3;1;2\nq;;3;4\n")
    columns, values = columns_of_file(path, ["site"], {})
    assert columns["site"].tolist()[0] == 3.0
    assert columns["site"].isna().tolist() == [False, True]
    assert values == ["x0", "x1"]


def test_columns_by_id_follow_the_series_and_miss_what_is_missing(tmp_path):
    path = tmp_path / "about.csv"
    path.write_text("series,site,age\n007,north,1\n8,south,2\n")
    columns = columns_by_id(path, ["8", "9", "007"])
    assert columns["site"].tolist()[::2] == ["south", "north"]
    assert columns["age"].tolist()[::2] == [2.0, 1.0]
    assert columns.isna().all(axis=1).tolist() == [False, True, False]
    with pytest.raises(DataError, match="the first is '007', that of the data 'x'"):
        columns_by_id(path, ["x"])
    path.write_text("id,site\n1,a\n1,b\n")
    with pytest.raises(DataError, match="'1' is there twice"):
        columns_by_id(path, [1])


def test_a_parquet_table_is_read_too(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "about.parquet"
    pd.DataFrame({"id": [1, 2], "site": ["a", "b"]}).to_parquet(path)
    assert columns_by_id(path, [2, 1])["site"].tolist() == ["b", "a"]


# The page


def data_of(html):
    """The JSON inside a page."""
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def array(text, dtype, *shape):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)


def test_the_page_holds_what_it_was_given(rng, R):
    X = rng.normal(size=(60, 2, 30))
    series = SeriesTable(X, channels=["left", "right"], ids=[f"s{i}" for i in range(60)])
    columns = pd.DataFrame(
        {
            "kind": ["b", "a", None] * 20,
            "age": np.arange(60.0),
            "size": [1.5, 2.0, 2.0] * 20,
        }
    )
    page = explore_page(series, R, columns, model="m", projection="pca", n_neighbors=4)
    data = data_of(page.html)
    assert data["ids"] == series.ids
    assert data["series"]["channels"] == ["left", "right"]
    rows, distances = nearest_neighbours(standardise(R), 4)
    np.testing.assert_array_equal(array(data["neighbors"], "<u4", 60, 4), rows)
    np.testing.assert_allclose(array(data["distances"], "<f4", 60, 4), distances, rtol=1e-6)
    points = array(data["points"], "<u2", 60, 2)
    assert points.min() >= 0
    assert points.max() == 65_535
    kind, age, size = data["columns"]
    assert kind["names"] == ["a", "b"]
    assert array(kind["codes"], "<u4", 60)[:3].tolist() == [2, 1, 0]
    np.testing.assert_array_equal(array(age["values"], "<f8", 60), np.arange(60.0))
    assert size["names"] == ["1.5", "2"]  # few different numbers are categories


def test_the_axis_has_dates_where_times_were_given(rng, R, tmp_path):
    days = pd.date_range("2024-01-30", periods=5).strftime("%d.%m.%Y")
    rows = [
        (f"s{i}", days[k], v) for i in range(60) for k, v in enumerate(rng.normal(size=5 - i % 2))
    ]
    pd.DataFrame(rows, columns=["id", "time", "x"]).to_csv(tmp_path / "long.csv", index=False)
    nothing = pd.DataFrame(index=range(60))
    page = explore_page(read_series(tmp_path / "long.csv"), R, nothing, model="m")
    times = data_of(page.html)["series"]["times"]
    first, last = (array(times[name], "<u4", 60) for name in ("first", "last"))
    assert {times["texts"][k] for k in first} == {"30.01.2024"}
    assert [times["texts"][k] for k in last[:2]] == ["03.02.2024", "02.02.2024"]
    np.testing.assert_allclose(array(times["end"], "<f4", 60)[:2], [1.0, 0.75])
    plain = explore_page(SeriesTable(rng.normal(size=(60, 1, 5))), R, nothing, model="m")
    assert "times" not in data_of(plain.html)["series"]


def test_each_small_plot_has_a_scale_of_its_own_that_can_be_switched_off(rng, R):
    page = explore_page(
        SeriesTable(rng.normal(size=(60, 1, 5))), R, pd.DataFrame(index=range(60)), model="m"
    )
    assert re.search(r'<input id="own-scale" type="checkbox" checked', page.html)


def test_the_page_is_the_same_every_time(rng, R):
    series = SeriesTable(rng.normal(size=(60, 1, 12)))
    first, second = (
        explore_page(series, R, pd.DataFrame(index=range(60)), model="m").html for _ in range(2)
    )
    assert first == second


def test_no_text_of_the_data_can_become_markup(rng, R):
    evil = "</script><img src=x onerror=alert(1)>"
    series = SeriesTable(rng.normal(size=(60, 1, 12)), ids=[f"{evil}{i}" for i in range(60)])
    series.source = evil
    columns = pd.DataFrame({evil: [evil] * 60})
    page = explore_page(series, R, columns, model=evil, projection="pca")
    assert "<img" not in page.html
    assert data_of(page.html)["columns"][0]["names"] == [evil]


def test_ten_thousand_series_fit_into_a_few_megabytes(rng):
    X = rng.normal(size=(10_000, 1, 400)).astype(np.float32)
    page = explore_page(
        SeriesTable(X), rng.normal(size=(10_000, 4)), pd.DataFrame(index=range(10_000)),
        model="m", projection="pca",
    )  # fmt: skip
    assert len(page.html) < 5 * 2**20
