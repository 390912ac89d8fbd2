"""Two processes with half of each batch make the model that one makes with the whole batch."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import pair
from softclt import fit_many, load_model
from softclt.methods.learner import RepresentationLearner
from softclt.training import current_group

pytestmark = pytest.mark.slow

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "USE_LIBUV": "0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pair")
    command = [*TORCHRUN, str(Path(pair.__file__)), str(made)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("with_mask", [False, True])
def test_mean_loss_and_mean_gradient_are_those_of_the_whole_batch(folder, with_mask):
    z1, z2, D, mask = pair.views(with_mask)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    z = scale * z1
    z.retain_grad()
    loss = pair.loss_of(z, z2, D, mask)
    loss.backward()
    parts = [torch.load(folder / f"loss-{with_mask}-{rank}.pt") for rank in (0, 1)]
    torch.testing.assert_close(sum(part["loss"] for part in parts) / 2, loss.detach())
    torch.testing.assert_close(torch.cat([part["to_z"] for part in parts]) / 2, z.grad)
    torch.testing.assert_close(sum(part["to_scale"] for part in parts) / 2, scale.grad)


@pytest.mark.parametrize("case", [case for case in pair.CASES if case != "command"])
def test_two_times_32_equals_one_times_64(folder, case, monkeypatch):
    monkeypatch.setattr(RepresentationLearner, "_stack_size", lambda self, x: 100)
    settings = pair.CASES[case]
    tolerance = 1e-3 if case == "float32" else 1e-6
    alone = fit_many(map(pair.learner, settings), pair.series(case))
    for i, model in enumerate(alone):
        for rank in (0, 1):
            found = torch.load(folder / f"{case}-{i}-{rank}.pt")
            np.testing.assert_allclose(found["loss"], model.history_["loss"], rtol=tolerance)
            for name, value in model.module_.named_parameters():
                largest = float(value.detach().abs().max())
                torch.testing.assert_close(
                    found["parameters"][name], value.detach(), rtol=0, atol=tolerance * largest
                )


def test_both_processes_have_the_same_bits_and_the_first_saves_them(folder):
    mine, other = (torch.load(folder / f"soft-0-{rank}.pt") for rank in (0, 1))
    assert mine["loss"] == other["loss"]
    saved = dict(load_model(folder / "soft-0").module_.named_parameters())
    for name, value in mine["parameters"].items():
        assert torch.equal(value, other["parameters"][name])
        assert torch.equal(value, saved[name].detach())


def test_without_a_seed_the_processes_agree_on_one(folder):
    assert torch.load(folder / "seed-0.pt") == torch.load(folder / "seed-1.pt")


def test_a_batch_that_cannot_be_shared_is_refused_by_all(folder):
    for rank in (0, 1):
        text = (folder / f"uneven-{rank}.txt").read_text()
        assert "a batch has 7 series, which 2 processes cannot share evenly" in text


def test_one_process_alone_is_a_group_of_its_own():
    group = current_group()
    assert (group.rank, group.size, group.part(5)) == (0, 1, slice(0, 5))
    assert group.any(True)
    assert not group.any(False)
    x = torch.ones(2, 3)
    group.average_([x])
    assert torch.equal(group.gather(x, 0), torch.ones(2, 3))


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of torchrun in /proc")
def test_the_command_under_torchrun_goes_on_after_a_kill_to_the_same_bits(folder, tmp_path):
    np.savez(tmp_path / "x.npz", X=pair.series("command"))
    (settings,) = pair.CASES["command"]
    command = [
        *(*TORCHRUN, "-m", "softclt", "fit", str(tmp_path / "x.npz")),
        *("--out", str(tmp_path / "model"), "--checkpoint", str(tmp_path / "kept")),
        *(part for name, value in settings.items() for part in ("--set", f"{name}={value}")),
    ]
    with (tmp_path / "log.txt").open("w") as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
        kept, deadline = tmp_path / "kept" / "stack-0.safetensors", time.monotonic() + 120
        while not kept.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert kept.exists(), (tmp_path / "log.txt").read_text()
        kill_a_worker(process.pid)
        process.wait(timeout=60)
    assert not (tmp_path / "model").exists(), "it was over before it was killed"
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("going on from step") == 1  # one process speaks
    one, other = load_model(tmp_path / "model"), load_model(folder / "command-0")
    assert one.history_["loss"] == other.history_["loss"]
    for name, value in one.module_.named_parameters():
        assert torch.equal(value, dict(other.module_.named_parameters())[name])


def kill_a_worker(pid):
    """``kill -9``, as for want of memory; torchrun then ends the others."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
