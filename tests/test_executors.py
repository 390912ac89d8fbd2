"""Tiles come out the same whoever makes them, and a worker that dies is no misfortune."""

import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import mortal
from softclt import parallel as executors
from softclt.distances import DistanceStore, open_store, pairwise_distance
from softclt.distances import store as making
from softclt.parallel import in_processes, on_executor, worker_count

pytestmark = pytest.mark.slow

TESTS = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(making, "_TILE_CELLS", 1.0)


@pytest.fixture
def X(rng):
    return rng.standard_normal((14, 1, 9)).astype(np.float32)


@pytest.fixture
def store(X, tmp_path):
    return DistanceStore.create(tmp_path / "store", X, "euclidean")


@pytest.fixture
def expected(X):
    return pairwise_distance(X, metric="euclidean").astype(np.float32)


@pytest.fixture(scope="module")
def cluster():
    """The address of a real Ray of two workers, to which this process is connected."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", TESTS)  # where workers find `mortal`
        context = ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
        )
        yield context.address_info["address"]
        ray.shutdown()


def wait_until(condition, process=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        assert process is None or process.poll() is None, "the process ended before"
        time.sleep(0.02)


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_only_one_kind_of_worker_is_taken(store):
    with pytest.raises(ValueError, match="exclude each other"):
        store.fill(processes=1, ray="local")


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_a_strange_number_of_workers_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs is"):
        worker_count(n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_make_the_matrix(store, expected, n_jobs):
    assert store.fill(n_jobs=n_jobs).made == 10
    np.testing.assert_array_equal(store.matrix(), expected)


def test_any_executor_makes_the_matrix(store, expected):
    with ThreadPoolExecutor(2) as pool:
        assert store.fill(executor=pool).made == 10
    np.testing.assert_array_equal(store.matrix(), expected)


def test_after_an_error_nothing_new_is_begun():
    begun = []

    def task(item):
        begun.append(item)
        time.sleep(0.01)
        if item == 2:
            raise ValueError("two")

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="two"):
        list(on_executor(task, list(range(100)), pool))
    assert len(begun) < 10


def test_an_executor_whose_worker_died_is_told_and_the_store_goes_on(store, expected, tmp_path):
    compute = partial(mortal.dies_at_first, str(tmp_path / "died"))
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, context) as pool,
        pytest.raises(RuntimeError, match="the same call with a new executor goes on"),
    ):
        store.fill(executor=pool, compute=compute)
    with ThreadPoolExecutor(1) as pool:
        store.fill(executor=pool, compute=compute)
    np.testing.assert_array_equal(store.matrix(), expected)


def test_processes_that_die_are_replaced(store, expected, tmp_path):
    compute = partial(mortal.dies_at_first, str(tmp_path / "died"))
    filled = store.fill(processes=1, compute=compute)
    assert (tmp_path / "died").exists()
    assert (filled.made, filled.found) == (10, 0)
    np.testing.assert_array_equal(store.matrix(), expected)


def test_processes_that_always_die_are_given_up(store, monkeypatch):
    monkeypatch.setattr(executors, "ATTEMPTS", 1)
    with pytest.raises(RuntimeError, match="the process that worked on it died 1 times"):
        store.fill(processes=1, compute=mortal.always_dies)


def test_no_work_needs_no_process():
    assert list(in_processes(mortal.always_dies, [], 2)) == []


def test_workers_end_with_a_parent_that_is_killed(store, tmp_path):
    code = (
        "import sys; from functools import partial\n"
        "if __name__ == '__main__':\n"
        f"    sys.path.insert(0, {TESTS!r}); import mortal\n"
        "    from softclt.distances import open_store\n"
        f"    compute = partial(mortal.takes_its_time, {str(tmp_path / 'pid')!r})\n"
        f"    open_store({str(store.folder)!r}).fill(processes=1, compute=compute)\n"
    )
    (tmp_path / "script.py").write_text(code)
    with subprocess.Popen([sys.executable, tmp_path / "script.py"]) as parent:
        wait_until(lambda: len(store.missing()) < 10, parent)
        parent.kill()
    worker = int((tmp_path / "pid").read_text())
    assert worker != parent.pid
    wait_until(lambda: not lives(worker))
    assert 0 < len(store.missing()) < 10


def test_ray_makes_the_matrix(cluster, store, expected):
    assert store.fill(ray="auto").made == 10
    np.testing.assert_array_equal(store.matrix(), expected)


def test_a_worker_of_ray_that_dies_is_replaced(cluster, store, expected, tmp_path):
    compute = partial(mortal.dies_at_first, str(tmp_path / "died"))
    filled = store.fill(ray=cluster, compute=compute)
    assert (tmp_path / "died").exists()
    assert filled.made == 10
    np.testing.assert_array_equal(store.matrix(), expected)


def test_ray_gives_up_a_tile_whose_workers_always_die(cluster, store, monkeypatch):
    monkeypatch.setattr(executors, "ATTEMPTS", 0)
    with pytest.raises(RuntimeError, match="the same call goes on where it was"):
        store.fill(ray=cluster, compute=mortal.always_dies)


def test_an_error_on_ray_is_the_error_of_the_tile(cluster, store):
    with pytest.raises(ValueError, match=r"^no distance in \d+$"):
        store.fill(ray=cluster, compute=mortal.fails)


def test_what_a_worker_of_ray_lacks_is_named(cluster, store, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def compute(*args): pass")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with pytest.raises(RuntimeError, match="No module named 'only_here'"):
        store.fill(ray=cluster, compute=only_here.compute)


def test_a_killed_driver_of_ray_goes_on_where_it_was(cluster, store, expected, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {TESTS!r})\n"
        "import mortal; from functools import partial\n"
        "from softclt.distances import open_store\n"
        f"compute = partial(mortal.takes_its_time, {str(tmp_path / 'pid')!r})\n"
        f"open_store({str(store.folder)!r}).fill(ray={cluster!r}, compute=compute)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as driver:
        wait_until(lambda: len(store.missing()) < 9, driver)
        driver.kill()
    left = open_store(store.folder).missing()
    assert 0 < len(left) < 9
    assert store.fill(ray=cluster).made == len(left)
    np.testing.assert_array_equal(store.matrix(), expected)


def test_a_cluster_that_does_not_answer_is_named(store, monkeypatch):
    ray = pytest.importorskip("ray")

    def nobody(*args, **kwargs):
        raise ConnectionError

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", nobody)
    with pytest.raises(ValueError, match=r"no Ray cluster answers at '10\.0\.0\.1:6379'"):
        store.fill(ray="10.0.0.1:6379")


def test_ray_is_an_extra(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'softclt\[ray\]'"):
        store.fill(ray="local")
