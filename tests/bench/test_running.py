"""Suites end to end on tiny models: every line once, what failed told, and no choice by tests."""

import json
from dataclasses import replace

import numpy as np
import pytest

from softclt import evaluate
from softclt.bench import running as bench
from softclt.bench import runs, scoring
from softclt.bench.embedding import EmbeddedUnit
from softclt.bench.estimates import estimate
from softclt.bench.running import make_plan, run_plan
from softclt.bench.suites import read_suite
from softclt.data import Dataset, datasets
from softclt.data.synthetic import ragged, waves
from softclt.selection import scores
from softclt.tasks import read_results, tasks
from softclt.tasks.evaluation import Outcome
from tables import as_before, registered

SUITE = """
[mine]
data = ["test/waves", "test/ragged"]
seeds = 2
groups = ["length", "varying"]
probe = "ridge"
params = { output_dims = 4, hidden_dims = 4, depth = 1, max_iter = 2, device = "cpu" }
[mine.configurations]
untrained = { params = { tau_instance = "none", tau_temporal = "none", max_iter = 0 } }
hard = { probe = ["ridge", "knn"], params = { tau_instance = "none", tau_temporal = "none" } }
all = { params = { layers = "all" } }
two = { replicas = 2 }
tau = { control = "hard", chosen_probe = ["ridge", "knn"], grid = { tau_instance = [1.0, 40.0] } }
size = { probe = ["ridge", "knn"], grid = { hidden_dims = [2, 3, 5] } }
[mine.configurations.any]
among = ["size", "untrained"]
select = ["train", "unlabelled", "oracle"]
[mine.configurations.either]  # its models are read by another probe where they are chosen
among = ["tau", "hard"]
control = "hard"
probe = "ridge"
chosen_probe = ["ridge", "knn"]
select = ["train", "unlabelled"]
[mine.configurations.bad]  # ragged series have no euclidean distance
params = { distance = "euclidean" }
"""
N_ROWS = 8  # untrained, two of hard, all, two, two points, bad
PICKY = ["untrained", "hard", "all", "two", "tau"]  # all that succeed


@pytest.fixture(autouse=True)
def data():
    """Two small data sets under names of their own, for this process."""
    with as_before(datasets):
        for name, make in (("waves", waves), ("ragged", ragged)):

            def load(make=make, name=name):
                found = make(n_per_class=6, length=20, noise=0.8, random_state=1)
                return replace(found, meta=found.meta | {"name": f"test/{name}"})

            datasets.register(f"test/{name}")(load)
        yield


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "mine.toml").write_text(SUITE)

    def read(*configurations, **options):
        return read_suite(
            str(tmp_path / "mine.toml"), configurations=configurations or PICKY, **options
        )

    return read


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results" / "mine.jsonl"


def by_line(results):
    return {(r.dataset, r.configuration, r.seed): r for r in results}


def test_every_row_set_and_seed_is_one_line_that_says_where_it_belongs(suite, out):
    new = run_plan(make_plan(suite(), out), out)
    lines = by_line(read_results(out))
    assert len(new) == len(lines) == 2 * 2 * (N_ROWS - 1)
    line = lines["test/ragged", "tau(40) · ridge", 1]
    assert (line.suite, line.control, line.tau_choice) == ("mine", "hard · ridge", "fixed")
    assert line.groups == {"length": "short", "varying": "varying"}
    assert line.probe == "ridge"
    assert lines["test/waves", "hard · knn", 0].tau_choice == "hard"
    assert not any(r.error for r in lines.values())


def test_lines_have_the_scores_of_evaluate(suite, out):
    read = suite()
    lines = by_line(run_plan(make_plan(read, sets=["waves"]), out))
    for row in read.rows:
        alone = evaluate("classification", row.model, "test/waves", 1, **row.options)
        assert lines["test/waves", row.name, 1].metrics == pytest.approx(alone.metrics, abs=1e-4)


