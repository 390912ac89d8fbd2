"""Several processes have one index; one of them is killed."""

import os
import signal
import subprocess
import sys

import pytest

from softclt import SeriesIndex

pytestmark = pytest.mark.slow

ADDS = """
import sys
import numpy as np
from softclt import SeriesIndex
index = SeriesIndex.load(sys.argv[1])
X = np.random.default_rng(1).normal(size=(3, 1, 20))
for i in range(1000):
    index.add(X, ids=[f"{sys.argv[2]}{i}-{j}" for j in range(3)])
    print(i, flush=True)
"""


@pytest.fixture
def folder(tmp_path, rng):
    SeriesIndex("base").add(rng.normal(size=(4, 1, 20)), ids=list("abcd")).save(tmp_path / "index")
    return tmp_path / "index"


def writer(folder, name):
    words = [sys.executable, "-c", ADDS, str(folder), name]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)


def test_two_write_one_is_killed_and_no_row_is_lost_or_half_there(folder, rng):
    index = SeriesIndex.load(folder)
    told = []
    with writer(folder, "x") as one, writer(folder, "y") as other:
        for process in (one, other):
            process.stdout.readline()
            assert len(index) >= 4 + 3  # seen at once
        for _ in range(3):
            told.append(int(one.stdout.readline()))
        one.send_signal(signal.SIGKILL)
        told += [int(line) for line in one.stdout]
        assert other.stdout.readline()  # goes on, though the lock was held by the one that died
        other.kill()
        told_by_other = [0, 1, *(int(line) for line in other.stdout)]
    ids = SeriesIndex.load(folder).ids()
    assert len(set(ids)) == len(ids)
    names = set(ids)
    assert {f"x{i}-{j}" for i in told for j in range(3)} <= names
    assert {f"y{i}-{j}" for i in told_by_other for j in range(3)} <= names
    for call in {name.partition("-")[0] for name in names - set("abcd")}:
        assert {f"{call}-{j}" for j in range(3)} <= names  # all of a call, or none
    SeriesIndex.load(folder).add(rng.normal(size=(1, 1, 20)), ids=["after"])
    assert "after" in index.ids()
