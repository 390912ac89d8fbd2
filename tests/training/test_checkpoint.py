"""Interrupted and gone on with is as good as never interrupted."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import torch

from softclt import TS2Vec, fit_many
from softclt.methods.learner import RepresentationLearner
from softclt.training import Progress, loop, stop_on_plateau
from softclt.training.checkpoint import CheckpointError, ctrl_c_waits
from softclt.training.randomness import batch_rows

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "batch_size": 4, "device": "cpu"}


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """Also where the tests run in the background, and their parent ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def series(rng):
    return rng.normal(size=(11, 2, 24))


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch):
    monkeypatch.setattr(loop, "_LOOK_EVERY", 5)


def model(**params):
    return TS2Vec(**SMALL | {"max_iter": 18, "random_state": 0, "distance": "euclidean"} | params)


class PowerCutError(Exception):
    pass


def power_cut_at(step):
    def callback(progress):
        if progress.step == step:
            raise PowerCutError

    return callback


def assert_same_bits(one, other):
    """All of two trained models: means, last iterates, moments, losses."""
    assert one.n_iter_ == other.n_iter_
    assert one.history_["loss"] == other.history_["loss"]
    for part in ("averaged", "module"):
        own = getattr(one.training_state_, part).state_dict()
        for name, value in getattr(other.training_state_, part).state_dict().items():
            assert torch.equal(own[name], value), name
    moments = one.training_state_.optimizer.state_dict()["state"]
    for i, values in other.training_state_.optimizer.state_dict()["state"].items():
        assert all(torch.equal(moments[i][key], value) for key, value in values.items())


def interrupted(learner, series, folder, step=15, **options):
    with pytest.raises(PowerCutError):
        learner.fit(series, checkpoint=folder, callbacks=[power_cut_at(step)], **options)


@pytest.mark.parametrize("params", [{}, {"distance_mode": "lazy"}, {"precision": "float64"}])
@pytest.mark.slow
def test_going_on_from_a_checkpoint_ends_with_the_same_bits(series, tmp_path, params, caplog):
    interrupted(model(**params), series, tmp_path)
    gone_on = model(**params).fit(series, checkpoint=tmp_path)
    assert f"going on from step 10, which {tmp_path} has kept" in caplog.text
    assert_same_bits(gone_on, model(**params).fit(series))


@pytest.mark.parametrize(("stack_size", "n_looks"), [(1, 7), (2, 7), (100, 3)])
@pytest.mark.slow
def test_many_go_on_to_the_same_bits(series, tmp_path, monkeypatch, stack_size, n_looks):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: stack_size)

    def grid():
        return [
            model(),
            model(random_state=1, lr=3e-3),
            model(tau_instance=None),
            model(depth=1),
        ]

    looks = []

    def power_cut_later(progress):
        looks.append(progress.step)
        if len(looks) == n_looks:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        fit_many(grid(), series, checkpoint=tmp_path, callbacks=[power_cut_later])
    assert looks[-1] == 15
    gone_on = fit_many(grid(), series, checkpoint=tmp_path)
    for one, other in zip(gone_on, fit_many(grid(), series), strict=True):
        assert_same_bits(one, other)


@pytest.mark.slow
def test_a_second_fit_goes_on_to_the_same_bits(series, tmp_path):
    straight = model(warm_start=True).fit(series).fit(series)
    halves = model(warm_start=True).fit(series)
    halves.save(tmp_path / "model", training=True)
    interrupted(halves, series, tmp_path / "kept", step=25)
    gone_on = TS2Vec.load(tmp_path / "model").fit(series, checkpoint=tmp_path / "kept")
    assert gone_on.n_iter_ == 36
    assert_same_bits(gone_on, straight)
    with pytest.raises(CheckpointError, match="first_step is 18 there and 36 here"):
        gone_on.fit(series, checkpoint=tmp_path / "kept")


