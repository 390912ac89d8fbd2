"""Dataset, SeriesTable, labels and fingerprints."""

import numpy as np
import pytest

from softclt.data import DataError, Dataset, SeriesTable, encode_labels, fingerprint


def test_numbers_sort_by_value_and_words_by_name():
    assert encode_labels(["10", "9", "-1"])[2] == ["-1", "9", "10"]
    assert encode_labels(["10", "9", "b"])[2] == ["10", "9", "b"]


def test_equal_numbers_are_one_class_however_they_are_written():
    y_train, y_test, classes = encode_labels(["1", "2"], ["2.0", "1.0"])
    assert y_test.tolist() == [1, 0]
    assert classes == ["1", "2"]
    assert y_train.tolist() == [0, 1]


def test_labels_of_the_test_set_alone_come_last_with_a_warning(caplog):
    y_train, y_test, classes = encode_labels(["b", "c"], ["a", "c"])
    assert classes == ["b", "c", "a"]
    assert y_train.tolist() == [0, 1]
    assert y_test.tolist() == [2, 1]
    assert "training set does not have: a" in caplog.text


@pytest.mark.parametrize("missing", [np.nan, ""])
def test_a_missing_label_is_refused(missing):
    with pytest.raises(DataError, match="label 1 is missing"):
        encode_labels(np.array([1.0, missing], dtype=object))


def test_dataset_takes_arrays_and_labels_of_any_kind():
    data = Dataset([[1.0, 2.0], [3.0]], ["x", "w"], np.zeros((1, 2)), ["w"])
    assert data.X_train.shape == (2, 1, 2)
    assert data.y_train.tolist() == [1, 0]
    assert data.meta["classes"] == ["w", "x"]
    assert data.meta["ragged"]
    assert repr(data) == "Dataset(arrays: train 2, test 1, 1 channel, 1-2 steps, 2 classes)"


def test_dataset_with_classes_keeps_its_integers():
    data = Dataset(np.zeros((2, 3)), np.array([2, 0]), meta={"classes": ["a", "b", "c"]})
    assert data.y_train.tolist() == [2, 0]
    assert not data.meta["ragged"]


def test_dataset_refuses_splits_that_do_not_fit():
    with pytest.raises(DataError, match="both splits need the same channels"):
        Dataset(np.zeros((2, 3, 4)), X_test=np.zeros((2, 1, 4)))
    with pytest.raises(DataError, match=r"y_train has shape \(3,\) for 2 series"):
        Dataset(np.zeros((2, 4)), [0, 1, 0])


def test_a_split_of_a_dataset_is_a_table():
    meta = {"ids_train": ["a", "b"], "ids_test": ["c"], "name": "mine"}
    data = Dataset(np.zeros((2, 1, 4)), [0, 1], np.ones((1, 1, 6)), [1], meta)
    assert data.table("test").ids == ["c"]
    both = data.table("all")
    assert both.ids == ["a", "b", "c"]
    assert both.labels == ["0", "1", "1"]
    assert both.X.shape == (3, 1, 6)
    with pytest.raises(DataError, match="mine has no test part"):
        Dataset(np.zeros((2, 4)), meta={"name": "mine"}).table("test")


def test_from_tables_pads_both_splits_to_one_length():
    train = SeriesTable(np.zeros((2, 1, 3)), ["b", "a"], source="train")
    test = SeriesTable(np.ones((1, 1, 5)), ["b"], ids=["q"], times=np.ones((1, 5)), source="test")
    data = Dataset.from_tables(train, test, name="both")
    assert data.X_train.shape == (2, 1, 5)
    assert data.y_test.tolist() == [1]
    assert data.meta["ids_test"] == ["q"]
    assert "ids_train" not in data.meta
    assert data.meta["times_test"].shape == (1, 5)
    with pytest.raises(DataError, match="test: has 2 channel"):
        Dataset.from_tables(train, SeriesTable(np.ones((1, 2, 5)), source="test"))


def test_table_refuses_another_number_of_ids():
    with pytest.raises(DataError, match="1 ids for 2 series"):
        SeriesTable(np.zeros((2, 3)), ids=["a"])


def test_fingerprint_ignores_memory_layout_and_precision_but_no_value(rng):
    X = rng.normal(size=(4, 2, 6)).astype(np.float32)
    X[0, 0, 5] = np.nan
    same = fingerprint(X)
    assert len(same) == 16
    assert fingerprint(np.asfortranarray(X)) == same
    assert fingerprint(X.astype(np.float64)) == same
    assert fingerprint(np.where(np.isnan(X), -np.nan, X)) == same
    assert fingerprint(X.reshape(4, 1, 12)) != same
    changed = X.copy()
    changed[3, 1, 2] += 1e-6
    assert fingerprint(changed) != same


def test_fingerprint_of_a_dataset_sees_labels_and_splits(rng):
    X, y = rng.normal(size=(4, 6)), [0, 1, 1, 0]
    plain = Dataset(X, y).fingerprint
    assert Dataset(X, y).fingerprint == plain
    assert Dataset(X, [1, 0, 1, 0]).fingerprint != plain
    assert Dataset(X).fingerprint != plain
    assert Dataset(X, y, X).fingerprint != plain


def test_fingerprint_is_the_same_on_every_machine():
    assert fingerprint(np.array([[0.0, -0.0, np.nan, 1.5]])) == "156e86c82ae63e16"
