"""Suites as files: what they build, and what they refuse."""

import pytest

from softclt import EmbeddingEnsemble
from softclt.bench.suites import read_suite, shipped_suites

HEAD = """
[mine]
data = ["synthetic/waves"]
params = { output_dims = 4 }
"""


@pytest.fixture
def suite(tmp_path):
    def read(text, name="", head=HEAD, **options):
        (tmp_path / "mine.toml").write_text(head + text)
        return read_suite(f"{tmp_path / 'mine.toml'}{name}", **options)

    return read


def rows(suite):
    return {row.name: row for row in suite.rows}


@pytest.mark.parametrize("name", shipped_suites())
def test_every_shipped_suite_builds_and_has_an_untrained_row_and_controls(name):
    suite = read_suite(name)
    assert suite.about
    names = set(rows(suite))
    learns = suite.task != "supervised"  # without labels
    assert any(row.model.get_params().get("max_iter") == 0 for row in suite.rows) == learns
    assert {row.control for row in (*suite.rows, *suite.choices)} - {""} <= names
    for row in (*suite.rows, *suite.choices):  # a control is read in the same way
        assert not row.control or rows(suite)[row.control].options == row.options


def test_the_ablations_of_the_paper_are_there():
    wanted = "soft soft-uea temporal instance alpha distance varying hierarchy splits"
    assert {f"ablation-{name}" for name in wanted.split()} <= set(shipped_suites())
    distances = {row.model.distance for row in read_suite("ablation-distance").rows}
    assert distances == {"cosine", "euclidean", "dtw", "fastdtw", "tam"}


def test_parameters_add_up_and_none_stands_for_none(suite):
    read = suite("""
[mine.configurations.hard]
params = { tau_instance = "none", tau_temporal = "none" }
[mine.configurations.wide]
like = "hard"
params = { hidden_dims = 5, distance_params = { window = "none" } }
probe = "ridge"
""")
    hard, wide = (rows(read)[name].model for name in ("hard", "wide"))
    assert (hard.tau_instance, hard.output_dims, hard.hidden_dims) == (None, 4, 64)
    assert (wide.tau_temporal, wide.output_dims, wide.hidden_dims) == (None, 4, 5)
    assert wide.distance_params == {"window": None}
    assert rows(read)["wide"].options == {"probe": "ridge"}


def test_several_probes_are_rows_that_share_a_model_and_find_their_controls(suite):
    read = suite("""
[mine.configurations]
hard = { probe = ["svm", "ridge"], params = { tau_instance = "none" } }
soft = { probe = ["svm", "ridge"], control = "hard" }
""")
    assert list(rows(read)) == ["hard · svm", "hard · ridge", "soft · svm", "soft · ridge"]
    assert rows(read)["soft · ridge"].control == "hard · ridge"
    assert rows(read)["soft · svm"].base == rows(read)["soft · ridge"].base == "soft"


def test_points_of_a_grid_are_named_as_the_file_writes_them(suite):
    read = suite("""
[mine.configurations.soft]
grid = { normalize_weights = [false, true], tau_instance = [5.0] }
""")
    assert [row.name for row in read.rows] == ["soft(false, 5)", "soft(true, 5)"]


def test_a_grid_has_a_row_for_each_point_and_one_for_each_choice(suite):
    read = suite("""
[mine.configurations.hard]
probe = ["ridge", "svm"]
params = { tau_instance = "none", tau_temporal = "none" }
[mine.configurations.soft]
control = "hard"
probe = "ridge"
chosen_probe = ["ridge", "svm"]
grid = { tau_instance = [5.0, 20.0], tau_temporal = [1.0, "none"] }
select = ["train", "oracle"]
""")
    points = ["soft(5, 1)", "soft(5, none)", "soft(20, 1)", "soft(20, none)"]
    assert [row.name for row in read.rows if row.grid == "soft"] == [f"{p} · ridge" for p in points]
    assert rows(read)["soft(5, none) · ridge"].model.tau_temporal is None
    # the oracle knows the test scores of the probes that read all points, no others
    names = [choice.name for choice in read.choices]
    assert names == ["soft train · ridge", "soft train · svm", "soft oracle · ridge"]
    controls = [choice.control for choice in read.choices]
    assert controls == ["hard · ridge", "hard · svm", "hard · ridge"]
    assert {choice.preferred for choice in read.choices} == {2}  # the library's default