def test_only_what_is_missing_is_run(suite, out, monkeypatch):
    run_plan(make_plan(suite(), out), out)
    before = out.read_text().splitlines()
    kept = [line for line in before if '"configuration": "two"' not in line]
    out.write_text("\n".join(kept[:-1]) + "\n" + kept[-1][:40])  # and the last one is torn
    plan = make_plan(suite(), out)
    assert plan.n_todo == 5
    asked = []
    embed = scoring.EmbeddedUnit.embed
    monkeypatch.setattr(
        scoring.EmbeddedUnit, "embed", lambda self, part: asked.extend(part) or embed(self, part)
    )
    run_plan(plan, out)
    assert len(asked) == 5
    after = read_results(out)
    assert len(by_line(after)) == len(after) == len(before)
    assert make_plan(suite(), out).units == ()


def test_a_run_that_fails_is_a_line_takes_no_other_down_and_is_tried_again(suite, out, monkeypatch):
    everything = suite(*PICKY, "bad")
    new = run_plan(make_plan(everything, out), out)
    failed = [r for r in new if r.error]
    assert {(r.dataset, r.configuration) for r in failed} == {("test/ragged", "bad")}
    assert all(r.metrics == {} and "euclidean" in r.error for r in failed)
    assert len(new) == 2 * 2 * N_ROWS
    assert make_plan(everything, out).n_todo == len(failed) == 2
    monkeypatch.setattr(bench, "run_unit", lambda unit, at_once: iter(()))
    run_plan(make_plan(everything, out), out)
    assert not any(r.error for r in read_results(out))  # left the file before the next try


def test_a_shared_fit_that_fails_leaves_the_others_together(suite, out):
    unit = make_plan(suite(*PICKY, "bad"), sets=["ragged"]).units[0]
    results = by_line(scoring.run_unit(unit, at_once=True))
    assert {name for (_, name, _), r in results.items() if r.error} == {"bad"}
    assert results["test/ragged", "hard · ridge", 0].trained_together > 1


def test_groups_that_are_known_later_are_written_into_the_lines(suite, out):
    run_plan(make_plan(replace(suite("hard"), groups=("length",)), out), out)
    run_plan(make_plan(suite("hard"), out), out)
    assert {tuple(r.groups) for r in read_results(out)} == {("length", "varying")}


def test_a_unit_whose_data_cannot_be_scored_is_lines_with_the_reason(suite, out):
    data = datasets["test/waves"]()
    plan = make_plan(suite("hard"), sets=["waves"])
    unlabelled = Dataset(data.X_train, None, data.X_test, None, {"name": "test/waves"})
    with registered(datasets, "test/waves", lambda: unlabelled):
        results = run_plan(plan, out)
    assert len(results) == 4
    assert all("needs labels" in r.error for r in results)


@pytest.fixture
def counting():
    """A task that does more, or less, than read embeddings."""

    def count(model, data, *, probe="x"):
        return Outcome({"count": float(len(data.X_train))}, {"fit": 0.1}, probe)

    with registered(tasks, "counting", count):
        yield "counting"


def test_a_task_without_embeddings_runs_too(suite, out, counting):
    results = run_plan(make_plan(replace(suite("hard"), task=counting)), out)
    assert {r.metrics["count"] for r in results} == {18.0}
    assert {r.configuration for r in results} == {"hard · ridge", "hard · knn"}


def test_data_sets_of_such_a_task_share_a_gpu_if_asked_to(suite, out, counting, monkeypatch):
    calls = []

    def here(task, items, workers):
        calls.append((workers, [(unit.facts.name, unit.seeds) for _, unit in items]))
        return map(task, items)

    monkeypatch.setattr(runs, "in_processes", here)
    plan = make_plan(replace(suite("hard"), task=counting))
    assert len(run_plan(plan, out, device="cuda")) == 8
    assert calls == []  # one process unless asked
    assert len(run_plan(plan, out.with_name("other.jsonl"), device="cuda", workers=2)) == 8
    assert calls == [(2, [("test/ragged", (0, 1)), ("test/waves", (0, 1))])]


