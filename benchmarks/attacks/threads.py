"""Work in several threads: each gets what it would get alone."""

import os
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attacks.cases import RIGHT, WrongError
from softclt import SeriesClassifier, TS2Vec, load_pretrained, pairwise_distance
from softclt.export import OnnxModel, export_onnx

SMALL: dict[str, Any] = {"output_dims": 8, "hidden_dims": 4, "depth": 2, "device": "cpu"}
X = np.random.default_rng(0).normal(size=(10, 1, 40))


def _fit(seed: int) -> Any:
    model = TS2Vec(**SMALL, max_iter=5, random_state=seed).fit(X)
    return model.transform(X)


def _embed(model: TS2Vec, seed: int) -> Any:
    return model.transform(X[seed % 5 :])


def _classify(seed: int) -> Any:
    y = np.arange(len(X)) % 2
    return SeriesClassifier(device="cpu").fit(X, np.roll(y, seed % 3)).predict_proba(X)


def _pretrained(seed: int) -> Any:
    return load_pretrained("base", device="cpu").transform(X[seed % 5 :])


def _exported(model: OnnxModel, seed: int) -> Any:
    return model.transform(X[seed % 5 :])


def _distances(seed: int) -> Any:
    return pairwise_distance(X[seed % 5 :], metric="dtw", n_jobs=1)


def _state() -> Any:
    numbers: Any = np.random.get_state()  # noqa: NPY002 - that it stays as it was
    random = torch.random.get_rng_state().numpy().tobytes(), numbers[1].tobytes()
    return random, dict(os.environ), list(warnings.filters), torch.get_num_threads()


def thread_case(seed: int, number: int, folder: Path) -> str:
    """Two to four threads with fits, distances, classes or embeddings of their own."""
    kinds: list[Callable[[int], Any]] = [_fit, _distances, _classify, _pretrained]
    model = TS2Vec(**SMALL, max_iter=1, random_state=0).fit(X)
    export_onnx(model, folder / "a.onnx")
    kinds += [partial(_embed, model), partial(_exported, OnnxModel(folder / "a.onnx"))]
    work = kinds[number % len(kinds)]
    seeds = [seed + number + k for k in range(2 + number % 3)]
    alone = [work(own) for own in seeds]
    before = _state()
    found: dict[int, Any] = {}
    errors: list[BaseException] = []

    def run(own: int) -> None:
        try:
            found[own] = work(own)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(own,)) for own in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise WrongError(f"{len(errors)} of {len(seeds)} threads fail: {errors[0]!r}"[:200])
    if not all(np.array_equal(found[own], one) for own, one in zip(seeds, alone, strict=True)):
        raise WrongError("a thread ends with other bits than alone")
    if _state() != before:
        raise WrongError("state of the process has changed")
    return RIGHT
