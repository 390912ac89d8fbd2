"""``softclt fit --checkpoint``: killed, the same command goes on."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from softclt import load_model
from softclt.cli import app
from softclt.training import loop

pytestmark = pytest.mark.slow

STEPS = 600
SETTINGS = {
    "output_dims": 4,
    "hidden_dims": 4,
    "depth": 1,
    "batch_size": 4,
    "distance": "euclidean",
    "max_iter": STEPS,
}


def command(data, out, *words):
    settings = [word for pair in SETTINGS.items() for word in ("--set", "{}={}".format(*pair))]
    return ["fit", str(data), "--out", str(out), *settings, *map(str, words)]


def run(words, code=0):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """Also where the tests run in the background, and their parent ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "series.npy"
    np.save(path, np.random.default_rng(0).normal(size=(10, 1, 20)))
    return path


@pytest.fixture(scope="module")
def undisturbed(data):
    out = data.parent / "undisturbed"
    run(command(data, out))
    return load_file(out / "model.safetensors")


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_command_goes_on_to_the_same_bits(data, undisturbed, tmp_path, blow):
    words = command(data, tmp_path / "model", "--checkpoint", tmp_path / "kept", "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "softclt", *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    kept = tmp_path / "kept" / "stack-0.safetensors"
    deadline = time.monotonic() + 60
    while not kept.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(blow)
    _, err = process.communicate(timeout=60)
    assert not (tmp_path / "model").exists()
    if blow == signal.SIGINT:
        assert process.returncode == 130
        assert f"of {STEPS}; the same call goes on from there" in err
        assert "Traceback" not in err

    result = run(words)
    assert "softclt: going on from step " in result.stderr
    assert json.loads(result.stdout)["iterations"] == STEPS
    weights = load_file(tmp_path / "model" / "model.safetensors")
    assert weights.keys() == undisturbed.keys()
    for name, value in undisturbed.items():
        np.testing.assert_array_equal(weights[name], value)


def test_another_seed_is_refused_in_one_line(data, tmp_path):
    kept = ["--checkpoint", tmp_path / "kept", "--set", "max_iter=1"]
    run(command(data, tmp_path / "model", *kept))
    result = run(command(data, tmp_path / "other", *kept, "--seed", 1), code=2)
    assert "models.0.seed is 0 there and 1 here" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_ctrl_c_without_a_checkpoint_writes_the_model_as_it_is(data, tmp_path, monkeypatch):
    original = loop._Stepper.take

    def take(self, step):
        if step == 4:
            signal.raise_signal(signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(loop._Stepper, "take", take)
    result = run(command(data, tmp_path / "model"), code=130)
    assert "stopped at step 5 of 600" in result.stderr
    assert load_model(tmp_path / "model").n_iter_ == 5
