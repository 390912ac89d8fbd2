"""Causal encoding of every step against a forward pass a window, and streams: one JSON line each.

`python benchmarks/dense.py [--quick] [--million]`. One thread, the network of the paper (depth 10,
M = 320, untrained) and its context of 200 steps. Times are medians of interleaved repeats, so that
a busy machine slows both sides; peak memory is that of a fresh process (Linux). `--million` adds
series of a million steps, which take minutes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softclt import TS2Vec

CONTEXT = 200
BATCH = 256  # windows in a forward pass of the plain way, as in TS2Vec's code
REPEATS = {2_000: 3, 20_000: 1}

Run = Callable[[], Any]


@torch.no_grad()
def unfold_and_batch(model: TS2Vec, x: NDArray[np.float32], hide: bool) -> NDArray[np.float32]:
    """The plain way: every window through the whole network, all but the last step thrown away."""
    seen = torch.as_tensor(model._scaled(x, model.scale_))  # (1, D, T)
    before = seen.new_full((*seen.shape[:2], CONTEXT), float("nan"))
    windows = torch.cat([before, seen], dim=-1).unfold(-1, CONTEXT + 1, 1)[0].transpose(0, 1)
    passes = []
    for hidden in (False, True) if hide else (False,):
        last = []
        for some in torch.split(windows, BATCH):  # (256, D, 201)
            keep = torch.ones(len(some), CONTEXT + 1, dtype=torch.bool)
            keep[:, -1] = not hidden
            last.append(model.module_(some, keep)[:, -1])
        passes.append(torch.cat(last))
    return torch.stack(passes).numpy()  # (1 or 2, T, M)


def at_once(model: TS2Vec, x: NDArray[np.float32], hide: bool) -> NDArray[np.float32]:
    """Ours."""
    if hide:
        return np.stack(model.encode_masked(x, context=CONTEXT))[:, 0]
    return model.encode(x, level="timestamp", causal=True, context=CONTEXT)


def ours_and_plain(t: int, n_channels: int, hide: bool) -> dict[str, Any]:
    """Every step of one series; with ``hide`` also with the step itself hidden."""
    model, x = untrained(n_channels), series(n_channels, t)
    some = x[..., :500]
    apart = np.abs(at_once(model, some, hide) - unfold_and_batch(model, some, hide)).max()
    assert apart < 1e-5, apart
    runs: dict[str, Run] = {
        "ours": partial(at_once, model, x, hide),
        "plain": partial(unfold_and_batch, model, x, hide),
    }
    seconds = medians(runs, REPEATS[t])
    return {
        "benchmark": "causal encoding, plain / ours" + (", seen and hidden" if hide else ""),
        "steps": t,
        "channels": n_channels,
        **{f"{name}_s": round(s, 3) for name, s in seconds.items()},
        "ratio": round(seconds["plain"] / seconds["ours"], 1),
        "largest_difference": float(apart),
    }


def streaming(n_channels: int, n_steps: int) -> dict[str, Any]:
    """A step that arrives, its context being there, beside a forward pass of its window."""
    model, x = untrained(n_channels), series(n_channels, CONTEXT + n_steps)[0]
    pushing, scoring = model.stream(context=CONTEXT), model.stream(context=CONTEXT)
    for stream in (pushing, scoring):
        stream.push(x[:, :CONTEXT])
    seconds: dict[str, list[float]] = {"push": [], "push_change": [], "window": []}
    for t in range(CONTEXT, CONTEXT + n_steps):
        runs: dict[str, Run] = {
            "push": partial(pushing.push, x[:, t]),
            "push_change": partial(scoring.push_change, x[:, t]),
            "window": partial(model.encode, x[None, :, t - CONTEXT : t + 1], level="timestamp"),
        }
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    milliseconds = {
        f"{name}_ms": round(1e3 * statistics.median(s), 2) for name, s in seconds.items()
    }
    return {"benchmark": "stream, a step", "channels": n_channels, **milliseconds}


def peak(what: str, t: int) -> dict[str, Any]:
    """Memory of a process of its own."""
    command = [sys.executable, __file__, "--peak", what, str(t)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {"benchmark": f"peak memory, {what}", "steps": t, **json.loads(done.stdout)}


def peak_of_process(what: str, t: int) -> dict[str, Any]:
    """What t steps need above what is there before; this process has to be a fresh one."""
    # The result of `encode` is (T, M): with M = 320 it would hide all else.
    model = untrained(1, output_dims=16 if what == "encode" else 320)
    run = {
        "encode": partial(model.encode, level="timestamp", causal=True, context=CONTEXT),
        "last_step_change": partial(model.last_step_change, context=CONTEXT),
    }[what]
    run(series(1, 10))  # libraries are there
    x = series(1, t)
    # Not getrusage: its mark starts at that of the process which started this one.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    start = time.perf_counter()
    result = run(x)
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "output_dims": model.output_dims,
        "result_mib": round(result.nbytes / 2**20, 1),
        "added_mib": round(resident("VmHWM") - before, 1),
        "peak_mib": round(resident("VmHWM"), 1),
    }


def resident(field: str) -> float:
    """MiB of resident memory, now (VmRSS) or at most (VmHWM)."""
    (line,) = (s for s in Path("/proc/self/status").read_text().splitlines() if field in s)
    return int(line.split()[1]) / 1024


def untrained(n_channels: int, **options: Any) -> TS2Vec:
    """The network of the paper; its speed does not depend on what it has learned."""
    model = TS2Vec(tau_instance=None, max_iter=0, random_state=0, device="cpu", **options)
    return model.fit(series(n_channels, 100))


def series(n_channels: int, t: int) -> NDArray[np.float32]:
    """One series without gaps."""
    return np.random.default_rng(0).normal(size=(1, n_channels, t)).astype(np.float32)


def medians(runs: dict[str, Run], repeats: int) -> dict[str, float]:
    """Median seconds of each, taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(s) for name, s in seconds.items()}


def main() -> None:
    """Print all lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short series only")
    parser.add_argument("--million", action="store_true", help="also a million steps")
    parser.add_argument("--peak", nargs=2, metavar=("WHAT", "T"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peak:
        print(json.dumps(peak_of_process(options.peak[0], int(options.peak[1]))))
        return
    for t in (2_000,) if options.quick else REPEATS:
        for n_channels in (1, 7):
            for hide in (False, True):
                print(json.dumps(ours_and_plain(t, n_channels, hide)), flush=True)
    for n_channels in (1, 7):
        print(json.dumps(streaming(n_channels, 500)), flush=True)
    lengths = [10_000] if options.quick else [10_000, 100_000]
    for t in [*lengths, *([1_000_000] if options.million else [])]:
        for what in ("last_step_change", "encode"):
            print(json.dumps(peak(what, t)), flush=True)


if __name__ == "__main__":
    main()
