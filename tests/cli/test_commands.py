"""Every command from file to file, as a user types it, and every slip in one line."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softclt import SemiSupervisedClassifier, load_model
from softclt.cli import app
from softclt.cli.classify import FEW
from softclt.data.synthetic import waves
from softclt.distances import distances
from softclt.tasks import Result, read_results

TINY = [
    word
    for setting in ("output_dims=4", "hidden_dims=4", "depth=1", "max_iter=2")
    for word in ("--set", setting)
]


def softclt(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def refused(*words):
    """The one line of a refusal."""
    result = softclt(*words, code=2)
    lines = result.stderr.strip().splitlines()
    assert result.stdout == ""
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in lines[0]
    return lines[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Long tables of twelve labelled and six new series of two channels, and a fitted model."""
    folder = tmp_path_factory.mktemp("cli")
    data = waves(n_per_class=4, length=20, n_channels=2, random_state=0)
    rows = [
        {"store": f"s{i}", "day": t, "price": x[0, t], "volume": x[1, t], "kind": f"k{y}"}
        for i, (x, y) in enumerate(zip(data.X_train, data.y_train, strict=True))
        for t in range(20 if i else 12)
    ]
    table = pd.DataFrame(rows)
    table.to_csv(folder / "labelled.csv", index=False)
    new = table[table.store.isin([f"s{i}" for i in range(6)])]
    new.drop(columns="kind")[["store", "day", "volume", "price"]].to_csv(
        folder / "new.csv", index=False
    )
    softclt("fit", folder / "labelled.csv", *COLUMNS, "--out", folder / "model", *TINY)
    return folder


COLUMNS = ["--id", "store", "--time", "day", "--label", "kind"]
NEW_COLUMNS = ["--id", "store", "--time", "day", "--values", "price,volume"]


def test_fit_leaves_a_model_that_python_loads(folder):
    model = load_model(folder / "model")
    assert model.n_features_in_ == 2  # the label column is no channel
    assert (model.random_state, model.max_iter, model.progress) == (0, 2, False)


def test_fit_says_what_it_did_in_json(folder, tmp_path):
    words = ["fit", folder / "new.csv", *NEW_COLUMNS, "--out", tmp_path / "m", *TINY, "--json"]
    told = json.loads(softclt(*words).stdout)
    assert (told["series"], told["channels"], told["iterations"]) == (6, 2, 2)


