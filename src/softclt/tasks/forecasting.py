"""Forecasting of ETT and weather kind: fit without labels, let a ridge read each step's embedding.

Beside every score stand those of the last value, of the last day and of a ridge on the last values
themselves, so that a reader sees whether learning helped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softclt.data import Dataset
from softclt.forecasting.protocol import (
    CONTEXT,
    Prepared,
    Score,
    check_parts,
    embedding_features,
    horizons_of,
    lag_features,
    prepare,
    read_horizons,
    repeat_last,
)
from softclt.tasks.evaluation import Clock, Outcome, tasks
from softclt.tasks.kept import kept
from softclt.validation import check_range


@tasks.register(
    "forecasting",
    metric="mse",
    beside={"naive": "last value", "seasonal": "last day", "ridge": "ridge on last values"},
)
def run(
    model: Any, data: Dataset, *, horizons: Sequence[int] | None = None, context: int = CONTEXT
) -> Outcome:
    """Fit ``model`` on the training part of long series; score forecasts of the test part.

    All channels are forecast. Metrics are errors on scaled data: ``mse`` and ``mae``, means over
    horizons, ``24.mse`` and so on of each, and ``naive.``, ``seasonal.`` (a day ago; only where
    the times tell how long a day is) and ``ridge.`` before the same names for what does not learn:
    the last value, the last day, and a ridge for each channel on its last ``context`` values.

    Args:
        model: An unfitted estimator whose ``encode`` gives ``(N, T, M)``.
        data: Long series, without missing values; their times, if dates, give calendar features.
        horizons: Steps ahead; the published ones of the data set if None.
        context: How far back a step sees.
    """
    if not hasattr(model, "encode"):
        raise TypeError(f"{type(model).__name__} has no encode(level='timestamp'): use a method")
    name = str(data.meta["name"])
    wanted = _wanted(horizons_of(name) if horizons is None else horizons)
    check_range(context, "context", 1)
    prepared = prepare(data)
    y, parts = prepared.y, prepared.parts
    check_parts(parts, wanted[-1], context)
    key = data.fingerprint, wanted, context  # scores of what does not learn: for all models
    clock = Clock()
    baselines: dict[Any, dict[str, float]] = kept().setdefault("forecasts", {})
    if key not in baselines:
        baselines[key] = _baselines(prepared, wanted, context)
    clock.lap("baselines")
    model.fit(prepared.x[..., : parts.train])
    clock.lap("fit")
    Z = model.encode(prepared.x, level="timestamp", causal=True, context=context)  # (N, T, M)
    clock.lap("encode")
    scores = read_horizons(embedding_features(Z), y, parts, wanted, context=context)
    clock.lap("ridge")
    return Outcome(_named("", scores) | baselines[key], clock.seconds, probe="ridge")


def _wanted(horizons: Any) -> tuple[int, ...]:
    """Horizons, each once, the shortest first."""
    if not isinstance(horizons, (list, tuple, range, np.ndarray)) or not len(horizons):
        raise ValueError(f"horizons is {horizons!r}; expected one or more steps, like [24, 48]")
    for horizon in horizons:
        check_range(horizon, "each of horizons", 1)
        if horizon != int(horizon):
            raise ValueError(f"each of horizons is a whole number of steps; found {horizon!r}")
    return tuple(sorted({int(horizon) for horizon in horizons}))


def _baselines(prepared: Prepared, horizons: Sequence[int], context: int) -> dict[str, float]:
    y, parts = prepared.y, prepared.parts
    each = [
        read_horizons(lag_features(channel, context), channel, parts, horizons, context=context)
        for channel in np.split(y, y.shape[1], axis=1)
    ]
    ridge = {
        horizon: Score(*np.mean([scores[horizon][:2] for scores in each], axis=0))
        for horizon in horizons
    }
    found = _named("naive.", {h: repeat_last(y, parts, h) for h in horizons})
    if (day := prepared.period) is not None:
        found |= _named("seasonal.", {h: repeat_last(y, parts, h, day) for h in horizons})
    return found | _named("ridge.", ridge)


def _named(prefix: str, scores: Mapping[int, Score]) -> dict[str, float]:
    """Means over horizons, then each of them, shortest first."""
    named = {
        f"{prefix}{m}": float(np.mean([getattr(s, m) for s in scores.values()])) for m in _METRICS
    }
    for horizon in sorted(scores):
        for metric in _METRICS:
            named[f"{prefix}{horizon}.{metric}"] = float(getattr(scores[horizon], metric))
    return named


_METRICS = ("mse", "mae")
