"""Commands that are killed anywhere, that find no room or no right to write, and two at a time."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attacks.cases import REFUSED, RIGHT, LeftOutError, WrongError

_CAPABILITY_VERSION = 0x20080522
_OVERRIDES = 0b110  # of the rights to write and to read files
LONGEST = 600.0  # seconds of a command: others may work beside
SERIES, STEPS = 24, 60
SIZES = ["output_dims=16", "hidden_dims=8", "depth=4", "max_iter=250", "device=cpu"]
SETTINGS = [word for size in SIZES for word in ("--set", size)]

Prepare = Callable[[], None]


def _series(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(SERIES, STEPS)).cumsum(axis=1)
    X[::2] += 3 * np.sin(np.arange(STEPS))
    frame = pd.DataFrame(X, columns=[f"t{i}" for i in range(STEPS)])
    frame.insert(0, "id", [f"s{i}" for i in range(SERIES)])
    frame.to_csv(folder / "series.csv", index=False)
    labels = pd.DataFrame({"id": [f"s{i}" for i in range(8)], "label": ["a", "b"] * 4})
    labels.to_csv(folder / "few.csv", index=False)
    frame.assign(label=["a", "b"] * (SERIES // 2)).to_csv(folder / "labelled.csv", index=False)
    return folder


SUITE = """[mine]
data = ["synthetic/waves"]
seeds = 2
[mine.configurations.hard]
params = { output_dims = 8, hidden_dims = 4, depth = 2, max_iter = 60, tau_instance = "none" }
[mine.configurations.soft]
control = "hard"
params = { output_dims = 8, hidden_dims = 4, depth = 2, max_iter = 60 }
"""


def _fit(folder: Path) -> list[str]:
    files = ["--out", f"{folder}/model", "--checkpoint", f"{folder}/kept", "--force"]
    return ["fit", f"{folder}/series.csv", *files, *SETTINGS]


def _distances(folder: Path) -> list[str]:
    return ["distances", f"{folder}/series.csv", "--out", f"{folder}/store", "--jobs", "1"]


def _bench(folder: Path) -> list[str]:
    (folder / "mine.toml").write_text(SUITE)
    out = ["--out", f"{folder}/results", "--device", "cpu", "--workers", "1"]
    return ["bench", f"{folder}/mine.toml", *out]


def _classify(folder: Path) -> list[str]:
    files = ["--labels", f"{folder}/few.csv", "--out", f"{folder}/predictions.csv", "--force"]
    kept = ["--checkpoint", f"{folder}/kept"]
    return ["classify", f"{folder}/series.csv", *files, *kept, *SETTINGS]


def _classify_all(folder: Path) -> list[str]:
    return ["classify", f"{folder}/labelled.csv", "--out", f"{folder}/predictions.csv", "--force"]


def _embed(folder: Path) -> list[str]:
    return ["embed", "base", f"{folder}/series.csv", "--out", f"{folder}/e.csv", "--force"]


def _export(folder: Path) -> list[str]:
    return ["export", "base", "--out", f"{folder}/base.onnx", "--force"]


COMMANDS = {
    "fit": _fit,
    "distances": _distances,
    "bench": _bench,
    "classify": _classify,
    "classify by all labels": _classify_all,
    "embed": _embed,
    "export": _export,
}


def _model_of(folder: Path) -> Any:
    from softclt import load_model

    weights = load_model(folder / "model").module_.state_dict()
    return {name: value.numpy().tobytes() for name, value in weights.items()}


def _store_of(folder: Path) -> Any:
    from softclt.distances import open_store

    return np.asarray(open_store(folder / "store")).tobytes()


def _results_of(folder: Path) -> Any:
    from softclt.tasks import read_results

    found = read_results(folder / "results" / "mine.jsonl")
    return sorted((r.identity(), json.dumps(r.metrics), r.error) for r in found)


def _predictions_of(folder: Path) -> Any:
    return (folder / "predictions.csv").read_text()


def _bytes_of(name: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).read_bytes()


PRODUCTS: dict[str, Callable[[Path], Any]] = {
    "fit": _model_of,
    "distances": _store_of,
    "bench": _results_of,
    "classify": _predictions_of,
    "classify by all labels": _predictions_of,
    "embed": _bytes_of("e.csv"),
    "export": _bytes_of("base.onnx"),
}


def start(args: list[str], said: Path, prepare: Prepare = lambda: None) -> int:
    """A command in a process of its own, which has imported what we have: its number."""
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(output, 1)
        os.dup2(output, 2)
        prepare()
        from softclt.cli.app import app

        app(args)
        os._exit(0)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
        os._exit(99)


def ended(child: int) -> int:
    """The exit code of a process that is started; one that hangs is wrong."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise WrongError(f"a command hangs for {LONGEST:.0f} s")


def run(args: list[str], folder: Path, prepare: Prepare = lambda: None) -> tuple[int, str]:
    """Exit code of a command, and what it said."""
    said = folder / "said.txt"
    code = ended(start(args, said, prepare))
    return code, said.read_text(errors="replace")


