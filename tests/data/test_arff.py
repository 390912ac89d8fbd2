import numpy as np
import pytest

from softclt.data import DataError, read_arff

UNI = (
    "% words\n@RELATION tiny\n@attribute att0 numeric\n@attribute att1 real\n"
    "@attribute target {1, 2}\n@DATA\n"
)
MULTI = (
    "@relation tiny\n@attribute relationalAtt relational\n  @attribute att0 numeric\n"
    "  @attribute att1 numeric\n@end relationalAtt\n@attribute act {run,walk}\n@data\n"
)


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "bad.arff"
        path.write_text(text)
        return path

    return write


def test_univariate_form(write):
    table = read_arff(write(UNI + "1.5,?,2\n3,4,1\n"))
    np.testing.assert_array_equal(table.X, [[[1.5, np.nan]], [[3, 4]]])
    assert table.labels == ["2", "1"]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_relational_form_has_channels_between_backslash_n(write, quote):
    rows = f"{quote}1,2\\n3,?{quote},walk\n{quote}5,6\\n7,8{quote}, 'run'\n"
    table = read_arff(write(MULTI + rows))
    np.testing.assert_array_equal(table.X, [[[1, 2], [3, np.nan]], [[5, 6], [7, 8]]])
    assert table.labels == ["walk", "run"]


def test_without_a_nominal_attribute_there_are_no_labels(write):
    table = read_arff(write("@attribute a numeric\n@attribute b numeric\n@data\n1,2\n"))
    assert table.y is None
    assert table.X.shape == (1, 1, 2)


MALFORMED = {
    "empty": ("", "the file is empty"),
    "no data line": ("@relation a\n", "line 1: the file ends without @data"),
    "no series": (UNI, "line 6: no line follows @data"),
    "no attributes": ("@relation a\n@data\n1\n", "line 2: no numeric attribute"),
    "wrong header": ("id,label\n", "line 1: 'id,label' stands before @data"),
    "text attribute": ("@attribute a string\n@data\nx\n", "line 1: attribute of type 'string'"),
    "label first": ("@attribute a {1}\n@attribute b real\n", "line 2: an attribute follows"),
    "ragged row": (UNI + "1,2,1\n1,1\n", "line 8: 1 values, but the header has 2"),
    "ragged channel": (MULTI + "'1,2\\n3',run\n", "line 8: channel 2 has 1 values"),
    "channels differ": (
        MULTI + "'1,2\\n3,4',run\n'1,2',run\n",
        "line 9: 1 channels, but the first series has 2",
    ),
    "text in a number": (UNI + "1,b,1\n", "line 7: value 2 'b' is no number"),
    "empty label": (UNI + "1,2,\n", "line 7: the label is empty"),
    "no label": (MULTI + "'1,2'\n", "line 8: the label is empty"),
    "foreign label": (UNI + "1,2,9\n", "line 7: the label '9'"),
    "no quotes": (MULTI + "1,2,run\n", "line 8: expected the relational value in quotes"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_arff_names_file_line_and_fault(case, write):
    text, message = MALFORMED[case]
    with pytest.raises(DataError, match=message) as caught:
        read_arff(write(text))
    assert "bad.arff" in str(caught.value)
