"""Published scores: two forms of files, shares or per cent, names as people write them."""

import pytest

from softclt.reports.baselines import read_baselines
from softclt.reports.metric import Metric

OURS = ["ucr/GunPoint", "ucr/Coffee", "uea/BasicMotions"]


@pytest.fixture
def write(tmp_path):
    def write(text, name="peers.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def read(*paths, methods=(), metric="accuracy"):
    return read_baselines(paths, OURS, Metric(metric), methods)


def test_a_wide_file_has_a_column_for_each_method(write):
    path = write("Resamples:,ROCKET,TS2Vec\ngunpoint,1.0,0.98\nCoffee,0.9,\nElse,0.1,0.2\n")
    rocket, ts2vec = read(path)
    assert rocket.name == "ROCKET"
    assert rocket.scores == {"ucr/GunPoint": {0: 1.0}, "ucr/Coffee": {0: 0.9}}
    assert ts2vec.scores == {"ucr/GunPoint": {0: 0.98}}  # an empty cell is a gap
    assert rocket.published
    assert (rocket.source, rocket.tau_choice) == ("peers.csv", "not stated")


def test_a_long_file_names_source_and_selection(write):
    path = write(
        "method;dataset;accuracy;source;selection;seed\n"
        "Mantis;UCR/gunpoint;99,0;Feofanov 2025;validation;0\n"
        "Mantis;UCR/gunpoint;98,0;Feofanov 2025;validation;1\n"
    )
    (mantis,) = read(path)
    assert mantis.scores == {"ucr/GunPoint": {0: 0.99, 1: 0.98}}
    assert (mantis.source, mantis.tau_choice) == ("Feofanov 2025", "validation")


def test_per_cent_become_shares_even_where_one_is_below_1(write):
    (row,) = read(write("d,A\nGunPoint,97.5\nCoffee,0.5\nBasicMotions,80\n"))
    assert [s[0] for s in row.scores.values()] == pytest.approx([0.975, 0.005, 0.8])


def test_errors_are_taken_as_they_are(write):
    (row,) = read(write("d,A\nGunPoint,0.5\nCoffee,1.5\n"), metric="mse")
    assert row.scores["ucr/Coffee"] == {0: 1.5}


def test_methods_of_the_same_name_are_told_apart_by_their_file(write):
    paths = [write("d,A,B\nCoffee,0.5,0.6\n", name) for name in ("one.csv", "two.csv")]
    assert [row.name for row in read(*paths)] == [
        *("A (one.csv)", "B (one.csv)", "A (two.csv)", "B (two.csv)")
    ]
    assert [row.name for row in read(*paths, methods=["B"])] == ["B (one.csv)", "B (two.csv)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("name\nCoffee\n", "expected a header and lines"),
        ("d,A\nCoffee,good\n", r"line 2, column A: 'good' is no number"),
        ("d,A\nCoffee,\n", "holds no score"),
        ("d,A\nCoffee,0.5\nCoffee,0.6\n", "line 3: A has a second score of Coffee"),
        ("d,A,B\nCoffee,0.5,50\nGunPoint,0.6,60\n", "most scores of A are not above 1"),
        ("d,A\nCoffee,-0.5\n", "score -0.5; expected 0 to 1 or 0 to 100"),
        ("d,A\nCoffee,101\n", "score 101; expected 0 to 1 or 0 to 100"),
        ("dataset,method,f1\nCoffee,A,1\n", "no column 'accuracy' or 'value'"),
    ],
)
def test_what_cannot_be_read_is_named(write, text, message):
    with pytest.raises(ValueError, match=message):
        read(write(text))


def test_an_unknown_method_is_told_the_known_ones(write):
    with pytest.raises(ValueError, match="no baseline is called C; there are A, B"):
        read(write("d,A,B\nCoffee,0.5,0.6\n"), methods=["A", "C"])


def test_two_archives_with_one_name_are_refused(write):
    with pytest.raises(ValueError, match="have the same name without their archive"):
        read_baselines([], ["ucr/Coffee", "uea/Coffee"], Metric("accuracy"))


def test_the_files_that_users_have_can_be_read(shared_folder):
    anchors = shared_folder / "anchors"
    if not anchors.is_dir():
        pytest.skip("no anchors here")
    rows = read(anchors / "Univariate_fold0.csv", anchors / "unishape_ucr128.csv")
    assert len(rows) == 40 + 15
    assert {row.source for row in rows} == {"Univariate_fold0.csv", "unishape_ucr128.csv"}