# ---------------------------------------------------------------------------------------- choices


def choices(results):
    chosen = ("train", "unlabelled", "oracle")
    return {
        (r.configuration, r.dataset, r.seed): r.params["hidden_dims"]
        for r in results
        if r.tau_choice in chosen
    }


def test_a_choice_has_the_scores_of_the_point_it_fell_on(suite, out):
    select = ["train", "unlabelled", "oracle"]
    lines = by_line(run_plan(make_plan(suite("hard", "tau", select=select)), out))
    for strategy in select:
        for seed in (0, 1):
            line = lines["test/waves", f"tau {strategy} · ridge", seed]
            point = f"tau({line.params['tau_instance']:g}) · ridge"
            assert line.metrics == lines["test/waves", point, seed].metrics
            assert (line.tau_choice, line.control) == (strategy, "hard · ridge")
            assert line.options["grid"] == {"tau_instance": [1.0, 40.0]}
    best = max(lines["test/waves", f"tau({t}) · ridge", 0].metrics["accuracy"] for t in (1, 40))
    assert lines["test/waves", "tau oracle · ridge", 0].metrics["accuracy"] == best
    assert ("test/waves", "tau train · knn", 0) in lines  # a probe for the chosen point alone
    assert ("test/waves", "tau oracle · knn", 0) not in lines


@pytest.mark.slow
def test_no_way_leads_from_test_labels_to_a_choice_but_the_oracles(suite, tmp_path):
    select = ["train", "unlabelled", "oracle"]
    grid = suite("size", "any", select=select, seeds=3)
    first = run_plan(make_plan(grid), tmp_path / "first.jsonl")
    for name in ("test/waves", "test/ragged"):
        data = datasets[name]()
        y = np.random.default_rng(5).permutation(data.y_test)
        shuffled = Dataset(data.X_train, data.y_train, data.X_test, y, dict(data.meta))
        datasets.unregister(name)  # the fixture puts it back
        datasets.register(name)(lambda shuffled=shuffled: shuffled)
    second = run_plan(make_plan(grid), tmp_path / "second.jsonl")

    def others(results):
        return {key: size for key, size in choices(results).items() if "oracle" not in key[0]}

    assert len(others(first)) == 2 * 3 * 2 * (2 + 1)  # sets, seeds, strategies, probes
    assert others(first) == others(second)
    assert len(set(others(first).values())) > 1  # and it does choose
    scores = [{key: r.metrics for key, r in by_line(run).items()} for run in (first, second)]
    assert scores[0] != scores[1]
    assert choices(first) != choices(second)  # the oracle looked


def test_choices_that_are_there_are_not_made_again_and_missing_ones_are(suite, out):
    select = ["train", "oracle"]
    run_plan(make_plan(suite("hard", "tau", select=select), out), out)
    assert make_plan(suite("hard", "tau", select=select), out).units == ()
    plan = make_plan(suite("hard", "tau", select=[*select, "unlabelled"]), out)
    assert {name for unit in plan.units for name, _ in unit.todo} == {
        "tau unlabelled · ridge",
        "tau unlabelled · knn",
    }
    new = run_plan(plan, out)
    assert {r.tau_choice for r in new} == {"unlabelled"}


def test_another_grid_is_another_choice(suite, out):
    read = suite("hard", "tau", select=["train"])
    run_plan(make_plan(read, out), out)
    grid = {"grid": {"tau_instance": [1.0, 2.0]}}
    other = tuple(replace(one, source=grid) for one in read.choices)
    assert make_plan(replace(read, choices=other), out).n_todo == 2 * 2 * 2