@pytest.mark.parametrize("rule", ["steps", "seconds"])
@pytest.mark.slow
def test_a_killed_process_goes_on_to_the_same_bits(series, tmp_path, rule):
    np.save(tmp_path / "x.npy", series)
    program = textwrap.dedent(
        f"""
        import numpy as np
        from softclt import TS2Vec
        from softclt.training import checkpoint
        if {rule == "seconds"}:
            checkpoint._OVERDUE = 0.01
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
    assert kept.exists()
    params = {"max_iter": 1_000_000, "tau_instance": None, "distance": "dtw"}

    def until(step):
        return lambda progress: progress.step >= step

    steps = []
    gone_on = model(**params).fit(
        series,
        checkpoint=tmp_path / "kept",
        callbacks=[lambda progress: steps.append(progress.step), lambda progress: len(steps) == 2],
    )
    assert steps[0] < gone_on.n_iter_ < 1_000_000
    straight = model(**params).fit(series, callbacks=[until(gone_on.n_iter_)])
    assert_same_bits(gone_on, straight)


def test_a_finished_checkpoint_gives_the_model_at_once(series, tmp_path, monkeypatch):
    first = model().fit(series, checkpoint=tmp_path)
    monkeypatch.setattr("softclt.methods.between.BatchDistances", None)  # neither distances
    monkeypatch.setattr("softclt.methods.many.fit_loop", None)  # nor steps
    again = model().fit(series, checkpoint=tmp_path)
    assert_same_bits(again, first)
    assert again.history_ == first.history_
    np.testing.assert_array_equal(again.transform(series), first.transform(series))


def test_no_training_at_all_is_kept_too(series, tmp_path):
    first = model(max_iter=0).fit(series, checkpoint=tmp_path)
    assert_same_bits(model(max_iter=0).fit(series, checkpoint=tmp_path), first)


def test_without_a_seed_the_kept_one_holds(series, tmp_path):
    interrupted(model(random_state=None), series, tmp_path)
    gone_on = model(random_state=None).fit(series, checkpoint=tmp_path)
    assert_same_bits(gone_on, model(random_state=gone_on.seed_).fit(series))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"lr": 0.01}, "models.0.lr is 0.001 there and 0.01 here"),
        ({"random_state": 1}, "models.0.seed is 0 there and 1 here"),
        ({"max_iter": 20}, "last_step is 18 there and 20 here"),
        ({"depth": 3}, "models.0.depth is 2 there and 3 here"),
    ],
)
@pytest.mark.slow
def test_a_checkpoint_of_other_parameters_is_refused(series, tmp_path, change, what):
    interrupted(model(), series, tmp_path)
    before = (tmp_path / "stack-0.safetensors").read_bytes()
    with pytest.raises(CheckpointError, match=what):
        model(**change).fit(series, checkpoint=tmp_path)
    assert (tmp_path / "stack-0.safetensors").read_bytes() == before


def test_a_checkpoint_of_other_data_or_distances_is_refused(series, tmp_path):
    distances = np.abs(np.subtract.outer(np.arange(11.0), np.arange(11.0)))
    interrupted(model(), series, tmp_path, distances=distances)
    with pytest.raises(CheckpointError, match=r"another run: data is '[0-9a-f]+' there and"):
        model().fit(series + 1e-3, checkpoint=tmp_path, distances=distances)
    with pytest.raises(CheckpointError, match=r"another run: distances is '[0-9a-f]+' there and"):
        model().fit(series, checkpoint=tmp_path, distances=2 * distances)
    with pytest.raises(CheckpointError, match="there and None here"):
        model().fit(series, checkpoint=tmp_path)


def test_a_checkpoint_of_another_version_is_refused(series, tmp_path, monkeypatch):
    interrupted(model(), series, tmp_path)
    monkeypatch.setattr("softclt.persistence.__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"versions.softclt is .* there and '9.9' here"):
        model().fit(series, checkpoint=tmp_path)


@pytest.mark.parametrize("content", [b"", b"no tensors", None])
def test_a_damaged_checkpoint_is_named(series, tmp_path, content):
    interrupted(model(), series, tmp_path)
    path = tmp_path / "stack-0.safetensors"
    path.write_bytes(path.read_bytes()[:-8] if content is None else content)
    with pytest.raises(CheckpointError, match="remove it to begin again"):
        model().fit(series, checkpoint=tmp_path)


def test_a_write_that_fails_leaves_the_last_good_checkpoint(series, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    def disk_fills_up(progress):
        if progress.step == 10:
            monkeypatch.setattr(os, "replace", full)

    with pytest.raises(OSError, match=r"No space left on device; that of step 5 is") as caught:
        model().fit(series, checkpoint=tmp_path, callbacks=[disk_fills_up])
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "stack-0.safetensors")
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["stack-0.safetensors"]
    monkeypatch.undo()
    assert_same_bits(model().fit(series, checkpoint=tmp_path), model().fit(series))


def test_a_folder_that_cannot_be_is_refused_before_any_distance(series, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("softclt.methods.between.BatchDistances", None)
    with pytest.raises(OSError, match=r"checkpoint cannot be written .* there is none yet"):
        model().fit(series, checkpoint=tmp_path / "file")


def test_what_a_killed_process_left_half_written_goes_away(series, tmp_path):
    left = tmp_path / ".stack-0-0123456789ab.safetensors"
    left.write_bytes(b"half of it")
    model().fit(series, checkpoint=tmp_path)
    assert not left.exists()


def test_ctrl_c_keeps_the_step_it_came_at_and_says_how_to_go_on(series, tmp_path, monkeypatch):
    original = loop._Stepper.take

    def ctrl_c_in_step_7(self, step):
        if step == 7:
            signal.raise_signal(signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(loop._Stepper, "take", ctrl_c_in_step_7)
    with pytest.raises(KeyboardInterrupt, match="stopped at step 8 of 18; the same call goes on"):
        model().fit(series, checkpoint=tmp_path)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setattr(loop._Stepper, "take", original)
    seen = []
    gone_on = model().fit(
        series, checkpoint=tmp_path, callbacks=[lambda progress: seen.append(progress.step)]
    )
    assert seen == [10, 15, 18]
    assert_same_bits(gone_on, model().fit(series))


def press_ctrl_c_in_step(wanted, monkeypatch):
    original = loop._Stepper.take

    def take(self, step):
        if step == wanted:
            signal.raise_signal(signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(loop._Stepper, "take", take)


@pytest.mark.parametrize("step", [0, 6, 17])
def test_ctrl_c_without_a_checkpoint_keeps_the_model_as_far_as_it_was_trained(
    series, step, monkeypatch
):
    part, whole = model(max_iter=step + 1).fit(series), model().fit(series)
    press_ctrl_c_in_step(step, monkeypatch)
    stopped = model()
    with (
        pytest.warns(UserWarning, match=f"{step + 1} of 18 steps.*warm_start"),
        pytest.raises(KeyboardInterrupt, match=f"stopped at step {step + 1} of 18"),
    ):
        stopped.fit(series)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert stopped.n_iter_ == len(stopped.history_["loss"]) == step + 1
    assert_same_bits(stopped, part)
    monkeypatch.undo()
    rest = stopped.set_params(warm_start=True, max_iter=17 - step).fit(series)
    assert_same_bits(rest, whole)


def test_of_many_models_those_that_have_begun_are_kept(series, monkeypatch):
    models = [model(random_state=seed) for seed in range(3)]
    original = loop._Stepper.take

    def take(self, step):
        if step == 4 and self.course.seeds == [1]:
            signal.raise_signal(signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(loop._Stepper, "take", take)
    with pytest.warns(UserWarning, match="5 of 18 steps"), pytest.raises(KeyboardInterrupt):
        fit_many(models, series)
    assert [getattr(one, "n_iter_", None) for one in models] == [18, 5, None]


def test_ctrl_c_twice_does_not_wait():
    with pytest.raises(KeyboardInterrupt), ctrl_c_waits(True) as pressed:  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        assert pressed()
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second one was ignored")


def test_ctrl_c_is_never_lost():
    with pytest.raises(KeyboardInterrupt), ctrl_c_waits(True):
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_the_caller_stays_in_charge():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with ctrl_c_waits(True) as pressed:
            signal.raise_signal(signal.SIGINT)
            assert not pressed()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def loss_that_breaks(at, monkeypatch):
    original = TS2Vec._loss

    def loss(self, module, batch, draws):
        value = original(self, module, batch, draws)
        return value * float("nan") if draws.step == at else value

    monkeypatch.setattr(TS2Vec, "_loss", loss)


@pytest.mark.slow
def test_a_loss_that_is_no_number_names_step_and_rows_and_is_never_kept(
    series, tmp_path, monkeypatch, caplog
):
    loss_that_breaks(7, monkeypatch)
    rows = batch_rows(0, 7, 11, 4).tolist()
    with pytest.raises(FloatingPointError) as caught:
        model().fit(series, checkpoint=tmp_path)
    text = str(caught.value)
    assert f"the loss became nan at step 7, whose batch was rows {rows} of the 11" in text
    assert "a smaller lr" in text
    monkeypatch.undo()
    gone_on = model().fit(series, checkpoint=tmp_path)
    assert "going on from step 5" in caplog.text
    assert_same_bits(gone_on, model().fit(series))


def test_the_model_of_a_stack_that_breaks_is_named(series, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    original = TS2Vec._loss

    def second_breaks(self, module, batch, draws):
        factor = torch.tensor([1.0, float("inf") if draws.step == 3 else 1.0])
        return original(self, module, batch, draws) * factor

    monkeypatch.setattr(TS2Vec, "_loss", second_breaks)
    with pytest.raises(FloatingPointError, match=r"inf at step 3 of model 1 of 2 \(seed 5\)"):
        fit_many([model(), model(random_state=5)], series)


def test_weights_that_are_no_numbers_are_not_kept_though_the_loss_was_fine(
    series, tmp_path, monkeypatch
):
    original = TS2Vec._loss

    def steep(self, module, batch, draws):
        value = original(self, module, batch, draws)
        if draws.step == 4:  # the last before a look
            next(module.parameters()).register_hook(lambda gradient: gradient * float("nan"))
        return value

    monkeypatch.setattr(TS2Vec, "_loss", steep)
    with pytest.raises(FloatingPointError, match="weights became infinite or nan at step 4"):
        model().fit(series, checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_callbacks_are_told_of_every_look_and_of_the_end(series):
    told = []
    fitted = model().fit(series, callbacks=[told.append])
    assert [(progress.step, progress.n_steps) for progress in told] == [
        (5, 18),
        (10, 18),
        (15, 18),
        (18, 18),
    ]
    losses = fitted.history_["loss"]
    assert [progress.losses for progress in told] == [[losses[k]] for k in (4, 9, 14, 17)]


def test_a_callback_ends_training_and_that_is_kept(series, tmp_path):
    fitted = model().fit(series, checkpoint=tmp_path, callbacks=[lambda p: p.step == 10])
    assert fitted.n_iter_ == len(fitted.history_["loss"]) == 10
    assert_same_bits(fitted, model(max_iter=10).fit(series))
    assert model().fit(series, checkpoint=tmp_path).n_iter_ == 10


def test_a_callback_that_returns_something_else_ends_nothing(series):
    assert model().fit(series, callbacks=[lambda progress: progress.step]).n_iter_ == 18


def test_a_plateau_is_no_gain_in_the_mean_of_any_model():
    stop = stop_on_plateau(patience=3, gain=0.1)
    flat, falling = [5.0, 4.0, 6.0, 5.0, 6.0, 4.0], [5.0, 4.0, 6.0, 3.0, 4.0, 2.0]
    assert not stop(Progress(5, 100, [6.0], [flat[:5]]))
    assert stop(Progress(6, 100, [4.0], [flat]))
    assert not stop(Progress(6, 100, [2.0], [falling]))
    assert not stop(Progress(6, 100, [4.0, 2.0], [flat, falling]))
