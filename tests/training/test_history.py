"""Every step leaves one whole line, whatever happens to the process."""

import json
import os
import subprocess
import sys
import textwrap
import time
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest

from softclt import TS2Vec, fit_many
from softclt.methods.learner import RepresentationLearner
from softclt.training import history, loop

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "batch_size": 4, "device": "cpu"}


@pytest.fixture
def series(rng):
    return rng.normal(size=(9, 2, 20))


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 5)


@pytest.fixture
def no_tensorboard(monkeypatch):
    monkeypatch.setattr(history, "find_spec", lambda name: None)


def model(**params):
    return TS2Vec(**SMALL | {"max_iter": 18, "random_state": 0, "tau_instance": None} | params)


def lines_of(folder, number=0):
    text = (folder / f"history-{number}.jsonl").read_text()
    assert text.endswith("}\n")
    return [json.loads(line) for line in text.splitlines()]


def power_cut(learner, series, folder, step=15):
    def callback(progress):
        if progress.step == step:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        learner.fit(series, checkpoint=folder, callbacks=[callback])


def assert_complete(folder, fitted, number=0):
    lines = lines_of(folder, number)
    assert [line["step"] for line in lines] == list(range(1, fitted.n_iter_ + 1))
    assert [line["loss"] for line in lines] == fitted.history_["loss"]


def test_a_step_is_a_line_with_loss_rate_and_time(series, tmp_path):
    fitted = model(lr=0.002, lr_schedule="linear").fit(series, checkpoint=tmp_path)
    assert_complete(tmp_path, fitted)
    lines = lines_of(tmp_path)
    assert {tuple(line) for line in lines} == {("step", "loss", "lr", "seconds", "time")}
    assert [line["lr"] for line in lines] == pytest.approx(
        [0.002 * (1 - k / 18) for k in range(18)]
    )
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)
    assert 0 < seconds[-1] < 60
    age = time.time() - datetime.fromisoformat(lines[-1]["time"]).timestamp()
    assert -1 < age < 60


@pytest.mark.parametrize("left", ["", '{"step": 11, "lo', '{"step": 11, "loss": 9}\n{"step": 12'])
def test_going_on_drops_what_comes_after_the_checkpoint(series, tmp_path, left):
    power_cut(model(), series, tmp_path)
    assert [line["step"] for line in lines_of(tmp_path)] == list(range(1, 11))
    with (tmp_path / "history-0.jsonl").open("a") as file:
        file.write(left)
    assert_complete(tmp_path, model().fit(series, checkpoint=tmp_path))


@pytest.mark.parametrize("damage", ["deleted", "emptied", "cut", "rubbish"])
def test_lines_that_went_missing_are_written_again(series, tmp_path, damage):
    power_cut(model(), series, tmp_path)
    path = tmp_path / "history-0.jsonl"
    content = path.read_bytes()
    left = {"deleted": b"", "emptied": b"", "cut": content[:-7], "rubbish": b"[1]\n" + content}
    path.write_bytes(left[damage])
    if damage == "deleted":
        path.unlink()
    assert_complete(tmp_path, model().fit(series, checkpoint=tmp_path))


