"""Labels of some series: from a table of ids, or a column with empty cells."""

import numpy as np
import pandas as pd
import pytest

from softclt.data import DataError
from softclt.data.label_tables import labels_by_id, labels_of, read_partly_labelled

IDS = ["a", "b", "007", "c"]


@pytest.fixture
def write(tmp_path):
    def write(text, name="few.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_labels_go_to_their_ids_and_the_rest_has_none(write):
    path = write("id,label\n007,run\na,None\nb,\n")
    assert labels_by_id(path, IDS) == ["None", None, "run", None]


def test_columns_are_known_by_name_by_option_or_by_being_alone(write):
    assert labels_by_id(write("kind;series\nx;c\n"), IDS) == [None, None, None, "x"]
    text = "machine,note,kind\nc,broken,x\n"
    found = labels_by_id(write(text), IDS, id="machine", label="kind")
    assert found == [None, None, None, "x"]
    with pytest.raises(DataError, match=r"no column 'label'.*note, kind.*--label"):
        labels_by_id(write(text), IDS, id="machine")
    with pytest.raises(DataError, match="no column 'sort'"):
        labels_by_id(write(text), IDS, label="sort")


def test_numbers_of_parquet_are_the_ids_that_a_csv_writes(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": [1.0, 3.0], "label": [2.0, None]})
    frame.to_parquet(tmp_path / "few.parquet")
    assert labels_by_id(tmp_path / "few.parquet", ["0", "1", "2", "3"]) == [None, "2", None, None]


def test_unknown_ids_are_named(write):
    path = write("id,label\na,x\n" + "".join(f"u{i},y\n" for i in range(7)))
    with pytest.raises(DataError, match=r"few.csv: .*'u0', 'u1', .*'u4' and 2 more; .*4, .*'a'"):
        labels_by_id(path, IDS)


def test_an_id_with_two_labels_is_refused_and_one_said_twice_is_not(write):
    with pytest.raises(DataError, match="'a' has the labels 'x' and 'y'"):
        labels_by_id(write("id,label\na,x\na,y\n"), IDS)
    assert labels_by_id(write("id,label\na,x\na,x\n"), IDS)[0] == "x"


def test_an_id_that_two_series_have_cannot_be_labelled(write):
    with pytest.raises(DataError, match="'a' stands for 2 series"):
        labels_by_id(write("id,label\na,x\n"), ["a", "a", "b"])


def test_an_unreadable_table_is_named(write, tmp_path):
    with pytest.raises(DataError, match=r"gone\.csv: no such file"):
        labels_by_id(tmp_path / "gone.csv", IDS)
    with pytest.raises(DataError, match="is no table"):
        labels_by_id(write("x", "few.txt"), IDS)


def test_labels_need_two_classes():
    with pytest.raises(DataError, match="has no labels"):
        labels_of([None, None], "mine")
    with pytest.raises(DataError, match="all 2 labels are 'x'"):
        labels_of(["x", None, "x"], "mine")
    given = labels_of(["9", None, "10", "9"], "mine")
    assert given.codes.tolist() == [0, -1, 1, 0]
    assert given.classes.tolist() == ["9", "10"]
    assert given.counts.tolist() == [2, 1]


def test_a_wide_table_may_have_empty_labels(write):
    table, labels = read_partly_labelled(str(write("id,0,1,label\na,1,2,x\nb,3,4,\n", "s.csv")))
    assert table.X.shape == (2, 1, 2)
    assert labels == ["x", None]


def test_in_a_long_table_one_labelled_step_is_enough(write):
    text = "id,t,v,label\na,0,1,\nb,0,2,y\na,1,3,x\nb,1,4,y\nc,0,1,\n"
    table, labels = read_partly_labelled(str(write(text, "s.csv")))
    assert table.ids == ["a", "b", "c"]
    assert labels == ["x", "y", None]
    with pytest.raises(DataError, match=r"line 4: the label 'z' differs from 'x'"):
        read_partly_labelled(str(write("id,t,v,label\na,0,1,x\nb,0,1,x\na,1,3,z\n", "s.csv")))


def test_without_any_label_there_is_no_list(write):
    assert read_partly_labelled(str(write("id,0,1\na,1,2\n", "s.csv")))[1] is None
    table, labels = read_partly_labelled("synthetic/waves")
    assert labels == table.labels
    np.testing.assert_array_equal(np.unique(labels), np.unique(table.classes))
