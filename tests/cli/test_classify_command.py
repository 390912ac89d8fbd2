"""``softclt classify`` from a few labels to predictions and a page, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt.cli import app
from softclt.data.synthetic import waves

TS2VEC = {"output_dims": 8, "hidden_dims": 8, "depth": 2, "max_iter": 4}
TCC = {"widths": "[4,8]", "hidden_dims": 8, "max_iter": 2, "batch_size": 8}
N, LENGTH = 24, 24


def settings(params):
    return [word for pair in params.items() for word in ("--set", "{}={}".format(*pair))]


TINY = settings(TS2VEC)


def classify(*words, code=0):
    result = CliRunner().invoke(app, ["classify", *(str(word) for word in words)])
    assert result.exit_code == code, result.output
    return result


def refused(*words):
    """The one line of a refusal."""
    result = classify(*words, code=2)
    (line,) = result.stderr.strip().splitlines()
    assert result.stdout == ""
    assert line.startswith("softclt: ")
    return line


@pytest.fixture(scope="module")
def truth():
    data = waves(n_per_class=N // 3, length=LENGTH, random_state=0)
    order = np.random.default_rng(0).permutation(N)
    names = [f"w{i:02d}" for i in range(N)]
    kinds = [data.meta["classes"][data.y_train[i]] for i in order]
    return data.X_train[order, 0], pd.DataFrame({"id": names, "label": kinds})


@pytest.fixture(scope="module")
def folder(tmp_path_factory, truth):
    """A wide table, labels of three series a class, and the table with these in a column."""
    folder = tmp_path_factory.mktemp("classify")
    values, kinds = truth
    series = pd.DataFrame(values, columns=[f"v{t}" for t in range(LENGTH)])
    series.insert(0, "id", kinds.id)
    few = kinds.groupby("label").head(3)
    series.to_csv(folder / "series.csv", index=False)
    few.to_csv(folder / "few.csv", index=False)
    partly = series.assign(kind=kinds.label.where(kinds.index.isin(few.index)))
    partly.to_csv(folder / "partly.csv", index=False)
    return folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "predictions.csv"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A table of which every series has its kind, one of them a wrong one; and new series."""
    folder = tmp_path_factory.mktemp("whole")
    data = waves(n_per_class=12, length=32, noise=0.2, random_state=0)
    kinds = np.array(["idle", "run", "walk"])
    given = kinds[data.y_train]
    given[7] = kinds[(data.y_train[7] + 1) % 3]
    table = pd.DataFrame(data.X_train[:, 0]).add_prefix("v")
    table.insert(0, "id", [f"a{i:02d}" for i in range(len(table))])
    table.assign(kind=given).to_csv(folder / "labelled.csv", index=False)
    new = pd.DataFrame(data.X_test[:, 0]).add_prefix("v")
    new.insert(0, "id", [f"n{i:02d}" for i in range(len(new))])
    new.to_csv(folder / "new.csv", index=False)
    return folder, kinds[data.y_train], kinds[data.y_test]


def test_where_all_have_labels_new_series_are_classified_and_slips_are_named(whole, tmp_path):
    pytest.importorskip("matplotlib", reason="pages need the `report` extra")
    pytest.importorskip("jinja2", reason="pages need the `report` extra")
    folder, _, truth = whole
    out, page = tmp_path / "p.csv", tmp_path / "page.html"
    call = [folder / "labelled.csv", folder / "new.csv", "--label", "kind", "--out", out]
    shown = classify(*call, "--report", page)
    table = pd.read_csv(out)
    assert list(table) == ["id", "label", "confidence", "p_idle", "p_run", "p_walk"]
    np.testing.assert_allclose(table.filter(like="p_").sum(axis=1), 1, atol=1e-5)
    assert (table.label == truth).mean() > 0.8
    assert "by leaving out each of 36 labelled series in turn (95 % interval" in shown.stdout
    assert "Labels to look at again, the most doubtful first: a07" in shown.stdout
    text = page.read_text()
    for words in ("Confusion", "Do the confidences hold?", "Labels in doubt", "a07"):
        assert words in text
    told = json.loads(classify(*call, "--force", "--json").stdout)
    assert told["in_doubt"][0]["id"] == "a07"
    assert np.trace(told["confusion"]) == round(told["accuracy"]["value"] * 36)
    assert told["accuracy"]["tested"] == np.sum(told["confusion"]) == 36


def test_labelled_series_themselves_get_what_the_others_say(whole, tmp_path):
    folder, truth, _ = whole
    out = tmp_path / "p.csv"
    classify(folder / "labelled.csv", "--label", "kind", "--out", out)
    table = pd.read_csv(out)
    assert (table.label[7], table.given[7] == truth[7]) == (truth[7], False)
    assert (table.label == table.given).mean() > 0.8


def test_settings_reach_the_classifier_and_a_named_method_is_taken(whole, tmp_path):
    folder, _, _ = whole
    call = [folder / "labelled.csv", folder / "new.csv", "--label", "kind"]
    shown = classify(*call, "--out", tmp_path / "a.csv", "--set", "features=statistics")
    assert "features statistics" in shown.stdout
    shown = classify(*call, "--out", tmp_path / "b.csv", "--method", "ts2vec", *TINY)
    assert "ts2vec with svm" in shown.stdout
    assert "has no parameter 'depth'" in refused(*call, "--out", tmp_path / "c.csv", *TINY[-4:])


def labelled_by(folder, *words):
    return classify(folder / "series.csv", "--labels", folder / "few.csv", *words)


