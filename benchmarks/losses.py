"""Ours against the textbook way, and soft against hard: time and peak memory, one JSON line each.

`python benchmarks/losses.py [--device cuda] [--quick]`. Times are medians of interleaved repeats,
so that a busy machine slows both sides; memory is the peak above the inputs, on a CPU (Linux) in a
fresh process.
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
from torch import Tensor

from softclt import SoftContrastiveLoss, SoftTemporalLoss
from softclt.assignments import temporal_weights

SERIES, DIMS = 8, 320
REPEATS = {128: 100, 512: 15, 3000: 3}
TAU_INSTANCE, TAU_TEMPORAL = 20.0, 1.0


def textbook_temporal_loss(z1: Tensor, z2: Tensor) -> Tensor:
    """Similarities, log-softmax and weights of all pairs side by side, as one writes it down."""
    t = z1.shape[1]
    weights = temporal_weights(t, TAU_TEMPORAL)
    assert weights is not None
    by_lag = torch.nn.functional.pad(weights, (0, t - len(weights))).to(z1)
    steps = torch.arange(t, device=z1.device)
    targets = by_lag[(steps[:, None] - steps).abs()].repeat(2, 2)  # (2T, 2T)
    itself = torch.eye(2 * t, dtype=torch.bool, device=z1.device)
    z = torch.cat([z1, z2], dim=1)
    logits = (z @ z.mT).masked_fill(itself, float("-inf"))  # (N, 2T, 2T)
    log_p = torch.log_softmax(logits, dim=-1).masked_fill(itself, 0.0)
    return -(targets * log_p).sum(dim=-1).mean()


TEMPORAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ours": SoftTemporalLoss(TAU_TEMPORAL),
    "textbook": textbook_temporal_loss,
}


def main() -> None:
    """Print all lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="short series only, few repeats")
    parser.add_argument("--peak", nargs=2, metavar=("LOSS", "T"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_of_process(TEMPORAL[options.peak[0]], int(options.peak[1])))
        return
    for t in (128, 512) if options.quick else REPEATS:
        repeats = 3 if options.quick else REPEATS[t]
        for line in (
            ours_and_textbook(t, repeats, options.device),
            soft_and_hard(t, repeats, options.device),
            training_step(t, repeats, options.device),
        ):
            print(json.dumps(line), flush=True)


def ours_and_textbook(t: int, repeats: int, device: str) -> dict[str, Any]:
    """The soft temporal loss, forward and backward."""
    z = views(t, device)
    values = {name: loss(*z).item() for name, loss in TEMPORAL.items()}
    assert abs(values["ours"] - values["textbook"]) < 1e-4 * abs(values["textbook"]), values
    runs = {name: partial(step, loss, *z) for name, loss in TEMPORAL.items()}
    seconds = medians(runs, repeats, device)
    peaks = {name: peak(name, t, device) for name in TEMPORAL}
    return {
        "benchmark": "soft temporal loss, ours / textbook",
        **about(t, device),
        **{f"{name}_ms": round(1e3 * s, 2) for name, s in seconds.items()},
        "time_ratio": round(seconds["ours"] / seconds["textbook"], 3),
        **{f"{name}_mib": round(p / 2**20, 1) for name, p in peaks.items()},
        "memory_ratio": round(peaks["ours"] / peaks["textbook"], 3),
    }


def soft_and_hard(t: int, repeats: int, device: str) -> dict[str, Any]:
    """The hierarchical loss, forward and backward."""
    z = views(t, device)
    d = torch.rand(SERIES, SERIES, generator=torch.Generator().manual_seed(1)).to(device)
    soft = SoftContrastiveLoss(TAU_INSTANCE, TAU_TEMPORAL)
    hard = SoftContrastiveLoss(None, None)
    runs = {"soft": partial(step, soft, *z, d), "hard": partial(step, hard, *z)}
    return ratio("hierarchical loss, soft / hard", medians(runs, repeats, device), t, device)


def training_step(t: int, repeats: int, device: str) -> dict[str, Any]:
    """A step of TS2Vec; distances are there beforehand.

    Every fit takes the same steps with the same crops: what torch compiles for a length is there
    after the first turn.
    """
    from softclt import TS2Vec

    rng = np.random.default_rng(0)
    x, d = rng.normal(size=(SERIES, 1, t)), rng.random((SERIES, SERIES))
    n_steps = 4 if t > 512 else 10
    shared: dict[str, Any] = {"max_iter": n_steps, "random_state": 0, "device": device}
    models = {
        "soft": TS2Vec(tau_instance=TAU_INSTANCE, tau_temporal=TAU_TEMPORAL, **shared),
        "hard": TS2Vec(tau_instance=None, tau_temporal=None, **shared),
    }
    runs = {name: partial(model.fit, x, None, d) for name, model in models.items()}
    seconds = medians(runs, max(3, repeats // 4), device)
    by_step = {name: s / n_steps for name, s in seconds.items()}
    return ratio("TS2Vec training step, soft / hard", by_step, t, device)


def ratio(benchmark: str, seconds: dict[str, float], t: int, device: str) -> dict[str, Any]:
    """A line with both times and what soft costs."""
    return {
        "benchmark": benchmark,
        **about(t, device),
        **{f"{name}_ms": round(1e3 * s, 2) for name, s in seconds.items()},
        "time_ratio": round(seconds["soft"] / seconds["hard"], 3),
    }


def about(t: int, device: str) -> dict[str, Any]:
    """Where and on what."""
    name = torch.cuda.get_device_name() if device.startswith("cuda") else "cpu"
    return {"shape": [SERIES, t, DIMS], "device": name, "threads": torch.get_num_threads()}


def views(t: int, device: str) -> tuple[Tensor, Tensor]:
    """Two views with the spread that trained embeddings have."""
    rng = torch.Generator().manual_seed(0)
    z1, z2 = 0.3 * torch.randn(2, SERIES, t, DIMS, generator=rng)
    return z1.to(device).requires_grad_(), z2.to(device).requires_grad_()


def step(loss: Callable[..., Tensor], z1: Tensor, z2: Tensor, *rest: Tensor) -> None:
    """Forward and backward."""
    z1.grad = z2.grad = None
    loss(z1, z2, *rest).backward()  # type: ignore[no-untyped-call]


def medians(runs: dict[str, partial[Any]], repeats: int, device: str) -> dict[str, float]:
    """Median seconds of each, taking turns; the first turn is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(1 + repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if device.startswith("cuda"):
                torch.cuda.synchronize()
            if repeat > 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(s) for name, s in seconds.items()}


def peak(name: str, t: int, device: str) -> int:
    """Bytes above the inputs at the highest point of forward and backward."""
    if not device.startswith("cuda"):
        command = [sys.executable, __file__, "--peak", name, str(t)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    z = views(t, device)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step(TEMPORAL[name], *z)
    return torch.cuda.max_memory_allocated() - before


def peak_of_process(loss: Callable[[Tensor, Tensor], Tensor], t: int) -> int:
    """The same from the resident memory of this process, which has to be a fresh one."""
    step(loss, *views(8, "cpu"))  # libraries and threads are there
    z = views(t, "cpu")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before = resident("VmRSS")
    step(loss, *z)
    return resident("VmHWM") - before


def resident(field: str) -> int:
    """Bytes of resident memory, now (VmRSS) or at most (VmHWM)."""
    (line,) = (s for s in Path("/proc/self/status").read_text().splitlines() if field in s)
    return 1024 * int(line.split()[1])


if __name__ == "__main__":
    main()
