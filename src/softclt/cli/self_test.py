"""A few small jobs with known answers: whether this installation computes what it should."""

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softclt.methods import TS2Vec
    from softclt.validation import Floats

LIBRARIES = ("torch", "numpy", "scipy", "sklearn", "numba", "pandas", "safetensors", "typer")

# First values of the embeddings of `known_series` by base-1, measured on a CPU in float32.
KNOWN_MODEL = "base-1"
KNOWN_VALUES = (
    (-2.0304492, -1.5310645, -0.40628213, 5.1309385),
    (-0.6445084, 0.30057657, 3.8510656, 2.1858506),
    (0.71802133, 2.749937, 2.5503514, 1.443465),
)
TOLERANCE = 0.01  # processors and versions of torch differ by some 1e-5
GPU_TOLERANCE = 0.1  # products may be rounded to TF32

# Pairs of series, and their DTW distance by hand.
KNOWN_DISTANCES = (
    ((0.0, 1.0, 2.0), (0.0, 2.0, 2.0), 1.0),
    ((0.0, 0.0, 3.0, 0.0), (0.0, 3.0, 0.0, 0.0), 0.0),
    ((1.0, 1.0, 1.0), (3.0, 3.0, 3.0), math.sqrt(12.0)),
)


class CheckFailed(Exception):
    """What a check found is not what it should be."""


@dataclass(frozen=True)
class Check:
    """How a check ended.

    Attributes:
        name: Of the check.
        ok: Whether it passed.
        detail: What was found, or what is wrong.
        seconds: How long it took.
    """

    name: str
    ok: bool
    detail: str
    seconds: float


def run_checks() -> list[Check]:
    """Run all checks; one that fails, whatever the error, does not stop the others."""
    checks: dict[str, Callable[[], str]] = {
        "libraries": _libraries,
        "models": _models,
        "embedding": _embedding,
        "distances": _distances,
        "training": _training,
        "files": _files,
    }
    return [_run(name, check) for name, check in checks.items()]


def known_series() -> "Floats":
    """A sine, a square wave and a saw tooth of 64 steps, ``(3, 64)``."""
    import numpy as np

    steps = np.arange(64.0)
    square = np.where(steps % 16 < 8, 1.0, -1.0)
    return np.stack([np.sin(2 * np.pi * steps / 16), square, (steps % 16) / 8 - 1])


def _run(name: str, check: Callable[[], str]) -> Check:
    start = time.perf_counter()
    try:
        ok, detail = True, check()
    except Exception as error:  # a broken installation fails in any way
        kind = "" if isinstance(error, CheckFailed) else f"{type(error).__name__}: "
        ok, detail = False, " ".join(f"{kind}{error}".split())
    return Check(name, ok, detail, time.perf_counter() - start)


def _libraries() -> str:
    for library in LIBRARIES:
        import_module(library)
    return "all can be imported"


def _models() -> str:
    from softclt import pretrained

    found = []
    for name in pretrained.versions():
        weights = pretrained.find_weights(name)
        found.append(f"{name} (SHA-256 {weights.digest[:12]})")
    if not found:
        raise CheckFailed("none is in the package; install softclt again")
    return f"{', '.join(found)}: whole"


def _embedding() -> str:
    import torch

    from softclt.methods import load_pretrained

    worst = _largest_error(load_pretrained(KNOWN_MODEL, device="cpu").transform(known_series()))
    if not worst <= TOLERANCE:
        raise CheckFailed(f"{KNOWN_MODEL} is {worst:.2g} from its known values on the CPU")
    if not torch.cuda.is_available():
        return f"{KNOWN_MODEL} gives its known values, at most {worst:.0e} off"
    on_gpu = load_pretrained(KNOWN_MODEL, device="cuda").transform(known_series())
    worst_gpu = _largest_error(on_gpu)
    if not worst_gpu <= GPU_TOLERANCE:
        raise CheckFailed(f"{KNOWN_MODEL} is {worst_gpu:.2g} from its known values on the GPU")
    return f"{KNOWN_MODEL} gives its known values, at most {worst:.0e} off, GPU {worst_gpu:.0e}"


def _largest_error(embedding: "Floats") -> float:
    import numpy as np

    known = np.array(KNOWN_VALUES)
    return float(np.max(np.abs(embedding[:, : known.shape[1]] - known)))


def _distances() -> str:
    from softclt.distances import pairwise_distance

    for x, y, known in KNOWN_DISTANCES:
        found = float(pairwise_distance([x, y], metric="dtw")[0, 1])
        if not math.isclose(found, known, abs_tol=1e-9):
            raise CheckFailed(f"DTW of {x} and {y} is {found:.6g}; it should be {known:.6g}")
    return f"DTW of {len(KNOWN_DISTANCES)} pairs is what it is by hand"


def _training() -> str:
    import numpy as np

    first, second = (_tiny_model().fit(known_series()) for _ in range(2))
    losses = first.history_["loss"]
    if not all(map(math.isfinite, losses)):
        raise CheckFailed(f"the loss of a tiny model is {losses[-1]}")
    if not np.allclose(first.transform(known_series()), second.transform(known_series())):
        raise CheckFailed("two fits with the same seed gave different embeddings")
    return f"{len(losses)} steps, twice with the same seed: the same model"


def _files() -> str:
    import numpy as np

    from softclt.methods import load_model

    X = known_series()
    model = _tiny_model(max_iter=1).fit(X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        same = load_model(Path(folder) / "model")
        if not np.array_equal(model.transform(X), same.transform(X)):
            raise CheckFailed("a model that was saved and loaded gives other embeddings")
    return "a model was saved and loaded"


def _tiny_model(max_iter: int = 3) -> "TS2Vec":
    from softclt.methods import TS2Vec

    return TS2Vec(
        output_dims=8,
        hidden_dims=8,
        depth=2,
        distance="euclidean",  # another kernel would take seconds to compile
        batch_size=3,
        max_iter=max_iter,
        random_state=0,
    )