@pytest.mark.slow
def test_a_killed_process_leaves_no_line_twice_and_none_torn(series, tmp_path):
    np.save(tmp_path / "x.npy", series)
    program = textwrap.dedent(
        f"""
        import numpy as np
        from softclt import TS2Vec
        from softclt.training import loop
        loop._LOOK_EVERY = 5
        model = TS2Vec(**{SMALL}, max_iter=1_000_000, tau_instance=None, random_state=0)
        model.fit(np.load("x.npy"), checkpoint="kept")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    kept = tmp_path / "kept" / "stack-0.safetensors"
    deadline = time.monotonic() + 60
    while not kept.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    looks = []
    gone_on = model(max_iter=1_000_000).fit(
        series, checkpoint=tmp_path / "kept", callbacks=[looks.append, lambda p: len(looks) == 2]
    )
    assert looks[0].step > 5
    assert_complete(tmp_path / "kept", gone_on)


def test_a_checkpoint_between_two_looks_has_its_lines_too(series, tmp_path, monkeypatch):
    monkeypatch.setattr(loop.Checkpoint, "overdue", property(lambda self: True))
    stepped = loop._Stepper.take

    def no_more_after_8(self, step):
        if step == 8:
            raise RuntimeError("power cut")
        return stepped(self, step)

    monkeypatch.setattr(loop._Stepper, "take", no_more_after_8)
    with pytest.raises(RuntimeError, match="power cut"):
        model().fit(series, checkpoint=tmp_path)
    assert [line["step"] for line in lines_of(tmp_path)] == list(range(1, 9))


def test_a_finished_run_is_left_as_it_is(series, tmp_path):
    model().fit(series, checkpoint=tmp_path)
    before = (tmp_path / "history-0.jsonl").read_bytes()
    model().fit(series, checkpoint=tmp_path)
    assert (tmp_path / "history-0.jsonl").read_bytes() == before


def test_without_a_checkpoint_lines_are_of_another_run(series, tmp_path):
    model().fit(series, checkpoint=tmp_path)
    (tmp_path / "stack-0.safetensors").unlink()
    assert_complete(tmp_path, model(max_iter=7, random_state=1).fit(series, checkpoint=tmp_path))


def test_a_refused_call_changes_no_line(series, tmp_path):
    power_cut(model(), series, tmp_path)
    before = (tmp_path / "history-0.jsonl").read_bytes()
    with pytest.raises(ValueError, match="another run"):
        model(lr=0.5).fit(series, checkpoint=tmp_path)
    assert (tmp_path / "history-0.jsonl").read_bytes() == before


def test_a_second_fit_has_the_lines_of_its_own_steps(series, tmp_path):
    learner = model(warm_start=True, lr_schedule="linear").fit(series)
    power_cut(learner, series, tmp_path, step=30)
    learner = model(warm_start=True, lr_schedule="linear").fit(series)
    learner.fit(series, checkpoint=tmp_path)
    lines = lines_of(tmp_path)
    assert [line["step"] for line in lines] == list(range(19, 37))
    assert [line["loss"] for line in lines] == learner.history_["loss"][18:]
    assert lines[0]["lr"] == 0.001


@pytest.mark.parametrize("stack_size", [1, 100])
def test_each_of_many_models_has_a_file_by_its_place_in_the_call(
    series, tmp_path, monkeypatch, stack_size
):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: stack_size)

    def grid():
        return [model(), model(depth=1), model(random_state=2, lr=0.004)]

    def power_cut(progress):
        if progress.step == 15:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        fit_many(grid(), series, checkpoint=tmp_path, callbacks=[power_cut])
    for number, fitted in enumerate(fit_many(grid(), series, checkpoint=tmp_path)):
        assert_complete(tmp_path, fitted, number)
    assert [lines_of(tmp_path, number)[0]["lr"] for number in range(3)] == [0.001, 0.001, 0.004]


def test_a_disk_that_takes_half_a_line_is_named_and_training_goes_on_later(
    series, tmp_path, monkeypatch, no_tensorboard
):
    write = os.write

    def disk_fills_up(progress):
        if progress.step == 10:
            monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:20]))

    with pytest.raises(OSError, match=r"took only a part of the lines; that of step 5 is still"):
        model().fit(series, checkpoint=tmp_path, callbacks=[disk_fills_up])
    monkeypatch.setattr(os, "write", write)
    assert (tmp_path / "history-0.jsonl").read_text()[-1] != "\n"
    assert_complete(tmp_path, model().fit(series, checkpoint=tmp_path))


class StandIn:
    """Remembers what TensorBoard's writer is told."""

    made: list["StandIn"]

    def __init__(self, log_dir, purge_step):
        self.name, self.purge_step, self.scalars, self.closed = log_dir.name, purge_step, [], False
        assert log_dir.parent.name == "tensorboard"
        self.made.append(self)

    def add_scalar(self, tag, scalar_value, global_step):
        assert not self.closed
        self.scalars.append((tag, scalar_value, global_step))

    def flush(self):
        self.flushed = len(self.scalars)

    def close(self):
        self.closed = True


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(history, "find_spec", lambda name: name == "tensorboard")
    module = SimpleNamespace(SummaryWriter=StandIn)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(StandIn, "made", [], raising=False)
    return StandIn.made


def test_tensorboard_is_told_every_tenth_step_and_the_last(series, tmp_path, stand_in):
    fitted = model().fit(series, checkpoint=tmp_path)
    (writer,) = stand_in
    loss = fitted.history_["loss"]
    assert (writer.name, writer.purge_step) == ("model-0", 1)
    assert writer.scalars == [
        ("loss", loss[9], 10),
        ("lr", 0.001, 10),
        ("loss", loss[17], 18),
        ("lr", 0.001, 18),
    ]
    assert writer.flushed == 4
    assert writer.closed


def test_tensorboard_hides_what_is_written_again(series, tmp_path, stand_in):
    power_cut(model(), series, tmp_path, step=10)
    model().fit(series, checkpoint=tmp_path)
    first, second = stand_in
    assert (first.purge_step, second.purge_step) == (1, 6)
    assert [step for _, _, step in second.scalars] == [10, 10, 18, 18]


def test_each_of_many_models_is_a_run_for_tensorboard(series, tmp_path, stand_in, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    fit_many([model(), model(depth=1), model(random_state=2)], series, checkpoint=tmp_path)
    assert [writer.name for writer in stand_in] == ["model-0", "model-2", "model-1"]


def test_without_tensorboard_there_are_lines_only(series, tmp_path, no_tensorboard, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # its import fails
    fitted = model().fit(series, checkpoint=tmp_path)
    assert_complete(tmp_path, fitted)
    assert not (tmp_path / "tensorboard").exists()


def test_a_broken_tensorboard_is_a_warning(series, tmp_path, stand_in, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    fitted = model().fit(series, checkpoint=tmp_path)
    assert_complete(tmp_path, fitted)
    assert caplog.text.count("tensorboard is installed, but cannot be used") == 1


def test_tensorboard_shows_each_step_once_though_it_was_written_twice(series, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    power_cut(model(max_iter=30, random_state=1), series, tmp_path, step=25)
    (tmp_path / "stack-0.safetensors").unlink()
    time.sleep(1.1)  # files of a run are read in the order of the seconds that name them
    fitted = model(max_iter=30).fit(series, checkpoint=tmp_path)
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard" / "model-0")).Reload()
    assert sorted(events.Tags()["scalars"]) == ["loss", "lr"]
    seen = [(event.step, event.value) for event in events.Scalars("loss")]
    expected = [(k, pytest.approx(fitted.history_["loss"][k - 1])) for k in (10, 20, 30)]
    assert seen == expected
