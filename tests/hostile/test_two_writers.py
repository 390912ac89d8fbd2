"""Two processes with one folder, and processes that end in the middle of a save."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from softclt import TS2Vec, load_model, persistence
from softclt.files import held
from softclt.persistence import ModelFileError
from softclt.training.checkpoint import CheckpointError

SMALL = {"output_dims": 4, "hidden_dims": 4, "depth": 2, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def series():
    return np.random.default_rng(0).normal(size=(6, 1, 20))


@pytest.fixture(scope="module")
def models(series):
    return [TS2Vec(**SMALL | {"random_state": seed, "max_iter": 2}).fit(series) for seed in (0, 1)]


def test_a_second_training_with_one_checkpoint_is_refused_while_the_first_goes_on(series, tmp_path):
    said = []

    def second(progress):
        with pytest.raises(CheckpointError, match="in use") as raised:
            TS2Vec(**SMALL, max_iter=150).fit(series, checkpoint=tmp_path)
        said.append(str(raised.value))

    model = TS2Vec(**SMALL, max_iter=150).fit(series, checkpoint=tmp_path, callbacks=[second])
    assert said
    lines = (tmp_path / "history-0.jsonl").read_text().splitlines()
    assert len(lines) == len(model.history_["loss"]) == 150
    again = TS2Vec(**SMALL, max_iter=150).fit(series, checkpoint=tmp_path)  # which has ended
    np.testing.assert_array_equal(again.transform(series), model.transform(series))
    assert not list(tmp_path.glob(".*lock*"))


def test_a_lock_that_a_killed_process_left_is_no_lock(series, tmp_path):
    (tmp_path / ".stack-0.lock").touch()
    TS2Vec(**SMALL, max_iter=1).fit(series, checkpoint=tmp_path)


def test_of_many_threads_one_at_a_time_holds_a_file(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(50):
            with held(tmp_path / "lock"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert not (tmp_path / "lock").exists()


class Stopped(BaseException):
    """What a process that ends between two calls does: nothing more."""


def stop_at(monkeypatch, number):
    """End at the call of this number that changes what is on the disk."""
    left = [number]

    def counted(call):
        def counting(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return call(*args, **kwargs)

        return counting

    for owner, name in ((os, "replace"), (os, "fsync"), (Path, "unlink"), (Path, "write_bytes")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    return left


@pytest.mark.parametrize("number", range(16))
def test_a_save_that_ends_anywhere_leaves_the_one_model_or_the_other(
    models, series, tmp_path, monkeypatch, number
):
    folder = tmp_path / "model"
    models[0].save(folder)
    with monkeypatch.context() as patched:
        left = stop_at(patched, number)
        try:
            models[1].save(folder)
        except Stopped:
            pass
        else:
            assert left[0] >= 0
    found = load_model(folder).transform(series)
    assert any(np.array_equal(found, model.transform(series)) for model in models)
    models[1].save(folder)
    np.testing.assert_array_equal(load_model(folder).transform(series), models[1].transform(series))
    names = {path.name for path in folder.iterdir()}
    assert names == {"config.json", "history.jsonl", "model.safetensors"}


def test_what_is_saved_is_on_the_disk_before_the_switch(models, tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append("sync"))
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append(Path(b).name), replace(a, b)))
    models[0].save(tmp_path / "model")
    assert done.index("config.json") >= 3
    assert done[-1] == "sync"


SAVE_OFTEN = """
import sys
import numpy as np
from softclt import TS2Vec

folder, seed = sys.argv[1], int(sys.argv[2])
small = {"output_dims": 4, "hidden_dims": 4, "depth": 2, "device": "cpu"}
series = np.random.default_rng(0).normal(size=(6, 1, 20))
model = TS2Vec(**small, random_state=seed, max_iter=0).fit(series)
for _ in range(10):
    model.save(folder)
"""


@pytest.mark.slow
def test_two_processes_that_save_into_one_folder_leave_one_model_and_readers_see_one(tmp_path):
    folder = tmp_path / "model"
    series = np.random.default_rng(0).normal(size=(6, 1, 20))
    expected = [
        TS2Vec(**SMALL | {"random_state": seed, "max_iter": 0}).fit(series).transform(series)
        for seed in (0, 1)
    ]
    workers = [
        subprocess.Popen([sys.executable, "-c", SAVE_OFTEN, str(folder), str(seed)])
        for seed in (0, 1)
    ]
    seen = 0
    while any(worker.poll() is None for worker in workers):
        if (folder / persistence.CONFIG).exists():
            found = load_model(folder).transform(series)
            assert any(np.array_equal(found, one) for one in expected)
            seen += 1
    assert [worker.wait() for worker in workers] == [0, 0]
    assert seen


def test_a_classifier_whose_encoder_is_of_another_save_is_refused(tmp_path):
    from softclt import SemiSupervisedClassifier

    before = Path(__file__).parents[1] / "files" / "before"
    shutil.copytree(before / "classifier", tmp_path / "kept")
    classifier = SemiSupervisedClassifier.load(tmp_path / "kept")
    classifier.save(tmp_path / "model")
    SemiSupervisedClassifier.load(tmp_path / "model")
    load_model(before / "ts2vec-training").save(tmp_path / "model" / "encoder", training=True)
    with pytest.raises(ModelFileError, match="another one"):
        SemiSupervisedClassifier.load(tmp_path / "model")


def test_where_there_are_no_locks_work_goes_on_and_it_is_said(tmp_path, monkeypatch, caplog):
    import errno
    import fcntl

    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with held(tmp_path / "lock"):
        pass
    assert "has no locks" in caplog.text