def test_another_criterion_is_another_choice_made_from_the_lines_that_are_there(
    suite, out, monkeypatch
):
    grid = replace(suite("size", select=["unlabelled"]), criteria=True)
    first = run_plan(make_plan(grid, out), out)
    monkeypatch.setitem(scores.CRITERIA_OF, "unlabelled", "participation")
    trained = []
    embed = EmbeddedUnit.embed

    def counted(self, wanted):
        trained.extend(wanted)
        embed(self, wanted)

    monkeypatch.setattr(EmbeddedUnit, "embed", counted)
    second = run_plan(make_plan(grid, out), out)
    assert {r.options["criterion"] for r in second} == {"participation"}
    assert len(second) == 2 * 2 * 2  # sets, seeds, probes
    assert trained == []  # both probes have read every point
    points = by_line(r for r in first if r.tau_choice == "fixed")
    assert choices(second) != choices(first)
    for line in second:
        probe = line.configuration.split(" · ")[1]
        own = {
            size: points[line.dataset, f"size({size}) · {probe}", line.seed] for size in (2, 3, 5)
        }
        best = max(own, key=lambda size: own[size].metrics["criterion.participation"])
        assert line.params["hidden_dims"] == best
        assert (line.metrics, line.versions) == (own[best].metrics, own[best].versions)


def test_of_a_choice_from_lines_only_what_was_not_read_is_trained(suite, out):
    grid = replace(suite("hard", "tau", select=["train", "unlabelled"]), criteria=True)
    run_plan(make_plan(grid, out), out)
    kept = [r for r in read_results(out) if r.configuration != "tau train · knn"]
    out.write_text("".join(r.to_json() + "\n" for r in kept))
    chosen = {
        (r.dataset, r.seed, r.params["tau_instance"]) for r in kept if r.tau_choice == "train"
    }
    read = {
        (r.dataset, r.seed, r.params["tau_instance"])
        for r in kept
        if r.configuration == "tau unlabelled · knn"
    }
    plan = make_plan(grid, out)
    trained = {(unit.facts.name, *one) for unit in plan.units for one in unit.embedded()}
    assert trained == {(name, f"tau({tau:g})", seed) for name, seed, tau in chosen - read}
    new = run_plan(plan, out)
    assert {r.configuration for r in new} == {"tau train · knn"}
    assert len(new) == 2 * 2
    assert not any(r.error for r in new)


def test_a_choice_among_configurations_falls_on_what_the_training_series_like_best(suite, out):
    lines = by_line(run_plan(make_plan(suite("any", "size", select=["train", "oracle"])), out))
    bases = ["size(2)", "size(3)", "size(5)", "untrained"]
    for name in ("test/waves", "test/ragged"):
        for seed in (0, 1):
            read = [lines[name, f"{base} · ridge" if "(" in base else base, seed] for base in bases]
            best = max(line.metrics["accuracy"] for line in read)
            assert lines[name, "any oracle", seed].metrics["accuracy"] == best
            chosen = lines[name, "any train", seed]
            assert chosen.options["among"] == {"size": {"hidden_dims": [2, 3, 5]}, "untrained": {}}
            own = next(line for line in read if line.params == chosen.params)
            assert (chosen.metrics, chosen.method) == (own.metrics, own.method)
            if own is not read[-1]:  # what wins over more wins over fewer
                assert chosen.params == lines[name, "size train · ridge", seed].params


def test_a_choice_among_lines_that_are_there_trains_those_alone_that_were_not_judged(suite, out):
    grid = replace(suite("hard", "tau", select=["train", "unlabelled"]), criteria=True)
    run_plan(make_plan(grid, out), out)
    plan = make_plan(
        replace(suite("hard", "tau", "either", select=["train", "unlabelled"]), criteria=True), out
    )
    trained = {one for unit in plan.units for one in unit.embedded()}
    assert trained == {("hard", 0), ("hard", 1)}  # points of the grid have their criteria
    new = run_plan(plan, out)
    assert len(new) == 2 * 2 * 2 * 2  # sets, seeds, strategies, probes
    assert not any(line.error for line in new)


