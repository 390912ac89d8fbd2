"""Models as ONNX files beside the models: differences, series a second, sizes; a line for each.

    python benchmarks/exporting.py
    python benchmarks/exporting.py --models base ts2vec --inputs 20

Writes each model with ``softclt.export_onnx`` and gives both the same series: --inputs arrays of
four series, of 2 to 700 steps, some shorter than others, with 10 % of the values missing. The
difference is the largest of any number, as a part of the largest number of its array (or of 1);
of read-outs with shares of steps above 0 it leaves out the hundredth of the numbers that differ
most, since a step at 0 counts or not by rounding. Speeds are of 64 whole series, in one thread, the
median of five calls that take turns. TS2Vec is of the default size; its weights do not matter here.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softclt import OnnxModel, TS2Vec, load_pretrained
from softclt.export import export_onnx
from softclt.export.writing import difference, trial

MODELS: dict[str, Callable[[], Any]] = {
    "base": lambda: load_pretrained("base", device="cpu"),
    "base, rich": lambda: load_pretrained("base", readout="rich", device="cpu"),
    "ts2vec": lambda: _untrained(1),
    "ts2vec, 5 channels": lambda: _untrained(5),
}
SERIES, LENGTHS = 64, (128, 512)


def _untrained(n_channels: int) -> TS2Vec:
    X = np.random.default_rng(0).normal(size=(8, n_channels, 100))
    return TS2Vec(max_iter=0, tau_instance=None, device="cpu", random_state=0).fit(X)


def differences(model: Any, file: OnnxModel, inputs: int) -> list[float]:
    """Of embeddings of arrays of random lengths."""
    rng = np.random.default_rng(1)
    share = 0.99 if "positive" in model.read_out()[0] else 1.0
    found = []
    for n_steps in rng.integers(2, 701, size=inputs).tolist():
        X = trial(model, n_steps)
        found.append(difference(np.asarray(model.transform(X)), file.transform(X), share))
    return found


def speeds(model: Any, file: OnnxModel, n_steps: int) -> tuple[float, float]:
    """Series a second of the model and of the file."""
    X = np.random.default_rng(2).normal(size=(SERIES, model.n_features_in_ or 1, n_steps))
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(6):
        for transform, own in zip((model.transform, file.transform), seconds, strict=True):
            start = time.perf_counter()
            transform(X)
            if turn:  # the first one is to get warm
                own.append(time.perf_counter() - start)
    torch_seconds, onnx_seconds = map(statistics.median, seconds)
    return SERIES / torch_seconds, SERIES / onnx_seconds


def measure(name: str, inputs: int) -> dict[str, Any]:
    """One model."""
    model = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        exported = export_onnx(model, path)
        file = OnnxModel(path, n_threads=1)
        found = differences(model, file, inputs)
        row: dict[str, Any] = {
            "model": name,
            "numbers": len(model.get_feature_names_out()),
            "weights": sum(one.numel() for one in model.module_.state_dict().values()),
            "file_mb": round(exported.n_bytes / 1e6, 2),
            "inputs": inputs,
            "largest_difference": float(f"{max(found):.1e}"),
            "median_difference": float(f"{statistics.median(found):.1e}"),
        }
        for n_steps in LENGTHS:
            of_torch, of_onnx = speeds(model, file, n_steps)
            row |= {
                f"torch_series_per_second_{n_steps}": float(f"{of_torch:.3g}"),
                f"onnx_series_per_second_{n_steps}": float(f"{of_onnx:.3g}"),
                f"onnx_over_torch_{n_steps}": round(of_onnx / of_torch, 2),
            }
    return row


def main() -> None:
    """Each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--inputs", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.models:
        print(json.dumps(measure(name, options.inputs)), flush=True)


if __name__ == "__main__":
    main()
