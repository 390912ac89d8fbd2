"""Embeddings come as frames with the ids of the series, where that is asked for."""

import numpy as np
import pandas as pd
import pytest

from softclt import EmbeddingEnsemble, TS2Vec, load_pretrained
from softclt.data import open_series


def small(**parameters):
    return TS2Vec(
        output_dims=4, hidden_dims=4, depth=2, max_iter=1, tau_instance=None, **parameters
    )


@pytest.fixture
def table(rng):
    steps = {"id": np.repeat(["p", "q", "r"], 10), "t": np.tile(range(10), 3)}
    return pd.DataFrame(steps | {"x": rng.normal(size=30)})


@pytest.mark.parametrize("model", [small(), EmbeddingEnsemble(small(), n_members=2)])
def test_rows_of_the_frame_are_called_as_the_series_are(model, table):
    R = model.fit(table).transform(table)
    frame = model.transform(table, as_frame=True)
    assert frame.index.tolist() == ["p", "q", "r"]
    assert frame.index.name == "id"
    assert list(frame.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(frame, R)
    assert model.transform(table["x"].to_numpy().reshape(3, 10), as_frame=True).index[2] == 2


def test_series_that_stay_on_disk_have_their_ids_too(table, tmp_path):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "a.parquet")
    source = open_series(tmp_path / "a.parquet")
    frame = small().fit(source).transform(source, as_frame=True)
    assert frame.index.tolist() == ["p", "q", "r"]


def test_set_output_names_the_rows_of_a_long_table_and_keeps_those_of_a_wide_one(table, rng):
    model = small().set_output(transform="pandas")
    assert model.fit_transform(table).index.tolist() == ["p", "q", "r"]
    wide = pd.DataFrame(rng.normal(size=(3, 10)), index=[7, 8, 9])
    assert model.transform(wide).index.tolist() == [7, 8, 9]


def test_set_output_gives_frames_of_polars(table):
    pl = pytest.importorskip("polars")
    model = small().set_output(transform="polars")
    frame = model.fit_transform(pl.from_pandas(table))
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == list(model.get_feature_names_out())
    with pytest.raises(ValueError, match="frame of pandas, but set_output asks for polars"):
        model.transform(table, as_frame=True)


@pytest.mark.parametrize(
    ("channels", "last"), [("concat", "channel1_mean119"), ("mean", "mean119")]
)
def test_names_of_several_channels_need_no_fit(channels, last, rng):
    X, encoder = rng.normal(size=(3, 2, 20)), load_pretrained("base", channels=channels)
    frame = encoder.transform(X, as_frame=True)
    assert frame.columns[-1] == last
    assert frame.equals(encoder.fit(X).transform(X, as_frame=True))
