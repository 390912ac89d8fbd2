"""The study of criteria (benchmarks/choosing.py) on made-up lines."""

import importlib.util
import itertools
import json
import sys
from pathlib import Path

import pytest

from softclt.tasks import Result

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "choosing.py"
DEFAULT = {"tau_instance": 20.0, "tau_temporal": 1.0}
HARD = {"tau_instance": None, "tau_temporal": None}
SHARP = {"tau_instance": 5.0, "tau_temporal": 1.0}
SETS = [f"ucr/Set{i}" for i in range(9)]


@pytest.fixture(scope="module")
def choosing():
    spec = importlib.util.spec_from_file_location("choosing", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["choosing"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["choosing"]


def line(dataset, seed, taus, metrics, **fields):
    params = {**taus, "alpha": 0.5, "layers": "last", "random_state": seed}
    known = {"task": "classification", "fingerprint": "", "method": "ts2vec"}
    known |= {"tau_choice": "fixed", "probe": "ridge"}
    return Result(dataset=dataset, seed=seed, params=params, metrics=metrics, **known | fields)


@pytest.fixture
def lines():
    """Sharp is best and `good` knows it; `bad` likes hard, which is worst; `same` has no view."""
    found = []
    for dataset, seed in itertools.product(SETS, range(3)):
        base = 0.5 + 0.01 * SETS.index(dataset) + 0.001 * seed
        for k, taus in enumerate([HARD, DEFAULT, SHARP]):
            said = {"loo": 0.9, "loo_knn": k, "criterion.good": k, "criterion.bad": -k}
            metrics = {"accuracy": base + 0.1 * k, "criterion.same": 1.0, **said}
            found.append(line(dataset, seed, taus, metrics))
    return found


def by_choice(rows):
    return {row["choice"]: row for row in rows[1:]}


def test_the_better_criterion_is_found_on_one_half_and_reported_on_the_other(choosing, lines):
    rows = choosing.report(lines, "accuracy", DEFAULT)
    halves = rows[0]["chosen_on"], rows[0]["reported_on"]
    assert sorted(halves[0] + halves[1]) == SETS
    assert [len(half) for half in halves] == [4, 5]
    found = by_choice(rows)
    assert found["unlabelled: good"]["over_default"] == pytest.approx(10.0)
    assert found["unlabelled: good"]["over_hard"] == pytest.approx(20.0)
    assert found["unlabelled: good"]["over_hard_95"] == pytest.approx([20.0, 20.0])
    assert found["oracle (by the test set)"]["over_default"] == pytest.approx(10.0)
    assert found["(bad)"]["over_default"] == pytest.approx(-10.0)
    assert "over_default" not in found["default"]
    assert found["default"]["sets"] == 5


def test_among_equals_the_default_is_taken(choosing, lines):
    found = by_choice(choosing.report(lines, "accuracy", DEFAULT))
    assert found["train"]["over_default"] == 0.0
    assert found["(same)"]["over_default"] == 0.0


def test_accuracies_of_the_reported_half_cannot_change_the_criterion(choosing, lines):
    first = choosing.report(lines, "accuracy", DEFAULT)
    reported = first[0]["reported_on"]
    for one in lines:
        if one.dataset in reported:
            one.metrics["accuracy"] = 1.0 - one.metrics["accuracy"]
    again = choosing.report(lines, "accuracy", DEFAULT)
    assert again[0] == first[0]
    assert by_choice(again)["unlabelled: good"]["over_default"] == pytest.approx(-10.0)


def test_the_halves_depend_on_the_names_and_the_seed_alone(choosing):
    assert choosing.halves(SETS) == choosing.halves(SETS[::-1])
    assert choosing.halves(SETS) != choosing.halves(SETS, seed=1)


def test_seeds_without_the_whole_grid_are_left_out(choosing, lines):
    torn = lines[1:]  # the first set has no hard member under its first seed
    scores = choosing.grid_of(torn, "accuracy")
    assert sorted(scores[SETS[0]]) == [1, 2]
    assert sorted(scores[SETS[1]]) == [0, 1, 2]


def test_hard_may_be_a_row_beside_the_grid(choosing, lines):
    for one in lines:
        if one.params["tau_instance"] is None:
            del one.metrics["loo"]
    found = by_choice(choosing.report(lines, "accuracy", DEFAULT))
    assert found["train"]["over_hard"] == pytest.approx(10.0)
    assert all(
        len(m) == 2 for s in choosing.grid_of(lines, "accuracy").values() for m in s.values()
    )


def test_rows_that_were_chosen_or_read_otherwise_are_no_members(choosing, lines):
    other = line(SETS[0], 0, SHARP, {"accuracy": 0.1, "loo": 1.0}, tau_choice="oracle")
    svm = line(SETS[0], 0, SHARP, {"accuracy": 0.1, "loo": 1.0}, probe="svm")
    all_lines = [*lines, other, svm]
    with pytest.raises(ValueError, match="two lines for ucr/Set0"):
        choosing.grid_of(choosing.wanted_lines(all_lines, "accuracy"), "accuracy")
    assert choosing.wanted_lines(all_lines, "accuracy", probe="ridge") == lines
    assert choosing.wanted_lines(all_lines, "accuracy", where={"layers": "all"}) == []


def test_the_script_prints_json_and_says_what_is_missing(
    choosing, lines, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "results.jsonl"
    file.write_text("".join(one.to_json() + "\n" for one in lines))
    monkeypatch.setattr("sys.argv", ["choosing.py", str(file), "--where", "layers=last"])
    choosing.main()
    assert len(capsys.readouterr().out.splitlines()) == 1 + 8
    monkeypatch.setattr("sys.argv", ["choosing.py", str(file), "--sets", SETS[1], "*" + SETS[2]])
    choosing.main()
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert {*first["chosen_on"], *first["reported_on"]} == {SETS[1], SETS[2]}
    monkeypatch.setattr("sys.argv", ["choosing.py", str(file), "--probe", "svm"])
    with pytest.raises(SystemExit):
        choosing.main()
    assert "no line of a grid" in capsys.readouterr().err


def test_controls_are_read_by_the_probe_of_the_grid(choosing, lines):
    other = [line(d, s, HARD, {"accuracy": 0.0}, probe="svm") for d in SETS for s in range(3)]
    found = by_choice(choosing.report([*lines, *other], "accuracy", DEFAULT))
    assert found["unlabelled: good"]["over_hard"] == pytest.approx(20.0)


def test_many_halvings_count_what_is_best_and_average_its_gain(choosing, lines):
    criterion, member = choosing.halvings(lines, "accuracy", DEFAULT, 20)
    assert criterion["best_on_first_half"] == {"good": 20}
    assert member["best_on_first_half"] == {json.dumps(SHARP): 20}
    for row in (criterion, member):
        assert (row["over_default"], row["over_default_sd"]) == (10.0, 0.0)
        assert (row["over_hard"], row["over_hard_sd"]) == (20.0, 0.0)


def test_a_pair_is_compared_on_all_sets_and_on_each_half(choosing):
    scores = {"one": 0.75, "other": 0.5}
    results = [
        line(dataset, seed, HARD, {"accuracy": score}, configuration=name)
        for dataset in SETS
        for seed in range(2)
        for name, score in scores.items()
    ]
    results.append(line(SETS[0], 7, HARD, {"accuracy": 0.0}, configuration="one"))  # no partner
    rows = choosing.compare(results, "accuracy", "one", "other")
    assert [(row["half"], row["sets"]) for row in rows] == [("all", 9), ("first", 4), ("second", 5)]
    assert all((row["gain"], row["gain_95"]) == (25.0, [25.0, 25.0]) for row in rows)
    mean_of_both = choosing.compare(results, "accuracy", "o*", "other")
    assert [row["gain"] for row in mean_of_both] == [12.5, 12.5, 12.5]
    with pytest.raises(ValueError, match="'one' and 'none' share 0"):
        choosing.compare(results, "accuracy", "one", "none")


def test_the_best_of_named_rows_on_one_half_is_held_to_others_on_the_second(choosing):
    scores = {"soft(1)": 0.75, "soft(2)": 0.625, "hard": 0.5}
    results = [
        line(dataset, seed, HARD, {"accuracy": score}, configuration=name)
        for dataset in SETS
        for seed in range(2)
        for name, score in scores.items()
    ]
    results.append(line("ucr/Alone", 0, HARD, {"accuracy": 1.0}, configuration="hard"))
    results.append(line(SETS[0], 7, HARD, {"accuracy": 1.0}, configuration="soft(2)"))
    first, *table = choosing.best_row(results, "accuracy", "soft(*", ["hard", "soft(2)"], 20)
    assert (first["sets"], first["best_on_first_half"]) == (9, {"soft(1)": 20})
    assert (first["over_hard"], first["over_soft(2)"], first["over_hard_sd"]) == (25.0, 12.5, 0.0)
    assert [row["choice"] for row in table] == ["soft(1)", "soft(2)", "hard"]
    assert [row.get("over_hard") for row in table] == [25.0, 12.5, None]


@pytest.mark.parametrize(
    ("rows", "over", "told"),
    [
        ("soft(1)", ["hard"], "finds 1 configuration"),
        ("soft*", ["none"], "names none; there are"),
        ("soft*", ["hard"], "share 1 data set"),
    ],
)
def test_rows_that_cannot_be_compared_are_named(choosing, rows, over, told):
    names = ["soft(1)", "soft(2)", "hard"]
    results = [line(SETS[0], 0, HARD, {"accuracy": 0.5}, configuration=name) for name in names]
    with pytest.raises(ValueError, match=told):
        choosing.best_row(results, "accuracy", rows, over, 2)