BARE = "[mine]\ndata = ['ucr/*']\n"
AMONG = """
[mine.configurations]
hard = { probe = ["svm", "ridge"], params = { tau_instance = "none", tau_temporal = "none" } }
tau = { probe = "ridge", control = "hard", grid = { tau_instance = [5.0, 20.0] } }
rival = { method = "tstcc", probe = "svm" }
[mine.configurations.either]
among = ["tau", "hard"]
control = "hard"
probe = "ridge"
chosen_probe = ["ridge", "svm"]
select = ["train"]
"""


def test_a_choice_among_configurations_has_no_rows_of_its_own(suite):
    read = suite(AMONG, head=BARE)
    assert not any(row.base == "either" for row in read.rows)
    assert [choice.name for choice in read.choices] == [
        "either train · ridge",
        "either train · svm",
    ]
    one = read.choices[1]
    assert one.models == ("tau(5)", "tau(20)", "hard")
    assert one.source == {"among": {"tau": {"tau_instance": [5.0, 20.0]}, "hard": {}}}
    assert (one.control, one.preferred) == ("hard · svm", 1)


def test_who_asks_for_a_choice_alone_gets_what_it_chooses_among(suite):
    read = suite(AMONG, head=BARE, configurations=["either"])
    assert {row.base for row in read.rows} == {"hard", "tau(5)", "tau(20)"}
    assert suite(AMONG, head=BARE, methods_only=["tstcc"]).choices == ()
    assert len(suite(AMONG, head=BARE, methods_only=["ts2vec"]).choices) == 2


def test_select_replaces_the_choices_and_default_means_none(suite):
    text = "[mine.configurations]\ntau = { grid = { tau_instance = [1.0, 2.0] }, "
    text += "select = ['train'] }"
    assert [c.strategy for c in suite(text, select=["unlabelled", "oracle"]).choices] == [
        "unlabelled",
        "oracle",
    ]
    assert suite(text, select=["default"]).choices == ()


def test_replicas_and_members_make_ensembles(suite):
    read = suite("""
[mine.configurations]
four = { replicas = 4, params = { layers = "all" } }
taus = { members = [{ tau_instance = 5.0 }, { tau_instance = "none" }] }
""")
    four, taus = (rows(read)[name].model for name in ("four", "taus"))
    assert isinstance(four, EmbeddingEnsemble)
    assert (four.n_members, four.estimator.layers) == (4, "all")
    assert (taus.n_members, taus.param_list) == (2, [{"tau_instance": 5.0}, {"tau_instance": None}])


def test_presets_device_seeds_and_a_choice_of_configurations(suite):
    text = """
[mine.configurations]
a = { preset = "hard", params = { max_iter = 0 } }
b = { }
"""
    read = suite(text, configurations=["a"], device="cpu", seeds=2, methods_only=["ts2vec"])
    assert list(rows(read)) == ["a"]
    model = rows(read)["a"].model
    assert (model.tau_instance, model.scale, model.max_iter, model.device) == (None, None, 0, "cpu")
    assert read.seeds == 2


