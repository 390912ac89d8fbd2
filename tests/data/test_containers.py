"""Series come in the containers of other packages, through the one door, with their ids."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from softclt.data import SeriesTable, from_frame, waves
from softclt.validation import check_series, taken_out

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

IDS = list("abcd")


@pytest.fixture
def X(rng):
    return rng.normal(size=(4, 2, 6))


def long(X):
    """A row a step."""
    n, _, t = X.shape
    columns = {f"c{d}": X[:, d].ravel() for d in range(X.shape[1])}
    return pd.DataFrame({"id": np.repeat(IDS, t), "time": np.tile(range(t), n), **columns})


def nested(X, cell):
    """A row a series, a column a channel."""
    cells = {f"c{d}": [cell(series[d]) for series in X] for d in range(X.shape[1])}
    return {"id": IDS, "time": [list(range(X.shape[2]))] * len(X), **cells}


def tensors(X):
    return pa.FixedShapeTensorArray.from_numpy_ndarray(X)


NAMED = {
    "long pandas": long,
    "long polars": lambda X: pl.from_pandas(long(X)),
    "long polars, lazy": lambda X: pl.from_pandas(long(X)).lazy(),
    "long Arrow": lambda X: pa.Table.from_pandas(long(X)),
    "long Arrow batch": lambda X: pa.RecordBatch.from_pandas(long(X)),
    "indexed pandas": lambda X: long(X).set_index(["id", "time"]),
    "nested pandas": lambda X: pd.DataFrame(nested(X, pd.Series)),
    "nested pandas, ids as index": lambda X: pd.DataFrame(nested(X, list)).set_index("id"),
    "nested polars": lambda X: pl.DataFrame(nested(X, list)),
    "arrays in polars": lambda X: pl.DataFrame({"id": IDS, "c0": X[:, 0], "c1": X[:, 1]}),
    "nested Arrow": lambda X: pa.table(nested(X, list)),
    "cells (D, T)": lambda X: pa.table({"id": IDS, "target": X.tolist()}),
    "tensors": lambda X: pa.table({"id": IDS, "target": tensors(X)}),
    "a table of softclt": lambda X: SeriesTable(X, ids=IDS),
}


class Relation:
    """A table of some package that speaks Arrow."""

    def __init__(self, table):
        self.columns, self._table = table.column_names, table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


NAMED["another package's table"] = lambda X: Relation(pa.Table.from_pandas(long(X)))
UNNAMED = {
    "list of tensors": lambda X: [torch.tensor(x, requires_grad=True) for x in X],
    "frames with named channels": lambda X: [pd.DataFrame(x.T, columns=["u", "v"]) for x in X],
    "aeon's frames": lambda X: [pd.DataFrame(x) for x in X],
    "polars frames": lambda X: [pl.DataFrame(x.T, schema=["u", "v"]) for x in X],
    "column of tensors": lambda X: pa.chunked_array([tensors(X)]),
    "array of tensors": tensors,
}


@pytest.mark.parametrize("name", NAMED)
def test_a_table_holds_the_series_of_the_array_and_their_ids(name, X):
    held = taken_out(NAMED[name](X))
    np.testing.assert_array_equal(check_series(NAMED[name](X)), X)
    assert list(held.ids) == IDS


@pytest.mark.parametrize("name", UNNAMED)
def test_a_collection_without_ids_holds_the_series_of_the_array(name, X):
    np.testing.assert_array_equal(check_series(UNNAMED[name](X)), X)


def test_wide_tables_have_a_row_a_series(X):
    wide = pd.DataFrame(X[:, 0], columns=[f"s{i}" for i in range(6)])
    for table in (wide, pl.from_pandas(wide), pa.Table.from_pandas(wide)):
        np.testing.assert_array_equal(check_series(table), X[:, :1])
        assert taken_out(table).ids is None
    assert taken_out(wide.set_axis(IDS)).ids == IDS
    named = pl.from_pandas(wide.assign(name=IDS, label="u"))
    np.testing.assert_array_equal(check_series(named), X[:, :1])
    assert taken_out(named).ids == IDS
    assert check_series(wide.astype(np.float32)).dtype == np.float32


def test_series_of_a_table_may_differ_in_length_and_have_gaps():
    table = pl.DataFrame({"id": ["a", "b"], "x": [[1.0, None, 3.0], [4.0, 5.0]]})
    expected = [[[1.0, np.nan, 3.0]], [[4.0, 5.0, np.nan]]]
    np.testing.assert_array_equal(check_series(table), expected)
    np.testing.assert_array_equal(check_series(table["x"]), expected)
    assert check_series(torch.ones(2, 3, dtype=torch.bfloat16)).shape == (2, 1, 3)


def test_data_sets_of_hugging_face_are_read_in_any_format_and_order(X):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"item_id": IDS, "target": X.tolist()})
    np.testing.assert_array_equal(check_series(data.with_format("torch")), X)
    np.testing.assert_array_equal(check_series(data["target"]), X)
    some = taken_out(data.select([2, 0]))
    assert some.ids == ["c", "a"]
    np.testing.assert_array_equal(some.series, X[[2, 0]])
    features = datasets.Features({"x": datasets.Array2D((2, 6), "float64")})
    arrays = datasets.Dataset.from_dict({"x": X.tolist()}, features=features)
    np.testing.assert_array_equal(check_series(arrays), X)
    with pytest.raises(ValueError, match=r"splits train, test; pass one of them, X\['train'\]"):
        check_series(datasets.DatasetDict({"train": data, "test": data}))
    with pytest.raises(ValueError, match="nobody knows how many; make a data set"):
        check_series(data.to_iterable_dataset())


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pl.Series([1.0, 2.0]), r"shape \(2,\).*reshape"),
        (pd.DataFrame({"m": ["u", "v"], "x": [1.0, 2.0]}), "column 'm'.*'u'.*call it 'id'"),
        (pd.DataFrame({"a": [[1, 2], [1]], "b": [[1, 2], [1, 2]]}), r"row 1 \({'a': 1, 'b': 2}"),
        (pl.DataFrame({"a": [[1, 2], None]}), "row 1, column 'a': holds None; expected"),
        (pd.DataFrame({"a": [[1, 2], [3, "u"]]}), r"row 1, column 'a': holds \[3, 'u'\]; exp"),
        (pl.DataFrame({"a": [["u"], ["v"]]}), "X cannot be read .*expected columns of numbers"),
        (pl.DataFrame({"a": [[1, 2]], "t": [[2, 1]]}), "times in column 't' of X go back in row 0"),
        (pl.DataFrame({"id": ["u"]}), "no column of values beside 'id'"),
        (pl.DataFrame(), r"0 sample\(s\)"),
        (waves(n_per_class=2, length=9, random_state=0), "two parts; pass X.X_train"),
    ],
)
def test_a_table_without_series_is_refused_in_words(table, words):
    with pytest.raises(ValueError, match=words):
        check_series(table)


def test_columns_can_be_named_in_a_frame_of_any_package(X):
    frame = pl.from_pandas(long(X)).rename({"id": "machine", "time": "when"})
    table = from_frame(frame, id="machine", time="when")
    np.testing.assert_array_equal(table.X, X)
    assert table.ids == IDS
    with pytest.raises(ValueError, match="expected a frame or an Arrow table, got list"):
        from_frame([1, 2])


@pytest.mark.slow
def test_arrays_import_none_of_these_packages():
    code = (
        "import sys, numpy; from softclt.data import containers; from softclt.validation import *"
    )
    code += "\ncheck_series(numpy.zeros((2, 3)))"
    code += "\nassert not {'polars', 'pyarrow', 'datasets'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def indexed(rng, lengths, n_channels=3):
    """A frame as sktime's pd-multiindex: rows indexed by series and time, a column a channel."""
    index = [(f"s{i}", t) for i, length in enumerate(lengths) for t in range(length)]
    columns = [f"channel_{d}" for d in range(n_channels)]
    values = rng.normal(size=(len(index), n_channels))
    return pd.DataFrame(values, pd.MultiIndex.from_tuples(index, names=["id", "time"]), columns)


