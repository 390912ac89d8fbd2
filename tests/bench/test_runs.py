"""Many runs: in order, side by side, not twice, and loud when one fails."""

import pytest

from softclt import TS2Vec
from softclt.bench.runs import Run, run_all
from softclt.data.synthetic import waves
from softclt.tasks import read_results

pytestmark = pytest.mark.slow

TINY = {"output_dims": 4, "hidden_dims": 4, "depth": 1, "max_iter": 1}


@pytest.fixture
def runs():
    data = waves(n_per_class=6, length=16)
    return [Run("classification", TS2Vec(**TINY), data, seed) for seed in range(3)]


def test_results_come_in_the_order_of_the_runs_and_are_written_down(runs, tmp_path):
    path = tmp_path / "results.jsonl"
    results = run_all(runs, path)
    assert [r.seed for r in results] == [0, 1, 2]
    assert read_results(path) == results


def test_what_a_file_holds_is_not_run_again(runs, tmp_path):
    path = tmp_path / "results.jsonl"
    first = run_all(runs[:2], path)
    told = []
    results = run_all(runs, path, on_result=told.append)
    assert results[:2] == first
    assert len(told) == 3
    assert len(read_results(path)) == 3


def test_other_parameters_are_run_although_the_seed_is_there(runs, tmp_path):
    path = tmp_path / "results.jsonl"
    run_all(runs[:1], path)
    other = Run("classification", TS2Vec(**TINY | {"lr": 0.01}), runs[0].data, 0)
    run_all([other], path)
    assert [r.params["lr"] for r in read_results(path)] == [0.001, 0.01]


def test_processes_give_what_one_process_gives(runs, tmp_path):
    alone = run_all(runs[:2])
    together = run_all(runs[:2], tmp_path / "results.jsonl", n_workers=2)
    assert [r.metrics for r in together] == [r.metrics for r in alone]
    assert [r.identity() for r in together] == [r.identity() for r in alone]


def test_a_run_that_fails_in_a_process_fails_all_with_its_error(runs):
    bad = Run("classification", TS2Vec(**TINY | {"lr": -1.0}), runs[0].data, 0)
    with pytest.raises(ValueError, match="lr is -1"):
        run_all([bad, *runs], n_workers=2)
