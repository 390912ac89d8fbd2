"""How long does an embedding take: the pre-trained encoder, MiniRocket's transform, TS2Vec?

    python benchmarks/pretrained.py [--threads 2] [--lengths 128 512 2048] [--n 512]

Random walks of one channel. All are warm (compiled, loaded) and fitted; the best of three turns
counts. MiniRocket is aeon's with its 10,000 kernels, on as many threads. `share_of_rate` is the
encoder's arithmetic a second over that of a large float32 product in the same run.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from aeon.transformations.collection.convolution_based import MiniRocket

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
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(0)
    for length in options.lengths:
        X = rng.normal(size=(options.n, 1, length)).cumsum(axis=-1).astype(np.float32)
        own = {
            f"base_{name}": load_pretrained("base", readout=name, device=device).transform
            for name in _READ
        }
        peer = MiniRocket(n_jobs=options.threads, random_state=0).fit(X)
        ts2vec = TS2Vec(max_iter=0, random_state=0, device=device).fit(X[:8])
        functions: dict[str, Callable[[Any], Any]] = {
            **own,
            "minirocket": peer.transform,
            "ts2vec": ts2vec.transform,
        }
        seconds = {name: _best(function, X) for name, function in functions.items()}
        rates = {f"{name}_per_second": round(options.n / s) for name, s in seconds.items()}
        ratios = {
            f"{name}_over_{other}": round(seconds[name] / seconds[other], 2)
            for name in own
            for other in ("minirocket", "ts2vec")
        }
        share = _operations() * options.n / seconds["base_compact"] / _rate()
        line = {"benchmark": "embedding", "device": device, "threads": options.threads}
        line |= {"n": options.n, "length": length}
        print(json.dumps(line | rates | ratios | {"share_of_rate": round(share, 2)}), flush=True)


def _best(function: Callable[[Any], Any], X: Any) -> float:
    function(X)  # compiles
    turns = []
    for _ in range(3):
        start = time.perf_counter()
        function(X)
        turns.append(time.perf_counter() - start)
    return min(turns)


def _operations() -> float:
    """Of the convolutions on one channel of one series at 512 steps."""
    module = load_pretrained("base", device="cpu").module_
    encoder = cast(ProjectedEncoder, module).encoder
    total = 0.0

    def count(module: Any, _: Any, output: Any) -> None:
        nonlocal total
        total += 2 * module.weight.numel() * output.shape[-1]

    hooks = [
        module.register_forward_hook(count)
        for module in encoder.modules()
        if isinstance(module, torch.nn.Conv1d)
    ]
    with torch.no_grad():
        encoder.blocks_of(torch.randn(1, 1, 512))
    for hook in hooks:
        hook.remove()
    return total


def _rate() -> float:
    """Operations a second of a large product."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    return 2 * 2048**3 / _best(lambda x: x @ b, a)


if __name__ == "__main__":
    main()