def check_words(code: int, text: str) -> None:
    """What failed says so in clear words."""
    if code not in (1, 2) or "Traceback" in text or "mistake in softclt" in text or not text:
        raise WrongError(f"exit code {code}: {' '.join(text.split())[-200:]}")


@cache
def _whole(command: str) -> tuple[Any, float]:
    """What a command makes when nothing stops it, and its seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = _series(Path(name))
        args = COMMANDS[command](folder)
        run(args, folder)  # compiles what has to be compiled
        with tempfile.TemporaryDirectory() as again:
            other = _series(Path(again))
            began = time.monotonic()
            code, text = run(COMMANDS[command](other), other)
            seconds = time.monotonic() - began
            if code:
                raise WrongError(f"{command} fails undisturbed: {text[-200:]}")
            return PRODUCTS[command](other), seconds


def kill_case(seed: int, number: int, folder: Path) -> str:
    """Kill a command somewhere in its run, often twice, and let it go on to the end."""
    rng = np.random.default_rng([seed, 3, number])
    command = list(COMMANDS)[number % len(COMMANDS)]
    expected, seconds = _whole(command)
    _series(folder)
    args = COMMANDS[command](folder)
    place = (number // len(COMMANDS) * 0.618034) % 1  # spread over the whole run
    for share in (place, float(rng.random()))[: 1 + int(rng.random() < 0.3)]:
        child = start(args, folder / "said.txt")
        time.sleep(share * seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        ended(child)
    code, text = run(args, folder)
    if code:
        raise WrongError(f"{command}, killed at {place:.2f}, then: {' '.join(text.split())[-200:]}")
    if PRODUCTS[command](folder) != expected:
        raise WrongError(f"{command}, killed at {place:.2f} of its run, ends with something else")
    return RIGHT


def disk_case(seed: int, number: int, folder: Path) -> str:
    """No room for a file beyond some bytes, or no right to write; then again with both."""
    rng = np.random.default_rng([seed, 4, number])
    command = list(COMMANDS)[number % len(COMMANDS)]
    expected, _ = _whole(command)
    _series(folder)
    args = COMMANDS[command](folder)
    if number // len(COMMANDS) % 2:
        folder.chmod(0o555)
        prepare = _obey_rights
    else:
        room = int(10 ** rng.uniform(1, 5))

        def prepare() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    code, text = _run_with_words(args, prepare)
    folder.chmod(0o755)
    if code:
        check_words(code, text)
    again, words = run(args, folder)
    if again:
        raise WrongError(f"{command} does not go on: {' '.join(words.split())[-200:]}")
    if PRODUCTS[command](folder) != expected:
        raise WrongError(f"{command} ends with something else after a disk that was full")
    return REFUSED if code else RIGHT


def _obey_rights() -> None:
    """Let root, who may write anywhere, keep to the rights of files as others have to."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable ones, twice
    if libc.capget(header, held) == 0:
        for place in range(3):
            held[place] &= ~_OVERRIDES & 0xFFFFFFFF
        libc.capset(header, held)
    if os.getuid() == 0 and libc.capget(header, held) == 0 and held[0] & _OVERRIDES:
        raise LeftOutError("root cannot give up its rights here")


def _run_with_words(args: list[str], prepare: Prepare) -> tuple[int, str]:
    """As `run`, with what is said going through a pipe, which has room."""
    reading, writing = os.pipe()
    child = start(args, Path(f"/dev/fd/{writing}"), prepare)
    os.close(writing)
    text = b""
    while part := os.read(reading, 65536):
        text += part
    os.close(reading)
    return ended(child), text.decode(errors="replace")


def two_case(seed: int, number: int, folder: Path) -> str:
    """The same command twice at once: the result is right, and who is refused is told why."""
    rng = np.random.default_rng([seed, 5, number])
    command = list(COMMANDS)[number % len(COMMANDS)]
    expected, seconds = _whole(command)
    _series(folder)
    args = COMMANDS[command](folder)
    first = start(args, folder / "first.txt")
    time.sleep(float(rng.random()) * 0.5 * seconds)
    second = start(args, folder / "second.txt")
    codes = [ended(first), ended(second)]
    said = [(folder / f"{name}.txt").read_text(errors="replace") for name in ("first", "second")]
    for code, text in zip(codes, said, strict=True):
        if code:
            check_words(code, text)
    if all(codes):
        raise WrongError(f"{command}: both are refused: {said}")
    found = PRODUCTS[command](folder)
    if command == "bench":  # both may have written a line, and the reports take one
        found = sorted(set(found))
    if found != expected:
        raise WrongError(f"two at once of {command} end with something else")
    history = folder / "kept" / "history-0.jsonl"
    if command == "fit" and len(history.read_text().splitlines()) != 250:
        raise WrongError("two at once double the history")
    return REFUSED if any(codes) else RIGHT