def test_a_frame_indexed_by_series_and_time_holds_series_of_many_steps(rng):
    frame = indexed(rng, [40] * 12)
    X = check_series(frame)
    np.testing.assert_array_equal(X, frame.to_numpy().reshape(12, 40, 3).swapaxes(1, 2))
    np.testing.assert_array_equal(check_series(frame["channel_1"]), X[:, 1:2])
    assert check_series(frame.astype(np.float32)).dtype == np.float32


def test_its_series_may_differ_in_length_and_keep_their_order(rng):
    frame = indexed(rng, [4, 2, 3])
    X = check_series(frame.loc[["s2", "s0", "s1"]])
    np.testing.assert_array_equal(X[0, :, :3].T, frame.loc["s2"])
    np.testing.assert_array_equal(np.isnan(X[:, 0]).sum(axis=1), [1, 0, 2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.iloc[::-1], "s2.*not sorted by time.*sort_index"),
        (lambda frame: frame.iloc[[0, 0, 1]], "s0.*twice"),
        (lambda frame: pd.concat([frame], keys=["a"]), "3 levels.*two.*droplevel"),
        (lambda frame: frame.assign(channel_0="text"), "not numeric: column 'channel_0'"),
    ],
)
def test_a_frame_that_cannot_be_read_so_is_refused(rng, change, words):
    with pytest.raises(ValueError, match=words):
        check_series(change(indexed(rng, [4, 2, 3])))


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float32", "Float64", "bool"])
def test_frames_of_any_kind_of_numbers_are_their_numbers(dtype):
    values = np.arange(12).reshape(3, 4) % 2
    frame = pd.DataFrame(values).astype(dtype)
    np.testing.assert_array_equal(check_series(frame)[:, 0], values)
    steps = pd.MultiIndex.from_product([["a", "b", "c"], range(4)])
    column = pd.DataFrame({"x": values.ravel()}, index=steps).astype(dtype)
    np.testing.assert_array_equal(check_series(column)[:, 0], values)


def test_missing_numbers_of_nullable_columns_are_nan():
    frame = pd.DataFrame([[1, None], [2, 3]]).astype("Int64")
    np.testing.assert_array_equal(check_series(frame)[:, 0], [[1, np.nan], [2, 3]])
