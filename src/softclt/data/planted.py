"""Anomalies planted in real series, so that it is known where they are."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softclt.data.anomaly import AnomalyData, AnomalySeries
from softclt.registry import Registry
from softclt.validation import (
    Floats,
    Floats64,
    check_choice,
    check_random_state_seed,
    check_range,
    check_series,
    series_lengths,
)

#: Functions ``(values (n,), strength, spread, rng) -> (n,)`` that make a stretch of a channel
#: strange; ``spread`` is the standard deviation of the whole channel. Tag ``steps``: how many
#: steps it takes, as a share of ``length``.
kinds: Registry[Callable[[Floats64, float, float, np.random.Generator], Floats64]] = Registry(
    "kind of anomaly"
)


def _up_or_down(rng: np.random.Generator) -> float:
    return float(rng.choice([-1, 1]))


@kinds.register("point", steps=0.0)
def point(x: Floats64, strength: float, spread: float, rng: np.random.Generator) -> Floats64:
    """One value far off."""
    return x + strength * spread * _up_or_down(rng)


@kinds.register("level", steps=1.0)
def level(x: Floats64, strength: float, spread: float, rng: np.random.Generator) -> Floats64:
    """All values higher, or lower."""
    return x + strength / 2 * spread * _up_or_down(rng)


@kinds.register("trend", steps=1.0)
def trend(x: Floats64, strength: float, spread: float, rng: np.random.Generator) -> Floats64:
    """A slope that ends where it began to be noticed."""
    return x + strength * spread * _up_or_down(rng) * np.linspace(0, 1, len(x))


@kinds.register("frequency", steps=1.0)
def frequency(x: Floats64, strength: float, spread: float, rng: np.random.Generator) -> Floats64:
    """The same shape, run through twice as fast."""
    faster: Floats64 = x[(2 * np.arange(len(x))) % len(x)]
    return faster


@kinds.register("missing beat", steps=1.0)
def missing_beat(x: Floats64, strength: float, spread: float, rng: np.random.Generator) -> Floats64:
    """The value stands still."""
    return np.full(len(x), x[0])


def plant_anomalies(
    X: Any,
    *,
    n: int = 10,
    length: int = 48,
    strength: float = 3.0,
    names: Sequence[str] | None = None,
    behind: float = 0.5,
    random_state: Any = 0,
    name: str = "planted",
) -> AnomalyData:
    """Series with anomalies at known steps, each in one channel.

    Args:
        X: Series ``(N, D, T)``, ``(N, T)`` or a list; they are copied. NaN stays.
        n: Anomalies in each series.
        length: Steps of one, but of a point.
        strength: Of points and trends, in standard deviations of the channel; a level has half.
        names: Kinds, in turn: ``point``, ``level``, ``trend``, ``frequency``, ``missing beat``; all
            if None.
        behind: Share of each series that stays as it is.
        random_state: Of places, channels and directions.
        name: Of the data set.

    Example:
        >>> data = plant_anomalies(np.sin(np.arange(2000) / 9)[None], n=2, names=["level"])
        >>> int(data.series[0].labels.sum()), bool(data.series[0].labels[:1000].any())
        (96, False)
    """
    check_range(n, "n", 1)
    check_range(length, "length", 2)
    check_range(behind, "behind", 0, 1)
    for one in names or ():
        check_choice(one, tuple(kinds), "names")
    X = check_series(X)
    rng = np.random.default_rng(check_random_state_seed(random_state))
    series = []
    for i, steps in enumerate(series_lengths(X)):
        values = X[i, :, :steps].astype(np.float64)
        planted, labels = _planted(values, n, length, strength, names or tuple(kinds), behind, rng)
        series.append(AnomalySeries(f"{name}/{i}", planted, np.arange(steps, dtype=float), labels))
    return AnomalyData.of(series, name=name, delay=None)


def _planted(
    x: Floats64,
    n: int,
    length: int,
    strength: float,
    names: Sequence[str],
    behind: float,
    rng: np.random.Generator,
) -> tuple[Floats, Any]:
    t = x.shape[1]
    first = int(behind * t)
    room = (t - first) // n  # each has a part of the series to itself
    if room < 2 * length:
        raise ValueError(
            f"a series of {t} steps has no room for {n} anomalies of {length} steps behind step "
            f"{first}; give longer series, a smaller n or a smaller length"
        )
    x, labels = x.copy(), np.zeros(t, dtype=bool)
    for k in range(n):
        kind = names[k % len(names)]
        steps = max(1, round(length * kinds.tags(kind)["steps"]))
        start = first + k * room + int(rng.integers(0, room - steps))
        own, channel = slice(start, start + steps), int(rng.integers(len(x)))
        spread = float(np.nanstd(x[channel])) or 1.0
        x[channel, own] = kinds[kind](x[channel, own], strength, spread, rng)
        labels[own] = True
    return x, labels