def test_every_id_gets_a_label_with_probabilities_and_a_page(folder, truth, out, tmp_path):
    pytest.importorskip("matplotlib", reason="pages need the `report` extra")
    pytest.importorskip("jinja2", reason="pages need the `report` extra")
    page = tmp_path / "report.html"
    shown = labelled_by(folder, "--out", out, "--report", page, *TINY)
    table = pd.read_csv(out, dtype={"label": str, "given": str})
    classes = sorted(truth[1].label.unique())
    assert list(table) == ["id", "label", "confidence", "given", *(f"p_{c}" for c in classes)]
    assert list(table.id) == list(truth[1].id)
    p = table.filter(like="p_").to_numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(table.confidence, p.max(axis=1))
    few = pd.read_csv(folder / "few.csv", dtype=str).set_index("id").label
    assert table.set_index("id").given.dropna().to_dict() == few.to_dict()
    assert (table.label == truth[1].label).mean() > 0.5
    assert "Accuracy: " in shown.stdout
    assert "10 more labels" in shown.stdout
    text = page.read_text()
    for words in ("How good is it?", "What to label next", "Learning curve", "What came out"):
        assert words in text


def test_a_column_with_empty_cells_is_as_good_as_a_table(folder, out, tmp_path):
    labelled_by(folder, "--out", out, *TINY)
    other = tmp_path / "other.csv"
    classify(folder / "partly.csv", "--label", "kind", "--out", other, *TINY)
    pd.testing.assert_frame_equal(pd.read_csv(out), pd.read_csv(other))


def test_json_has_the_numbers_of_the_report(folder, truth, out):
    told = json.loads(labelled_by(folder, "--out", out, "--next", 4, "--json", *TINY).stdout)
    assert (told["series"], told["labels"]) == (N, 9)
    assert sum(told["predicted"].values()) == N
    assert set(told["given"].values()) == {3}
    few = set(pd.read_csv(folder / "few.csv").id)
    assert len(told["label_next"]) == 4
    assert not few & set(told["label_next"])
    assert told["accuracy"]["tested"] == 9
    assert told["accuracy"]["low"] <= told["accuracy"]["value"] <= told["accuracy"]["high"]
    assert told["learning_curve"][-1]["labels"] == 6
    assert told["report"] is None


@pytest.mark.parametrize("method", ["tstcc", "catcc"])
@pytest.mark.slow
def test_labels_train_the_network_and_a_second_call_takes_what_is_kept(
    folder, out, tmp_path, method
):
    words = ["--method", method, *settings(TCC), "--checkpoint", tmp_path / "kept", "--out", out]
    if method == "catcc":
        words += ["--set", "label_iter=2"]
    labelled_by(folder, *words)
    first = out.read_bytes()
    kept = sorted(p.relative_to(tmp_path) for p in (tmp_path / "kept").rglob("*.safetensors"))
    before = {p: (tmp_path / p).stat().st_mtime_ns for p in kept}
    assert {p.parts[1] for p in kept if p.parts[1][0] == "1"} == {"1-self-supervised"}
    assert any(p.parts[1].startswith("labels-") for p in kept)
    labelled_by(folder, *words, "--force")
    assert out.read_bytes() == first
    assert before == {p: (tmp_path / p).stat().st_mtime_ns for p in kept}


def test_other_labels_start_from_what_was_learned_without_any(folder, out, tmp_path):
    words = ["--checkpoint", tmp_path / "kept", "--out", out, *TINY]
    labelled_by(folder, *words)
    (kept,) = (tmp_path / "kept").rglob("*.safetensors")
    before = kept.stat().st_mtime_ns
    fewer = pd.read_csv(folder / "few.csv").iloc[:-1]
    fewer.to_csv(tmp_path / "fewer.csv", index=False)
    classify(folder / "series.csv", "--labels", tmp_path / "fewer.csv", *words, "--force")
    assert kept.stat().st_mtime_ns == before


def test_labels_that_cannot_be_used_are_refused_in_one_line(folder, out, tmp_path):
    few = tmp_path / "few.csv"
    call = [folder / "series.csv", "--labels", few, "--out", out, *TINY]
    for text, message in {
        "id,label\nw00,a\nx1,b\nx2,a\n": "the data do not have: 'x1', 'x2'",
        "id,label\nw00,a\nw00,b\n": "'w00' has the labels 'a' and 'b'",
        "id,label\nw00,\nw01,\n": "few.csv: has no labels",
        "id,label\nw00,a\nw01,a\n": "all 2 labels are 'a'",
        "\0\1": "is binary",
    }.items():
        few.write_text(text)
        assert message in refused(*call)
    assert "gone.csv: no such file" in refused(*call[:2], "gone.csv", *call[3:])
    assert "give them with --labels" in refused(folder / "series.csv", "--out", out, *TINY)
    assert not out.exists()


def test_a_class_with_one_label_is_a_warning(folder, out, tmp_path):
    few = pd.read_csv(folder / "few.csv").groupby("label").head(1)
    few.to_csv(tmp_path / "few.csv", index=False)
    words = [folder / "series.csv", "--labels", tmp_path / "few.csv", "--out", out, *TINY]
    result = classify(*words)
    assert "one label only for" in result.stderr
    assert "Accuracy: too few labels to tell; no class has two of them." in result.stdout


def test_wrong_options_are_refused_before_any_work(folder, out, tmp_path):
    call = [folder / "series.csv", "--labels", folder / "few.csv", *TINY]
    assert "expected .csv or .parquet" in refused(*call, "--out", tmp_path / "p.txt")
    below_a_file = folder / "few.csv" / "p.csv"
    assert "cannot be written" in refused(*call, "--out", below_a_file)
    line = refused(*call, "--out", out, "--report", tmp_path / "r.pdf")
    assert "--report" in line
    assert "expected .html" in line
    assert "classifier" in refused(*call, "--out", out, "--classifier", "tree")
    assert "unknown method 'x'" in refused(*call, "--out", out, "--method", "x")
    assert not out.exists()
