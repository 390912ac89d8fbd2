"""Jobs are done somewhere else, and survive the death of who does them."""

import math
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

import mortal
from softclt import parallel as jobs_module
from softclt.parallel import Job, Workers, in_processes, one_by_one

pytestmark = pytest.mark.slow


def test_jobs_in_this_process_answer_in_order_and_errors_are_answers():
    jobs = [Job("a", math.sqrt, (4.0,)), Job("b", math.sqrt, (-1.0,)), Job("c", max, ((1, 5),))]
    answers = list(one_by_one(jobs))
    assert [key for key, _ in answers] == ["a", "b", "c"]
    assert answers[0][1] == 2.0
    assert isinstance(answers[1][1], ValueError)


def test_a_job_whose_process_dies_is_done_again_and_takes_no_other_down(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_module, "ATTEMPTS", 2)
    jobs = [
        Job("dies once", mortal.dies_unless, (str(tmp_path / "marker"),)),
        Job("always dies", mortal.dies),
        *(Job(i, math.sqrt, (i,)) for i in range(6)),
        Job("cannot travel", lambda: 1),
    ]
    with Workers(1) as workers:
        answers = dict(workers.run(jobs))
        later = dict(workers.run([Job("later", math.sqrt, (9.0,))]))
    assert answers["dies once"] == 7
    assert isinstance(answers["always dies"], RuntimeError)
    assert "died 2 times" in str(answers["always dies"])
    assert [answers[i] for i in range(6)] == [math.sqrt(i) for i in range(6)]
    assert isinstance(answers["cannot travel"], Exception)
    assert later == {"later": 3.0}


def test_an_item_that_is_given_up_is_an_error_after_the_others_are_done(monkeypatch):
    monkeypatch.setattr(jobs_module, "ATTEMPTS", 2)
    found = in_processes(mortal.dies_at_zero, [0, 1, 2], 1)
    assert sorted([next(found), next(found)]) == [1, 2]
    with pytest.raises(RuntimeError, match="died 2 times"):
        next(found)


def interrupted(answers):
    with ThreadPoolExecutor(1) as threads, Workers(1) as workers:
        jobs = [Job(i, time.sleep, (60,)) for i in range(4)]
        answers.append(threads.submit(lambda: list(workers.run(jobs))))
        time.sleep(1)
        raise KeyboardInterrupt


def test_ctrl_c_in_the_block_ends_the_workers_at_once_and_answers_nothing():
    start, answers = time.perf_counter(), []
    with pytest.raises(KeyboardInterrupt):
        interrupted(answers)
    assert time.perf_counter() - start < 30
    assert isinstance(answers[0].exception(), CancelledError)