def test_fit_replaces_a_model_only_with_force(folder, tmp_path):
    words = ["fit", folder / "labelled.csv", *COLUMNS, *TINY, "--out", tmp_path / "m"]
    softclt(*words)
    assert "--force" in refused(*words)
    softclt(*words, "--force", "--seed", 5)
    assert load_model(tmp_path / "m").random_state == 5


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_embed_keeps_the_ids(folder, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "new folder" / f"emb.{suffix}"
    softclt("embed", folder / "model", folder / "new.csv", *NEW_COLUMNS, "--out", out)
    table = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
    assert list(table.columns) == ["id", "emb_0", "emb_1", "emb_2", "emb_3"]
    assert list(table["id"]) == [f"s{i}" for i in range(6)]
    assert np.isfinite(table.filter(like="emb_").to_numpy()).all()


def test_embed_writes_npz_without_pickles(folder, tmp_path):
    out = tmp_path / "emb.npz"
    words = ["embed", folder / "model", folder / "new.csv", *NEW_COLUMNS, "--out", out, "--json"]
    assert json.loads(softclt(*words).stdout)["shape"] == [6, 4]
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["embeddings"].shape == (6, 4)
        assert list(arrays["ids"]) == [f"s{i}" for i in range(6)]


def test_embedded_steps_end_where_a_series_ends(folder, tmp_path):
    out = tmp_path / "emb.csv"
    words = ["embed", folder / "model", folder / "new.csv", *NEW_COLUMNS, "--out", out]
    softclt(*words, "--level", "timestamp", "--causal")
    table = pd.read_csv(out)
    assert len(table) == 12 + 5 * 20
    assert list(table[table["id"] == "s0"]["step"]) == list(range(12))
    assert list(table[table["id"] == "s1"]["time"]) == list(range(20))


def test_embedded_windows_begin_a_stride_apart(folder, tmp_path):
    out = tmp_path / "emb.csv"
    words = ["embed", folder / "model", folder / "new.csv", *NEW_COLUMNS, "--out", out]
    softclt(*words, "--level", "window", "--window", 8, "--stride", 6)
    table = pd.read_csv(out)
    assert list(table[table["id"] == "s1"]["step"]) == [0, 6, 12]
    assert list(table[table["id"] == "s0"]["step"]) == [0, 6]


def test_info_describes_a_model(folder):
    told = json.loads(softclt("info", folder / "model", "--json").stdout)
    assert (told["method"], told["channels"], told["iterations"]) == ("ts2vec", 2, 2)
    assert told["params"]["output_dims"] == 4
    assert "output_dims: 4" in softclt("info", folder / "model").stdout


def test_evaluate_writes_a_line_a_seed_and_goes_on_where_it_was(tmp_path):
    out = tmp_path / "results.jsonl"
    words = ["evaluate", "classification", "synthetic/waves", *TINY, "--out", out]
    softclt(*words, "--seeds", 1)
    shown = softclt(*words, "--seeds", 2).stdout
    assert [r.seed for r in read_results(out)] == [0, 1]
    for word in ("accuracy", "±", "svm", "tau default", "2 seed(s)"):
        assert word in shown


def test_evaluate_hands_options_to_the_task():
    words = ["evaluate", "semi_supervised", "synthetic/waves", *TINY, "--seeds", 1, "--json"]
    found = json.loads(softclt(*words, "--option", "shares=[20]", "--option", "rule=plain").stdout)
    (result,) = found["results"]
    assert (result["options"]["shares"], result["options"]["rule"]) == ([20], "plain")
    assert "20.accuracy" in result["metrics"]


def test_evaluate_in_json_is_what_results_are_made_of():
    words = ["evaluate", "classification", "synthetic/waves", *TINY, "--seeds", 1, "--json"]
    told = json.loads(
        softclt(*words, "--preset", "hard", "--probe", "svm", "--probe", "knn").stdout
    )
    result = Result.from_json(json.dumps(told["results"][0]))
    assert result.tau_choice == "hard"
    assert {"svm.accuracy", "knn.accuracy"} <= set(result.metrics)


@pytest.mark.parametrize("classifier", ["svm", "linear"])
@pytest.mark.slow
def test_classify_labels_new_series_whatever_the_order_of_their_columns(
    folder, tmp_path, classifier
):
    out = tmp_path / "predictions.csv"
    words = ["classify", folder / "labelled.csv", folder / "new.csv", *COLUMNS, "--out", out]
    softclt(*words, "--classifier", classifier, *TINY)
    table = pd.read_csv(out)
    assert list(table.columns) == ["id", "label", "confidence", "p_k0", "p_k1", "p_k2"]
    assert list(table["id"]) == [f"s{i}" for i in range(6)]
    assert set(table["label"]) <= {"k0", "k1", "k2"}
    # The new series are training series: an SVM with C = 1e4 knows them by heart.
    assert classifier == "linear" or list(table["label"]) == ["k0"] * 4 + ["k1"] * 2


def test_classify_takes_the_test_part_of_a_named_set(tmp_path):
    out = tmp_path / "predictions.csv"
    softclt("classify", "synthetic/waves", "synthetic/waves", "--out", out)
    truth = waves()
    predicted = pd.read_csv(out)["label"]
    expected = [truth.meta["classes"][label] for label in truth.y_test]
    assert (predicted == expected).mean() > 0.5


def test_a_listing_for_programs_has_exact_names_with_their_tags():
    found = json.loads(softclt("list", "distances", "--json").stdout)["distances"]
    assert list(found) == distances.names()
    assert {name: entry["tags"] for name, entry in found.items()} == {
        name: distances.tags(name) for name in distances.names()
    }
    assert all(entry["about"] for entry in found.values())


def test_list_names_everything_registered():
    names = json.loads(softclt("list", "--json").stdout)
    assert "ts2vec" in names["methods"]
    assert {"dtw", "tam"} <= set(names["distances"])
    assert "sigmoid" in names["assignments"]
    assert "cosine" in names["schedules"]
    assert "classification" in names["tasks"]
    assert "synthetic/waves" in names["data"]
    assert {"hard", "official", "paper"} <= set(names["presets"])
    assert "\nclassification " in softclt("list", "tasks").stdout
    assert {"masked", "bank"} <= set(names["scorers"])
    assert "sigma" in names["thresholds"]


@pytest.mark.parametrize(
    "command", ["", "demo", "fit", "embed", "info", "evaluate", "classify", "list"]
)
def test_every_help_ends_with_examples(command):
    shown = softclt(*command.split(), "--help").stdout
    assert f"softclt {command}".strip() in shown.split("Examples:")[1]


def test_the_version_is_the_package_version():
    from softclt import __version__

    assert softclt("--version").stdout == f"softclt {__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit", "Missing argument 'DATA'"),
        ("fit synthetic/waves", "Missing option '--out'"),
        ("frobnicate", "No such command 'frobnicate'"),
        ("fit nowhere.csv --out {tmp}/m", "nowhere.csv"),
        ("fit ucr/Gunpiont --out {tmp}/m", "GunPoint"),
        (
            "fit synthetic/waves --out {tmp}/m --method ts3vec",
            "unknown method 'ts3vec'; known: ",
        ),
        ("fit synthetic/waves --out {tmp}/m --method ts3vec", "; did you mean 'ts2vec'?"),
        ("fit synthetic/waves --out {tmp}/m --preset offical", "; did you mean 'official'?"),
        ("fit synthetic/waves --out {tmp}/m --set max_itr=3", "; did you mean 'max_iter'?"),
        ("fit synthetic/waves --otu {tmp}/m", "Possible options: --out"),
        ("bench quik --out {tmp}/r", "; did you mean 'quick'?"),
        ("embed bse synthetic/waves --out {tmp}/e.csv", "; did you mean 'base'?"),
        ("embd base", "Did you mean 'embed'?"),
        ("fit synthetic/waves --out {tmp}/m --preset best", "unknown preset 'best'"),
        ("fit synthetic/waves --out {tmp}/m --preset paper", "tau_instance"),
        ("fit synthetic/waves --out {tmp}/m --set lr=-1", "lr is -1"),
        ("fit synthetic/waves --out {tmp}/m --set lr=fast", "lr is 'fast'"),
        ("fit synthetic/waves --out {tmp}/m --set tau=1", "no parameter 'tau'"),
        ("fit synthetic/waves --out {tmp}/m --set tau", "is not KEY=VALUE"),
        ("fit synthetic/waves --out {tmp}/m --seed -1", "--seed"),
        ("embed {tmp} synthetic/waves --out {tmp}/e.csv", "is not a model folder"),
        ("embed {tmp}/gone synthetic/waves --out {tmp}/e.csv", "gone"),
        ("embed {tmp} synthetic/waves --out {tmp}/e.txt", "expected .parquet or .csv or .npz"),
        ("embed {tmp} synthetic/waves --out {tmp}/e.csv --level window", "needs --window"),
        ("embed {tmp} synthetic/waves --out {tmp}/e.csv --window 3", "--level window"),
        ("embed {tmp} synthetic/waves --out {tmp}/e.csv --level day", "day"),
        ("info {tmp}", "is not a model folder"),
        ("evaluate regression synthetic/waves", "unknown task 'regression'"),
        ("evaluate classification synthetic/waves --probe tree", "unknown probe 'tree'"),
        (
            "evaluate semi_supervised synthetic/waves --option shares",
            "--option 'shares' is not KEY=VALUE, e.g. --option shares=[5,20]",
        ),
        ("evaluate classification synthetic/waves --option a=1", "has no option 'a'; known: probe"),
        ("evaluate classification synthetic/waves --out {tmp}/r.csv", "expected .jsonl"),
        ("classify synthetic/waves synthetic/waves --out {tmp}/p.npz", "expected .csv or .parquet"),
        ("list planets", "planets"),
    ],
)
def test_a_slip_is_one_line_and_exit_code_2(words, message, tmp_path):
    before = list(tmp_path.iterdir())
    line = refused(*words.format(tmp=tmp_path).split())
    assert message in line
    assert list(tmp_path.iterdir()) == before