def test_a_point_that_was_judged_before_a_run_was_killed_can_still_be_chosen(suite, out):
    grid = replace(suite("tau", "hard", select=["train"]), criteria=True)
    whole = by_line(run_plan(make_plan(grid, out), out))
    best = {
        (name, seed): f"tau({line.params['tau_instance']:g}) · ridge"
        for (name, row, seed), line in whole.items()
        if row == "tau train · knn"
    }
    kept = [r for r in whole.values() if r.configuration == best[r.dataset, r.seed]]
    out.write_text("".join(r.to_json() + "\n" for r in kept))  # no choice, no other point
    again = by_line(run_plan(make_plan(grid, out), out))
    for key, line in again.items():
        assert not line.error
        assert (line.params, line.metrics) == (whole[key].params, whole[key].metrics)


def test_criteria_stand_in_the_lines_of_grid_points(suite, out):
    results = run_plan(make_plan(replace(suite("hard", "tau"), criteria=True)), out)
    for result in results:
        is_point = result.configuration.startswith("tau(")
        assert ("criterion.neighbours" in result.metrics) == is_point
        assert next(iter(result.metrics)) == "accuracy"


# ------------------------------------------------------------------------------- who does the work


def names_only(tmp_path, rng):
    """Data sets that other processes find, too."""
    (tmp_path / "ucr").mkdir()
    for name in ("A", "B"):
        X = rng.normal(size=(12, 16)) + np.arange(12)[:, None] % 2
        y = np.arange(12) % 2
        np.savez(tmp_path / "ucr" / f"{name}.npz", x_train=X, y_train=y, x_test=X, y_test=y)
    return ["ucr/A", "ucr/B"]


def same_scores(one, other):
    assert set(by_line(one)) == set(by_line(other))
    for key, line in by_line(one).items():
        assert by_line(other)[key].metrics == pytest.approx(line.metrics, abs=1e-3), key


@pytest.mark.parametrize("way", ["processes", "a GPU's way"])
@pytest.mark.slow
def test_processes_find_what_one_process_finds(suite, tmp_path, rng, monkeypatch, way):
    monkeypatch.setenv("SOFTCLT_DATA", str(tmp_path))
    read = replace(suite("hard", "all", "tau", select=["train"]), data=names_only(tmp_path, rng))
    alone = run_plan(make_plan(read), tmp_path / "alone.jsonl")
    file = tmp_path / "together.jsonl"
    device = "cpu" if way == "processes" else "cuda"  # models have device="cpu" of their own
    together = run_plan(make_plan(read), file, workers=2, device=device)
    same_scores(alone, together)
    assert len(read_results(file)) == len(alone)
    trained = {r.trained_together for r in together}
    assert max(trained) == (1 if way == "processes" else 2 * 4)


def test_units_whose_workers_died_are_lines_with_the_reason(suite, out, monkeypatch):
    def given_up(task, items, workers):
        yield task(items[0])
        raise RuntimeError("worker processes died 3 times in a row")

    monkeypatch.setattr(runs, "in_processes", given_up)
    results = run_plan(make_plan(suite("hard", seeds=1)), out, workers=2)
    assert [bool(r.error) for r in results] == [False, False, True, True]
    assert "died 3 times" in results[-1].error


def test_ray_gets_the_data_along(suite, out, monkeypatch):
    def ray(task, shared, items, address, *, workers, gpus):
        assert (address, gpus) == ("auto", 0)
        for number, unit in items:
            assert unit.data is not None
            yield task(shared, (number, unit))

    monkeypatch.setattr(bench, "on_ray", ray)
    assert len(run_plan(make_plan(suite("hard")), out, ray="auto")) == 8


# ---------------------------------------------------------------------------------------- the plan


def test_the_largest_data_set_comes_first_and_missing_ones_are_listed(suite):
    read = suite("hard")
    plan = make_plan(replace(read, data=[*read.data, "ucr/NoSuchSet"]))
    assert plan.missing == ("ucr/NoSuchSet",)
    sizes = [unit.facts.n_channels for unit in plan.units]
    assert sizes == [2, 1]


