import numpy as np
import pandas as pd
import pytest

from softclt.data.partial_labels import read_labels


def codes(y, **options):
    return read_labels(y, len(y), **options).codes.tolist()


def test_minus_one_is_no_label_and_classes_are_sorted():
    found = read_labels(np.array([7, -1, 3, 7]), 4)
    assert found.codes.tolist() == [1, -1, 0, 1]
    assert found.classes.tolist() == [3, 7]
    assert found.known.tolist() == [True, False, True, True]


def test_a_class_minus_one_needs_another_marker():
    assert codes([-1, 1, 99, 1], unlabelled=99) == [0, 1, -1, 1]
    assert codes([-1.0, 1.0, np.nan], unlabelled=None) == [0, 1, -1]
    assert codes(["-1", "1", ""], unlabelled=None) == [0, 1, -1]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", "  ", "-1", -1])
def test_texts_have_many_ways_to_say_nothing(missing):
    assert codes(["run", missing, "walk"]) == [0, -1, 1]


def test_series_of_pandas_and_columns_are_read():
    assert codes(pd.Series(["b", None, "a"])) == [1, -1, 0]
    assert codes(pd.Series([1.0, np.nan, 2.0])) == [0, -1, 1]
    assert codes(pd.Series(["b", None, "a"], dtype="category")) == [1, -1, 0]


def test_a_text_can_be_the_marker():
    assert codes(["?", "a", "b"], unlabelled="?") == [-1, 0, 1]
    assert codes([0, 1, 2], unlabelled="0") == [-1, 0, 1]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([-1, -1, -1], "y has no label: all of its 3 entries are -1 or missing"),
        ([-1, 2, 2], "one class only"),
        ([0, 1], "X has 3 series, but y has 2 entries"),
        ([0.5, 1.7, 2.2], "Unknown label type"),
        (["a", 1, 2], "texts and numbers"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_teach_nothing_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        read_labels(y, 3)