def test_labels_that_are_missing_are_asked_for(folder, tmp_path):
    words = ["classify", folder / "new.csv", folder / "new.csv", "--out", tmp_path / "p.csv"]
    assert "--label" in refused(*words, "--id", "store", "--time", "day")


@pytest.mark.parametrize("level", ["instance", "timestamp"])
def test_embed_reads_a_large_file_in_parts_and_keeps_its_ids(folder, tmp_path, monkeypatch, level):
    table = tmp_path / "new.parquet"
    pd.read_csv(folder / "new.csv").to_parquet(table, row_group_size=40)
    words = ["embed", folder / "model", table, "--id", "store", "--time", "day", "--level", level]
    softclt(*words, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr("softclt.data.sources.opening.IN_MEMORY", 1)
    monkeypatch.setattr("softclt.data.read_series", None)  # not asked
    softclt(*words, "--out", tmp_path / "parts.csv")
    whole, parts = (pd.read_csv(tmp_path / name) for name in ("whole.csv", "parts.csv"))
    pd.testing.assert_frame_equal(parts, whole[parts.columns], rtol=1e-4, atol=1e-5)
    assert parts.id.nunique() > 1


def test_with_few_labels_classify_and_the_classifier_begin_with_the_same_method():
    assert FEW == SemiSupervisedClassifier().method == "ts2vec"


def test_a_model_of_other_channels_is_refused(folder, tmp_path):
    words = ["embed", folder / "model", "synthetic/waves", "--out", tmp_path / "e.csv"]
    assert "fitted with 2" in refused(*words)


def test_a_damaged_results_file_is_named(tmp_path):
    out = tmp_path / "results.jsonl"
    out.write_text("rubbish\n")
    line = refused("evaluate", "classification", "synthetic/waves", *TINY, "--out", out)
    assert "results.jsonl, line 1" in line


def test_a_failure_inside_is_exit_code_1_and_one_line(monkeypatch):
    monkeypatch.setattr("softclt.cli.listing._entries", lambda kind: 1 / 0)
    result = softclt("list", code=1)
    assert "ZeroDivisionError" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    monkeypatch.setenv("SOFTCLT_DEBUG", "1")
    assert isinstance(CliRunner().invoke(app, ["list"]).exception, ZeroDivisionError)


@pytest.mark.parametrize("slip", [lambda kind: int("x"), lambda kind: len(3), lambda kind: kind()])
def test_an_error_that_nobody_meant_is_no_wrong_use(monkeypatch, slip):
    monkeypatch.setattr("softclt.cli.listing._entries", slip)
    result = softclt("list", code=1)
    assert "please report it" in result.stderr
    assert "--debug" in result.stderr


def test_an_interrupt_is_exit_code_130(monkeypatch):
    def interrupt(kind):
        raise KeyboardInterrupt

    monkeypatch.setattr("softclt.cli.listing._entries", interrupt)
    softclt("list", code=130)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from softclt.cli import app; from typer.testing import CliRunner; "
        "assert CliRunner().invoke(app, ['fit', '--help']).exit_code == 0; "
        "heavy = {'torch', 'sklearn', 'pandas', 'numpy', 'matplotlib', 'aeon'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python_m_softclt_is_the_command_line():
    words = [sys.executable, "-m", "softclt", "fit"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("softclt: Missing argument")
