"""How long does an embedding take: the pre-trained encoder, MiniRocket's transform, TS2Vec?

    python benchmarks/pretrained.py [--threads 2] [--lengths 128 512 2048] [--n 512] [--turns 3]

Random walks of one channel. All are warm (compiled, loaded) and fitted; the best turn counts.
MiniRocket is aeon's with its 10,000 kernels, on as many threads of the CPU; it is left out where
aeon is not installed. The others run on the GPU if there is one. `share_of_rate` is the compact
encoder's arithmetic a second over that of a large product of its precision in the same run.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch

from softclt import TS2Vec, load_pretrained
from softclt.encoders.residual import ProjectedEncoder

_READ = ("compact", "rich")


def main() -> None:
    """Print a line for each length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lengths", type=int, nargs="*", default=[128, 512, 2048])
    parser.add_argument("--n", type=int, default=512)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="Without the others.")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(0)
    for length in options.lengths:
        steps = rng.standard_normal((options.n, 1, length), dtype=np.float32)
        X = steps.cumsum(axis=-1)
        own: dict[str, Callable[[Any], Any]] = {
            f"base_{name}": load_pretrained("base", readout=name, device=device).transform
            for name in _READ[: 1 if options.alone else 2]
        }
        own["base_compact_bfloat16"] = load_pretrained(
            "base", device=device, precision="bfloat16"
        ).transform
        others = {} if options.alone else _others(X, options.threads, device)
        functions = {**own, **others}
        seconds = {name: _best(function, X, options.turns) for name, function in functions.items()}
        rates = {f"{name}_per_second": round(options.n / s) for name, s in seconds.items()}
        ratios = {
            f"{name}_over_{other}": round(seconds[name] / seconds[other], 2)
            for name in own
            for other in others
        }
        done = _operations(length) * options.n / seconds["base_compact"]
        line = {"benchmark": "embedding", "device": device, "threads": options.threads}
        line |= {"n": options.n, "length": length, **rates, **ratios}
        line |= {"share_of_rate": round(done / _rate(device), 3), **_memory(device)}
        print(json.dumps(line), flush=True)


def _others(X: Any, threads: int, device: str) -> dict[str, Callable[[Any], Any]]:
    """What is compared with."""
    ts2vec = TS2Vec(max_iter=0, random_state=0, device=device).fit(X[:8])
    found: dict[str, Callable[[Any], Any]] = {"ts2vec": ts2vec.transform}
    try:
        from aeon.transformations.collection.convolution_based import MiniRocket
    except ImportError:
        return found
    peer = MiniRocket(n_jobs=threads, random_state=0).fit(X)
    return found | {"minirocket": peer.transform}


def _memory(device: str) -> dict[str, float]:
    """Most of it that was in use so far, in gigabytes."""
    most = {"gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    if device == "cuda":
        most["gigabytes_on_gpu"] = torch.cuda.max_memory_allocated() / 1e9
    return {name: round(value, 2) for name, value in most.items()}


def _best(function: Callable[[Any], Any], X: Any, turns: int = 3) -> float:
    function(X[:64])  # compiles
    seconds = []
    for _ in range(turns):
        start = time.perf_counter()
        function(X)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _operations(length: int) -> float:
    """Of the convolutions on one channel of one series, as `compact` reads it."""
    model = load_pretrained("base", device="cpu")
    encoder = cast(ProjectedEncoder, model.module_).encoder
    total = 0.0

    def count(module: Any, _: Any, output: Any) -> None:
        nonlocal total
        total += 2 * module.weight.numel() * output.shape[-1]

    hooks = [
        module.register_forward_hook(count)
        for module in encoder.modules()
        if isinstance(module, torch.nn.Conv1d)
    ]
    model.transform(np.ones((1, 1, length)))
    for hook in hooks:
        hook.remove()
    return total


def _rate(device: str) -> float:
    """Operations a second of a large product."""
    a, b = (torch.randn(4096, 4096, device=device) for _ in range(2))

    def product(x: Any) -> None:
        float((x @ b).sum())  # waits for it

    return 2 * 4096**3 / _best(product, a)


if __name__ == "__main__":
    main()