def test_the_estimate_grows_with_the_work_and_learns_from_results(suite, out):
    small, large = make_plan(suite("hard")), make_plan(suite("hard", "all", "two"))
    assert 0 < estimate(small)[0] < estimate(large)[0]
    assert estimate(small)[1] == "by a rule of thumb"
    run_plan(make_plan(suite("hard"), out, sets=["waves"]), out)
    slow = [replace(r, seconds={"fit": 1000.0}) for r in read_results(out)]
    out.write_text("".join(json.dumps(json.loads(r.to_json())) + "\n" for r in slow))
    seconds, basis = estimate(make_plan(suite("hard"), out))
    assert basis == "by results that are there"
    assert seconds > 100 * estimate(small)[0]


def test_parameters_of_a_data_set_are_in_its_lines_and_found_again(tmp_path):
    text = SUITE.replace(
        "[mine.configurations]\n",
        "[mine.sets]\n'*/waves' = { lr = 0.5 }\n[mine.configurations]\n",
        1,
    )
    (tmp_path / "mine.toml").write_text(text)
    suite = read_suite(str(tmp_path / "mine.toml"), configurations=["hard", "two"], seeds=1)
    out = tmp_path / "results.jsonl"
    lines = run_plan(make_plan(suite, out), out)
    rates = {(line.dataset, line.configuration): line.params["lr"] for line in lines}
    assert {rate for (name, _), rate in rates.items() if name == "test/waves"} == {0.5}
    assert {rate for (name, _), rate in rates.items() if name == "test/ragged"} == {1e-3}
    assert not make_plan(suite, out).units


FEW = """
[few]
task = "semi_supervised"
data = ["test/waves"]
seeds = 2
options = { shares = [20, 50] }
params = { max_iter = 2, device = "cpu" }
[few.configurations]
untrained = { params = { tau_instance = "none", max_iter = 0, output_dims = 4, depth = 1 } }
tstcc = { method = "tstcc", params = { widths = [4], hidden_dims = 4 } }
catcc = { method = "catcc", params = { widths = [4], hidden_dims = 4, label_iter = 2 } }
[few.configurations.tuned]
method = "tstcc"
params = { widths = [4], hidden_dims = 4 }
options = { classifier = "svm" }
"""


@pytest.fixture
def few(tmp_path):
    (tmp_path / "few.toml").write_text(FEW)
    (unit,) = make_plan(read_suite(str(tmp_path / "few.toml"))).units
    return unit


@pytest.mark.slow
def test_whole_runs_in_one_go_have_the_lines_of_each_alone(few):
    together, alone = (by_line(scoring.run_unit(few, at_once=once)) for once in (True, False))
    assert {line[1:] for line in together} == {line[1:] for line in alone} == few.todo
    for line, result in together.items():
        assert result.identity() == alone[line].identity()
        assert result.metrics == alone[line].metrics
    stacks = {name: line.trained_together for (_, name, _), line in together.items()}
    assert stacks == {"untrained": 2, "tstcc": 4, "catcc": 4, "tuned": 2}  # first phases alike


@pytest.mark.slow
def test_where_runs_in_one_go_fail_each_is_run_alone_and_one_line_has_the_error(few):
    plain = tasks["semi_supervised"]

    def run(model, data, **options):
        if type(model).__name__ == "CATCC" and model.random_state == 1:
            raise ValueError("no luck")
        return plain(model, data, **options)

    def fail(models, data, **options):
        raise RuntimeError("out of memory")

    tags = tasks.tags("semi_supervised") | {"together": fail}
    told = pytest.warns(
        UserWarning, match="4 runs in one go failed .out of memory.; each is run al"
    )
    with registered(tasks, "semi_supervised", run, **tags), told:
        lines = by_line(scoring.run_unit(few, at_once=True))
    assert {line[1:] for line in lines} == few.todo
    failed = {line: result.error for line, result in lines.items() if result.error}
    assert failed == {("test/waves", "catcc", 1): "ValueError: no luck"}
