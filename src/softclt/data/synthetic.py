"""Small seeded data sets for tests, examples and first steps."""

from typing import Any

import numpy as np

from softclt.data.catalog import datasets
from softclt.data.dataset import Dataset
from softclt.validation import Floats64, check_random_state_seed, check_range

_SHAPES = ("sine", "sawtooth", "square")


@datasets.register("synthetic/waves", ragged=False)
def waves(
    n_per_class: int = 20,
    length: int = 96,
    n_channels: int = 1,
    n_classes: int = 3,
    noise: float = 0.2,
    random_state: Any = 0,
) -> Dataset:
    """Waves whose shape and number of periods tell the class; phase and tempo are random.

    Class c has 2 + c periods of a sine, a sawtooth or a square wave, in turn. Every series starts
    anywhere and is warped in time, so that elastic distances see the classes better than the
    Euclidean one.

    Args:
        n_per_class: Series of each class in the training part, and again in the test part.
        length: Steps of each series.
        n_channels: Channels, each with a phase of its own.
        n_classes: Classes, one or more.
        noise: Standard deviation of the noise; the waves have amplitudes of about 1.
        random_state: Seed; equal seeds give equal data sets.
    """
    for value, name in ((n_per_class, "n_per_class"), (length, "length")):
        check_range(value, name, 1)
    for value, name in ((n_channels, "n_channels"), (n_classes, "n_classes")):
        check_range(value, name, 1)
    check_range(noise, "noise", 0.0)
    rng = np.random.default_rng(check_random_state_seed(random_state))
    y = np.repeat(np.arange(n_classes), n_per_class)  # (N,)
    X_train, X_test = (
        np.stack([_wave(c, length, n_channels, noise, rng) for c in y]) for _ in range(2)
    )
    meta = {
        "name": "synthetic/waves",
        "archive": "synthetic",
        "source": "softclt.data.synthetic.waves",
        "classes": [f"{_SHAPES[c % 3]}-{2 + c}" for c in range(n_classes)],
    }
    return Dataset(X_train, y, X_test, y.copy(), meta)


@datasets.register("synthetic/ragged", ragged=True)
def ragged(
    n_per_class: int = 20,
    length: int = 96,
    min_length: int | None = None,
    n_channels: int = 2,
    n_classes: int = 3,
    noise: float = 0.2,
    missing: float = 0.05,
    random_state: Any = 0,
) -> Dataset:
    """The waves of :func:`waves`, each cut to a random length, with holes.

    Args:
        n_per_class: As in :func:`waves`, like ``n_channels``, ``n_classes`` and ``noise``.
        length: Steps of the longest series.
        min_length: Steps of the shortest series at least; half of ``length`` by default.
        n_channels: Channels.
        n_classes: Classes.
        noise: Standard deviation of the noise.
        missing: Share of values inside the series that are NaN.
        random_state: Seed; equal seeds give equal data sets.
    """
    shortest = max(1, length // 2) if min_length is None else min_length
    check_range(shortest, "min_length", 1, length)
    check_range(missing, "missing", 0.0, 1.0)
    seed = check_random_state_seed(random_state)
    data = waves(n_per_class, length, n_channels, n_classes, noise, seed)
    rng = np.random.default_rng([seed, 1])
    parts = []
    for X in (data.table("train").X, data.table("test").X):
        lengths = rng.integers(shortest, length + 1, size=len(X))
        lengths[0] = length
        hole = rng.random(X.shape) < missing
        # First and last steps stay, so that a hole never changes a length.
        hole[:, :, 0] = hole[np.arange(len(X)), :, lengths - 1] = False
        padding = np.arange(length) >= lengths[:, None]  # (N, T)
        parts.append(np.where(hole | padding[:, None, :], np.nan, X))
    meta = data.meta | {"name": "synthetic/ragged", "source": "softclt.data.synthetic.ragged"}
    return Dataset(parts[0], data.y_train, parts[1], data.y_test, meta)


def _wave(c: int, length: int, n_channels: int, noise: float, rng: np.random.Generator) -> Floats64:
    """One series ``(D, T)`` of class ``c``."""
    time = np.linspace(0.0, 1.0, length)
    bend = 0.08 * rng.uniform(-1.0, 1.0) * np.sin(np.pi * time) * np.sin(2 * np.pi * time)
    phase = rng.random() + np.arange(n_channels)[:, None] / (n_channels + 1)  # (D, 1)
    turns = (2 + c) * (time + bend) + phase  # (D, T)
    sine = np.sin(2 * np.pi * turns)
    shape: Floats64 = (sine, 2 * (turns % 1.0) - 1.0, np.tanh(8 * sine))[c % 3]
    return rng.uniform(0.8, 1.2) * shape + noise * rng.normal(size=shape.shape)