def test_a_file_of_several_suites_wants_a_name(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text("[a]\ndata=['x']\n[a.configurations.c]\n[b]\ndata=['y']\n[b.configurations.c]")
    assert read_suite(f"{path}:b").data == ["y"]
    with pytest.raises(ValueError, match=r"known: a, b; say which: .*two.toml:NAME"):
        read_suite(str(path))


def test_paths_are_relative_to_the_suites_file(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("[a]\ndata=['./series.npz', 'ucr/X']\n[a.configurations.c]")
    assert read_suite(str(path)).data == [str(tmp_path / "series.npz"), "ucr/X"]


def test_a_data_set_has_parameters_of_its_own_in_all_rows_that_know_them(suite):
    read = suite(
        """
[mine.sets]
"ucr/*" = { lr = 0.1, max_segments = 5 }
"ucr/Wafer" = { lr = 0.2 }
[mine.configurations]
one = {}
two = { replicas = 2 }
other = { method = "tstcc", params = { widths = [4] } }
""",
        head=BARE,
    )
    assert rows(read)["one"].model.lr == 1e-3
    assert read.on_set("uea/Wafer") is read
    some, wafer = rows(read.on_set("ucr/Adiac")), rows(read.on_set("ucr/Wafer"))
    assert (some["one"].model.lr, wafer["one"].model.lr) == (0.1, 0.2)
    assert wafer["two"].model.estimator.lr == 0.2
    assert (wafer["other"].model.lr, wafer["other"].model.max_segments) == (0.2, 5)
    assert rows(read)["other"].model.max_segments == 8  # the suite itself stays as it is
    few = read_suite("few-labels", configurations=["ts2vec soft"])  # none that has its views
    assert few.on_set("ucr/Wafer").rows == few.rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 1", "the suite 'mine' has no key 'colour'; known: about, "),
        ("", "the suite 'mine' has no configurations"),
        ("[mine.configurations]\na = { like = 'b' }", "'a' is like 'b'; expected another one of a"),
        ("[mine.configurations]\na = { like = 'a' }", "'a' is like 'a'"),
        (
            "[mine.configurations]\na = { parms = {} }",
            "'a' has no key 'parms'; known: among, chosen_",
        ),
        ("[mine.configurations]\na = { params = { tau = 1 } }", "'a': TS2Vec has no parameter 'ta"),
        ("[mine.configurations]\na = { params = { lr = -1 } }", "configuration 'a': lr is -1"),
        ("[mine.configurations]\na = { method = 'x' }", "unknown method 'x'"),
        ("[mine.configurations]\na = { control = 'b' }", "the control of 'a' is 'b'; expected one"),
        (
            "[mine.configurations]\na = { control = 'b' }\nb = { probe = 'knn' }",
            "'a' is read with {'probe': 'svm'}, its control 'b' is not",
        ),
        (
            "[mine.configurations]\na = { grid = { lr = [0.1] }, select = ['best'] }",
            "select is 'best'; expected one of 'train', 'unlabelled', 'oracle'",
        ),
        (
            "[mine.configurations]\na = {}\nb = { among = ['a'] }",
            "'b' chooses among others; it needs their names, a select, and no grid",
        ),
        (
            "[mine.configurations]\na = { among = ['b'], select = ['train'] }",
            "that 'a' chooses among is 'b'; expected one of ",
        ),
        (
            "[mine.configurations]\na = {}\n"
            "b = { among = ['a'], probe = 'knn', select = ['oracle'] }",
            "'b' has an oracle of {'probe': 'knn'}; 'a' is not read with that",
        ),
        ("task = 'sorting'\n[mine.configurations.a]", "unknown task 'sorting'"),
        (
            "[mine.sets]\n'ucr/*' = { widths = [4] }\n[mine.configurations.a]",
            "the suite 'mine' sets 'widths' on ucr/\\*; no method of it has that",
        ),
    ],
)
def test_what_a_suite_gets_wrong_is_told_before_anything_runs(suite, text, message):
    with pytest.raises(ValueError, match=message):
        suite(text)


def test_an_unknown_suite_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown suite 'quik'; known: quick, ucr, .*FILE\.toml"):
        read_suite("quik")
    with pytest.raises(ValueError, match="a configuration is 'x'; expected one of 'untrained'"):
        read_suite("quick", configurations=["x"])


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("guess", "select is 'guess'; expected one of 'train', 'unlabelled', 'oracle', 'default'"),
        ("train", "nothing to select: no configuration of 'quick' that is run has a grid"),
    ],
)
def test_a_selection_that_cannot_be_made_is_refused(select, message):
    with pytest.raises(ValueError, match=message):
        read_suite("quick", select=[select])
    assert read_suite("quick", select=["default"]).choices == ()
